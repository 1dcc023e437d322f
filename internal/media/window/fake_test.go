package window

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// storage keeps what it is given, in order; before says no.
type storage struct {
	mu      sync.Mutex
	objects map[string][]byte
	entries []timeline.Entry
	order   []string
	linked  int                                         // how many objects came as files
	before  func(ctx context.Context, key string) error // nil: all is well
}

func newStorage() *storage { return &storage{objects: map[string][]byte{}} }

// hang has it take nothing until back is closed.
func (s *storage) hang() (back chan struct{}) {
	back = make(chan struct{})
	s.before = func(ctx context.Context, _ string) error {
		select {
		case <-back:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return back
}

func (s *storage) Put(ctx context.Context, key string, r io.Reader) error {
	if s.before != nil {
		if err := s.before(ctx, key); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key], s.order = data, append(s.order, key)
	return err
}

func (s *storage) Link(ctx context.Context, key string, f *os.File) error {
	s.mu.Lock()
	s.linked++
	s.mu.Unlock()
	return s.Put(ctx, key, io.NewSectionReader(f, 0, 1<<40))
}

func (s *storage) Record(ctx context.Context, e []timeline.Entry) error {
	if s.before != nil {
		if err := s.before(ctx, "record"); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range e {
		s.entries = append(s.entries, x)
		if x.Segment != nil {
			s.order = append(s.order, "row "+strconv.FormatInt(x.Segment.MSN, 10))
		}
	}
	return nil
}

func (s *storage) timeline(t *testing.T) *timeline.Timeline {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	tl, err := timeline.Build(s.entries)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

var low = Mode{Low: true, Leading: 7, Listed: 30 * time.Second, InMemory: 2}

const (
	partTicks = 27000 // 0.3 s of video
	perPart   = 300 * time.Millisecond
)

// rig is an edge with a writer: video "v" at 90 kHz, audio "a" at 48 kHz, parts of 0.3 s.
type rig struct {
	*Edge
	store *storage
	wall  time.Time
	at    float64 // media time in seconds
	bufs  map[string][]byte
	done  map[string]int // bytes of those that the edge is done with
	sized int            // bytes of a part
}

func newRig(o Options) *rig {
	s := newStorage()
	o.Media, o.Logger = "m", slog.New(slog.DiscardHandler)
	if o.Store == nil {
		o.Store, o.Recorder = s, s
	}
	r := &rig{Edge: New(o), store: s, wall: noon, at: 10, bufs: map[string][]byte{}, done: map[string]int{}, sized: 100}
	if o.Timeline != nil {
		r.at = r.Standing().At
	}
	return r
}

func (r *rig) announce(ids ...string) {
	for _, id := range ids {
		kind, scale := frame.Video, uint32(90000)
		if id[0] == 'a' {
			kind, scale = frame.Audio, 48000
		}
		r.AddInit(kind, scale, timeline.Init{Rendition: id, Codec: "codec." + id}, []byte("init of "+id))
	}
	r.Target(0, map[string]time.Duration{"v": perPart, "a": perPart})
}

func (r *rig) start() {
	r.announce("v", "a")
	r.Live(true)
}

func (r *rig) begin(id string, disc bool) {
	scale := 90000.0
	if id[0] == 'a' {
		scale = 48000
	}
	r.bufs[id], r.done[id] = nil, 0
	wall := r.wall
	if id[0] == 'a' {
		wall = wall.Add(13 * time.Millisecond) // its first frame is not at the picture's cut
	}
	r.Begin(id, timeline.Mark{Start: wall, Discontinuity: disc}, 0, int64(r.at*scale))
}

// part writes a part of id; its bytes say which.
func (r *rig) part(id string) {
	ticks := int64(partTicks)
	if id[0] == 'a' {
		ticks = 14400
	}
	b := r.bufs[id]
	mark := fmt.Sprintf("<%s %.3f %d>", id, r.at, len(b))
	b = append(append(b, mark...), bytes.Repeat([]byte("."), max(r.sized-len(mark), 0))...)
	r.bufs[id] = b
	if r.Part(id, b[r.done[id]:], ticks, len(b) <= r.sized) {
		r.done[id] = len(b)
	}
}

// segment writes a whole segment of n parts in every rendition of ids (v and a when none is given).
func (r *rig) segment(n int, disc bool, ids ...string) {
	if len(ids) == 0 {
		ids = []string{"v", "a"}
	}
	for _, id := range ids {
		r.begin(id, disc)
	}
	for range n {
		for _, id := range ids {
			r.part(id)
		}
	}
	r.finish(n, ids...)
}

func (r *rig) finish(n int, ids ...string) {
	long := float64(n) * perPart.Seconds()
	r.Target(2, nil)
	for _, id := range ids {
		r.Finish(id, 0)
	}
	r.at += long
	r.wall = r.wall.Add(time.Duration(n) * perPart)
}

// run stores what is sealed until the test is over.
func (r *rig) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx) // its end is the test's
	}()
	return func() { cancel(); <-done }
}

func (r *rig) text(t *testing.T, id string, q Reload) string {
	t.Helper()
	b, err := r.Playlist(t.Context(), id, q, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (r *rig) list(t *testing.T, id string, q Reload) list {
	t.Helper()
	return parse(t, r.text(t, id, q))
}

func now() Reload { return Reload{MSN: -1, Part: -1} }

func ask(msn int64, part int) Reload { return Reload{MSN: msn, Part: part} }

// list is a playlist as a player understands it.
type list struct {
	text                  string
	version, target, skip int
	msn, dsn              int64
	partTarget, holdBack  float64
	typ, hint             string
	reports               []string
	ended                 bool
	segs                  []listed
	open                  []listedPart
}

type listed struct {
	msn, dsn int64
	uri, at  string
	init     string
	dur      float64
	gap      bool
	parts    []listedPart
}

type listedPart struct {
	uri         string
	dur         float64
	independent bool
}

func attribute(line, name string) string {
	for _, sep := range []string{":", ","} {
		if _, rest, ok := strings.Cut(line, sep+name+"="); ok {
			if s, quoted := strings.CutPrefix(rest, `"`); quoted {
				v, _, _ := strings.Cut(s, `"`)
				return v
			}
			v, _, _ := strings.Cut(rest, ",")
			return v
		}
	}
	return ""
}

func parse(t *testing.T, text string) list {
	t.Helper()
	num := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("number %q in\n%s", s, text)
		}
		return f
	}
	p := list{text: text}
	cur := listed{}
	disc := int64(0)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		tag, value, _ := strings.Cut(line, ":")
		switch tag {
		case "#EXT-X-VERSION":
			p.version = int(num(value))
		case "#EXT-X-TARGETDURATION":
			p.target = int(num(value))
		case "#EXT-X-PLAYLIST-TYPE":
			p.typ = value
		case "#EXT-X-MEDIA-SEQUENCE":
			p.msn = int64(num(value))
		case "#EXT-X-DISCONTINUITY-SEQUENCE":
			p.dsn = int64(num(value))
		case "#EXT-X-PART-INF":
			p.partTarget = num(attribute(line, "PART-TARGET"))
		case "#EXT-X-SERVER-CONTROL":
			if v := attribute(line, "PART-HOLD-BACK"); v != "" {
				p.holdBack = num(v)
			}
		case "#EXT-X-SKIP":
			p.skip = int(num(attribute(line, "SKIPPED-SEGMENTS")))
		case "#EXT-X-MAP":
			cur.init = attribute(line, "URI")
		case "#EXT-X-DISCONTINUITY":
			disc++
		case "#EXT-X-GAP":
			cur.gap = true
		case "#EXT-X-PROGRAM-DATE-TIME":
			cur.at = value
		case "#EXT-X-PART":
			cur.parts = append(cur.parts, listedPart{
				attribute(line, "URI"), num(attribute(line, "DURATION")), strings.HasSuffix(line, "INDEPENDENT=YES"),
			})
		case "#EXTINF":
			cur.dur = num(strings.TrimSuffix(value, ","))
		case "#EXT-X-PRELOAD-HINT":
			p.hint = attribute(line, "URI")
		case "#EXT-X-RENDITION-REPORT":
			p.reports = append(p.reports, value)
		case "#EXT-X-ENDLIST":
			p.ended = true
		default:
			if line != "" && line[0] != '#' {
				cur.uri, cur.msn, cur.dsn = line, p.msn+int64(p.skip+len(p.segs)), p.dsn+disc
				p.segs = append(p.segs, cur)
				cur = listed{init: cur.init}
			}
		}
	}
	p.open = cur.parts
	return p
}

// expand puts the segments that a delta update left out back in, from an older full playlist.
func (l list) expand(t *testing.T, older list) []string {
	t.Helper()
	var out []string
	for i := range l.skip {
		k := l.msn + int64(i) - older.msn
		if k < 0 || k >= int64(len(older.segs)) {
			t.Fatalf("skips segment %d, which a player does not have:\n%s\n%s", l.msn+int64(i), l.text, older.text)
		}
		out = append(out, older.segs[k].uri)
	}
	for _, s := range l.segs {
		out = append(out, s.uri)
	}
	return out
}

func (l list) uris() []string {
	var out []string
	for _, s := range l.segs {
		out = append(out, s.uri)
	}
	return out
}

// next is what a player asks for to get the next part.
func (l list) next() (msn int64, part int) {
	return l.msn + int64(l.skip+len(l.segs)), len(l.open)
}

// drain waits until everything that is sealed is stored.
func (r *rig) drain(t *testing.T) {
	t.Helper()
	for {
		r.mu.Lock()
		n := len(r.queue)
		r.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("not stored")
		default:
			runtime.Gosched()
		}
	}
}
