package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"millrace/internal/media/speech"
)

// pipes is a network of one server, in memory.
type pipes struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.gone) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.gone:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// recogniser speaks as vosk does. Each connection tells one word at its end, as long as all of its sound.
type recogniser struct {
	breaksAt int           // in the first connection, behind so many messages
	mute     bool          // it never answers
	speech   bool          // somebody speaks, as it says
	takes    time.Duration // for each message

	mu          sync.Mutex
	connections int
}

// readAhead takes all messages of a connection at once, as the buffers of a network do.
func readAhead(ctx context.Context, c *websocket.Conn) func(context.Context) (websocket.MessageType, []byte, error) {
	type message struct {
		kind websocket.MessageType
		data []byte
	}
	all := make(chan message, 10_000)
	go func() {
		defer close(all)
		for {
			kind, data, err := c.Read(ctx)
			if err != nil {
				return
			}
			all <- message{kind, data}
		}
	}()
	return func(context.Context) (websocket.MessageType, []byte, error) {
		m, ok := <-all
		if !ok {
			return 0, nil, io.EOF
		}
		return m.kind, m.data, nil
	}
}

func (r *recogniser) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	r.mu.Lock()
	r.connections++
	nth := r.connections
	r.mu.Unlock()
	samples, messages := 0, 0
	read := c.Read
	if r.takes > 0 {
		read = readAhead(req.Context(), c)
	}
	for {
		kind, data, err := read(req.Context())
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			samples += len(data) / 2
			if messages++; nth == 1 && messages == r.breaksAt {
				return
			}
			partial := ""
			if r.speech {
				partial = "some"
			}
			if r.takes > 0 {
				time.Sleep(r.takes)
			}
			if !r.mute {
				_ = c.Write(req.Context(), websocket.MessageText, fmt.Appendf(nil, `{"partial" : %q}`, partial))
			}
		} else if string(data) == `{"eof" : 1}` && !r.mute {
			break
		}
	}
	word := fmt.Appendf(nil, `{"result":[{"conf":1,"start":0,"end":%.3f,"word":"w%d"}],"text":"w"}`,
		float64(samples)/speech.SampleRate, nth)
	_ = c.Write(req.Context(), websocket.MessageText, word)
	_ = c.Close(websocket.StatusNormalClosure, "")
}

// recognised runs a test with a stream to a server, beside which the clock stands still.
func recognised(t *testing.T, r *recogniser, test func(t *testing.T, s *socketStream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{conns: make(chan net.Conn), gone: make(chan struct{})}
		server := &http.Server{Handler: r, ReadHeaderTimeout: time.Hour}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(network) }()
		transport := &http.Transport{DialContext: network.dial}
		e := NewSocket(SocketOptions{Name: "vosk", URL: "ws://server", Client: &http.Client{Transport: transport}})
		s, err := e.Open(t.Context(), speech.Config{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, s.(*socketStream))
		s.Close()
		transport.CloseIdleConnections()
		if err = errors.Join(server.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// says writes sound as fast as it is spoken.
func says(s speech.Stream, at, long time.Duration) {
	for n := time.Duration(0); n < long; n += 100 * time.Millisecond {
		s.Write(at+n, make([]int16, speech.SampleRate/10))
		time.Sleep(100 * time.Millisecond)
	}
}

// results are the words of a stream up to its end, or to an amount of them, and how far all was known.
func results(s speech.Stream, most int) (words string, until time.Duration) {
	var all []speech.Word
	for r := range s.Results() {
		all, until = append(all, r.Words...), max(until, r.Until)
		if len(all) == most {
			break
		}
	}
	return shown(all), until
}

// TestConnectionBreaks: what a server was sent and has not answered is sent to the next connection, and none of it
// counts as left out.
func TestConnectionBreaks(t *testing.T) {
	t.Parallel()
	recognised(t, &recogniser{breaksAt: 25, speech: true}, func(t *testing.T, s *socketStream) {
		says(s, 5*time.Second, 4*time.Second)
		s.End()
		words, until := results(s, -1)
		if status := s.Status(); words != "w2@5000-9000" || until != 9*time.Second || status.Restarts != 1 ||
			status.LeftOut != 0 || status.Problem == nil {
			t.Errorf("%q up to %s, %+v", words, until, status)
		}
	})
}

// TestGapsOfConnections: a gap begins a connection of its own, and so does sound behind a while without any; what was
// said before that is known then.
func TestGapsOfConnections(t *testing.T) {
	t.Parallel()
	recognised(t, &recogniser{speech: true}, func(t *testing.T, s *socketStream) {
		says(s, 0, time.Second)
		says(s, 10*time.Second, time.Second)
		words, _ := results(s, 2)
		if words != "w1@0-1000 w2@10000-11000" {
			t.Errorf("before it goes on: %q", words)
		}
		says(s, 11*time.Second, time.Second)
		s.End()
		if words, _ = results(s, -1); words != "w3@11000-12000" || s.Status().Restarts != 0 {
			t.Errorf("behind: %q, %+v", words, s.Status())
		}
	})
}

// TestSilenceIsKnown: while nobody speaks, it is known soon that there is no word.
func TestSilenceIsKnown(t *testing.T) {
	t.Parallel()
	recognised(t, &recogniser{}, func(t *testing.T, s *socketStream) {
		says(s, 0, 30*time.Second)
		synctest.Wait()
		until := time.Duration(0)
		for len(s.Results()) > 0 {
			until = max(until, (<-s.Results()).Until)
		}
		if until < 28*time.Second || s.Status().LeftOut != 0 {
			t.Errorf("known up to %s, %+v", until, s.Status())
		}
	})
}

// TestServerThatIsMute: sound that a server takes and never answers is sent to another connection, and is left out
// where that does not help either; no more than so much is held.
func TestServerThatIsMute(t *testing.T) {
	t.Parallel()
	recognised(t, &recogniser{mute: true, speech: true}, func(t *testing.T, s *socketStream) {
		says(s, 0, 3*time.Minute)
		status := s.Status()
		held, _, _ := s.backlog.Waiting()
		if held > maxHeld || status.Restarts < 3 || status.LeftOut < time.Minute ||
			!errors.Is(status.Problem, errSilent) {
			t.Errorf("held %s, %+v", held, status)
		}
	})
}

// TestServerIsSlow: a server that takes twice as long as the sound has little of it ahead, and jumps to what is said
// now time and again.
func TestServerIsSlow(t *testing.T) {
	t.Parallel()
	recognised(t, &recogniser{speech: true, takes: 200 * time.Millisecond}, func(t *testing.T, s *socketStream) {
		says(s, 0, 2*time.Minute)
		held, ahead, left := s.backlog.Waiting()
		if ahead > maxAhead+time.Second || held > 30*time.Second || left < 40*time.Second {
			t.Errorf("%s held, of which %s wait, %s left out", held, ahead, left)
		}
		s.End()
		last := time.Duration(0)
		for r := range s.Results() {
			for _, w := range r.Words {
				last = max(last, w.End)
			}
		}
		if last != 2*time.Minute {
			t.Errorf("the last word ends at %s", last)
		}
	})
}

// TestServerIsAway: of what is said while no server is there, the newest is held, and the rest left out, which is
// counted.
func TestServerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{gone: make(chan struct{})}
		_ = network.Close()
		e := NewSocket(SocketOptions{
			Name: "vosk", URL: "ws://server",
			Client: &http.Client{Transport: &http.Transport{DialContext: network.dial}},
		})
		s, err := e.Open(t.Context(), speech.Config{})
		if err != nil {
			t.Fatal(err)
		}
		says(s, 0, time.Minute)
		status := s.Status()
		if status.LeftOut < 52*time.Second || status.LeftOut > 59*time.Second || status.Restarts == 0 {
			t.Errorf("%+v", status)
		}
		s.Close()
		if err = e.Probe(t.Context()); err == nil {
			t.Error("it is there")
		}
	})
}

// TestStreamsTakePlaces: what has ended gets the places that streams leave, and one in any case.
func TestStreamsTakePlaces(t *testing.T) {
	t.Parallel()
	g := newGate(3)
	leave := []func(){g.enter(), g.enter(), g.enter(), g.enter()}
	full, cancel := context.WithCancel(t.Context())
	cancel()
	release, err := g.acquire(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = g.acquire(full, false); err == nil {
		t.Error("two beside four streams")
	}
	leave[0]()
	leave[1]()
	leave[2]()
	if again, bad := g.acquire(t.Context(), false); bad != nil {
		t.Error(bad)
	} else {
		again()
	}
	release()
}

// TestWrongServers: what a server says that is none is an error, and no word.
func TestWrongServers(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"a page": "<html>", "a list": "[1]", "too long": strings.Repeat(" ", maxMessage+1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				network := &pipes{conns: make(chan net.Conn), gone: make(chan struct{})}
				server := &http.Server{
					ReadHeaderTimeout: time.Hour,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						c, err := websocket.Accept(w, r, nil)
						if err != nil {
							return
						}
						_, _, _ = c.Read(r.Context())
						_ = c.Write(r.Context(), websocket.MessageText, []byte(says))
						_, _, _ = c.Read(r.Context())
						_ = c.CloseNow()
					}),
				}
				go func() { _ = server.Serve(network) }()
				transport := &http.Transport{DialContext: network.dial}
				e := NewSocket(SocketOptions{
					Name: "vosk", URL: "ws://server", Client: &http.Client{Transport: transport},
				})
				err := e.Transcribe(t.Context(), bytes.NewReader(make([]byte,
					2*speech.SampleRate)), speech.Config{}, func(speech.Result) error {
					t.Error("there are results")
					return nil
				})
				if err == nil {
					t.Error("it is taken")
				}
				transport.CloseIdleConnections()
				_ = server.Close()
			})
		})
	}
}
