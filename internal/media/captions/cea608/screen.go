package cea608

import (
	"strconv"
	"strings"

	"millrace/internal/media/captions"
)

const (
	rows    = 15
	columns = 32
)

// style is how a character looks.
type style struct {
	color             uint8 // an index of colors
	italic, underline bool
}

// cell is a place on the screen; rune 0 is transparent.
type cell struct {
	r     rune
	style style
}

// screen is a memory of 15 rows.
type screen [rows][columns]cell

func (c cell) empty() bool { return c.r == 0 || c.r == ' ' || c.r == '\u00a0' }

// extent is where the text of a row begins and ends; end 0: there is none.
func (s *screen) extent(row int) (begin, end int) {
	begin = -1
	for i, c := range s[row] {
		if c.empty() {
			continue
		}
		if begin < 0 {
			begin = i
		}
		end = i + 1
	}
	return begin, end
}

func (s *screen) blank() bool {
	for row := range s {
		if _, end := s.extent(row); end > 0 {
			return false
		}
	}
	return true
}

// cues are the blocks of adjacent rows on the screen, without times.
func (s *screen) cues() (out []captions.Cue) {
	for row := 0; row < rows; row++ {
		var lines []string
		top, left := row, columns
		for ; row < rows; row++ {
			begin, end := s.extent(row)
			if end == 0 {
				break
			}
			left = min(left, begin)
			lines = append(lines, markup(s[row][begin:end]))
		}
		if len(lines) > 0 {
			out = append(out, captions.Cue{Text: strings.Join(lines, "\n"), Settings: place(top, left)})
		}
	}
	return out
}

// place says where a block is: the grid covers the middle 80 % of the picture, CTA-608-E section 5.
func place(row, col int) string {
	percent := func(n, of int) string { return strconv.FormatFloat(10+80*float64(n)/float64(of), 'f', 2, 64) + "%" }
	return "line:" + percent(row, rows) + " position:" + percent(col, columns) + " align:start"
}

// colors are the classes that WebVTT has for them, section 5; white is what text is anyhow.
var colors = [8]string{"", "lime", "blue", "cyan", "red", "yellow", "magenta", "black"} //nolint:gochecknoglobals // a table

// markup is the WebVTT cue text of a row. Spaces have the style of what is before them.
func markup(cells []cell) string {
	var b strings.Builder
	var now style
	end := ""
	for _, c := range cells {
		if c.r == 0 {
			c.r = ' '
		}
		if !c.empty() && c.style != now {
			b.WriteString(end)
			now = c.style
			var begin string
			begin, end = now.tags()
			b.WriteString(begin)
		}
		switch c.r {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		default:
			b.WriteRune(c.r)
		}
	}
	return b.String() + end
}

func (s style) tags() (begin, end string) {
	if color := colors[s.color&7]; color != "" {
		begin, end = "<c."+color+">", "</c>"
	}
	if s.italic {
		begin, end = begin+"<i>", "</i>"+end
	}
	if s.underline {
		begin, end = begin+"<u>", "</u>"+end
	}
	return begin, end
}
