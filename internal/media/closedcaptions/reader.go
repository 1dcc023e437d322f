// Package closedcaptions extracts the closed captions that video pictures carry and returns them as cues. It reorders
// the pictures into presentation order, which is the order of captions. It must never know where cues go, files,
// sockets or the time of day. It starts no goroutine.
package closedcaptions

import (
	"slices"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea608"
	"millrace/internal/media/captions/cea708"
	"millrace/internal/media/codec"
	"millrace/internal/media/frame"
)

// Reader reads the captions of one video. One goroutine at a time may use it.
type Reader struct {
	zero    time.Duration
	decoder *cea608.Decoder
	service *cea708.Decoder // of service 1, which is CC1's where CEA-608 has none
	analog  bool            // CEA-608 has a CC1
	waiting []picture       // in the order of presentation
	free    [][]pair        // to be used again
	last    time.Duration
}

// picture is the captions of a picture.
type picture struct {
	at    time.Duration // of presentation
	pairs []pair
}

type pair struct{ kind, first, second byte }

// reordered is how many pictures may be decoded before one that is shown before them: more than any codec allows.
const reordered = 32

// Texts takes the cues; window.Texts fits.
type Texts interface {
	// Publish reports whether a rendition has taken a cue.
	Publish(rendition string, c captions.Cue) bool
}

// New returns a Reader that publishes each cue as soon as its end is known, in times from zero on, in the text
// rendition of its channel: cc1 to cc4. It calls refused, if there is one, with a rendition that did not take a cue.
// nil: no channel is wanted.
func New(zero time.Duration, to Texts, renditions map[string]string, refused func(rendition string)) *Reader {
	wanted := map[cea608.Channel]string{}
	for name, rendition := range renditions {
		if c := cea608.Named(name); c != 0 {
			wanted[c] = rendition
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	publish := func(c cea608.Channel, cue captions.Cue) {
		if rendition, is := wanted[c]; is && !to.Publish(rendition, cue) && refused != nil {
			refused(rendition)
		}
	}
	r := &Reader{zero: zero, decoder: cea608.New(publish)}
	r.service = cea708.New(func(cue captions.Cue) {
		if !r.analog {
			publish(cea608.CC1, cue)
		}
	})
	return r
}

// Picture takes the next picture in the order of decoding, in the form of a sample with lengths of 4 bytes.
func (r *Reader) Picture(c frame.Codec, f *frame.Frame) {
	if f.Key { // what was decoded before is shown before
		r.release(len(r.waiting))
	}
	p := picture{at: f.PTS}
	if n := len(r.free); n > 0 {
		p.pairs, r.free = r.free[n-1][:0], r.free[:n-1]
	}
	codec.CaptionData(c, f.Data, func(kind, first, second byte) {
		p.pairs = append(p.pairs, pair{kind, first, second})
	})
	i := len(r.waiting)
	for i > 0 && r.waiting[i-1].at > p.at {
		i--
	}
	r.waiting = slices.Insert(r.waiting, i, p)
	n := max(len(r.waiting)-reordered, 0)
	for n < len(r.waiting) && r.waiting[n].at <= f.DTS {
		n++
	}
	r.release(n)
}

// release decodes the captions of the first n pictures that wait.
func (r *Reader) release(n int) {
	for i := range r.waiting[:n] {
		p := &r.waiting[i]
		r.last = max(r.last, p.at)
		for _, x := range p.pairs {
			if x.kind >= 2 {
				r.service.Pair(r.last-r.zero, x.kind == 3, x.first, x.second)
				continue
			}
			r.decoder.Pair(r.last-r.zero, int(x.kind)+1, x.first, x.second)
			r.analog = r.analog || r.decoder.Carries(cea608.CC1) // XDS and other channels are no other CC1
		}
		r.free = append(r.free, p.pairs)
	}
	r.waiting = slices.Delete(r.waiting, 0, n)
}

// Cut says that a segment ends where a picture that comes next is presented: what is shown there is published as far as
// that.
func (r *Reader) Cut(at time.Duration) {
	r.releaseBefore(at)
	r.last = max(r.last, at)
	r.decoder.Cut(r.last - r.zero)
	r.service.Cut(r.last - r.zero)
}

// Reset says that what comes does not go on: every caption ends at `at`.
func (r *Reader) Reset(at time.Duration) {
	r.release(len(r.waiting))
	r.last = max(r.last, at)
	r.decoder.Reset(r.last - r.zero)
	r.service.Reset(r.last - r.zero)
}

func (r *Reader) releaseBefore(at time.Duration) {
	n := 0
	for n < len(r.waiting) && r.waiting[n].at < at {
		n++
	}
	r.release(n)
}
