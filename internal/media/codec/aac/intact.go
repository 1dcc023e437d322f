package aac

import (
	"encoding/binary"
	"slices"

	"millrace/internal/media/codec/bits"
)

// Inspector tells whether decoders take the raw_data_blocks of a track, ISO 14496-3 section 4.4.2. It reads all that a
// decoder has to, up to the last codeword, and decodes nothing. What it takes every decoder takes; of what it doesn't,
// such as elements that are rare, a decoder may. One goroutine uses it.
type Inspector struct {
	elements    []Element
	long, short []int // where the scale factor bands of a window begin, and where the last one ends
	codes       *codes

	block   []byte // with padding behind it
	at, end int    // bits

	kinds [maxBands]uint8 // which codebook each scale factor band has
}

// maxBands is how many scale factor bands all groups of a channel may have: eight groups of 15.
const maxBands = 8 * 15

// MaxBlock is how many bytes of a block an Inspector takes: a channel has 768 at most.
const MaxBlock = 6 * 768

// padding is more than is read from one look at the end to the next, in bytes.
const padding = 16

// NewInspector returns the Inspector of a track with this AudioSpecificConfig; nil: it can't tell of such sound.
func NewInspector(asc []byte) *Inspector {
	c, err := Parse(asc)
	if err != nil || c.SamplesPerFrame != 1024 {
		return nil
	}
	r := bits.NewReader(asc)
	objectType(r)
	rate, layout := r.Bits(4), r.Bits(4)
	if rate >= len(bandsOf) || layout < 1 || layout > 6 {
		return nil
	}
	x := &Inspector{
		codes: books(), block: make([]byte, MaxBlock+padding),
		long: bands[bandsOf[rate].long], short: bands[bandsOf[rate].short],
	}
	for _, id := range layouts[layout] {
		x.elements = append(x.elements, Element{ID: id})
	}
	return x
}

// The elements that have no channels, or some of their own.
const (
	coupling      = 2
	dataStream    = 4
	programLayout = 5
	fill          = 6
	endOfBlock    = 7
)

// Intact reports whether decoders take a block.
func (x *Inspector) Intact(block []byte) bool {
	if len(block) == 0 || len(block) > MaxBlock {
		return false
	}
	copy(x.block, block)
	clear(x.block[len(block) : len(block)+padding])
	x.at, x.end = 0, 8*len(block)
	next := 0
	for {
		id := x.take(3)
		if id == endOfBlock {
			return next == len(x.elements) && x.at <= x.end && x.empty(block)
		}
		tag := x.take(4)
		ok := false
		switch {
		case id == fill:
			ok = x.fill(tag)
		case id == dataStream:
			ok = x.data()
		case id == coupling, id == programLayout, next == len(x.elements), id != x.elements[next].ID:
		case id == ChannelPair:
			ok = x.pair()
			next++
		default:
			ok = x.channel(nil)
			next++
		}
		if !ok || x.at+3 > x.end {
			return false
		}
	}
}

// empty reports whether nothing follows the end of a block: a decoder would take it for another one.
func (x *Inspector) empty(block []byte) bool {
	for _, b := range block[min((x.at+7)/8, len(block)):] {
		if b != 0 {
			return false
		}
	}
	return true
}

// ahead is the next n bits, at most 32, with zeros behind the end.
func (x *Inspector) ahead(n int) int {
	v := binary.BigEndian.Uint64(x.block[x.at/8:]) << (x.at % 8)
	return int(v >> (64 - n))
}

// take reads n bits, at most 32; behind the end it stays there, so that nothing is read beyond the padding.
func (x *Inspector) take(n int) int {
	v := x.ahead(n)
	x.skip(n)
	return v
}

func (x *Inspector) skip(n int) { x.at = min(x.at+n, x.end+8*(padding-8)) }

// fill passes over a fill_element. Of what is in it only a decoder knows how long the dynamic range control is.
func (x *Inspector) fill(n int) bool {
	if n == 15 {
		n += x.take(8) - 1
	}
	const dynamicRange = 11
	if x.at+8*n > x.end || n > 0 && x.ahead(4) == dynamicRange {
		return false
	}
	x.skip(8 * n)
	return true
}

// data passes over a data_stream_element.
func (x *Inspector) data() bool {
	align := x.take(1) == 1
	n := x.take(8)
	if n == 255 {
		n += x.take(8)
	}
	if align {
		x.at += (8 - x.at%8) % 8
	}
	if x.at+8*n > x.end {
		return false
	}
	x.skip(8 * n)
	return true
}

// windows is an ics_info: how a channel's block is divided.
type windows struct {
	groups []int // how many windows each has
	eight  bool  // of 128 samples instead of one of 1024
	bands  int   // scale factor bands that are sent, of each group
	begins []int
}

func (x *Inspector) windows() (w windows, ok bool) {
	const eightShort = 2
	reserved := x.take(1)
	w.eight = x.take(2) == eightShort
	x.skip(1) // shape
	w.groups, w.begins = []int{1}, x.long
	if !w.eight {
		w.bands = x.take(6)
		predicted := x.take(1) // which AAC-LC has not
		return w, reserved+predicted == 0 && w.bands < len(w.begins)
	}
	w.begins, w.bands = x.short, x.take(4)
	for range 7 {
		if x.take(1) == 1 {
			w.groups[len(w.groups)-1]++
		} else {
			w.groups = append(w.groups, 1)
		}
	}
	return w, reserved == 0 && w.bands < len(w.begins)
}

// pair reads a channel_pair_element.
func (x *Inspector) pair() bool {
	if x.take(1) == 0 { // each channel has windows of its own
		return x.both(nil)
	}
	w, ok := x.windows()
	if !ok {
		return false
	}
	switch x.take(2) { // middle and side
	case 1:
		x.skip(len(w.groups) * w.bands)
	case 3:
		return false
	}
	return x.both(&w)
}

func (x *Inspector) both(shared *windows) bool {
	for range 2 {
		if !x.channel(shared) {
			return false
		}
	}
	return true
}

// channel reads an individual_channel_stream; shared: the windows of its pair; nil: it has its own.
func (x *Inspector) channel(shared *windows) bool {
	gain := x.take(8)
	if shared == nil {
		w, ok := x.windows()
		if !ok {
			return false
		}
		shared = &w
	}
	w := *shared
	if !x.sections(w) || !x.factors(w, gain) {
		return false
	}
	if x.take(1) == 1 && !x.pulses(w) {
		return false
	}
	if x.take(1) == 1 && !x.shaping(w) {
		return false
	}
	if x.take(1) == 1 { // gain control, which AAC-LC has not
		return false
	}
	return x.spectrum(w)
}

// The codebooks that are none: a band without anything, a reserved one, and noise, behind which is intensity stereo.
const (
	zero     = 0
	reserved = 12
	noise    = 13
)

// sections reads section_data.
func (x *Inspector) sections(w windows) bool {
	width := 5
	if w.eight {
		width = 3
	}
	for g := range w.groups {
		for k := 0; k < w.bands; {
			kind, end := x.take(4), k
			if kind == reserved {
				return false
			}
			for more := true; more; {
				n := x.take(width)
				end += n
				if more = n == 1<<width-1; x.at > x.end || end > w.bands {
					return false
				}
			}
			for ; k < end; k++ {
				x.kinds[g*w.bands+k] = uint8(kind)
			}
		}
	}
	return x.at <= x.end
}

// factors reads scale_factor_data.
func (x *Inspector) factors(w windows, gain int) bool {
	first := true // of the noise
	for _, kind := range x.kinds[:len(w.groups)*w.bands] {
		switch {
		case kind == zero:
		case kind == noise && first:
			first = false
			x.skip(9)
		case kind >= noise:
			x.step()
		default:
			if gain += x.step(); gain < 0 || gain > 255 {
				return false
			}
		}
		if x.at > x.end {
			return false
		}
	}
	return true
}

func (x *Inspector) step() int {
	w := x.codes.steps.find(x.ahead(x.codes.steps.most))
	x.skip(int(w.length))
	return int(w.value) - noStep
}

// pulses reads pulse_data.
func (x *Inspector) pulses(w windows) bool {
	more, band := x.take(2), x.take(6)
	if w.eight || band >= len(w.begins)-1 {
		return false
	}
	at := w.begins[band]
	for range more + 1 {
		at += x.take(5)
		x.skip(4) // amplitude
		if at >= w.begins[len(w.begins)-1] {
			return false
		}
	}
	return x.at <= x.end
}

// shaping reads tns_data.
func (x *Inspector) shaping(w windows) bool {
	count, filters, length, order, most := 1, 2, 6, 5, 12
	if w.eight {
		count, filters, length, order, most = 8, 1, 4, 3, 7
	}
	for range count {
		n := x.take(filters)
		if n == 0 {
			continue
		}
		fine := x.take(1)
		for range n {
			x.skip(length)
			o := x.take(order)
			if o > most {
				return false
			}
			if o > 0 {
				x.skip(1) // direction
				compressed := x.take(1)
				x.skip(o * (fine + 3 - compressed))
			}
		}
	}
	return x.at <= x.end
}

// spectrum reads spectral_data.
func (x *Inspector) spectrum(w windows) bool {
	for g, n := range w.groups {
		for k := range w.bands {
			kind := x.kinds[g*w.bands+k]
			if kind == zero || kind >= noise {
				continue
			}
			c := x.codes.spectra[kind-1]
			if !x.codewords(c, n*(w.begins[k+1]-w.begins[k])/c.values) {
				return false
			}
		}
	}
	return true
}

// codewords reads n codewords, most of them several from one look at the block.
func (x *Inspector) codewords(c *code, n int) bool {
	const seen = 64 - 7 // bits at least
	for n > 0 {
		v, used := binary.BigEndian.Uint64(x.block[x.at/8:])<<(x.at%8), 0
		span := uint8(1)
		for n > 0 && used <= seen-quick {
			if span = c.spans[v>>(64-quick)]; span == 0 {
				break
			}
			v <<= span
			used += int(span)
			n--
		}
		if x.at += used; x.at > x.end {
			return false
		}
		if span == 0 {
			if !x.word(c) {
				return false
			}
			n--
		}
	}
	return true
}

// word reads a codeword with the signs and escapes behind it.
func (x *Inspector) word(c *code) bool {
	w := c.find(x.ahead(c.most))
	x.at += int(w.length) + int(w.value&0xf)
	for range w.value >> 4 {
		ones := leadingOnes(uint32(x.ahead(32)))
		if ones > 8 {
			return false
		}
		x.at += 2*ones + 5
	}
	return x.at <= x.end
}

// bandsOf are, by the index of a sample rate, the bands of a long window and of a short one.
var bandsOf = [...]struct{ long, short int }{ //nolint:gochecknoglobals // a table
	{0, 5}, {0, 5}, {1, 5}, {2, 6}, {2, 6}, {3, 6}, {4, 7}, {4, 7},
}

// bands are where scale factor bands begin, ISO 14496-3 tables 4.129 to 4.147: of windows of 1024 samples at 96, 64,
// 48, 32 and 24 kHz, then of 128 at 96, 48 and 24.
var bands = [...][]int{ //nolint:gochecknoglobals // a table
	slices.Concat(by(0, 56, 4), by(56, 96, 8), by(96, 132, 12), []int{
		132, 144, 156, 172, 188, 212, 240, 276, 320, 384, 448, 512, 576, 640, 704, 768, 832, 896, 960, 1024,
	}),
	slices.Concat(by(0, 56, 4), by(56, 88, 8), []int{
		88, 100, 112, 124, 140, 156, 172, 192, 216, 240, 268,
	}, by(304, 1025, 40)),
	slices.Concat(by(0, 40, 4), by(40, 96, 8), []int{
		96, 108, 120, 132, 144, 160, 176, 196, 216, 240, 264, 292,
	}, by(320, 929, 32), []int{1024}),
	slices.Concat(by(0, 40, 4), by(40, 96, 8), []int{
		96, 108, 120, 132, 144, 160, 176, 196, 216, 240, 264, 292,
	}, by(320, 1025, 32)),
	slices.Concat(by(0, 44, 4), by(44, 124, 8), []int{
		124, 136, 148, 160, 172, 188, 204, 220, 240, 260, 284, 308, 336, 364, 396, 432, 468, 508, 552, 600, 652, 704,
		768, 832, 896, 960, 1024,
	}),
	{0, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 92, 128},
	{0, 4, 8, 12, 16, 20, 28, 36, 44, 56, 68, 80, 96, 112, 128},
	{0, 4, 8, 12, 16, 20, 24, 28, 36, 44, 52, 64, 76, 92, 108, 128},
}

// by counts from one number up to another, which is left out.
func by(from, to, step int) (out []int) {
	for ; from < to; from += step {
		out = append(out, from)
	}
	return out
}
