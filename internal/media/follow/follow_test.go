package follow_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/leaktest"
	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/owner"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(followsAt); at != "" {
		followers(at)
		return
	}
	leaktest.Main(m)
}

const (
	stream = id.LiveStream("stream00000001")
	asset  = id.Asset("asset000000001")
	media  = id.Media("media000000001")
)

// small is a set of one rendition, whose parts are the video's in other words.
type small struct{ edge *window.Edge }

func (small) Variants(shared hls.Variant) rendition.Offer {
	shared.URI, shared.Width, shared.Height = hls.PlaylistURI("small"), 320, 180
	return rendition.Offer{Below: []hls.Variant{shared}, Source: true}
}

func (small) Withholds() bool { return false }

func (s small) Want(rendition string) bool {
	return rendition == "small" && s.edge.Derived().Add(rendition, timeline.MainVideo) == nil
}

func (small) Chunk(_ context.Context, _ string, r hls.Resource) (delivered.Body, error) {
	return delivered.Body{Data: fmt.Appendf(nil, "small %d %d %d", r.Init, r.MSN, r.Part)}, nil
}

// studio is a broadcast at its owner. Its parts are 500 ms, its segments of four of them.
type studio struct {
	edgeview.Broadcast

	msn, part int
	open      map[string][]byte // what the open segments of renditions have
	padding   string            // what each part has besides its name
}

func newStudio(low bool, generation int64) *studio {
	edge := window.New(window.Options{
		Media: string(media), Generation: generation, Logger: slog.New(slog.DiscardHandler),
		Mode: window.Mode{Low: low, Listed: time.Minute, InMemory: 100},
	})
	for _, r := range []struct {
		kind frame.Kind
		init timeline.Init
	}{
		{frame.Video, timeline.Init{
			Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 1280, Height: 720, FrameRate: 30,
		}},
		{frame.Audio, timeline.Init{Rendition: timeline.MainAudio, Codec: "mp4a.40.2", SampleRate: 48000, Channels: 2}},
	} {
		edge.AddInit(r.kind, 90000, r.init, []byte("init of "+r.init.Rendition))
	}
	half := 500 * time.Millisecond
	edge.Target(2, map[string]time.Duration{timeline.MainVideo: half, timeline.MainAudio: half})
	edge.Texts().Add("t1", false)
	edge.Live(true)
	s := &studio{open: map[string][]byte{}, Broadcast: edgeview.Broadcast{
		ID: media, Edge: edge, Below: small{edge}, Title: "Far away", Asset: asset, Began: time.Unix(1e9, 0).UTC(),
	}}
	return s
}

// publish publishes parts.
func (s *studio) publish(parts int) {
	for range parts {
		if s.part == 0 {
			at := int64(900000 + s.msn*180000)
			mark := timeline.Mark{Start: time.Unix(1e9+2*int64(s.msn), 0)}
			s.Edge.Begin(timeline.MainVideo, mark, 0, at)
			s.Edge.Begin(timeline.MainAudio, mark, 0, at)
		}
		for _, r := range []string{timeline.MainAudio, timeline.MainVideo} {
			if s.part == 0 {
				s.open[r] = nil
			}
			s.open[r] = fmt.Appendf(s.open[r], "%s %d %d.%s", r, s.msn, s.part, s.padding)
			s.Edge.Part(r, s.open[r], 45000, s.part == 0)
		}
		if s.part++; s.part == 4 {
			s.Edge.Finish(timeline.MainAudio, 180000)
			s.Edge.Finish(timeline.MainVideo, 180000)
			s.Edge.Texts().Publish("t1", captions.Cue{
				Start: time.Duration(2*s.msn) * time.Second, End: time.Duration(2*s.msn+2) * time.Second,
				Text: fmt.Sprintf("words of %d &amp; more", s.msn),
			})
			s.Edge.Texts().Watermark("t1", time.Duration(2*s.msn+2)*time.Second)
			s.msn, s.part = s.msn+1, 0
		}
	}
}

// node is an owner's side: what its studios send, how often each URL is asked for, and what is wrong with it.
type node struct {
	mu      sync.Mutex
	current *studio
	earlier []*studio
	moves   bool // it has handed its studio over
	asked   map[string]int
	handler http.Handler
	broken  func(w http.ResponseWriter, r *http.Request) bool // true: it has responded
}

func newNode(run string, s *studio) *node {
	n := &node{current: s, asked: map[string]int{}}
	n.handler = owner.New(owner.Options{
		Broadcasts: n, Run: run, From: func(context.Context) id.Node { return "b" }, Logger: quiet(),
	})
	return n
}

func (n *node) Watched(_ context.Context, s id.LiveStream) (playback.Broadcast, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.moves {
		return nil, window.Fault(window.ErrMoved)
	}
	if n.current == nil || s != stream {
		return nil, playback.Inactive()
	}
	return n.current.Broadcast, nil
}

func (n *node) OfAsset(_ context.Context, _ id.LiveStream, a id.Asset) (playback.Broadcast, error) {
	return n.one(func(s *studio) bool { return s.Asset == a })
}

func (n *node) Earlier(_ context.Context, _ id.LiveStream, m id.Media) (playback.Broadcast, error) {
	return n.one(func(s *studio) bool { return s.ID == m })
}

func (n *node) one(is func(*studio) bool) (playback.Broadcast, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.moves {
		return nil, window.Fault(window.ErrMoved)
	}
	for _, s := range append(slices.Clip(n.earlier), n.current) {
		if s != nil && is(s) {
			return s.Broadcast, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no such broadcast")
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.asked[r.URL.String()]++
	broken := n.broken
	n.mu.Unlock()
	if broken != nil && broken(w, r) {
		return
	}
	n.handler.ServeHTTP(w, r)
}

func (n *node) is(broken func(w http.ResponseWriter, r *http.Request) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = broken
}

// fleet reaches nodes without a network, and knows which one has the stream.
type fleet struct {
	mu    sync.Mutex
	nodes map[string]*node
	has   string // the URL of the owner; empty: none
	asked int    // how often
}

func (f *fleet) Do(ctx context.Context, to follow.Node, r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	n := f.nodes[to.URL]
	f.mu.Unlock()
	if n == nil {
		return nil, fmt.Errorf("nothing listens at %s", to.URL)
	}
	r = r.Clone(ctx)
	r.RequestURI = r.URL.RequestURI()
	w := httptest.NewRecorder()
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		n.ServeHTTP(w, r)
	}()
	select {
	case broke := <-done:
		if broke != nil {
			return nil, fmt.Errorf("the stream was reset: %v", broke)
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return w.Result(), nil
}

func (f *fleet) Owner(context.Context, id.LiveStream) (follow.Owner, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	switch f.has {
	case "here":
		return follow.Owner{}, follow.ErrHere
	case "":
		return follow.Owner{}, fault.New(fault.NotFound, "no other node has the live stream")
	}
	return follow.Owner{Node: follow.Node{ID: id.Node(f.has), URL: f.has}, Environment: "env"}, nil
}

func (*fleet) Lost(id.LiveStream) {}

func (f *fleet) move(to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.has = to
}

// pair is a studio at node a, which another node follows.
func pair(t *testing.T, s *studio, bytes int64) (*follow.Follower, *node, *fleet) {
	t.Helper()
	n := newNode("run", s)
	all := &fleet{nodes: map[string]*node{"a": n}, has: "a"}
	f := follow.New(follow.Options{
		Peer: all, Directory: all, Meter: &metering.Meter{}, Bytes: bytes, Now: time.Now, Logger: quiet(),
	})
	t.Cleanup(f.Close)
	return f, n, all
}

// view is how the live stream's viewers see it at the follower.
func view(t *testing.T, f *follow.Follower, w playback.Watch) playback.Live {
	t.Helper()
	b, err := f.Watched(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return b.View(w)
}
