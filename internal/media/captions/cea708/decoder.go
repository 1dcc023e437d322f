// Package cea708 decodes service 1 of CEA-708 (CTA-708-E), the main captions of digital television: packets in, cues
// out. It knows windows, their place and what is written into them; colours, fonts and effects are passed over.
//
// It is pure: it must never know pictures, files, sockets or the time of day. Input is hostile: memory is bounded,
// nothing panics.
package cea708

import (
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/captions"
)

const (
	windows    = 8
	maxRows    = 15
	maxColumns = 42
	maxPacket  = 128 // bytes, section 5
)

// Decoder decodes the packets of one video. One goroutine at a time may use it.
type Decoder struct {
	emit   func(captions.Cue)
	packet []byte
	long   int // of the packet that is open, in bytes; 0: none is
	at     time.Duration

	windows [windows]window
	current int // window that is written to; -1: none
	shown   []captions.Cue
	since   time.Duration
}

// window is a window on the screen, section 8.4.
type window struct {
	defined, visible bool
	text             [maxRows][]rune
	row, column      int
	rows, columns    int
	italic           bool
	vertical         int // of its anchor, in percent of the picture
}

// New returns a decoder that gives each cue as soon as it is known when it ends.
func New(emit func(captions.Cue)) *Decoder { return &Decoder{emit: emit, current: -1} }

// Pair takes two bytes of a packet, cc_type 2, or of its beginning, cc_type 3, that belong to the picture presented at
// `at`.
func (d *Decoder) Pair(at time.Duration, begins bool, first, second byte) {
	d.at = max(d.at, at)
	if begins {
		size := int(first & 0x3f)
		if size == 0 {
			size = 64
		}
		d.packet, d.long = append(d.packet[:0], second), 2*size-1
	} else if d.long > 0 {
		d.packet = append(d.packet, first, second)
	}
	if d.long > 0 && (len(d.packet) >= d.long || len(d.packet) >= maxPacket) {
		d.blocks(d.packet[:min(d.long, len(d.packet))])
		d.long = 0
		d.update()
	}
}

// blocks reads the service blocks of a packet, section 6.
func (d *Decoder) blocks(b []byte) {
	for len(b) > 0 {
		service, size := int(b[0]>>5), int(b[0]&0x1f)
		b = b[1:]
		if service == 7 && len(b) > 0 { // an extended number
			service, b = int(b[0]&0x3f), b[1:]
		}
		if service == 0 || size > len(b) {
			return
		}
		if service == 1 {
			d.service(b[:size])
		}
		b = b[size:]
	}
}

// service reads codes, section 7.
func (d *Decoder) service(b []byte) {
	for len(b) > 0 {
		b = b[min(d.code(b), len(b)):]
	}
}

// code takes the code at the front of b and returns how many bytes it has.
func (d *Decoder) code(b []byte) int {
	switch c := b[0]; {
	case c < 0x20:
		return d.control(b)
	case c == 0x7f:
		d.put('♪')
	case c < 0x80, c >= 0xa0:
		d.put(rune(c))
	default:
		return d.command(b)
	}
	return 1
}

// control takes a code of C0, section 7.1.4.
func (d *Decoder) control(b []byte) int {
	w := d.window()
	switch c := b[0]; {
	case c == 0x08 && w != nil && w.column > 0: // BS
		w.column--
		w.text[w.row] = w.text[w.row][:min(w.column, len(w.text[w.row]))]
	case c == 0x0c && w != nil: // FF
		w.clear()
	case c == 0x0d && w != nil: // CR
		w.scroll()
	case c == 0x0e && w != nil: // HCR
		w.text[w.row], w.column = nil, 0
	case c == 0x10 && len(b) > 1: // EXT1
		return d.extended(b)
	case c == 0x18 && len(b) > 2: // P16
		d.put(rune(b[1])<<8 | rune(b[2]))
	}
	switch {
	case b[0] >= 0x18:
		return 3
	case b[0] >= 0x10:
		return 2
	}
	return 1
}

// extended takes a code of C2, C3, G2 or G3, sections 7.1.8 to 7.1.11.
func (d *Decoder) extended(b []byte) int {
	if r, known := g2[b[1]]; known {
		d.put(r)
		return 2
	}
	switch c := b[1]; {
	case c >= 0x20 && c < 0x80, c >= 0xa0: // characters that stand for themselves nowhere
		d.put('_')
		return 2
	case c < 0x20:
		return 2 + int(c>>3)
	case c < 0x88:
		return 2 + 4
	case c < 0x90:
		return 2 + 5
	case len(b) > 2:
		return 3 + int(b[2]&0x1f)
	}
	return 2
}

// lengths are how many bytes the commands of C1 have, from 0x80 on, section 8.10.
var lengths = [32]int{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 3, 4, 3, 1, 1, 1, 1, 5, 7, 7, 7, 7, 7, 7, 7, 7} //nolint:gochecknoglobals // a table

// command takes a code of C1.
func (d *Decoder) command(b []byte) int {
	n := lengths[b[0]-0x80]
	if n > len(b) {
		return len(b)
	}
	switch c := b[0]; {
	case c < 0x88: // CWx
		if d.windows[c&7].defined {
			d.current = int(c & 7)
		}
	case c >= 0x98: // DFx
		d.define(int(c&7), b)
	case c >= 0x88 && c <= 0x8c:
		d.each(c, b[1])
	case c == 0x8f: // RST
		d.windows, d.current = [windows]window{}, -1
	case c == 0x90: // SPA
		if w := d.window(); w != nil {
			w.italic = b[2]&0x80 != 0
		}
	case c == 0x92: // SPL
		if w := d.window(); w != nil {
			w.row, w.column = min(int(b[1]&0xf), w.rows-1), min(int(b[2]&0x3f), maxColumns-1)
		}
	}
	return n
}

// each changes the windows of a map.
func (d *Decoder) each(command, set byte) {
	for i := range d.windows {
		w := &d.windows[i]
		if set>>i&1 == 0 || !w.defined {
			continue
		}
		switch command {
		case 0x88: // CLW
			w.clear()
		case 0x89: // DSW
			w.visible = true
		case 0x8a: // HDW
			w.visible = false
		case 0x8b: // TGW
			w.visible = !w.visible
		case 0x8c: // DLW
			*w = window{}
			if d.current == i {
				d.current = -1
			}
		}
	}
}

// define makes a window or changes its form.
func (d *Decoder) define(i int, b []byte) {
	w := &d.windows[i]
	if !w.defined {
		*w = window{defined: true}
	}
	w.visible = b[1]&0x20 != 0
	w.rows, w.columns = min(int(b[4]&0xf)+1, maxRows), min(int(b[5]&0x3f)+1, maxColumns)
	w.vertical = min(int(b[2]&0x7f), 99)
	if b[2]&0x80 == 0 { // in cells of a screen of 75 rows
		w.vertical = min(int(b[2]&0x7f)*100/75, 99)
	}
	if anchor := int(b[4]>>4) / 3; anchor > 0 { // the middle or the bottom of the window is there
		w.vertical = max(w.vertical-w.rows*6*anchor/2, 0)
	}
	w.row = min(w.row, w.rows-1)
	d.current = i
}

func (d *Decoder) window() *window {
	if d.current < 0 {
		return nil
	}
	return &d.windows[d.current]
}

func (w *window) clear() { w.text, w.row, w.column = [maxRows][]rune{}, 0, 0 }

func (w *window) scroll() {
	w.column = 0
	if w.row+1 < w.rows {
		w.row++
		return
	}
	copy(w.text[:w.rows], w.text[1:w.rows])
	w.text[w.row] = nil
}

func (d *Decoder) put(r rune) {
	w := d.window()
	if w == nil || w.column >= maxColumns {
		return
	}
	line := w.text[w.row]
	for len(line) <= w.column {
		line = append(line, ' ')
	}
	line[w.column] = r
	w.text[w.row] = line
	w.column++
}

// cues are what the windows show, without times.
func (d *Decoder) cues() (out []captions.Cue) {
	for i := range d.windows {
		w := &d.windows[i]
		if !w.visible {
			continue
		}
		var lines []string
		for _, line := range w.text[:w.rows] {
			if text := strings.TrimSpace(string(line)); text != "" {
				lines = append(lines, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text))
			}
		}
		if len(lines) == 0 {
			continue
		}
		text := strings.Join(lines, "\n")
		if w.italic {
			text = "<i>" + text + "</i>"
		}
		out = append(out, captions.Cue{Settings: "line:" + strconv.Itoa(w.vertical) + "%", Text: text})
	}
	return out
}

// aMoment is how long after a caption began another row is part of it: a later one is not shown earlier.
const aMoment = 700 * time.Millisecond

// update gives what is not shown any more. What grows goes on.
func (d *Decoder) update() {
	now := d.cues()
	if grows(d.shown, now) && (d.at-d.since < aMoment || rowsOf(now) == rowsOf(d.shown)) {
		d.shown = now
		return
	}
	d.close()
	d.shown, d.since = now, d.at
}

// rowsOf counts the rows of cues.
func rowsOf(all []captions.Cue) (n int) {
	for _, c := range all {
		n += 1 + strings.Count(c.Text, "\n")
	}
	return n
}

func grows(before, now []captions.Cue) bool {
	if len(before) == 0 || len(before) != len(now) {
		return false
	}
	for i := range before {
		if !strings.HasPrefix(now[i].Text, strings.TrimSuffix(before[i].Text, "</i>")) ||
			now[i].Settings != before[i].Settings {
			return false
		}
	}
	return true
}

func (d *Decoder) close() {
	for _, c := range d.shown {
		if c.Start, c.End = d.since, d.at; c.End > c.Start {
			d.emit(c)
		}
	}
}

// Cut ends every caption that is shown at `at`, and shows it again from there on.
func (d *Decoder) Cut(at time.Duration) {
	d.at = max(d.at, at)
	d.close()
	d.since = d.at
}

// Reset ends every caption at `at`: what comes does not go on.
func (d *Decoder) Reset(at time.Duration) {
	d.at = max(d.at, at)
	d.close()
	*d = Decoder{emit: d.emit, current: -1, at: d.at}
}

// g2 are the characters behind EXT1 that there are, section 7.1.8, and the sign for captions.
var g2 = map[byte]rune{ //nolint:gochecknoglobals // a table
	0x20: ' ', 0x21: '\u00a0', 0x25: '…', 0x2a: 'Š', 0x2c: 'Œ', 0x30: '█', 0x31: '‘', 0x32: '’', 0x33: '“', 0x34: '”',
	0x35: '•', 0x39: '™', 0x3a: 'š',
	0x3c: 'œ', 0x3d: '℠', 0x3f: 'Ÿ', 0x76: '⅛', 0x77: '⅜', 0x78: '⅝', 0x79: '⅞', 0x7a: '│', 0x7b: '┐', 0x7c: '└',
	0x7d: '─', 0x7e: '┘', 0x7f: '┌',
}
