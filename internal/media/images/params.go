package images

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"millrace/internal/fault"
)

// Kind is what is made.
type Kind string

// The kinds.
const (
	Thumbnail  Kind = "thumbnail"
	Animated   Kind = "animated"
	Storyboard Kind = "storyboard"
)

// extensions are the forms of each kind.
var extensions = map[Kind][]string{ //nolint:gochecknoglobals // a table
	Thumbnail:  {"jpg", "png", "webp"},
	Animated:   {"gif", "webp"},
	Storyboard: {"jpg", "png", "webp", "vtt", "json"},
}

// Fit is how a picture is brought to a size that has another shape.
type Fit string

// The ways.
const (
	Preserve  Fit = "preserve" // as large as it can be within the size
	Stretch   Fit = "stretch"
	Crop      Fit = "crop"      // the middle
	Smartcrop Fit = "smartcrop" // where there is most to see
	Pad       Fit = "pad"       // on black
)

// Bounds of what may be asked for.
const (
	maxSide         = 3840 // of a thumbnail, in pixels
	maxAnimatedSide = 640
	defaultWidth    = 320 // of an animation
	defaultFPS      = 15
	maxFPS          = 30
	defaultLength   = 5 // of an animation, in seconds
	minLength       = 0.25
	maxLength       = 10
)

// Request is what is asked for. Times are in seconds; NaN: not given.
type Request struct {
	Kind Kind
	Ext  string

	Time, ProgramTime float64 // of a thumbnail: in the asset, by the wall clock since 1970
	Latest            bool

	Width, Height int // 0: not given
	Rotate        int // degrees, clockwise
	Fit           Fit
	FlipH, FlipV  bool

	// Start and End are of an animation or a storyboard, ProgramStart and ProgramEnd the same by the wall clock.
	Start, End, ProgramStart, ProgramEnd float64

	FPS    float64
	Format string // of the picture that a storyboard's text leads to
}

// Parse reads the name of an image, such as thumbnail.jpg, and its parameters. fault.NotFound says that there is no
// such image, fault.Invalid what is wrong with the parameters. Of one that is given twice the first counts; unknown
// ones are passed over.
func Parse(name, query string) (Request, error) {
	kind, ext, _ := strings.Cut(name, ".")
	r := Request{Kind: Kind(kind), Ext: ext}
	for _, t := range []*float64{&r.Time, &r.ProgramTime, &r.Start, &r.End, &r.ProgramStart, &r.ProgramEnd} {
		*t = math.NaN()
	}
	if !oneOf(ext, extensions[r.Kind]) {
		return r, fault.New(fault.NotFound, "there is no such image")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return r, fault.New(fault.Invalid, "the query is not well formed")
	}
	p := params{values: values}
	switch r.Kind {
	case Thumbnail:
		p.thumbnail(&r)
	case Animated:
		p.animated(&r)
	case Storyboard:
		p.storyboard(&r)
	}
	return r, p.wrong.Err()
}

func oneOf(s string, all []string) bool {
	return slices.Contains(all, s)
}

// params reads values and collects what is wrong with them.
type params struct {
	values url.Values
	wrong  fault.List
}

func (p *params) thumbnail(r *Request) {
	r.Time, r.ProgramTime, r.Latest = p.seconds("time"), p.seconds("program_time"), p.yes("latest")
	given := 0
	for _, is := range []bool{!math.IsNaN(r.Time), !math.IsNaN(r.ProgramTime), r.Latest} {
		if is {
			given++
		}
	}
	if given > 1 {
		p.wrong.Add("time, program_time and latest can not be given together")
	}
	r.Width, r.Height = p.whole("width", maxSide), p.whole("height", maxSide)
	if v := p.choice("rotate", "90", "180", "270"); v != "" {
		r.Rotate, _ = strconv.Atoi(v) // one of the three
	}
	r.Fit = Fit(p.choice("fit_mode", string(Preserve), string(Stretch), string(Crop), string(Smartcrop), string(Pad)))
	if r.Fit == "" {
		r.Fit = Preserve
	}
	if r.Fit != Preserve && (!p.values.Has("width") || !p.values.Has("height")) {
		p.wrong.Add("fit_mode: %s needs width and height", r.Fit)
	}
	r.FlipH, r.FlipV = p.yes("flip_h"), p.yes("flip_v")
}

func (p *params) animated(r *Request) {
	r.Fit = Preserve
	r.Start, r.End = p.seconds("start"), p.seconds("end")
	if math.IsNaN(r.Start) {
		r.Start = 0
	}
	if !math.IsNaN(r.End) {
		if l := r.End - r.Start; l < minLength-slack || l > maxLength+slack {
			p.wrong.Add("end: must be from %g to %d seconds after start", minLength, maxLength)
		}
	}
	r.Width, r.Height = p.whole("width", maxAnimatedSide), p.whole("height", maxAnimatedSide)
	r.FPS = defaultFPS
	if p.values.Has("fps") {
		r.FPS = p.number("fps", 1, maxFPS)
	}
}

func (p *params) storyboard(r *Request) {
	r.Start, r.End = p.seconds("asset_start_time"), p.seconds("asset_end_time")
	r.ProgramStart, r.ProgramEnd = p.seconds("program_start_time"), p.seconds("program_end_time")
	asset, program := !math.IsNaN(r.Start) || !math.IsNaN(r.End), !math.IsNaN(r.ProgramStart) ||
		!math.IsNaN(r.ProgramEnd)
	if asset && program {
		p.wrong.Add("asset_start_time and asset_end_time can not be given together with program_start_time and " +
			"program_end_time")
	}
	if r.End <= r.Start {
		p.wrong.Add("asset_end_time: must be after asset_start_time")
	}
	if r.ProgramEnd <= r.ProgramStart {
		p.wrong.Add("program_end_time: must be after program_start_time")
	}
	r.Format = p.choice("format", "jpg", "png", "webp")
	if r.Format == "" {
		r.Format = "jpg"
	}
}

// latestSecond is beyond every time that is meant: the year 2286.
const latestSecond = 1e10

// slack is what rounding may do to a time, in seconds.
const slack = 1e-6

func (p *params) seconds(name string) float64 {
	if !p.values.Has(name) {
		return math.NaN()
	}
	return p.number(name, 0, latestSecond)
}

func (p *params) number(name string, low, high float64) float64 {
	v := p.values.Get(name)
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || len(v) > 32 || strings.ContainsAny(v, "xXpP_") || !(f >= low && f <= high) {
		p.wrong.Add("%s: must be a number from %s to %s", name, decimal(low), decimal(high))
		return math.NaN()
	}
	return f
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (p *params) whole(name string, high int) int {
	if !p.values.Has(name) {
		return 0
	}
	n, err := strconv.Atoi(p.values.Get(name))
	if err != nil || n < 1 || n > high {
		p.wrong.Add("%s: must be a whole number from 1 to %d", name, high)
		return 0
	}
	return n
}

func (p *params) yes(name string) bool {
	return p.choice(name, "true", "false", "1", "0") == "true" || p.values.Get(name) == "1"
}

func (p *params) choice(name string, allowed ...string) string {
	if !p.values.Has(name) {
		return ""
	}
	v := p.values.Get(name)
	if !oneOf(v, allowed) {
		p.wrong.Add("%s: must be one of %s", name, strings.Join(allowed, ", "))
		return ""
	}
	return v
}
