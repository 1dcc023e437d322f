package cea608

import "time"

// mode is how a channel's captions come.
type mode uint8

const (
	unknown mode = iota
	popOn
	rollUp
	paintOn
	textMode // what comes is no caption
)

// channel is one caption channel with its two memories.
type channel struct {
	decoder   *Decoder
	id        Channel
	mode      mode
	displayed screen
	hidden    screen // that pop-on captions are written to
	row, col  int    // of the cursor, from 0; col may be behind the last one
	style     style
	base      int // row of the newest line of roll-up captions
	depth     int // how many rows these have: 2 to 4

	carried bool // it has shown a caption

	heard time.Duration // when something came last
	shown bool          // there is a caption, since
	since time.Duration
}

// caption reports whether the channel is in a mode in which characters are shown.
func (c *channel) caption() bool { return c.mode == popOn || c.mode == rollUp || c.mode == paintOn }

// memory is what characters are written to.
func (c *channel) memory() *screen {
	if c.mode == popOn {
		return &c.hidden
	}
	return &c.displayed
}

// expire erases a caption for which nothing has come for too long.
func (c *channel) expire(at time.Duration) {
	if c.shown && at-c.heard >= silence {
		c.close(c.heard + silence)
		c.displayed = screen{}
	}
}

// close gives what has been shown up to now.
func (c *channel) close(at time.Duration) {
	if c.shown && at > c.since {
		for _, cue := range c.displayed.cues() {
			cue.Start, cue.End = c.since, at
			c.decoder.emit(c.id, cue)
		}
	}
	c.shown = false
}

// aMoment is the shortest time for which a state of the screen is a cue where it changes in several steps, as in
// roll-up captions that move: longer than it takes to send a row of 32 characters.
const aMoment = 700 * time.Millisecond

// reopen begins what is shown from now on.
func (c *channel) reopen(at time.Duration) {
	if !c.displayed.blank() {
		c.shown, c.since, c.carried = true, at, true
	}
}

// change does something that ends the caption that is shown.
func (c *channel) change(at time.Duration, do func()) {
	c.close(at)
	do()
	c.reopen(at)
}

// wrote notes that the displayed memory may have got a character: a caption grows in place.
func (c *channel) wrote(at time.Duration) {
	if c.mode != popOn && !c.shown {
		c.reopen(at)
	}
}

func (c *channel) characters(at time.Duration, first, second byte) {
	c.heard = at
	if !c.caption() {
		return
	}
	for _, b := range [2]byte{first, second} {
		if b >= 0x20 {
			c.put(standard(b))
		}
	}
	c.wrote(at)
}

// put writes a character; behind the last column it replaces the last one.
func (c *channel) put(r rune) {
	at := min(c.col, columns-1)
	c.memory()[c.row][at] = cell{r, c.style}
	c.col = at + 1
}

// back erases the character before the cursor.
func (c *channel) back() {
	c.col = max(c.col-1, 0)
	c.memory()[c.row][c.col] = cell{}
}

// code takes a control code of the first channel of a field, CTA-608-E sections 6 and 8.
func (c *channel) code(at time.Duration, first, second byte) {
	c.heard = at
	switch {
	case second < 0x20:
	case second >= 0x40:
		c.address(at, first, second)
	case first == 0x14 || first == 0x15: // 0x15 in field 2
		c.command(at, second)
	case !c.caption():
	case first == 0x10: // background colour: it has no place in WebVTT
	case first == 0x11 && second < 0x30:
		c.midRow(at, second)
	case first == 0x11:
		c.put(special[second-0x30])
		c.wrote(at)
	case first == 0x12:
		c.extended(at, spanishFrench[second-0x20])
	case first == 0x13:
		c.extended(at, portugueseGerman[second-0x20])
	case first == 0x17 && second >= 0x21 && second <= 0x23: // tab
		c.col = min(c.col+int(second-0x20), columns-1)
	}
}

// extended replaces the character before, which is for decoders that don't know this one.
func (c *channel) extended(at time.Duration, r rune) {
	c.back()
	c.put(r)
	c.wrote(at)
}

// midRow changes the style from the next column on; it takes one itself.
func (c *channel) midRow(at time.Duration, code byte) {
	c.style.underline = code&1 != 0
	if v := code >> 1 & 7; v == italics {
		c.style.italic = true
	} else {
		c.style.color, c.style.italic = v, false
	}
	c.put(' ')
	c.wrote(at)
}

// italics is the value of a style code in the place of a colour.
const italics = 7

// addressed are the rows of preamble address codes by the low bits of the first byte and a bit of the second, from 1.
var addressed = [8][2]int{{11, 11}, {1, 2}, {3, 4}, {12, 13}, {14, 15}, {5, 6}, {7, 8}, {9, 10}} //nolint:gochecknoglobals // a table

// address moves the cursor, a preamble address code.
func (c *channel) address(at time.Duration, first, second byte) {
	if !c.caption() && c.mode != unknown || first == 0x10 && second >= 0x60 {
		return
	}
	row := addressed[first&7][second>>5&1] - 1
	switch {
	case c.mode == rollUp && row != c.base:
		if !c.shown || at-c.since >= aMoment {
			c.close(at)
		}
		c.moveWindow(max(row, c.depth-1))
		if row = c.base; !c.shown {
			c.reopen(at)
		}
	case c.mode == paintOn && row != c.row && at-c.since >= aMoment:
		c.change(at, func() {}) // a row that is painted later is not shown earlier
	}
	c.row, c.col, c.style = row, 0, style{underline: second&1 != 0}
	switch v := second >> 1 & 0xf; {
	case v < italics:
		c.style.color = v
	case v == italics:
		c.style.italic = true
	default:
		c.col = int(v-8) * 4
	}
}

// moveWindow puts the rows of roll-up captions elsewhere.
func (c *channel) moveWindow(base int) {
	var moved screen
	for i := range c.depth {
		if from, to := c.base-i, base-i; from >= 0 && to >= 0 {
			moved[to] = c.displayed[from]
		}
	}
	c.displayed, c.base = moved, base
}

// command takes a miscellaneous control code.
func (c *channel) command(at time.Duration, code byte) {
	switch code {
	case 0x20: // RCL, resume caption loading
		c.mode = popOn
	case 0x25, 0x26, 0x27: // RU2 to RU4
		c.roll(at, int(code-0x23))
	case 0x29: // RDC, resume direct captioning
		c.mode = paintOn
	case 0x2a, 0x2b: // TR and RTD, text
		c.mode = textMode
	case 0x2c: // EDM, erase displayed memory
		c.change(at, func() { c.displayed = screen{} })
	case 0x2e: // ENM, erase non-displayed memory
		c.hidden = screen{}
	case 0x2f: // EOC, end of caption
		c.change(at, func() { c.displayed, c.hidden = c.hidden, c.displayed })
		c.mode = popOn
	case 0x21, 0x24, 0x28, 0x2d:
		if c.caption() {
			c.edit(at, code)
		}
	}
}

// edit changes what is written.
func (c *channel) edit(at time.Duration, code byte) {
	switch code {
	case 0x21: // BS, backspace
		c.back()
	case 0x24: // DER, delete to end of row
		clear(c.memory()[c.row][c.col:])
	case 0x28: // FON, flash on: it takes a column
		c.put(' ')
	case 0x2d: // CR, carriage return
		if c.mode == rollUp {
			c.change(at, c.scroll)
			c.row, c.col, c.style = c.base, 0, style{}
		}
	}
	if c.mode != popOn && c.shown && c.displayed.blank() {
		c.shown = false
	}
}

// roll begins roll-up captions, or changes how many rows they have. Encoders repeat the mode with each line: by itself
// that changes nothing. Rows that are too many go with the next line.
func (c *channel) roll(at time.Duration, depth int) {
	switch {
	case c.mode != rollUp:
		c.change(at, func() { c.displayed, c.hidden = screen{}, screen{} })
		c.mode, c.base = rollUp, rows-1
		c.row, c.col, c.style = c.base, 0, style{}
	case c.base < depth-1:
		c.change(at, func() { c.moveWindow(depth - 1) })
		c.row = c.base
	}
	c.depth = depth
}

// scroll moves the rows of roll-up captions up by one.
func (c *channel) scroll() {
	var moved screen
	for i := max(c.base-c.depth+1, 0); i < c.base; i++ {
		moved[i] = c.displayed[i+1]
	}
	c.displayed = moved
}
