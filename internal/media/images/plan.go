package images

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"millrace/internal/fault"
)

// Plan is a request about a video, with every time known.
type Plan struct {
	Request
	// Name is what is kept: two requests for the same bytes have the same. It is a name below a video's Prefix.
	Name string
	// MaxAge is for how many seconds a viewer may keep it.
	MaxAge int
	// From is whose turn it takes to make it: a viewer's address.
	From string

	at     float64 // of a thumbnail; NaN: the newest key frame
	key    bool    // the nearest key frame will do
	length float64 // of an animation or storyboard from Start on, in seconds
	// The range that a storyboard's text leads to: as it was asked for, or as long as the video is now.
	asked [4]float64
}

const (
	ageKept    = 86400 // of what is said by the request alone
	ageDefault = 60    // of the picture that an owner may choose
	ageGrowing = 10    // of what is still live
	ageBoard   = 60    // of a storyboard of what is still live
)

// Plan finds out what a request means for a video.
func (v *Video) Plan(r Request) (Plan, error) {
	if r.Latest && v.Newest == nil {
		return Plan{}, notLive()
	}
	if err := v.check(); err != nil {
		return Plan{}, err
	}
	p := Plan{Request: r, MaxAge: ageKept}
	var err error
	switch r.Kind {
	case Thumbnail:
		err = v.planThumbnail(&p)
	case Animated:
		err = v.planAnimated(&p)
	case Storyboard:
		err = v.planStoryboard(&p)
	}
	if v.Prefix == "" {
		p.MaxAge = ageGrowing
		if r.Kind == Storyboard {
			p.MaxAge = ageBoard
		}
	}
	p.Name = p.name()
	return p, err
}

// notLive is the response to latest where nothing is live.
func notLive() error {
	return fault.New(fault.Invalid, "latest: there is a newest picture only while a live stream is active")
}

func (v *Video) planThumbnail(p *Plan) error {
	length := v.seconds()
	switch {
	case !math.IsNaN(p.ProgramTime):
		at, err := v.program("program_time", p.ProgramTime)
		p.at = at
		return err
	case !math.IsNaN(p.Time):
		if p.at = p.Time; p.at > length+slack {
			return beyond("time", length)
		}
	case p.Latest, v.Short:
		p.at, p.MaxAge = math.NaN(), ageGrowing
	case v.Chosen != nil:
		p.at, p.MaxAge = min(*v.Chosen, length), ageDefault
	default:
		p.at, p.key, p.MaxAge = length/2, true, ageDefault
	}
	p.at = milliseconds(p.at)
	return nil
}

func (v *Video) planAnimated(p *Plan) error {
	length := v.seconds()
	if p.Start >= length {
		return beyond("start", length)
	}
	p.length = defaultLength
	if !math.IsNaN(p.End) {
		p.length = p.End - p.Start
	}
	p.Start = milliseconds(p.Start)
	p.length = milliseconds(min(p.length, length-p.Start))
	return nil
}

func (v *Video) planStoryboard(p *Plan) error {
	var err error
	length, start, end := v.seconds(), p.Start, p.End
	p.asked = [4]float64{p.Start, p.End, p.ProgramStart, p.ProgramEnd}
	if !math.IsNaN(p.ProgramStart) {
		if start, err = v.since("program_start_time", p.ProgramStart); err != nil {
			return err
		}
	}
	if !math.IsNaN(p.ProgramEnd) {
		if end, err = v.until("program_end_time", p.ProgramEnd); err != nil {
			return err
		}
	}
	if math.IsNaN(start) {
		start = 0
	}
	if start >= length {
		return beyond("asset_start_time", length)
	}
	if math.IsNaN(end) || end > length {
		end = length
	}
	if end <= start { // the encoder was away all that time
		return nothing("program_end_time")
	}
	p.Start = milliseconds(start)
	p.length = milliseconds(end - p.Start)
	// The pictures are asked for when it has grown, and then have to be where the text says.
	if v.Prefix == "" && !v.Short {
		v.resolve(p)
	}
	return nil
}

// resolve has the text of a storyboard lead to pictures of what there is now: by the time of day where it was asked for
// by that, as a token that says the time of day allows no other.
func (v *Video) resolve(p *Plan) {
	end := milliseconds(p.Start + p.length)
	if math.IsNaN(p.ProgramStart) && math.IsNaN(p.ProgramEnd) {
		p.asked = [4]float64{p.Start, end, math.NaN(), math.NaN()}
		return
	}
	if most := v.moment(end); math.IsNaN(p.ProgramEnd) || p.ProgramEnd > most {
		p.asked[3] = most
	}
}

func beyond(name string, length float64) error {
	return fault.New(fault.Invalid, "%s: must be from 0 to %s, where it ends", name, decimal(milliseconds(length)))
}

func milliseconds(s float64) float64 { return math.Round(s*1000) / 1000 }

// Text reports whether a storyboard is asked for in words.
func (p *Plan) Text() bool { return p.Ext == "vtt" || p.Ext == "json" }

// version is part of the names of what is kept: what this code makes differently has other names.
const version = "2"

// name follows from what decides about the bytes. The words of a storyboard are kept as a layout, which does not say
// where its pictures are.
func (p *Plan) name() string {
	ext := p.Ext
	if p.Text() {
		ext = "layout"
	}
	var said string
	switch p.Kind {
	case Thumbnail:
		said = fmt.Sprintf("%v %v %d %d %d %s %v %v", p.at, p.key, p.Width, p.Height, p.Rotate, p.Fit, p.FlipH, p.FlipV)
	case Animated:
		said = fmt.Sprintf("%v %v %d %d %v", p.Start, p.length, p.Width, p.Height, p.FPS)
	case Storyboard:
		said = fmt.Sprintf("%v %v", p.Start, p.length)
	}
	sum := sha256.Sum256([]byte(version + " " + said))
	return string(p.Kind) + "-" + hex.EncodeToString(sum[:10]) + "." + ext
}

// Type is the media type of the response.
func (r *Request) Type() string {
	switch r.Ext {
	case "jpg":
		return "image/jpeg"
	case "vtt":
		return "text/vtt; charset=utf-8"
	case "json":
		return "application/json"
	}
	return "image/" + r.Ext
}

// seconds as a duration.
func span(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// most is how many variants of a kind are kept of a video: as many as there are stretches of ten seconds, and at least
// ten.
func (v *Video) most(k Kind) int {
	if k == Storyboard {
		return 12
	}
	return max(10, int(v.seconds()/10))
}
