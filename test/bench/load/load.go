// Package load asks one server for one thing as fast as it responds, over a number of keep-alive connections. It does
// as little as possible per response, because it runs on the machine that is measured. Goroutines: one per connection,
// within Run.
package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// Target is what to ask for.
type Target struct {
	Addr  string // host:port
	Path  string
	Gzip  bool
	Conns int
}

// Result is what came of it.
type Result struct {
	Requests int64
	Bytes    int64 // of the bodies
	// Shortest and Longest are lengths of bodies: where both are the same, all were.
	Shortest, Longest int64
	Elapsed           time.Duration
}

// Rate is requests per second.
func (r Result) Rate() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }

// Run asks for a while. Any response but 200 is an error.
func Run(t Target, d time.Duration) (Result, error) {
	conns := make([]*conn, t.Conns)
	for i := range conns {
		nc, err := net.DialTimeout("tcp", t.Addr, 5*time.Second)
		if err != nil {
			return Result{}, fmt.Errorf("connect to %s: %w", t.Addr, err)
		}
		defer func() { _ = nc.Close() }()
		conns[i] = &conn{nc: nc, br: bufio.NewReaderSize(nc, 64<<10), request: request(t)}
		if err := conns[i].once(); err != nil { // connected and warm
			return Result{}, fmt.Errorf("ask %s for %s: %w", t.Addr, t.Path, err)
		}
		conns[i].Result = Result{}
	}
	start := time.Now()
	until := start.Add(d)
	var wg sync.WaitGroup
	errs := make([]error, len(conns))
	for i, c := range conns {
		wg.Go(func() {
			for n := 0; errs[i] == nil; n++ {
				if n%8 == 0 && !time.Now().Before(until) {
					return
				}
				errs[i] = c.once()
			}
		})
	}
	wg.Wait()
	total := Result{Elapsed: time.Since(start)}
	for _, c := range conns {
		if c.Requests > 0 && (total.Requests == 0 || c.Shortest < total.Shortest) {
			total.Shortest = c.Shortest
		}
		total.Longest = max(total.Longest, c.Longest)
		total.Requests += c.Requests
		total.Bytes += c.Bytes
	}
	return total, errors.Join(errs...)
}

func request(t Target) []byte {
	b := []byte("GET " + t.Path + " HTTP/1.1\r\nHost: " + t.Addr + "\r\nUser-Agent: bench\r\nAccept: */*\r\n")
	if t.Gzip {
		b = append(b, "Accept-Encoding: gzip\r\n"...)
	}
	return append(b, "\r\n"...)
}

type conn struct {
	Result
	nc      net.Conn
	br      *bufio.Reader
	request []byte
}

const lengthField = "Content-Length: "

// once asks and reads the response to its end. Both servers that are compared write the field's name like this.
func (c *conn) once() error {
	if _, err := c.nc.Write(c.request); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.br.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch {
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			return fmt.Errorf("response %q", bytes.TrimSpace(line))
		case bytes.HasPrefix(line, []byte(lengthField)):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthField):]))); err != nil {
				return fmt.Errorf("content length: %w", err)
			}
		case len(line) <= 2:
			if length < 0 {
				return errors.New("response without a length")
			}
			_, err := c.br.Discard(length)
			c.count(int64(length))
			return err
		}
	}
}

// count notes a response with a body of so many bytes.
func (c *conn) count(length int64) {
	if c.Requests == 0 || length < c.Shortest {
		c.Shortest = length
	}
	c.Longest = max(c.Longest, length)
	c.Requests++
	c.Bytes += length
}
