package packager

import (
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/frame"
)

// Captions takes the closed captions out of the pictures; media/closedcaptions implements it. Times are of the media.
type Captions interface {
	Picture(c frame.Codec, f *frame.Frame)
	// Cut says that a segment ends where a picture is presented, before the segment is whole.
	Cut(at time.Duration)
	// Reset says that nothing goes on behind `at`.
	Reset(at time.Duration)
}

// searched is how many pictures without captions make it known that there are none: 10 s and more. From then on only
// key frames are looked at, or none, where encoders have sent padding: the edge says no more that there are no
// captions.
const searched = 600

// lookForCaptions reads closed captions, or tells the edge of them, until there is nothing more to tell.
func (p *Packager) lookForCaptions(f *frame.Frame) {
	if p.opt.Captions != nil {
		p.opt.Captions.Picture(p.video.config.Codec, f)
		return
	}
	if p.captions == codec.CaptionsText || p.searched >= searched && (p.captions == codec.CaptionsPadding || !f.Key) {
		return
	}
	p.searched++
	if found := codec.CaptionsOf(p.video.config.Codec, f.Data); found > p.captions {
		p.captions = found
		p.opt.Edge.Captions(p.video.id, found == codec.CaptionsText)
	}
}

// cutCaptions ends the captions of a segment that ends where a picture is presented.
func (p *Packager) cutCaptions(at time.Duration) {
	if p.opt.Captions != nil {
		p.opt.Captions.Cut(at)
	}
}

// endCaptions ends the captions where the pictures end.
func (p *Packager) endCaptions() {
	if p.opt.Captions != nil {
		p.opt.Captions.Reset(p.shown)
	}
}
