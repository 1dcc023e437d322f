package rtmp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/media/rtmpwire"
)

var neverAsked = ingesttest.Gate(func(context.Context, ingest.Publication) (context.Context, ingest.Sink, error) {
	panic("the gate was asked")
})

// what a stranger sends gets a closed connection, at once, and the gate is not asked.
func TestStrangersAreHungUpOn(t *testing.T) {
	t.Parallel()
	hello := append([]byte{3}, make([]byte, 2*rtmpwire.HandshakeSize)...)
	for name, raw := range map[string][]byte{
		"HTTP":                    []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":                     {0x16, 3, 1, 0, 200},
		"RTMPE":                   cat([]byte{6}, make([]byte, rtmpwire.HandshakeSize)),
		"nothing":                 nil,
		"half a handshake":        hello[:2000],
		"garbage after handshake": cat(hello, bytes.Repeat([]byte{0xff, 0x81, 7}, 100)),
		"huge command":            cat(hello, []byte{3, 0, 0, 0, 0xff, 0xff, 0xff, 20, 0, 0, 0, 0}),
		"huge control message":    cat(hello, []byte{2, 0, 0, 0, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0}),
		"chunk size 0":            cat(hello, []byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0}),
		"short control message":   cat(hello, []byte{2, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 9}),
		"format 3 first":          cat(hello, []byte{0xc3}),
		"many chunk streams": cat(hello, func() (b []byte) {
			for i := range byte(60) {
				b = append(b, 3+i, 0, 0, 0, 0, 0, 0, 18, 0, 0, 0, 0)
			}
			return b
		}()),
		"many unfinished commands": cat(hello, func() (b []byte) {
			for i := range byte(30) {
				b = append(b, 3+i, 0, 0, 0, 0, 0xff, 0xff, 20, 0, 0, 0, 0)
				b = append(b, make([]byte, 128)...)
			}
			return b
		}()),
		"commands without connect": cat(hello, commandBytes("createStream")),
		"commands without end": cat(hello, opening("app", "rtmp://h/app", "")[1+2*rtmpwire.HandshakeSize:][:200],
			bytes.Repeat(commandBytes("_checkbw"), 100)),
		"play": cat(bytes.Replace(opened(), []byte("\x00\x07publish"), []byte("\x00\x07publisx"), 1),
			commandBytes("play", key)),
		"connect without app": opening("", "", key),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{Gate: neverAsked})
			send(t, s.addr, raw)
			s.stop()
			if log := s.log.String(); strings.Contains(log, "panic") || strings.Count(log, "\n") != 1 ||
				strings.Contains(log, key) {
				t.Errorf("log:\n%s", log)
			}
		})
	}
}

// media that a stranger sends before its key is read past, not kept.
func TestMediaBeforePublishCostsNoMemory(t *testing.T) { //nolint:paralleltest // it counts what the whole process allocates
	r := rtmpwire.NewReader(bufio.NewReader(io.MultiReader(
		bytes.NewReader([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff}),
		bytes.NewReader([]byte{6, 0, 0, 0, 0xff, 0xff, 0xff, 9, 1, 0, 0, 0}), io.LimitReader(zeros{}, 1<<24-1),
	)))
	p, err := r.Read()
	if err != nil || p.Kind != rtmpwire.TypeSetChunkSize {
		t.Fatal(p, err)
	}
	r.ChunkSize = binary.BigEndian.Uint32(p.Body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes allocated for a message that nobody wants", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestPublisherIsBoundedToo(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{
		"huge frame": {6, 0, 0, 0, 0xff, 0xff, 0xff, 9, 1, 0, 0, 0},
		"unfinished messages": bytes.Join([][]byte{
			{6, 0, 0, 0, 0x0f, 0xff, 0xff, 9, 1, 0, 0, 0, 1},
			make([]byte, 1<<20-2),
			{7, 0, 0, 0, 0x0f, 0xff, 0xff, 9, 1, 0, 0, 0, 1},
		}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			s := startServer(t, Options{Gate: ingesttest.Admit(key, sink), MaxMessage: 4 << 20})
			send(t, s.addr, cat(opened(), raw))
			if cause := sink.Cause(t); name == "huge frame" && !errors.Is(cause, rtmpwire.ErrChunk) {
				t.Errorf("cause %v", cause)
			}
		})
	}
}

func TestHandshakeDeadline(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]func(c net.Conn) error{
		"silent": func(net.Conn) error { return nil },
		"a byte a second": func(c net.Conn) error {
			for i := range 60 {
				if _, err := c.Write([]byte{byte(3 * (1 - min(i, 1)))}); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return nil
		},
		"pings instead of publish": func(c net.Conn) error {
			if _, err := c.Write(opened()[:1+2*rtmpwire.HandshakeSize]); err != nil {
				return err
			}
			for range 60 {
				if _, err := c.Write([]byte{2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 6, 0, 0, 0, 9}); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ln := newPipeListener()
				s := serveOn(t, Options{Gate: neverAsked, HandshakeTimeout: 7 * time.Second}, ln, nil)
				start := time.Now()
				c, closed := ln.dial()
				var wg sync.WaitGroup
				wg.Go(func() { _ = slow(c) })
				<-closed
				if d := time.Since(start); d != 7*time.Second {
					t.Errorf("hung up after %v", d)
				}
				c.Close()
				wg.Wait()
				s.stop()
			})
		})
	}
}

func TestIdlePublisherIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		sink := ingesttest.NewRecorder()
		s := serveOn(t, Options{Gate: ingesttest.Admit(key, sink), IdleTimeout: 15 * time.Second}, ln, nil)
		c, closed := ln.dial()
		if _, err := c.Write(cat(opened(), videoConfig(testAvcC))); err != nil {
			t.Fatal(err)
		}
		for i := range 20 { // a message that trickles in for longer than the timeout is no silence
			if _, err := c.Write(videoFrame(0)[i : i+1]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
		start := time.Now()
		<-closed
		if d := time.Since(start); d < 11*time.Second || d > 16*time.Second {
			t.Errorf("hung up after %v", d)
		}
		if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrSilent) {
			t.Errorf("cause %v", cause)
		}
		c.Close()
		s.stop()
	})
}

func TestPublicationIsEndedFromAbove(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(cancel context.CancelCauseFunc, s *server) error{
		"by its owner": func(cancel context.CancelCauseFunc, _ *server) error {
			cancel(ingest.ErrEnded)
			return ingest.ErrEnded
		},
		"by a shut-down": func(_ context.CancelCauseFunc, s *server) error { s.stop(); return ingest.ErrShutdown },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			cancels := make(chan context.CancelCauseFunc, 1)
			s := startServer(t, Options{
				Gate: ingesttest.Gate(func(
					ctx context.Context, _ ingest.Publication,
				) (context.Context, ingest.Sink, error) {
					pub, cancel := context.WithCancelCause(ctx)
					cancels <- cancel
					return pub, sink, nil
				}),
			})
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(cat(opened(), videoConfig(testAvcC), videoFrame(0))); err != nil {
				t.Fatal(err)
			}
			cancel := <-cancels
			defer cancel(nil)
			want := end(cancel, s)
			if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
			if cause := sink.Cause(t); !errors.Is(cause, want) {
				t.Errorf("cause %v, want %v", cause, want)
			}
		})
	}
}

func TestSinkErrorEndsThePublication(t *testing.T) {
	t.Parallel()
	full := errors.New("disk is full")
	sink := ingesttest.NewRecorder()
	sink.OnWrite = func(frame.Frame) error { return full }
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	send(t, s.addr, cat(opened(), videoConfig(testAvcC), videoFrame(0), videoFrame(33)))
	if cause := sink.Cause(t); !errors.Is(cause, full) || len(sink.Of(frame.Video)) != 1 {
		t.Errorf("cause %v after %d frames", cause, len(sink.Of(frame.Video)))
	}
}

// a panic below one connection closes that one, with its sink, and the others go on.
func TestPanicIsOneConnections(t *testing.T) {
	t.Parallel()
	good, bad, worse := ingesttest.NewRecorder(), ingesttest.NewRecorder(), ingesttest.NewRecorder()
	bad.OnWrite = func(frame.Frame) error { panic("boom in write") }
	worse.OnClose = func() { panic("boom in close") }
	s := startServer(t, Options{
		Gate: ingesttest.Gate(func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
			switch p.Key {
			case "good":
				return ctx, good, nil
			case "bad":
				return ctx, bad, nil
			case "worse":
				return ctx, worse, nil
			}
			panic("boom in gate")
		}),
	})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	media := cat(videoConfig(testAvcC), videoFrame(0))
	if _, err := c.Write(cat(opening("app", "rtmp://h/app", "good"), media)); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"bad", "worse", "other"} {
		send(t, s.addr, cat(opening("app", "rtmp://h/app", k), media))
	}
	if cause := bad.Cause(t); !strings.Contains(cause.Error(), "boom in write") {
		t.Errorf("cause %v", cause)
	}
	if _, err := c.Write(cat(videoFrame(33), commandBytes("FCUnpublish"))); err != nil {
		t.Fatal(err)
	}
	if cause := good.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) || len(good.Of(frame.Video)) != 2 {
		t.Errorf("the other connection ended with %v after %d frames", cause, len(good.Of(frame.Video)))
	}
	s.stop()
	if n := strings.Count(s.log.String(), "connection panicked"); n != 3 ||
		!strings.Contains(s.log.String(), "hostile_test.go") {
		t.Errorf("%d panics in the log, with their stacks:\n%s", n, s.log)
	}
}

func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"per address": {MaxConnsPerIP: 2}, "in all": {MaxConns: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Gate = neverAsked
			s, began := startServer(t, o), time.Now()
			dial := func() net.Conn {
				c, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			responds := func(c net.Conn) bool {
				_, _ = c.Write(opened()[:1+rtmpwire.HandshakeSize])
				_, err := io.ReadFull(c, make([]byte, 100))
				return err == nil
			}
			a, b := dial(), dial()
			if !responds(a) || !responds(b) {
				t.Fatal("connections below the limit are refused")
			}
			for range 20 {
				if c := dial(); responds(c) {
					t.Error("a connection over the limit is served")
				} else {
					c.Close()
				}
			}
			a.Close()
			b.Close()
			for range 1000 { // leaving takes the server a moment
				c := dial()
				ok := responds(c)
				c.Close()
				if ok {
					break
				}
				runtime.Gosched()
			}
			s.stop()
			most := 2 + int(time.Since(began)/time.Second) // a line each second, and one at the end
			if n := strings.Count(s.log.String(), "too many connections"); n < 1 || n > most {
				t.Errorf("logged %d times, want %d at most:\n%s", n, most, s.log)
			}
		})
	}
}

// TestListenerErrors has a minute of failures, as while somebody else has all descriptors: they end nothing.
func TestListenerErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ln := &failingListener{pipeListener: newPipeListener(), failures: 66}
		s := serveOn(t, Options{Gate: neverAsked}, ln, nil)
		c, closed := ln.dial()
		c.Close()
		<-closed
		s.stop()
		if ln.accepts.Load() < 67 || !strings.Contains(s.log.String(), "accept failed") {
			t.Errorf("%d accepts:\n%s", ln.accepts.Load(), s.log)
		}
	})
	ln := newPipeListener()
	ln.Close()
	if err := New(Options{}).Serve(t.Context(), ln, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a broken listener gives %v", err)
	}
}

type failingListener struct {
	*pipeListener
	failures int32
	accepts  atomic.Int32
}

func (f *failingListener) Accept() (net.Conn, error) {
	if f.accepts.Add(1) <= f.failures {
		return nil, errors.New("too many open files")
	}
	return f.pipeListener.Accept()
}
