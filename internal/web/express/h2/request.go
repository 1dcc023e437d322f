package h2

import (
	"net/http"
	"net/textproto"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

// headers takes the first frame of a block and reads the others, RFC 9113 section 6.2 and 6.10. The block is read to
// its end whatever it says, because the next one needs the table that it leaves.
func (c *conn) headers(f *http2.HeadersFrame) error {
	id, ends, last := f.StreamID, f.StreamEnded(), f.HeadersEnded()
	if id%2 == 0 { // RFC 9113 section 5.1.1
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	itself := f.HasPriority() && f.Priority.StreamDep == id
	in := &c.in.fields
	in.begin(id, ends)
	err := in.add(f.HeaderBlockFragment(), last)
	for err == nil && !last {
		var next http2.Frame
		if next, err = c.in.framer.ReadFrame(); err != nil {
			return err
		}
		more, ok := next.(*http2.ContinuationFrame)
		if !ok { // the framer has looked
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		last = more.HeadersEnded()
		err = in.add(more.HeaderBlockFragment(), last)
	}
	switch {
	case err != nil:
		return err
	case itself: // RFC 7540 section 5.3.1
		return streamError(id, http2.ErrCodeProtocol)
	}
	return c.block(in)
}

// block takes a whole block of header fields: a request, or the trailers of one.
func (c *conn) block(f *fields) error {
	c.mu.Lock()
	t := &c.streams
	st := t.open[f.stream]
	if st == nil && f.stream > t.last {
		var err error
		st, err = c.open(f)
		c.mu.Unlock()
		if err != nil || st == nil {
			return err
		}
		return c.request(st, f)
	}
	defer c.mu.Unlock()
	switch {
	case st == nil && t.ignored(f.stream):
		return nil
	case st == nil: // RFC 9113 section 5.1: closed
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	case st.whole: // half-closed
		return streamError(f.stream, http2.ErrCodeStreamClosed)
	case !f.ends || f.bad || f.large || f.pseudo != pseudo{}: // RFC 9113 section 8.1
		return streamError(f.stream, http2.ErrCodeProtocol)
	}
	if _, err := st.body.add(nil, true); err != nil {
		return streamError(f.stream, http2.ErrCodeProtocol)
	}
	st.whole = true // what the trailers say is of no interest
	return nil
}

// open opens a stream, RFC 9113 sections 5.1.1 and 5.1.2. It is nil when there are no more. It needs the lock.
func (c *conn) open(f *fields) (*stream, error) {
	t := &c.streams
	if t.leaving { // RFC 9113 section 6.8: it is as if it had not come
		return nil, nil //nolint:nilnil // the documented value of "none"
	}
	t.last = f.stream
	if len(t.open) >= t.most || t.running >= t.most {
		return nil, streamError(f.stream, http2.ErrCodeRefusedStream)
	}
	st := &stream{
		id: f.stream, c: c, window: t.initial, inflow: inflow{left: received}, whole: f.ends,
		ctx: requestContext{parent: c.ctx},
	}
	st.ctx.st = st
	t.open[f.stream] = st
	t.running++
	return st, nil
}

// request has a request served.
func (c *conn) request(st *stream, f *fields) error {
	r, ok := c.newRequest(st, f)
	if !ok && !f.large {
		c.mu.Lock()
		c.streams.running--
		c.mu.Unlock()
		return streamError(st.id, http2.ErrCodeProtocol)
	}
	w := newResponse(st, r)
	switch {
	case f.large:
		c.work.Go(func() { c.handle(w, r, http.HandlerFunc(tooLarge)) })
	case st.whole && c.s.forPlayers(r):
		if !st.lead(func() { c.play(w, r) }) {
			return errPassed
		}
	default:
		w.exact = true
		c.work.Go(func() { c.handle(w, r, c.also) })
	}
	return nil
}

// forPlayers reports whether a request without a body is the players' handler's. Its path has to mean the same to
// everybody.
func (s *Server) forPlayers(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path := r.URL.Path
	plain := r.URL.RawPath == "" && r.URL.Host == "" && !strings.Contains(path, "//") && !strings.Contains(path, "/.")
	return plain && s.opt.Takes(path)
}

// newRequest makes what net/http would make of the fields, RFC 9113 section 8.3.1. It is false when they are malformed.
func (c *conn) newRequest(st *stream, f *fields) (*http.Request, bool) {
	p, h := &f.pseudo, f.header
	if f.large {
		h = http.Header{}
		p.method, p.path, p.scheme = http.MethodGet, "/", "https"
	}
	connect := p.method == http.MethodConnect
	switch {
	case f.bad:
		return nil, false
	case connect && (p.seen[1] || p.seen[3] || p.authority == ""): // RFC 9113 section 8.5
		return nil, false
	case !connect && (!validMethod(p.method) || p.path == "" || p.scheme != "https" && p.scheme != "http"):
		return nil, false
	case strings.Contains(p.authority, "@"), !sameHost(p, h):
		return nil, false
	}
	announced, ok := length(st, h)
	if !ok {
		return nil, false
	}
	r := &http.Request{
		Method: p.method, URL: &url.URL{Host: p.authority}, Proto: "HTTP/2.0", ProtoMajor: 2, Header: h,
		Body: http.NoBody, ContentLength: announced, Host: p.authority, RemoteAddr: c.from, RequestURI: p.authority,
	}
	if p.scheme == "https" {
		r.TLS = c.tls
	}
	if !connect {
		u, err := url.ParseRequestURI(p.path)
		if err != nil {
			return nil, false
		}
		r.URL, r.RequestURI = u, p.path
	}
	if cookies := h["Cookie"]; len(cookies) > 1 { // RFC 9113 section 8.2.3
		h["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	r.Trailer = trailers(h)
	expects := httpguts.HeaderValuesContainsToken(h["Expect"], "100-continue")
	if expects {
		delete(h, "Expect")
	}
	if !st.whole {
		b := newBody(st, announced, expects)
		c.mu.Lock()
		st.body = b
		c.mu.Unlock()
		r.Body = b
	}
	return r.WithContext(&st.ctx), true
}

// sameHost takes Host where there is no :authority. Both have to be the same, RFC 9113 section 8.3.1.
func sameHost(p *pseudo, h http.Header) bool {
	hosts := h["Host"]
	if len(hosts) == 0 {
		return true
	}
	if p.authority == "" {
		p.authority = hosts[0]
	}
	return len(hosts) == 1 && strings.EqualFold(hosts[0], p.authority)
}

// length is what Content-Length says; -1: nothing, and there is a body. RFC 9113 section 8.1.1.
func length(st *stream, h http.Header) (int64, bool) {
	said := h["Content-Length"]
	if len(said) == 0 {
		if st.whole {
			return 0, true
		}
		return -1, true
	}
	n, err := strconv.ParseUint(said[0], 10, 63)
	return int64(n), err == nil && (!st.whole || n == 0)
}

func validMethod(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !httpguts.IsTokenRune(r) }) < 0
}

// trailers is the names of those that come. They are not read.
func trailers(h http.Header) http.Header {
	var out http.Header
	for _, v := range h["Trailer"] {
		for name := range strings.SplitSeq(v, ",") {
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			if name == "Transfer-Encoding" || name == "Trailer" || name == "Content-Length" {
				continue
			}
			if out == nil {
				out = http.Header{}
			}
			out[name] = nil
		}
	}
	delete(h, "Trailer")
	return out
}

// tooLarge says that the fields are too large, RFC 6585 section 5.
func tooLarge(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the header fields are too large", http.StatusRequestHeaderFieldsTooLarge)
}

// play serves a request of a player, if there is a place for it.
func (c *conn) play(w *response, r *http.Request) {
	counted := c.wire.Whole()
	if counted != nil && !counted.Begin(0) {
		c.handle(w, r, http.HandlerFunc(full))
		return
	}
	c.handle(w, r, c.s.opt.Players)
	if counted != nil {
		counted.End(0)
	}
}

// full says that other viewers have all places.
func full(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Retry-After", "1")
	h.Set("Cache-Control", "no-store")
	h.Set("Access-Control-Allow-Origin", "*") // players show what is wrong
	http.Error(w, "too many viewers: ask again in a moment", http.StatusServiceUnavailable)
}

// handle has a handler respond, and ends the stream.
func (c *conn) handle(w *response, r *http.Request, h http.Handler) {
	whole := false
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http's sentinel, compared as there
			// Without the path: a signed one lets in who reads it.
			c.s.opt.Logger.ErrorContext(c.ctx, "handler panicked", "error", p, "stack", string(debug.Stack()))
		}
		c.finish(w, whole)
	}()
	h.ServeHTTP(w, r)
	whole = true
}

// finish ends a response and its stream.
func (c *conn) finish(w *response, whole bool) {
	st := w.st
	if whole {
		whole = w.end()
	}
	st.ctx.cancel()
	c.mu.Lock()
	t := &c.streams
	if whole {
		t.responded(st) // the request may have ended after its response
	}
	if !st.closed {
		t.running--
	}
	switch {
	case st.closed:
		t.close(st)
		c.in.calm.useful(vainDone)
	case st.gone:
	case !whole:
		t.reset(st.id, http2.ErrCodeInternal)
	default: // RFC 9113 section 8.1: what is left of the request is not needed
		t.reset(st.id, http2.ErrCodeNo)
	}
	quiet := t.quiet()
	c.mu.Unlock()
	if !st.leads.Load() {
		c.out.flush()
	}
	if quiet {
		c.stop()
	}
}
