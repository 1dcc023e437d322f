package upload_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/web/pace"
	webupload "millrace/internal/web/upload"
)

// sink takes what comes and keeps the number of its bytes.
type sink struct {
	webupload.Files
	webupload.Writer
	size   int64
	closed chan struct{}
}

func (*sink) MaxSize() int64 { return 1 << 30 }

func (*sink) Find(context.Context, string) (upload.Upload, error) {
	return upload.Upload{
		Status: upload.Waiting, Timeout: upload.MaxTimeout, CORSOrigin: upload.AnyOrigin, CreatedAt: time.Now(),
	}, nil
}

func (s *sink) Open(context.Context, id.Upload, func()) (webupload.Writer, error) { return s, nil }

func (*sink) Upload() upload.Upload {
	return upload.Upload{Status: upload.Waiting, Length: upload.Length{Size: 1000000, Whole: true}}
}

func (*sink) Declare(context.Context, upload.Length) error { return nil }
func (*sink) Restart(context.Context) error                { return nil }
func (*sink) Asset() id.Asset                              { return "" }
func (s *sink) Size() int64                                { return s.size }
func (s *sink) Close() error                               { close(s.closed); return nil }

func (s *sink) Receive(_ context.Context, r io.Reader) (n int64, err error) {
	n, err = io.Copy(io.Discard, r)
	s.size += n
	return n, err
}

// oneConn is a listener with one connection, which never ends before it is closed.
type oneConn struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (o *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

func (o *oneConn) Close() error   { close(o.closed); return nil }
func (o *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowBytes: a client that sends nothing any more, or a byte now and then, is told so after a minute, its upload
// is let go of, and what has come counts. tus clients are told by a status after which they go on. That others need not
// wait so long is TestOneWriter's.
func TestSlowBytes(t *testing.T) {
	t.Parallel()
	const put = "PUT /uploads/a HTTP/1.1"
	const patch = "PATCH /uploads/tus/a HTTP/1.1\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n" +
		"Content-Type: application/offset+octet-stream"
	for name, tt := range map[string]struct {
		request       string
		pieces, bytes int           // so many of so many are sent, each after a pause
		pause         time.Duration // between them
		last          time.Duration // from the last piece to the response
		status        int
		again         string // Retry-After
	}{
		"PUT, silent from the first": {put, 0, 0, 0, time.Minute, 408, ""},
		"PUT, silent after some":     {put, 3, 100_000, time.Second, time.Minute, 408, ""},
		"PUT, a byte now and then":   {put, 3, 1, 19 * time.Second, 3*time.Second + 3*time.Millisecond, 408, ""},
		"tus, silent from the first": {patch, 0, 0, 0, time.Minute, 503, "1"},
		"tus, silent after some":     {patch, 3, 100_000, time.Second, time.Minute, 503, "1"},
		"tus, a byte now and then":   {patch, 3, 1, 19 * time.Second, 3*time.Second + 3*time.Millisecond, 503, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &sink{closed: make(chan struct{})}
				h, err := webupload.New(webupload.Options{
					Files: s, PublicURL: "http://x", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
				})
				must(t, err)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w, r, done := pace.Keep(w, r, pace.UploadGrace, nil)
					defer done()
					h.ServeHTTP(w, r)
				})}
				near, far := net.Pipe()
				l := &oneConn{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
				l.conns <- far
				served := make(chan error, 1)
				go func() { served <- server.Serve(l) }()
				_, err = fmt.Fprintf(near, "%s\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", tt.request)
				must(t, err)
				for range tt.pieces {
					time.Sleep(tt.pause)
					_, err = near.Write(make([]byte, tt.bytes))
					must(t, err)
				}
				begun := time.Now()
				resp, err := http.ReadResponse(bufio.NewReader(near), nil)
				must(t, err)
				waited := time.Since(begun)
				body := text(resp)
				slow := resp.StatusCode == tt.status && strings.Contains(body, "less than 1000 bytes a second")
				if !slow || waited != tt.last || resp.Header.Get("Retry-After") != tt.again {
					t.Errorf("after %v: %d %v %s", waited, resp.StatusCode, resp.Header, body)
				}
				<-s.closed
				if sent := int64(tt.pieces * tt.bytes); s.size != sent {
					t.Errorf("%d bytes were kept of %d", s.size, sent)
				}
				must(t, errors.Join(near.Close(), server.Close()))
				if err = <-served; !errors.Is(err, http.ErrServerClosed) {
					t.Error(err)
				}
				time.Sleep(time.Minute) // net/http lingers, and the library of tus
			})
		})
	}
}
