package follow_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/follow"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// wired reaches nodes over HTTP/2, as nodes do.
type wired struct {
	transport http.RoundTripper
	at        string
}

func (w wired) Do(ctx context.Context, to follow.Node, r *http.Request) (*http.Response, error) {
	r = r.Clone(ctx)
	r.URL.Scheme, r.URL.Host = "http", to.URL
	return w.transport.RoundTrip(r)
}

func (w wired) Owner(context.Context, id.LiveStream) (follow.Owner, error) {
	return follow.Owner{Node: follow.Node{ID: "a", URL: w.at}}, nil
}

func (wired) Lost(id.LiveStream) {}

// beside are the views of a studio at its owner and at a node that follows it over HTTP/2.
func beside(b *testing.B, s *studio) map[string]playback.Live {
	b.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: newNode("run", s), Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
	ln, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(ln) }()
	b.Cleanup(func() { _ = server.Close() })
	transport := &http.Transport{Protocols: &protocols}
	b.Cleanup(transport.CloseIdleConnections)
	w := wired{transport, ln.Addr().String()}
	f := follow.New(follow.Options{Peer: w, Directory: w, Bytes: 64 << 20, Now: time.Now, Logger: quiet()})
	b.Cleanup(f.Close)
	far, err := f.Watched(b.Context(), stream)
	if err != nil {
		b.Fatal(err)
	}
	return map[string]playback.Live{"owner": s.View(playback.Watch{}), "follower": far.View(playback.Watch{})}
}

// next waits for the part that comes next, in the playlist and then itself.
func next(b *testing.B, v playback.Live, msn, part int) {
	b.Helper()
	r := playback.Reload{MSN: int64(msn), Part: part}
	if _, err := v.Playlist(b.Context(), timeline.MainVideo, r, true); err != nil {
		b.Error(err)
	}
	res := newest(&studio{msn: msn, part: part + 1})
	if _, err := delivered.Bytes(v.Chunk(b.Context(), timeline.MainVideo, res)); err != nil {
		b.Error(err)
	}
}

// run publishes parts for so many viewers who wait for each, and gives how long the last one waited each time.
func run(b *testing.B, s *studio, v playback.Live, viewers int) (took []time.Duration, cpu time.Duration) {
	b.Helper()
	begun := used(b)
	for b.Loop() {
		msn, part := s.msn, s.part
		var waiting sync.WaitGroup
		for range viewers {
			waiting.Go(func() { next(b, v, msn, part) })
		}
		<-time.After(20 * time.Millisecond) // they wait
		at := time.Now()
		s.publish(1)
		waiting.Wait()
		took = append(took, time.Since(at))
	}
	return took, used(b) - begun
}

// used is the processor time of this process, which is the owner's, the follower's and the viewers'.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPart is how long after a part was published a viewer who waits has its playlist and the part, at the owner
// and at a node that follows it.
func BenchmarkPart(b *testing.B) {
	s := newStudio(true, 0)
	s.publish(16)
	views := beside(b, s)
	for _, who := range []string{"owner", "follower"} {
		b.Run(who, func(b *testing.B) {
			took, _ := run(b, s, views[who], 1)
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// BenchmarkViewers is what a part costs with 1000 viewers who wait for it, at the owner, and at a node that follows it
// with what that costs the owner.
func BenchmarkViewers(b *testing.B) {
	s := newStudio(true, 0)
	s.publish(16)
	views := beside(b, s)
	for _, who := range []string{"owner", "follower"} {
		b.Run(who, func(b *testing.B) {
			took, cpu := run(b, s, views[who], 1000)
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(len(took)), "cpu-ms/part")
		})
	}
}
