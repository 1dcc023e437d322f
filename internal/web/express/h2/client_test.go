package h2_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http/httptest"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// client is one that says what it likes.
type client struct {
	*tls.Conn

	framer *http2.Framer
	block  bytes.Buffer
	packed *hpack.Encoder
	next   uint32
}

// dial connects; the settings are what the client asks for.
func dial(t *testing.T, s *httptest.Server, settings ...http2.Setting) *client {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	nc, err := d.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	secure, _ := nc.(*tls.Conn)
	c := &client{Conn: secure, framer: http2.NewFramer(nc, nc), next: 1}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.framer.AllowIllegalWrites = true
	c.packed = hpack.NewEncoder(&c.block)
	if _, err = io.WriteString(nc, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err = c.framer.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return c
}

// fields packs a block.
func (c *client) fields(fields ...string) []byte {
	c.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = c.packed.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return c.block.Bytes()
}

// ask sends a request and gives its stream. A connection that is closed says so when it is read.
func (c *client) ask(method, path string, ends bool, more ...string) (stream uint32) {
	fields := append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path}, more...)
	stream = c.next
	c.next += 2
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: c.fields(fields...), EndStream: ends, EndHeaders: true,
	})
	return stream
}

// until reads frames until one is what is looked for. It gives how the connection ended otherwise.
func (c *client) until(found func(f http2.Frame) bool) (end http2.ErrCode, closed bool) {
	end = http2.ErrCodeNo
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			return end, true
		}
		if away, ok := f.(*http2.GoAwayFrame); ok {
			end = away.ErrCode
		}
		if found(f) {
			return end, false
		}
	}
}

// ends reads a stream to its end: what has come of its body, and how it was reset.
func (c *client) ends(stream uint32) (status string, body []byte, code http2.ErrCode, whole bool) {
	_, closed := c.until(func(f http2.Frame) bool {
		if f.Header().StreamID != stream {
			return false
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			status = f.PseudoValue("status")
			return f.StreamEnded()
		case *http2.DataFrame:
			body = append(body, f.Data()...)
			return f.StreamEnded()
		case *http2.RSTStreamFrame:
			code = f.ErrCode
			return true
		}
		return false
	})
	return status, body, code, !closed
}
