package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// step is how many percent lie between two lines where nobody looks at a terminal.
	step = 5
	// window is of how long the speed is.
	window = 10 * time.Second
	// barWidth and nameWidth keep a line within 80 columns.
	barWidth, nameWidth = 20, 16
)

// progress shows how far files are: on a terminal by a line that changes, else by one every few percent.
type progress struct {
	out      io.Writer
	terminal bool

	path       string
	now, size  int64    // bytes
	shown      int64    // percent of the last line; -1: there is none
	moments    []sentAt // of the last seconds
	unfinished bool     // the line on the terminal has no end yet
}

// sentAt is how many bytes had been sent at a time.
type sentAt struct {
	at    time.Time
	bytes int64
}

// begin turns to the next file.
func (p *progress) begin(path string) {
	*p = progress{out: p.out, terminal: p.terminal, path: path, shown: -1}
}

// say prints a sentence about the file. What follows is measured from there.
func (p *progress) say(text string) {
	p.end()
	p.moments = nil
	fmt.Fprintf(p.out, "%s: %s\n", printable(p.path), text)
}

// end ends a line that is on the terminal.
func (p *progress) end() {
	if p.unfinished {
		fmt.Fprintln(p.out)
		p.unfinished = false
	}
}

func (p *progress) percent() int64 {
	if p.size == 0 {
		return 0
	}
	return 100 * p.now / p.size
}

// sent is told how much of the file has gone out.
func (p *progress) sent(now, size int64) { p.sentBy(time.Now(), now, size) }

func (p *progress) sentBy(at time.Time, now, size int64) {
	p.now, p.size = now, size
	p.moments = append(p.moments, sentAt{at, now})
	for len(p.moments) > 2 && at.Sub(p.moments[0].at) > window {
		p.moments = p.moments[1:]
	}
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r%s  [%s]  %s\x1b[K", shortName(p.path), bar(now, size), p.figures())
		p.unfinished = true
	case p.shown < 0 || p.percent() >= p.shown+step || now == size && p.shown < 100:
		p.shown = p.percent()
		fmt.Fprintf(p.out, "%s: %s\n", printable(p.path), p.figures())
	}
}

// figures are how far it is, how fast, and for how long still.
func (p *progress) figures() string {
	s := fmt.Sprintf("%3d %% of %s", p.percent(), bytesText(float64(p.size)))
	first, last := p.moments[0], p.moments[len(p.moments)-1]
	took := last.at.Sub(first.at)
	if took <= 0 || last.bytes <= first.bytes {
		return s
	}
	speed := float64(last.bytes-first.bytes) / took.Seconds()
	s += fmt.Sprintf(", %s/s", bytesText(speed))
	if rest := p.size - p.now; rest > 0 {
		s += ", " + span(time.Duration(float64(rest)/speed*float64(time.Second))) + " left"
	}
	return s
}

func bar(now, size int64) string {
	n := int(barWidth * now / size)
	return strings.Repeat("#", n) + strings.Repeat("-", barWidth-n)
}

// shortName is the name of a file in as many columns as there are for it.
func shortName(path string) string {
	name := printable(filepath.Base(path))
	if utf8.RuneCountInString(name) > nameWidth {
		name = string([]rune(name)[:nameWidth-1]) + "…"
	}
	return name
}

// bytesText is a number of bytes for people.
func bytesText(n float64) string {
	for _, u := range []struct {
		n    float64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= u.n {
			return fmt.Sprintf("%.1f %s", n/u.n, u.name)
		}
	}
	return fmt.Sprintf("%.0f bytes", n)
}

// span is a duration as clocks show it.
func span(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s >= 100*3600 {
		return "days"
	}
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
