// Package cea608test writes CEA-608 captions and embeds them in pictures, for tests.
package cea608test

import (
	"bytes"
	"math/bits"
	"slices"
)

// Pair is two bytes of a field, with parity.
type Pair [2]byte

// Encoder writes captions: the pairs of each field, to be sent with one picture each. A pair is sent at its time at the
// earliest.
type Encoder struct {
	// Single sends each control code once.
	Single bool

	queue    [2][]timed
	pictures int // that were written by Into
}

type timed struct {
	at   float64 // seconds
	pair Pair
}

// Parity is b with odd parity.
func Parity(b byte) byte {
	if b &= 0x7f; bits.OnesCount8(b)&1 == 0 {
		b |= 0x80
	}
	return b
}

// Raw queues two bytes of field 1 or 2, to which parity is added.
func (e *Encoder) Raw(at float64, field int, first, second byte) {
	e.queue[field-1] = append(e.queue[field-1], timed{at, Pair{Parity(first), Parity(second)}})
}

// Code queues a control code of a channel, 1 to 4, in the form of CC1.
func (e *Encoder) Code(at float64, channel int, first, second byte) {
	field := (channel + 1) / 2
	if field == 2 && first == 0x14 && second < 0x40 {
		first = 0x15
	}
	if channel%2 == 0 {
		first += 8
	}
	e.Raw(at, field, first, second)
	if !e.Single {
		e.Raw(at, field, first, second)
	}
}

// Address moves the cursor to a row from 1 to 15 and an indent of 0, 4, … 28.
func (e *Encoder) Address(at float64, channel, row, indent int) {
	e.address(at, channel, row, 0x10|byte(indent/4)<<1)
}

// Styled moves the cursor to a row's beginning with a style: 0 to 6 are colours, 7 is italics.
func (e *Encoder) Styled(at float64, channel, row int, look byte, underline bool) {
	if look <<= 1; underline {
		look |= 1
	}
	e.address(at, channel, row, look)
}

func (e *Encoder) address(at float64, channel, row int, low byte) {
	for first, pair := range [8][2]int{{11}, {1, 2}, {3, 4}, {12, 13}, {14, 15}, {5, 6}, {7, 8}, {9, 10}} {
		if k := slices.Index(pair[:], row); k >= 0 {
			e.Code(at, channel, 0x10|byte(first), 0x40+0x20*byte(k)|low)
			return
		}
	}
}

// Text queues plain ASCII.
func (e *Encoder) Text(at float64, channel int, text string) {
	field := (channel + 1) / 2
	for i := 0; i < len(text); i += 2 {
		second := byte(0)
		if i+1 < len(text) {
			second = text[i+1]
		}
		e.Raw(at, field, text[i], second)
	}
}

// PopOn loads a caption at `at`, shows it at show and erases it at erase, if that is later.
func (e *Encoder) PopOn(channel int, at, show, erase float64, row int, lines ...string) {
	e.Code(at, channel, 0x14, 0x20)
	e.Code(at, channel, 0x14, 0x2e)
	for i, l := range lines {
		e.Address(at, channel, row+i, 4)
		e.Text(at, channel, l)
	}
	e.Code(show, channel, 0x14, 0x2f)
	if erase > show {
		e.Code(erase, channel, 0x14, 0x2c)
	}
}

// XDS queues a packet of extended data services on field 2.
func (e *Encoder) XDS(at float64, class, kind byte, data string) {
	if len(data)%2 == 1 {
		data += "\x00"
	}
	sum := int(class) + int(kind) + 0x0f
	e.Raw(at, 2, class, kind)
	for i := 0; i < len(data); i += 2 {
		e.Raw(at, 2, data[i], data[i+1])
		sum += int(data[i]) + int(data[i+1])
	}
	e.Raw(at, 2, 0x0f, byte(-sum)&0x7f)
}

// Next takes the pair of a field that is sent with the picture presented at `at`.
func (e *Encoder) Next(at float64, field int) Pair {
	q := &e.queue[field-1]
	if len(*q) == 0 || (*q)[0].at > at+1e-6 {
		return Pair{0x80, 0x80}
	}
	p := (*q)[0].pair
	*q = (*q)[1:]
	return p
}

// Message is the cc_data of a picture presented at `at`, in a message of ITU-T T.35: ATSC A/53 Part 4 section 6.2.3.
func (e *Encoder) Message(at float64) []byte {
	b := []byte("\xb5\x00\x31GA94\x03\xc2\xff")
	for field := 1; field <= 2; field++ {
		p := e.Next(at, field)
		b = append(b, 0xfc|byte(field-1), p[0], p[1])
	}
	return append(b, 0xff)
}

// SEI is Message in an SEI unit of H.264, without length or start code.
func (e *Encoder) SEI(at float64) []byte { return SEI([]byte{6}, e.Message(at)) }

// Into puts the captions into a byte stream of H.264 or HEVC (ITU-T annex B) with pictures of one slice, shown in the
// order in which they are decoded, rate a second.
func (e *Encoder) Into(stream []byte, hevc bool, rate float64) []byte {
	header, start := []byte{6}, []byte{0, 0, 1}
	picture := func(head byte) bool { return head&0x1f == 1 || head&0x1f == 5 }
	if hevc {
		header = []byte{39 << 1, 1}
		picture = func(head byte) bool { return head>>1&0x3f < 32 }
	}
	var out []byte
	for i, unit := range bytes.Split(stream, start) {
		if i == 0 || len(unit) == 0 {
			continue
		}
		if picture(unit[0]) {
			out = append(append(out, start...), SEI(header, e.Message(float64(e.pictures)/rate))...)
			e.pictures++
		}
		out = append(append(out, start...), unit...)
	}
	return out
}

// SEI is a unit with one message of registered user data behind a header of H.264 or HEVC.
func SEI(header, message []byte) []byte {
	out, zeros := slices.Clone(header), 0
	for _, b := range append([]byte{4, byte(len(message))}, append(slices.Clone(message), 0x80)...) {
		if zeros >= 2 && b <= 3 {
			out, zeros = append(out, 3), 0
		}
		if zeros++; b != 0 {
			zeros = 0
		}
		out = append(out, b)
	}
	return out
}
