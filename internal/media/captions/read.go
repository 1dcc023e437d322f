package captions

import (
	"fmt"
	"strings"
)

// InputError says in plain words why a file is no subtitle file. The text may be shown to the person who sent it.
type InputError struct{ Text string }

func (i *InputError) Error() string { return i.Text }

func noCue(why string) error { return &InputError{Text: "the file holds no cue: " + why} }

// Parse reads an SRT, WebVTT or TTML file in any of the usual encodings. It is lenient as files in the wild need it: a
// cue that can't be used is left out and counted, and only a file without a single usable cue is refused. Every error
// is an *InputError.
func Parse(data []byte) (Document, error) {
	if len(data) > MaxInput {
		return Document{}, &InputError{Text: fmt.Sprintf("the file is larger than %d MiB", MaxInput>>20)}
	}
	text, err := decode(data)
	if err != nil {
		return Document{}, err
	}
	p := parser{lines: lines{text: text}}
	if isTTML(text) {
		if p.builder, err = parseTTML(text); err != nil {
			return Document{}, err
		}
	} else if err := p.run(); err != nil {
		return Document{}, err
	}
	drops := p.builder.drops
	d := p.builder.document(p.blocks...)
	switch {
	case d.Len() > 0:
		return d, nil
	case drops.Total() > 0:
		return Document{}, noCue(drops.reasons())
	}
	return Document{}, noCue(describe(text, p.vtt))
}

// Stored reads a text track as AppendVTT writes it: unlike a file that somebody sends, it may hold no cue, as where
// nothing was said.
func Stored(data []byte) (Document, error) {
	if string(data) == header {
		return Document{}, nil
	}
	return Parse(data)
}

// reasons tells what was wrong with the cues of a file without a usable one.
func (d Drops) reasons() string {
	var why []string
	for _, r := range []struct {
		n    int
		what string
	}{
		{d.BadTime, "with a time that can't be read"},
		{d.NotPositive, "that end before they start"},
		{d.Empty, "without text"},
		{d.TooLong, fmt.Sprintf("with more than %d KiB of text", MaxCueText>>10)},
		{d.Crowded, "shown together with too many others"},
	} {
		if r.n > 0 {
			why = append(why, fmt.Sprintf("%d %s", r.n, r.what))
		}
	}
	return "what looks like cues can't be used (" + strings.Join(why, ", ") + ")"
}

// lines walks over a text whose lines end with CR, LF or both.
type lines struct {
	text string
	pos  int
}

func (l *lines) next() (line string, ok bool) {
	rest := l.text[l.pos:]
	if rest == "" {
		return "", false
	}
	end := strings.IndexAny(rest, "\r\n")
	if end < 0 {
		l.pos = len(l.text)
		return rest, true
	}
	l.pos += end + 1
	if rest[end] == '\r' && l.pos < len(l.text) && l.text[l.pos] == '\n' {
		l.pos++
	}
	return rest[:end], true
}

// skipBlank moves to the next line that is not blank and returns it without passing it.
func (l *lines) skipBlank() (line string, ok bool) {
	for {
		start := l.pos
		line, ok = l.next()
		if !ok || !blank(line) {
			l.pos = start
			return line, ok
		}
	}
}

func blank(line string) bool { return strings.Trim(line, " \t") == "" }

func isNumber(line string) bool {
	line = strings.Trim(line, " \t")
	return line != "" && len(line) <= 9 && strings.Trim(line, "0123456789") == ""
}

// parser follows the block structure of WebVTT 6.1, which SRT shares but for its header, and mends what writers get
// wrong.
type parser struct {
	lines

	vtt      bool
	numbered bool // the last cue had a number before it
	previous string
	inBlock  int // lines since the last blank one
	seenCue  bool
	builder  builder
	blocks   []string
	blockLen int
}

func (p *parser) run() error {
	p.header()
	for {
		line, ok := p.next()
		switch {
		case !ok:
			return nil
		case looksLikeTiming(line):
			if len(p.builder.cues)+p.builder.drops.Total() >= MaxCues {
				return &InputError{Text: fmt.Sprintf("the file holds more than %d cues", MaxCues)}
			}
			p.cue(line)
		case blank(line):
			p.inBlock = 0
			if p.vtt {
				p.previous = ""
			}
		case p.vtt && p.inBlock == 0 && !p.seenCue && isBlockStart(line):
			p.block(strings.TrimRight(line, " \t"))
		default:
			p.previous = line
			p.inBlock++
		}
	}
}

// header passes the first block of a WebVTT file.
func (p *parser) header() {
	first, ok := p.skipBlank()
	if !ok || !strings.HasPrefix(first, "WEBVTT") {
		return
	}
	p.vtt = true
	_, _ = p.next()
	for {
		start := p.pos
		line, ok := p.next()
		if !ok || blank(line) {
			return
		}
		if looksLikeTiming(line) {
			p.pos = start
			return
		}
	}
}

func isBlockStart(line string) bool {
	line = strings.TrimRight(line, " \t")
	return line == "STYLE" || line == "REGION"
}

// block reads a STYLE or REGION block and keeps it if it is safe.
func (p *parser) block(kind string) {
	var body []string
	for {
		start := p.pos
		line, ok := p.next()
		if !ok || line == "" {
			break
		}
		if strings.Contains(line, "-->") {
			p.pos = start
			p.inBlock = 1
			p.previous = kind
			break
		}
		body = append(body, line)
		if len(body) > maxBlock {
			body = body[:maxBlock]
		}
	}
	kept := cleanRegion(body)
	if kind == "STYLE" {
		kept = cleanStyle(body)
	}
	if kept == "" || len(p.blocks) == maxBlocks || p.blockLen+len(kept) > maxBlockSize {
		return
	}
	p.blocks = append(p.blocks, kept)
	p.blockLen += len(kept)
}

// cue reads the cue whose timing line was just passed.
func (p *parser) cue(timing string) {
	p.seenCue = true
	raw := rawCue{}
	if p.vtt && p.inBlock == 1 {
		raw.id = p.previous
	}
	p.numbered = isNumber(p.previous)
	p.previous, p.inBlock = "", 0
	var ok bool
	raw.start, raw.end, raw.settings, ok = parseTiming(timing)
	raw.text = p.body()
	if !ok {
		p.builder.drops.BadTime++
		return
	}
	p.builder.add(raw, p.vtt)
}

// body reads the text of a cue up to the line after which it ends.
func (p *parser) body() string {
	var text []string
	size := 0
	for {
		start := p.pos
		line, ok := p.next()
		if !ok || p.vtt && line == "" {
			break
		}
		if looksLikeTiming(line) {
			// The blank line is missing; the number of the next cue has been taken for text.
			p.pos = start
			if n := len(text); n > 0 && p.numbered && isNumber(text[n-1]) {
				p.previous, p.inBlock = text[n-1], 1
				text = text[:n-1]
			}
			break
		}
		if blank(line) {
			if p.endsAtBlank() {
				break
			}
			continue
		}
		if size <= MaxCueText {
			text = append(text, line)
		}
		size += len(line) + 1
	}
	return strings.Join(text, "\n")
}

// endsAtBlank reports whether a cue ends at the blank lines that begin here: many writers put blank lines into a text,
// so what follows decides. It passes the blank lines.
func (p *parser) endsAtBlank() bool {
	line, ok := p.skipBlank()
	if !ok || looksLikeTiming(line) {
		return true
	}
	if !isNumber(line) {
		return false
	}
	start := p.pos
	_, _ = p.next()
	line, ok = p.skipBlank()
	p.pos = start
	return ok && looksLikeTiming(line)
}

// describe says what a text without cues seems to be.
func describe(text string, vtt bool) string {
	start := strings.ToLower(strings.TrimLeft(text[:min(len(text), 4096)], " \t\r\n"))
	if start == "" {
		return "it is empty"
	}
	if vtt {
		return "it is a WebVTT file without any"
	}
	for _, kind := range []struct{ prefix, name string }{
		{"<!doctype html", "an HTML page"},
		{"<html", "an HTML page"},
		{"<tt", "a TTML document without any text"},
		{"<?xml", "an XML document that is no TTML"},
		{"<", "an XML document that is no TTML"},
		{"[script info]", "a SubStation (ASS) file, and only SRT, WebVTT and TTML are read"},
		{"scenarist_scc", "a Scenarist (SCC) file, and only SRT, WebVTT and TTML are read"},
		{"#extm3u", "an HLS playlist"},
		{"{", "a JSON document"},
		{"[", "a JSON document"},
		{"pk\x03\x04", "a ZIP archive"},
		{"%pdf", "a PDF document"},
		{"\x1f‹", "a gzip archive"},
	} {
		if strings.HasPrefix(start, kind.prefix) {
			return "it starts like " + kind.name
		}
	}
	if odd := len(start) - len(stripControls(start)); odd*20 > len(start) {
		return "it is binary data, not text"
	}
	return "it is no SRT, WebVTT or TTML file"
}
