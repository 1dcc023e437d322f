// Package viewer reads HTTP and HLS as cheaply as it can: the machine that is measured also runs this. A Client is one
// keep-alive connection of HTTP/1.1. It starts no goroutine.
package viewer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client is one connection; one goroutine at a time uses it.
type Client struct {
	addr   string
	Gzip   bool   // ask for compressed responses; they are unpacked
	Packed bool   // ... and left as they come
	Auth   string // value of Authorization
	nc     net.Conn
	br     *bufio.Reader
	cookie string
	packed gzip.Reader
	body   bytes.Buffer
	plain  bytes.Buffer
	out    []byte
}

// NewClient makes a Client of a server at host:port; the first request connects.
func NewClient(addr string) *Client { return &Client{addr: addr} }

// Close ends the connection.
func (c *Client) Close() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}

// Response is a response. Body is valid until the next request.
type Response struct {
	Status   int
	Body     []byte
	Location string
	Type     string
	Wire     int64 // bytes that came, with the head
}

const timeout = 30 * time.Second

// Get asks for a path and follows redirects on the same server. The URL it ended at comes back too, for what is
// relative to it.
func (c *Client) Get(path string) (*Response, string, error) {
	for range 5 {
		r, err := c.Do("GET", path, "", nil)
		if err != nil {
			return nil, path, err
		}
		if r.Location == "" || r.Status < 300 || r.Status > 399 {
			return r, path, nil
		}
		path = Resolve(path, r.Location)
	}
	return nil, path, errors.New("too many redirects")
}

// Resolve finds the path of a reference in a document at base.
func Resolve(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	u, err := b.Parse(ref)
	if err != nil {
		return ref
	}
	return u.RequestURI()
}

// Do sends one request and reads the response; a connection that the server has closed meanwhile is opened again.
func (c *Client) Do(method, path, contentType string, body []byte) (*Response, error) {
	fresh := c.nc == nil
	r, err := c.try(method, path, contentType, body)
	if err != nil && !fresh {
		c.Close()
		r, err = c.try(method, path, contentType, body)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return r, nil
}

func (c *Client) try(method, path, contentType string, body []byte) (*Response, error) {
	if c.nc == nil {
		nc, err := net.DialTimeout("tcp", c.addr, timeout)
		if err != nil {
			return nil, err
		}
		c.nc, c.br = nc, bufio.NewReaderSize(nc, 32<<10)
	}
	if err := c.nc.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := c.nc.Write(c.request(method, path, contentType, body)); err != nil {
		return nil, err
	}
	return c.response()
}

func (c *Client) request(method, path, contentType string, body []byte) []byte {
	b := append(c.out[:0], method...)
	b = append(append(b, ' '), path...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), c.addr...)
	field := func(name, value string) {
		if value != "" {
			b = append(append(append(append(b, "\r\n"...), name...), ": "...), value...)
		}
	}
	if c.Gzip || c.Packed {
		field("Accept-Encoding", "gzip")
	}
	field("Cookie", c.cookie)
	field("Authorization", c.Auth)
	if body != nil {
		field("Content-Type", contentType)
		field("Content-Length", strconv.Itoa(len(body)))
	}
	b = append(append(b, "\r\n\r\n"...), body...)
	c.out = b
	return b
}

// response reads status, head and body, RFC 9112 sections 4 to 7.
func (c *Client) response() (*Response, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	if len(line) < 12 || !strings.HasPrefix(line, "HTTP/1.") {
		return nil, fmt.Errorf("not an HTTP response: %q", line)
	}
	r := &Response{Wire: int64(len(line)) + 2}
	if r.Status, err = strconv.Atoi(line[9:12]); err != nil {
		return nil, fmt.Errorf("not an HTTP response: %q", line)
	}
	length, chunked, packed, last := int64(-1), false, false, false
	for {
		if line, err = c.line(); err != nil {
			return nil, err
		}
		r.Wire += int64(len(line)) + 2
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, fmt.Errorf("content length %q", value)
			}
		case "transfer-encoding":
			chunked = value == "chunked"
		case "content-encoding":
			packed = value == "gzip"
		case "content-type":
			r.Type = value
		case "location":
			r.Location = value
		case "set-cookie":
			c.cookie, _, _ = strings.Cut(value, ";")
		case "connection":
			last = strings.EqualFold(value, "close")
		}
	}
	if err := c.readBody(r, length, chunked); err != nil {
		return nil, err
	}
	if last {
		c.Close()
	}
	r.Body = c.body.Bytes()
	if packed && !c.Packed {
		return r, c.unpack(r)
	}
	return r, nil
}

func (c *Client) line() (string, error) {
	line, err := c.br.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

func (c *Client) readBody(r *Response, length int64, chunked bool) error {
	c.body.Reset()
	switch {
	case r.Status == 204 || r.Status == 304:
		return nil
	case chunked:
		return c.readChunks(r)
	case length >= 0:
		r.Wire += length
		_, err := io.CopyN(&c.body, c.br, length)
		return err
	}
	n, err := io.Copy(&c.body, c.br)
	r.Wire += n
	c.Close()
	return err
}

func (c *Client) readChunks(r *Response) error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 64)
		if err != nil {
			return fmt.Errorf("chunk size %q", line)
		}
		r.Wire += n + int64(len(line)) + 4
		if _, err := io.CopyN(&c.body, c.br, n); err != nil {
			return err
		}
		if _, err := c.line(); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

func (c *Client) unpack(r *Response) error {
	if err := c.packed.Reset(bytes.NewReader(r.Body)); err != nil {
		return fmt.Errorf("unpack response: %w", err)
	}
	c.plain.Reset()
	if _, err := c.plain.ReadFrom(&c.packed); err != nil {
		return fmt.Errorf("unpack response: %w", err)
	}
	r.Body = c.plain.Bytes()
	return nil
}
