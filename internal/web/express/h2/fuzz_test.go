package h2

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"millrace/internal/web/express/tlsrecord"
)

// piped is the end of a pipe as a socket.Writer, and bare a connection without TLS.
type (
	piped struct {
		net.Conn

		writes *atomic.Int64
	}
	bare struct{ *tlsrecord.Conn }
)

func (p piped) Write(a, b []byte) error {
	p.writes.Add(1)
	_, err := p.Conn.Write(append(bytes.Clone(a), b...))
	return err
}

func (piped) Patience(time.Duration, time.Time) bool { return false }

func (b bare) CloseWrite() error { return nil }

// talk says something to a server, and gives what that has said when it has closed the connection, or in a time.
func talk(t *testing.T, said []byte, wait time.Duration) (heard []byte, c *conn, writes int64) {
	t.Helper()
	var count atomic.Int64
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, n%100000))
		_, _ = io.WriteString(w, r.URL.Path)
	})
	s := New(Options{
		Players: h, Takes: func(path string) bool { return strings.HasPrefix(path, "/v") },
		StallTimeout: 20 * time.Millisecond, ReadTimeout: 20 * time.Millisecond,
	})
	near, far := net.Pipe()
	wire := tlsrecord.Over(far, far, piped{far, &count})
	c = newConn(t.Context(), s, bare{wire}, wire, &tls.ConnectionState{Version: tls.VersionTLS13}, h)
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(c)
	}()
	all := make(chan []byte, 1)
	go func() {
		got, _ := io.ReadAll(near)
		all <- got
	}()
	_, _ = near.Write(said)
	_ = near.SetReadDeadline(time.Now().Add(wait))
	heard = <-all
	_ = near.Close()
	<-served
	return heard, c, count.Load()
}

// requests are n of them and a good-bye, as they go out together.
func requests(n int) []byte {
	var block bytes.Buffer
	packed := hpack.NewEncoder(&block)
	said := bytes.NewBufferString(http2.ClientPreface)
	fr := http2.NewFramer(said, nil)
	_ = fr.WriteSettings()
	for i := range n {
		block.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/v"}} {
			_ = packed.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		_ = fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		})
	}
	_ = fr.WriteGoAway(0, http2.ErrCodeNo, nil)
	return said.Bytes()
}

// TestTogether: the responses to what has come together go out together.
func TestTogether(t *testing.T) {
	t.Parallel()
	const n = 50
	heard, _, writes := talk(t, requests(n), time.Hour)
	fr := http2.NewFramer(io.Discard, bytes.NewReader(heard))
	ended := 0
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		if d, ok := f.(*http2.DataFrame); ok && d.StreamEnded() {
			ended++
		}
	}
	if ended != n || writes > 3 { // the server's SETTINGS, the responses, and perhaps a good-bye
		t.Errorf("%d responses with %d writes", ended, writes)
	}
}

// FuzzConnection says anything to a server: it neither panics nor keeps something, and all that it says are frames.
func FuzzConnection(f *testing.F) {
	var block bytes.Buffer
	packed := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/v"}} {
		_ = packed.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	seed := func(say func(fr *http2.Framer)) {
		said := bytes.NewBufferString(http2.ClientPreface)
		fr := http2.NewFramer(said, nil)
		fr.AllowIllegalWrites = true
		_ = fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		say(fr)
		f.Add(said.Bytes())
	}
	ask := func(fr *http2.Framer, id uint32, ends bool) {
		_ = fr.WriteHeaders(http2.HeadersFrameParam{
			StreamID: id, BlockFragment: block.Bytes(), EndStream: ends, EndHeaders: true, PadLength: 3,
		})
	}
	seed(func(fr *http2.Framer) { ask(fr, 1, true); ask(fr, 3, true); _ = fr.WriteRSTStream(1, 8) })
	seed(func(fr *http2.Framer) {
		ask(fr, 1, false)
		_ = fr.WriteDataPadded(1, false, []byte("abc"), make([]byte, 9))
		_ = fr.WriteWindowUpdate(1, 100)
		_ = fr.WriteWindowUpdate(0, 1<<31-1)
		ask(fr, 1, true)
	})
	seed(func(fr *http2.Framer) {
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes()[:2]})
		_ = fr.WriteContinuation(1, true, block.Bytes()[2:])
		_ = fr.WritePriority(1, http2.PriorityParam{StreamDep: 1})
		_ = fr.WritePing(false, [8]byte{1})
		_ = fr.WriteGoAway(1, 0, nil)
		ask(fr, 3, true)
	})
	f.Fuzz(func(t *testing.T, said []byte) {
		heard, c, _ := talk(t, said, 5*time.Millisecond)
		if t := &c.streams; len(t.open) > 0 || t.running != 0 {
			panic("something is left")
		}
		fr := http2.NewFramer(io.Discard, bytes.NewReader(heard))
		fr.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
		for {
			_, err := fr.ReadFrame()
			if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // the framer's own
				return
			}
			if err != nil {
				t.Fatalf("%v in what was said: %q", err, heard)
			}
		}
	})
}
