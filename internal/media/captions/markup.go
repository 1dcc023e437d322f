package captions

import (
	"html"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxDepth      = 32  // tags open at once
	maxTag        = 512 // bytes of a tag
	maxAnnotation = 60  // characters of a speaker's name
	maxClasses    = 128 // bytes of a tag's classes
)

// convert turns the text of an SRT or WebVTT cue into canonical WebVTT cue text: known tags kept and balanced,
// character references normalised, anything else escaped, blank lines left out. Converting the result as WebVTT changes
// nothing. visible reports whether there is anything to read.
func convert(raw string, vtt bool, set *settings) (text string, visible bool) {
	m := markup{vtt: vtt, set: set, out: make([]byte, 0, len(raw)+16)}
	for s := stripControls(strings.ReplaceAll(strings.ReplaceAll(raw, "\r\n", "\n"), "\r", "\n")); s != ""; {
		next := strings.IndexAny(s, "<>&{\u00a0\u200e\u200f\n")
		if next < 0 {
			next = len(s)
		}
		m.plain(s[:next])
		s = s[next:]
		if s != "" {
			s = s[m.special(s):]
		}
	}
	m.closeTo(0)
	return withoutBlankLines(string(m.out)), m.visible
}

// markup is the output under construction and the tags open in it.
type markup struct {
	vtt     bool
	set     *settings
	out     []byte
	open    []tag
	visible bool
}

// tag is an open tag: its name in the input and in the output, where it may be left out.
type tag struct{ in, out string }

func (m *markup) plain(s string) {
	m.out = append(m.out, s...)
	m.visible = m.visible || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsSpace(r) })
}

// special handles what may be more than text at the front of s and returns how many bytes that was.
func (m *markup) special(s string) int {
	switch s[0] {
	case '\n':
		m.out = append(m.out, '\n')
		return 1
	case '<':
		if end := strings.IndexByte(s[:min(len(s), maxTag)], '>'); end > 0 && !strings.ContainsAny(s[1:end], "<\n") &&
			m.tag(s[1:end]) {
			return end + 1
		}
	case '{':
		if end := strings.IndexByte(s[:min(len(s), maxTag)], '}'); end > 0 && !m.vtt && s[1] == '\\' &&
			!strings.Contains(s[:end], "\n") {
			m.override(s[1:end])
			return end + 1
		}
	case '&':
		if end := strings.IndexByte(s[:min(len(s), 32)], ';'); end > 0 {
			if decoded := html.UnescapeString(s[:end+1]); decoded != s[:end+1] {
				m.escape(decoded)
				return end + 1
			}
		}
	}
	_, size := utf8.DecodeRuneInString(s)
	m.escape(s[:size])
	return size
}

// escape writes text so that nothing in it is markup or ends the line.
func (m *markup) escape(s string) {
	for _, r := range s {
		switch r {
		case '&':
			m.plain("&amp;")
		case '<':
			m.plain("&lt;")
		case '>':
			m.plain("&gt;")
		case '\u00a0':
			m.out = append(m.out, "&nbsp;"...)
		case '\u200e':
			m.out = append(m.out, "&lrm;"...)
		case '\u200f':
			m.out = append(m.out, "&rlm;"...)
		case '\n', '\r', '\t':
			m.out = append(m.out, ' ')
		case 0:
			m.plain("\uFFFD")
		default:
			m.plain(stripControls(string(r)))
		}
	}
}

// tag handles the inside of <…> and returns false when it is no tag that we know.
func (m *markup) tag(inner string) bool {
	if name, found := strings.CutPrefix(inner, "/"); found {
		return m.end(strings.ToLower(strings.Trim(name, " \t")))
	}
	if m.vtt && inner != "" && inner[0] >= '0' && inner[0] <= '9' {
		t, rest, ok := parseTime(inner)
		if !ok || rest != "" {
			return false
		}
		m.out = append(appendTime(append(m.out, '<'), t), '>')
		return true
	}
	cut := strings.IndexAny(inner, ". \t/")
	if cut < 0 {
		cut = len(inner)
	}
	name, rest := strings.ToLower(inner[:cut]), inner[cut:]
	if m.vtt {
		return m.startVTT(name, rest)
	}
	return m.startSRT(name, rest)
}

func (m *markup) end(name string) bool {
	if !m.knows(name) {
		return false
	}
	for i, t := range slices.Backward(m.open) {
		if t.in == name {
			m.closeTo(i)
			break
		}
	}
	return true
}

func (m *markup) knows(name string) bool {
	switch name {
	case "b", "i", "u":
		return true
	case "c", "v", "lang", "ruby", "rt":
		return m.vtt
	case "em", "strong", "font", "br":
		return !m.vtt
	}
	return false
}

// start opens a tag; out is what is written between < and >, its name up to the first dot or space.
func (m *markup) start(in, out string) {
	if len(m.open) == maxDepth {
		return
	}
	name := out
	if out != "" {
		m.out = append(append(append(m.out, '<'), out...), '>')
		if cut := strings.IndexAny(out, ". "); cut >= 0 {
			name = out[:cut]
		}
	}
	m.open = append(m.open, tag{in: in, out: name})
}

func (m *markup) closeTo(depth int) {
	for len(m.open) > depth {
		last := m.open[len(m.open)-1]
		m.open = m.open[:len(m.open)-1]
		if last.out != "" {
			m.out = append(append(append(m.out, '<', '/'), last.out...), '>')
		}
	}
}

// startVTT handles the tags of WebVTT 3.1 with their classes and annotation.
func (m *markup) startVTT(name, rest string) bool {
	if !m.knows(name) {
		return false
	}
	classes, annotation := rest, ""
	if cut := strings.IndexAny(rest, " \t"); cut >= 0 {
		classes, annotation = rest[:cut], rest[cut:]
	}
	out := name + cleanClasses(classes)
	switch name {
	case "v":
		if speaker := cleanAnnotation(annotation); speaker != "" {
			out += " " + speaker
		}
	case "lang":
		code := strings.Trim(annotation, " \t")
		if code == "" || len(code) > 35 ||
			strings.ContainsFunc(code, func(r rune) bool { return r != '-' && !isASCIIAlnum(r) }) ||
			strings.HasSuffix(code, "-") {
			out = ""
		} else {
			out += " " + code
		}
	case "rt":
		inRuby := false
		for _, t := range m.open {
			inRuby = inRuby || t.in == "ruby"
		}
		if !inRuby {
			return true
		}
	}
	m.start(name, out)
	return true
}

func isASCIIAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func cleanClasses(s string) string {
	var b strings.Builder
	for class := range strings.SplitSeq(s, ".") {
		class = strings.TrimRight(class, "-") // "-->" must not come about
		if class == "" || b.Len()+1+len(class) > maxClasses ||
			strings.ContainsFunc(class, func(r rune) bool {
				return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
			}) {
			continue
		}
		b.WriteString("." + class)
	}
	return b.String()
}

func cleanAnnotation(s string) string {
	s = stripControls(html.UnescapeString(s))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxAnnotation {
		s = string(r[:maxAnnotation])
	}
	s = strings.TrimRight(s, "- ")
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// startSRT handles the HTML tags that players of SRT know. A colour becomes one of the eight that WebVTT 5 names.
func (m *markup) startSRT(name, attributes string) bool {
	switch name {
	case "b", "i", "u":
		m.start(name, name)
	case "strong":
		m.start(name, "b")
	case "em":
		m.start(name, "i")
	case "br":
		m.out = append(m.out, '\n')
	case "font":
		out := ""
		if colour := namedColour(attributes); colour != "" {
			out = "c." + colour
		}
		m.start(name, out)
	default:
		return false
	}
	return true
}

func namedColour(attributes string) string {
	_, value, found := strings.Cut(strings.ToLower(attributes), "color")
	value = strings.TrimLeft(value, " \t")
	if !found || !strings.HasPrefix(value, "=") {
		return ""
	}
	value = strings.TrimLeft(value[1:], " \t\"'")
	if cut := strings.IndexAny(value, " \t\"'"); cut >= 0 {
		value = value[:cut]
	}
	switch value {
	case "white", "#ffffff":
		return "white"
	case "lime", "#00ff00":
		return "lime"
	case "cyan", "aqua", "#00ffff":
		return "cyan"
	case "red", "#ff0000":
		return "red"
	case "yellow", "#ffff00":
		return "yellow"
	case "magenta", "fuchsia", "#ff00ff":
		return "magenta"
	case "blue", "#0000ff":
		return "blue"
	case "black", "#000000":
		return "black"
	}
	return ""
}

// override handles the inside of {\…}, SubStation's codes that SRT files carry: alignment and b, i, u are kept.
func (m *markup) override(codes string) {
	for code := range strings.SplitSeq(codes, `\`) {
		switch {
		case len(code) == 3 && code[:2] == "an" && code[2] >= '1' && code[2] <= '9':
			m.set.place(int(code[2] - '0'))
		case len(code) == 2 && code[1] == '1' && strings.Contains("biu", code[:1]):
			m.start(code[:1], code[:1])
		case len(code) == 2 && code[1] == '0' && strings.Contains("biu", code[:1]):
			m.end(code[:1])
		}
	}
}

func withoutBlankLines(s string) string {
	kept := make([]string, 0, 4)
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// shiftText moves the times inside canonical text; one that would lie before zero goes.
func shiftText(text string, delta time.Duration) string {
	if !strings.Contains(text, "<") {
		return text
	}
	var b strings.Builder
	for {
		start := strings.IndexByte(text, '<')
		if start < 0 {
			b.WriteString(text)
			return withoutBlankLines(b.String())
		}
		b.WriteString(text[:start])
		text = text[start:]
		end := strings.IndexByte(text, '>') + 1 // canonical text has no lone <
		if t, rest, ok := parseTime(text[1:end]); ok && rest == ">" {
			if t += delta; t >= 0 && t < maxTime {
				b.Write(append(appendTime([]byte{'<'}, t), '>'))
			}
		} else {
			b.WriteString(text[:end])
		}
		text = text[end:]
	}
}
