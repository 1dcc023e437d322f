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
func (i *Inspector) Intact(block []byte) bool {
	if len(block) == 0 || len(block) > MaxBlock {
		return false
	}
	copy(i.block, block)
	clear(i.block[len(block) : len(block)+padding])
	i.at, i.end = 0, 8*len(block)
	next := 0
	for {
		id := i.readBits(3)
		if id == endOfBlock {
			return next == len(i.elements) && i.at <= i.end && i.empty(block)
		}
		tag := i.readBits(4)
		ok := false
		switch {
		case id == fill:
			ok = i.fill(tag)
		case id == dataStream:
			ok = i.data()
		case id == coupling, id == programLayout, next == len(i.elements), id != i.elements[next].ID:
		case id == ChannelPair:
			ok = i.pair()
			next++
		default:
			ok = i.channel(nil)
			next++
		}
		if !ok || i.at+3 > i.end {
			return false
		}
	}
}

// empty reports whether nothing follows the end of a block: a decoder would take it for another one.
func (i *Inspector) empty(block []byte) bool {
	for _, b := range block[min((i.at+7)/8, len(block)):] {
		if b != 0 {
			return false
		}
	}
	return true
}

// ahead is the next n bits, at most 32, with zeros behind the end.
func (i *Inspector) ahead(n int) int {
	v := binary.BigEndian.Uint64(i.block[i.at/8:]) << (i.at % 8)
	return int(v >> (64 - n))
}

// readBits reads n bits, at most 32; behind the end it stays there, so that nothing is read beyond the padding.
func (i *Inspector) readBits(n int) int {
	v := i.ahead(n)
	i.skip(n)
	return v
}

func (i *Inspector) skip(n int) { i.at = min(i.at+n, i.end+8*(padding-8)) }

// fill passes over a fill_element. Of what is in it only a decoder knows how long the dynamic range control is.
func (i *Inspector) fill(n int) bool {
	if n == 15 {
		n += i.readBits(8) - 1
	}
	const dynamicRange = 11
	if i.at+8*n > i.end || n > 0 && i.ahead(4) == dynamicRange {
		return false
	}
	i.skip(8 * n)
	return true
}

// data passes over a data_stream_element.
func (i *Inspector) data() bool {
	align := i.readBits(1) == 1
	n := i.readBits(8)
	if n == 255 {
		n += i.readBits(8)
	}
	if align {
		i.at += (8 - i.at%8) % 8
	}
	if i.at+8*n > i.end {
		return false
	}
	i.skip(8 * n)
	return true
}

// windows is an ics_info: how a channel's block is divided.
type windows struct {
	groups []int // how many windows each has
	eight  bool  // of 128 samples instead of one of 1024
	bands  int   // scale factor bands that are sent, of each group
	begins []int
}

func (i *Inspector) windows() (w windows, ok bool) {
	const eightShort = 2
	reserved := i.readBits(1)
	w.eight = i.readBits(2) == eightShort
	i.skip(1) // shape
	w.groups, w.begins = []int{1}, i.long
	if !w.eight {
		w.bands = i.readBits(6)
		predicted := i.readBits(1) // which AAC-LC has not
		return w, reserved+predicted == 0 && w.bands < len(w.begins)
	}
	w.begins, w.bands = i.short, i.readBits(4)
	for range 7 {
		if i.readBits(1) == 1 {
			w.groups[len(w.groups)-1]++
		} else {
			w.groups = append(w.groups, 1)
		}
	}
	return w, reserved == 0 && w.bands < len(w.begins)
}

// pair reads a channel_pair_element.
func (i *Inspector) pair() bool {
	if i.readBits(1) == 0 { // each channel has windows of its own
		return i.both(nil)
	}
	w, ok := i.windows()
	if !ok {
		return false
	}
	switch i.readBits(2) { // middle and side
	case 1:
		i.skip(len(w.groups) * w.bands)
	case 3:
		return false
	}
	return i.both(&w)
}

func (i *Inspector) both(shared *windows) bool {
	for range 2 {
		if !i.channel(shared) {
			return false
		}
	}
	return true
}

// channel reads an individual_channel_stream; shared: the windows of its pair; nil: it has its own.
func (i *Inspector) channel(shared *windows) bool {
	gain := i.readBits(8)
	if shared == nil {
		w, ok := i.windows()
		if !ok {
			return false
		}
		shared = &w
	}
	w := *shared
	if !i.sections(w) || !i.factors(w, gain) {
		return false
	}
	if i.readBits(1) == 1 && !i.pulses(w) {
		return false
	}
	if i.readBits(1) == 1 && !i.shaping(w) {
		return false
	}
	if i.readBits(1) == 1 { // gain control, which AAC-LC has not
		return false
	}
	return i.spectrum(w)
}

// The codebooks that are none: a band without anything, a reserved one, and noise, behind which is intensity stereo.
const (
	zero     = 0
	reserved = 12
	noise    = 13
)

// sections reads section_data.
func (i *Inspector) sections(w windows) bool {
	width := 5
	if w.eight {
		width = 3
	}
	for g := range w.groups {
		for k := 0; k < w.bands; {
			kind, end := i.readBits(4), k
			if kind == reserved {
				return false
			}
			for more := true; more; {
				n := i.readBits(width)
				end += n
				if more = n == 1<<width-1; i.at > i.end || end > w.bands {
					return false
				}
			}
			for ; k < end; k++ {
				i.kinds[g*w.bands+k] = uint8(kind)
			}
		}
	}
	return i.at <= i.end
}

// factors reads scale_factor_data.
func (i *Inspector) factors(w windows, gain int) bool {
	first := true // of the noise
	for _, kind := range i.kinds[:len(w.groups)*w.bands] {
		switch {
		case kind == zero:
		case kind == noise && first:
			first = false
			i.skip(9)
		case kind >= noise:
			i.step()
		default:
			if gain += i.step(); gain < 0 || gain > 255 {
				return false
			}
		}
		if i.at > i.end {
			return false
		}
	}
	return true
}

func (i *Inspector) step() int {
	w := i.codes.steps.find(i.ahead(i.codes.steps.most))
	i.skip(int(w.length))
	return int(w.value) - noStep
}

// pulses reads pulse_data.
func (i *Inspector) pulses(w windows) bool {
	more, band := i.readBits(2), i.readBits(6)
	if w.eight || band >= len(w.begins)-1 {
		return false
	}
	at := w.begins[band]
	for range more + 1 {
		at += i.readBits(5)
		i.skip(4) // amplitude
		if at >= w.begins[len(w.begins)-1] {
			return false
		}
	}
	return i.at <= i.end
}

// shaping reads tns_data.
func (i *Inspector) shaping(w windows) bool {
	count, filters, length, order, most := 1, 2, 6, 5, 12
	if w.eight {
		count, filters, length, order, most = 8, 1, 4, 3, 7
	}
	for range count {
		n := i.readBits(filters)
		if n == 0 {
			continue
		}
		fine := i.readBits(1)
		for range n {
			i.skip(length)
			o := i.readBits(order)
			if o > most {
				return false
			}
			if o > 0 {
				i.skip(1) // direction
				compressed := i.readBits(1)
				i.skip(o * (fine + 3 - compressed))
			}
		}
	}
	return i.at <= i.end
}

// spectrum reads spectral_data.
func (i *Inspector) spectrum(w windows) bool {
	for g, n := range w.groups {
		for k := range w.bands {
			kind := i.kinds[g*w.bands+k]
			if kind == zero || kind >= noise {
				continue
			}
			c := i.codes.spectra[kind-1]
			if !i.codewords(c, n*(w.begins[k+1]-w.begins[k])/c.values) {
				return false
			}
		}
	}
	return true
}

// codewords reads n codewords, most of them several from one look at the block.
func (i *Inspector) codewords(c *code, n int) bool {
	const seen = 64 - 7 // bits at least
	for n > 0 {
		v, used := binary.BigEndian.Uint64(i.block[i.at/8:])<<(i.at%8), 0
		span := uint8(1)
		for n > 0 && used <= seen-quick {
			if span = c.spans[v>>(64-quick)]; span == 0 {
				break
			}
			v <<= span
			used += int(span)
			n--
		}
		if i.at += used; i.at > i.end {
			return false
		}
		if span == 0 {
			if !i.word(c) {
				return false
			}
			n--
		}
	}
	return true
}

// word reads a codeword with the signs and escapes behind it.
func (i *Inspector) word(c *code) bool {
	w := c.find(i.ahead(c.most))
	i.at += int(w.length) + int(w.value&0xf)
	for range w.value >> 4 {
		ones := leadingOnes(uint32(i.ahead(32)))
		if ones > 8 {
			return false
		}
		i.at += 2*ones + 5
	}
	return i.at <= i.end
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
