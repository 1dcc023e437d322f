package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"millrace/internal/fault"
)

const (
	maxDepth    = 16  // levels of nesting; the deepest documented body has 5
	maxMessages = 20  // problems told in one response
	maxNameRune = 32  // of a client's own field name in a message
	maxPath     = 200 // bytes of a path in a message
)

const cut = "..."

// kind is the JSON type of a node.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is one JSON value, with an object's members in the order in which they were sent.
type node struct {
	kind    kind
	boolean bool
	text    string // of a string or a number
	items   []*node
	members []member
}

// has reports whether an object has a member of this name.
func (n *node) has(name string) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return m.name == name })
}

type member struct {
	name  string
	value *node
}

// parseJSON reads one RFC 8259 document and nothing after it. It refuses what encoding/json would repair silently:
// invalid UTF-8, unpaired surrogates, names given twice; and U+0000, which no database keeps. The error is
// fault.Invalid.
func parseJSON(body []byte) (*node, error) {
	if !utf8.Valid(body) {
		return nil, fault.New(fault.Invalid, "the body must be JSON in UTF-8")
	}
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fault.Wrap(fault.Invalid, err,
				"the body must be one JSON object; it stops being JSON at byte %d", syntax.Offset)
		}
		return nil, fault.Wrap(fault.Invalid, err, "the body must be one JSON object")
	}
	if loneSurrogate(body) {
		return nil, fault.New(fault.Invalid, `the body must not contain unpaired surrogates (\ud800 to \udfff)`)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	p := parser{tokens: d}
	root := p.value("", 0)
	if p.err != nil {
		return nil, p.err
	}
	return root, p.problems.Err()
}

type parser struct {
	tokens   *json.Decoder
	problems fault.List
	count    int
	err      error // ends the parse
}

func (p *parser) complain(path, format string, args ...any) {
	if p.count++; p.count <= maxMessages {
		p.problems.At(at(path), format, args...)
	}
}

func (p *parser) value(path string, depth int) *node {
	tok, err := p.tokens.Token()
	if err != nil {
		p.err = fault.Wrap(fault.Invalid, err, "the body must be one JSON object")
		return nil
	}
	switch tok := tok.(type) {
	case bool:
		return &node{kind: kindBool, boolean: tok}
	case json.Number:
		return &node{kind: kindNumber, text: tok.String()}
	case string:
		if strings.ContainsRune(tok, 0) {
			p.complain(path, "must not contain the character U+0000")
		}
		return &node{kind: kindString, text: tok}
	case json.Delim:
		if depth++; depth > maxDepth {
			p.err = fault.New(fault.Invalid, "the body must not be nested deeper than %d levels", maxDepth)
			return nil
		}
		if tok == '[' {
			return p.array(path, depth)
		}
		return p.object(path, depth)
	}
	return &node{kind: kindNull}
}

func (p *parser) array(path string, depth int) *node {
	n := &node{kind: kindArray}
	for p.err == nil && p.tokens.More() {
		n.items = append(n.items, p.value(index(path, len(n.items)), depth))
	}
	p.end()
	return n
}

func (p *parser) object(path string, depth int) *node {
	n := &node{kind: kindObject}
	seen := map[string]bool{}
	for p.err == nil && p.tokens.More() {
		tok, err := p.tokens.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			p.err = fault.New(fault.Invalid, "the body must be one JSON object")
			return n
		}
		here := join(path, name)
		if strings.ContainsRune(name, 0) {
			p.complain(here, "must not contain the character U+0000 in its name")
		}
		if seen[name] {
			p.complain(here, "must not be given twice")
		}
		seen[name] = true
		n.members = append(n.members, member{name, p.value(here, depth)})
	}
	p.end()
	return n
}

// end eats the closing bracket.
func (p *parser) end() {
	if p.err == nil {
		_, p.err = p.tokens.Token()
	}
}

// loneSurrogate finds an escape \ud800–\udfff that is not half of a pair; body is valid JSON.
func loneSurrogate(body []byte) bool {
	unit := func(i int) (u uint64, ok bool) { // of the escape \uXXXX at i
		if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
			return 0, false
		}
		u, err := strconv.ParseUint(string(body[i+2:i+6]), 16, 16)
		return u, err == nil
	}
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		u, ok := unit(i)
		switch {
		case !ok || u < 0xd800 || u > 0xdfff:
			i++ // past the escaped character
		case u > 0xdbff:
			return true
		default:
			if low, is := unit(i + 6); !is || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		}
	}
	return false
}

func at(path string) string {
	if path == "" {
		return "the body"
	}
	return path
}

func index(path string, i int) string { return bound(fmt.Sprintf("%s[%d]", path, i)) }

// bound cuts a path that only a client's own names can have made so long; it is ASCII.
func bound(path string) string {
	if len(path) > maxPath {
		return path[:maxPath-len(cut)] + cut
	}
	return path
}

// join adds a member's name, cut and quoted if it is not one of ours, so that a message never carries what a client
// made up.
func join(path, name string) string {
	if name == "" || len(name) > maxNameRune || !isPlain(name) {
		if r := []rune(name); len(r) > maxNameRune {
			name = string(r[:maxNameRune]) + cut
		}
		name = strconv.QuoteToASCII(name)
	}
	if path == "" {
		return bound(name)
	}
	return bound(path + "." + name)
}

// isPlain reports whether s is made of letters, digits, - and _ of ASCII.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
