package captions

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// TTML is read as far as WebVTT has a place for it: the text of TTML 2 and its profiles (IMSC 1 Text, EBU-TT-D,
// SMPTE-TT), times in every form, italics, bold, underline, and whether a region is at the top. Images are passed over.

const (
	maxTTMLDepth  = 64
	maxTTMLStyles = 1000
)

// isTTML reports whether a text is a TTML document: XML whose first element is tt.
func isTTML(text string) bool {
	start := text[:min(len(text), 8192)]
	if !strings.HasPrefix(strings.TrimLeft(start, " \t\r\n"), "<") {
		return false
	}
	d := xml.NewDecoder(strings.NewReader(start))
	d.CharsetReader = decoded
	for {
		switch token, err := d.RawToken(); t := token.(type) {
		case xml.StartElement:
			return t.Name.Local == "tt"
		default:
			if err != nil {
				return false
			}
		}
	}
}

// decoded is for texts that are UTF-8 already, whatever they say.
func decoded(_ string, r io.Reader) (io.Reader, error) { return r, nil }

// look is how text looks.
type look struct{ bold, italic, underline bool }

// element is an open element with what its children have of it.
type element struct {
	name       string
	look       look
	begin, end time.Duration // end 0: none
	region     string
}

type ttmlParser struct {
	frames, ticks float64 // a second
	styles        map[string]look
	regions       map[string]bool // that are at the top
	open          []element
	text          paragraph // that is open
	in            bool      // one is
	builder       builder
}

// parseTTML reads a document; what it can't read it leaves out.
func parseTTML(text string) (builder, error) {
	p := ttmlParser{frames: 30, ticks: 1, styles: map[string]look{}, regions: map[string]bool{}}
	d := xml.NewDecoder(strings.NewReader(text))
	d.CharsetReader, d.Strict = decoded, false
	for {
		token, err := d.Token()
		if err != nil {
			if len(p.builder.cues) == 0 && err != io.EOF { //nolint:errorlint // the decoder gives it as it is
				return p.builder, &InputError{Text: "the file is no well-formed TTML document"}
			}
			return p.builder, nil
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(p.open) >= maxTTMLDepth {
				return p.builder, &InputError{
					Text: fmt.Sprintf("the file's elements are nested deeper than %d", maxTTMLDepth),
				}
			}
			p.start(t)
		case xml.EndElement:
			if err := p.finish(); err != nil {
				return p.builder, err
			}
		case xml.CharData:
			if p.in {
				p.say(string(t))
			}
		}
	}
}

// say adds text with its look. White space is one space, as TTML section 8.2.1 has it by default.
func (tp *ttmlParser) say(s string) {
	if tp.text.size > MaxCueText {
		return
	}
	if folded := strings.Join(strings.Fields(s), " "); folded == "" {
		s = " "
	} else {
		if strings.TrimLeft(s, " \t\r\n") != s {
			folded = " " + folded
		}
		if strings.TrimRight(s, " \t\r\n") != s {
			folded += " "
		}
		s = folded
	}
	e := tp.open[len(tp.open)-1]
	begin, end := e.look.tags()
	tp.text.add(e, begin+strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)+end)
}

func (l look) tags() (begin, end string) {
	for _, t := range []struct {
		on   bool
		name string
	}{{l.bold, "b"}, {l.italic, "i"}, {l.underline, "u"}} {
		if t.on {
			begin, end = begin+"<"+t.name+">", "</"+t.name+">"+end
		}
	}
	return begin, end
}

func (tp *ttmlParser) start(t xml.StartElement) {
	e := element{name: t.Name.Local}
	if n := len(tp.open); n > 0 {
		above := tp.open[n-1]
		e.look, e.begin, e.end, e.region = above.look, above.begin, above.end, above.region
	}
	attributes := map[string]string{}
	for _, a := range t.Attr {
		attributes[a.Name.Local] = a.Value
	}
	for id := range strings.FieldsSeq(attributes["style"]) {
		e.look = e.look.over(tp.styles[id])
	}
	e.look = e.look.with(attributes)
	if r := attributes["region"]; r != "" {
		e.region = r
	}
	if e.name == "region" {
		e.region = attributes["id"]
	}
	switch e.name {
	case "tt":
		tp.rates(attributes)
	case "style", "region":
		tp.declare(e, attributes)
	case "body", "div", "p", "span":
		tp.time(&e, attributes)
	case "br":
		if tp.in {
			tp.text.add(tp.open[len(tp.open)-1], "\n")
		}
	}
	if e.name == "p" {
		tp.in = true
		tp.text = paragraph{}
	}
	tp.open = append(tp.open, e)
}

// rates reads what frames and ticks are.
func (tp *ttmlParser) rates(attributes map[string]string) {
	positive := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v > 0 && v <= 1e9) {
			return 0
		}
		return v
	}
	frames, ticks := positive(attributes["frameRate"]), positive(attributes["tickRate"])
	if frames > 0 {
		tp.frames = frames
		tp.ticks = frames
	}
	if m := strings.Fields(attributes["frameRateMultiplier"]); len(m) == 2 && positive(m[0]) > 0 && positive(m[1]) > 0 {
		tp.frames *= positive(m[0]) / positive(m[1])
	}
	if ticks > 0 {
		tp.ticks = ticks
	}
}

// declare keeps a style, or whether a region is at the top. A style inside a region is the region's.
func (tp *ttmlParser) declare(e element, attributes map[string]string) {
	id := attributes["id"]
	if e.name == "style" && len(tp.open) > 0 && tp.open[len(tp.open)-1].name == "region" {
		id = tp.open[len(tp.open)-1].region
		e.name = "region"
	}
	if len(tp.styles)+len(tp.regions) >= maxTTMLStyles {
		return
	}
	if e.name == "style" {
		tp.styles[id] = e.look
		return
	}
	if attributes["displayAlign"] == "before" {
		tp.regions[id] = true
	} else if attributes["displayAlign"] != "" {
		tp.regions[id] = false
	}
}

func (l look) over(o look) look {
	return look{l.bold || o.bold, l.italic || o.italic, l.underline || o.underline}
}

func (l look) with(attributes map[string]string) look {
	switch attributes["fontStyle"] {
	case "italic", "oblique":
		l.italic = true
	case "normal":
		l.italic = false
	}
	switch attributes["fontWeight"] {
	case "bold":
		l.bold = true
	case "normal":
		l.bold = false
	}
	switch attributes["textDecoration"] {
	case "underline":
		l.underline = true
	case "none", "noUnderline":
		l.underline = false
	}
	return l
}

// time gives an element its times, which are relative to those of what it is in: TTML section 12.
func (tp *ttmlParser) time(e *element, attributes map[string]string) {
	from, until := e.begin, e.end
	if t, ok := tp.clock(attributes["begin"]); ok {
		e.begin = from + t
	}
	if t, ok := tp.clock(attributes["end"]); ok {
		e.end = from + t
	}
	if t, ok := tp.clock(attributes["dur"]); ok && (attributes["end"] == "" || e.begin+t < e.end) {
		e.end = e.begin + t
	}
	if until > 0 && (e.end == 0 || e.end > until) {
		e.end = until
	}
}

// clock reads a time expression, TTML section 12.3.1.
func (tp *ttmlParser) clock(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if parts := strings.Split(s, ":"); len(parts) == 3 || len(parts) == 4 {
		total := 0.0
		for i, unit := range []float64{3600, 60, 1, 1 / tp.frames}[:len(parts)] {
			v, err := strconv.ParseFloat(parts[i], 64)
			if err != nil || v < 0 {
				return 0, false
			}
			total += v * unit
		}
		return duration(total)
	}
	number := strings.TrimRight(s, "hmsft")
	v, err := strconv.ParseFloat(number, 64)
	unit, known := map[string]float64{
		"h": 3600, "m": 60, "s": 1, "ms": 0.001, "f": 1 / tp.frames, "t": 1 / tp.ticks,
	}[s[len(number):]]
	if err != nil || v < 0 || !known {
		return 0, false
	}
	return duration(v * unit)
}

func duration(seconds float64) (time.Duration, bool) {
	if !(seconds >= 0 && seconds < maxTime.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds*1000+0.5) * time.Millisecond, true
}

// finish closes an element; a paragraph becomes a cue, or several where its spans have times.
func (tp *ttmlParser) finish() error {
	n := len(tp.open)
	if n == 0 {
		return nil
	}
	e := tp.open[n-1]
	tp.open = tp.open[:n-1]
	if e.name != "p" || !tp.in {
		return nil
	}
	tp.in = false
	settings := ""
	if tp.regions[e.region] {
		settings = "line:0"
	}
	for _, cue := range tp.text.cues(e) {
		if len(tp.builder.cues)+tp.builder.drops.Total() >= MaxCues {
			return &InputError{Text: fmt.Sprintf("the file holds more than %d cues", MaxCues)}
		}
		cue.settings = settings
		tp.builder.add(cue, true)
	}
	return nil
}
