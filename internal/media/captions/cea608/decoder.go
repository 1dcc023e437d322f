// Package cea608 decodes the caption channels CC1 to CC4 of CEA-608 (ANSI/CTA-608-E): pairs of bytes in, cues out. It
// shows pop-on, roll-up and paint-on captions with all characters; the text channels and XDS are passed over.
//
// It is pure: it must never know pictures, files, sockets or the time of day. Input is hostile: memory is bounded,
// nothing panics.
package cea608

import (
	"math/bits"
	"strconv"
	"time"

	"millrace/internal/media/captions"
)

// Channel is a caption channel, CC1 to CC4.
type Channel int

// The channels. Two share each field of the picture.
const (
	CC1 Channel = 1 + iota
	CC2
	CC3
	CC4
)

const channels = 4

// Named is the channel with a name, cc1 to cc4; 0: there is none.
func Named(name string) Channel {
	for c := CC1; c <= CC4; c++ {
		if name == "cc"+strconv.Itoa(int(c)) {
			return c
		}
	}
	return 0
}

// silence is how long a channel may say nothing before its caption is erased: 16 s, CTA-608-E annex C.9.
const silence = 16 * time.Second

// Decoder decodes the pairs of one video. One goroutine at a time may use it.
type Decoder struct {
	emit     func(Channel, captions.Cue)
	channels [channels]channel
	active   [2]int     // by field: the channel that was addressed last; -1: none
	previous [2]control // by field: what came last
	inXDS    bool
}

// control is a control code, for its repetition; zero: it was none, or has been repeated.
type control struct {
	pair [2]byte
	at   time.Duration
}

// repetition is how much later than a control code its second copy may come: in the next picture, CTA-608-E section
// 8.6, and behind padding where an encoder has more pictures than pairs.
const repetition = 150 * time.Millisecond

// New returns a decoder that gives each cue as soon as it is known when it ends. A cue's text and settings are WebVTT.
func New(emit func(Channel, captions.Cue)) *Decoder {
	d := &Decoder{emit: emit}
	d.forget()
	return d
}

// forget is as if nothing had come.
func (d *Decoder) forget() {
	d.active, d.previous, d.inXDS = [2]int{-1, -1}, [2]control{}, false
	for i := range d.channels {
		d.channels[i] = channel{decoder: d, id: Channel(i + 1), row: rows - 1, base: rows - 1, depth: 3}
	}
}

// Carries reports whether a channel has shown a caption since the last Reset: some encoders erase one that they never
// send, where captions are in CEA-708 alone.
func (d *Decoder) Carries(c Channel) bool { return d.channels[c-1].carried }

// Cut ends every caption that is shown at `at`, and shows it again from there on: what was shown so far is given as
// cues.
func (d *Decoder) Cut(at time.Duration) {
	for i := range d.channels {
		c := &d.channels[i]
		c.expire(at)
		c.close(at)
		c.reopen(at)
	}
}

// Reset ends every caption at `at`: what comes does not go on.
func (d *Decoder) Reset(at time.Duration) {
	for i := range d.channels {
		d.channels[i].expire(at)
		d.channels[i].close(at)
	}
	d.forget()
}

// Pair takes the two bytes of a field (1 or 2) that belong to the picture presented at `at`. Times must not go back.
// What has no odd parity is left out or, where it would be a letter, shown as a block.
func (d *Decoder) Pair(at time.Duration, field int, first, second byte) {
	f := field - 1
	if f != 0 && f != 1 {
		return
	}
	first, second, ok := withParity(first, second)
	if !ok {
		return
	}
	for i := range d.channels[2*f : 2*f+2] {
		d.channels[2*f+i].expire(at)
	}
	switch {
	case first == 0 && second == 0: // padding, between the copies of a control code too
	case first >= 0x10 && first <= 0x1f:
		d.code(at, f, first, second)
	case first < 0x10 && first > 0: // XDS, in field 2: CTA-608-E section 9
		d.previous[f] = control{}
		if f == 1 {
			d.inXDS = first != 0x0f
		}
	default:
		d.previous[f] = control{}
		if d.active[f] >= 0 && (f == 0 || !d.inXDS) {
			d.channels[d.active[f]].characters(at, first, second)
		}
	}
}

// withParity takes the parity bit away. A control code with a wrong one is not usable: it comes twice.
func withParity(first, second byte) (a, b byte, ok bool) {
	const block = 0x7f
	odd := func(b byte) bool { return bits.OnesCount8(b)&1 == 1 }
	if !odd(second) {
		if first&0x70 == 0x10 {
			return 0, 0, false
		}
		second = block
	}
	if !odd(first) {
		if first&0x7f < 0x20 {
			return 0, 0, false
		}
		first = block
	}
	return first & 0x7f, second & 0x7f, true
}

// code takes a control code. Each comes twice, CTA-608-E section 8.6, with nothing but padding between: the second one
// is left out.
func (d *Decoder) code(at time.Duration, f int, first, second byte) {
	if f == 1 {
		d.inXDS = false
	}
	pair := [2]byte{first, second}
	if last := d.previous[f]; last.pair == pair && at-last.at <= repetition {
		d.previous[f] = control{}
		return
	}
	d.previous[f] = control{pair, at}
	n := 2 * f
	if first >= 0x18 {
		n++
		first -= 8
	}
	d.active[f] = n
	d.channels[n].code(at, first, second)
}
