package express

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

const (
	maxHead   = 8 << 10 // bytes of a head that is looked at here; longer ones are net/http's
	maxFields = 64
)

// parse reads a whole head into the connection's request, RFC 9112 sections 3 and 5. It is false for everything that is
// not as plain as what players, browsers and caches send, whether wrong or only rare. A viewer's requests are much
// alike: what is the same as in the one before is not looked at again. The request's texts are parts of copies of the
// head, which last as long as any of them is held.
func (c *conn) parse(head []byte) bool {
	end := bytes.IndexByte(head, '\n') + 1
	if line := head[:end]; string(line) != c.line {
		c.line = string(line)
		if !c.parseLine(c.line) {
			return false
		}
	}
	if fields := head[end:]; string(fields) != c.fields {
		c.fields = string(fields)
		return c.parseFields(c.fields)
	}
	return true
}

func (c *conn) parseLine(line string) bool {
	method, line, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), " ")
	target, version, _ := strings.Cut(line, " ")
	if method != http.MethodGet && method != http.MethodHead || version != "HTTP/1.1" || !plainTarget(target) {
		return false
	}
	path, query, asked := strings.Cut(target, "?")
	if asked && query == "" || !c.l.opt.Takes(path) {
		return false
	}
	r := c.request
	r.Method, r.RequestURI = method, target
	c.url.Path, c.url.RawQuery = path, query
	return true
}

func (c *conn) parseFields(rest string) bool {
	clear(c.header)
	c.request.Host, c.request.Close, c.last = "", false, false
	for n := 0; rest != "\r\n"; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || n == maxFields || !c.field(n, name, strings.Trim(value, " \t")) {
			return false
		}
	}
	return c.request.Host != ""
}

// field takes the n-th header field.
func (c *conn) field(n int, name, value string) bool {
	if !plainName(name) || !plainValue(value) {
		return false
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch name {
	case "Host":
		if c.request.Host != "" || !plainHost(value) {
			return false
		}
		c.request.Host = value
		return true
	case "Connection":
		if c.last = strings.EqualFold(value, "close"); !c.last && !strings.EqualFold(value, "keep-alive") {
			return false
		}
		c.request.Close = c.last
	case "Content-Length", "Transfer-Encoding", "Upgrade", "Expect", "Trailer", "Http2-Settings":
		return false
	}
	if c.header[name] != nil {
		return false
	}
	c.values[n] = value
	c.header[name] = c.values[n : n+1 : n+1]
	return true
}

// plainTarget reports whether a target is a path, perhaps with a query, of characters that stand for themselves.
func plainTarget(s string) bool {
	if s == "" || s[0] != '/' {
		return false
	}
	for i := range len(s) {
		switch b := s[i]; {
		case alphanumeric(b), b == '-', b == '_', b == '~', b == '?', b == '=', b == '&':
		case b == '.', b == '/':
			if i > 0 && s[i-1] == '/' { // "//", "/." and "/.." have meanings
				return false
			}
		default:
			return false
		}
	}
	return strings.Count(s, "?") < 2
}

func alphanumeric(b byte) bool { return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' }

// plainName allows tokens as they are used, RFC 9110 section 5.6.2.
func plainName(s string) bool {
	for i := range len(s) {
		if b := s[i]; !alphanumeric(b) && b != '-' && b != '_' {
			return false
		}
	}
	return s != ""
}

func plainValue(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return true
}

func plainHost(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case alphanumeric(b), b == '.', b == '-', b == ':', b == '[', b == ']', b == '_':
		default:
			return false
		}
	}
	return s != ""
}
