package liveladder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/flv"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/rendition/liveladder"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
	"millrace/internal/programtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// film is what an encoder sends.
type film struct {
	config frame.Config
	frames []frame.Frame
}

// shoot has ffmpeg make a film: one key frame a second.
func shoot(t testing.TB, size string, fps, seconds, b int, more ...string) film {
	t.Helper()
	args := []string{
		"-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%s:rate=%d:duration=%d", size, fps, seconds), "-c:v", "libx264",
		"-preset", "ultrafast", "-profile:v", "main", "-pix_fmt", "yuv420p", "-bf", strconv.Itoa(b), "-g",
		strconv.Itoa(fps), "-keyint_min", strconv.Itoa(fps), "-sc_threshold", "0",
	}
	out, err := os.ReadFile(programtest.SharedMedia(t, "film.flv", append(args, more...)...))
	if err != nil {
		t.Fatal(err)
	}
	var f film
	for tags := flv.NewReader(bytes.NewReader(out), 32<<20); ; {
		tag, err := tags.Next()
		if err != nil {
			break
		}
		if tag.Config {
			sps, pps, _, err := h264.ParseAVCC(tag.Data)
			if err != nil || len(sps) == 0 {
				continue // the end
			}
			if f.config, err = h264.TrackConfig(sps[0], pps[0]); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f.frames = append(f.frames, frame.Frame{
			Kind: frame.Video, DTS: tag.DTS, PTS: tag.PTS, Key: tag.Key, Data: tag.Data,
		})
	}
	for i := range f.frames { // FLV has milliseconds
		d := f.frames[i].PTS - f.frames[i].DTS
		f.frames[i].DTS, f.frames[i].Duration = time.Duration(i)*time.Second/time.Duration(fps),
			time.Second/time.Duration(fps)
		f.frames[i].PTS = f.frames[i].DTS + (d*time.Duration(fps)).Round(time.Second)/time.Duration(fps)
	}
	if len(f.frames) != fps*seconds {
		t.Fatalf("%d frames", len(f.frames))
	}
	return f
}

// objects keep what is stored.
type objects struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (o *objects) Has(_ context.Context, key string) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.m[key] != nil, nil
}

func (o *objects) put(key string, data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.m[key] != nil {
		return fmt.Errorf("%s is stored twice", key)
	}
	o.m[key] = bytes.Clone(data)
	return nil
}

func (o *objects) get(key string) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.m[key]
}

type blobs struct{ *objects }

func (b blobs) Put(_ context.Context, key string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return b.put(key, data)
}

func (b blobs) Link(ctx context.Context, key string, f *os.File) error {
	return b.Put(ctx, key, io.NewSectionReader(f, 0, 1<<40))
}

func (blobs) Record(context.Context, []timeline.Entry) error { return nil }

type rungs struct{ *objects }

func (r rungs) Keep(_ context.Context, key string, data []byte) (bool, error) {
	return true, r.put(key, data)
}

// studio is a broadcast with its rungs.
type studio struct {
	t      testing.TB
	edge   *window.Edge
	cutter *packager.Packager
	ladder *liveladder.Ladder
	stored *objects
	sizes  []ladder.Rung
	ended  chan struct{}
	done   chan error
	asking sync.Mutex // held while rungs are asked for that are to begin together
}

// patience is for a machine that has much else to do.
const patience = 3 * time.Minute

type option func(*liveladder.Options)

// slowly is a clock that goes at a fifth of its pace: a machine that is busy with other tests is not an encoder that
// idle.
func slowly() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began) / 5) }
}

// open begins a broadcast with two rungs.
func open(t testing.TB, low bool, opts ...option) *studio {
	t.Helper()
	ffmpeg := programtest.Path(t, "ffmpeg")
	engine, err := encode.NewEngine(encode.Options{
		FFmpeg: ffmpeg, FFprobe: ffmpeg, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &studio{t: t, stored: &objects{m: map[string][]byte{}}, done: make(chan error, 2), ended: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.edge = window.New(window.Options{
		Media: "m", Mode: window.Mode{Low: low, Listed: 30 * time.Second, InMemory: 2}, Store: blobs{s.stored},
		Recorder: blobs{s.stored}, Logger: slog.New(slog.DiscardHandler),
	})
	s.sizes = ladder.Live([]ladder.Source{{Width: 640, Height: 480, FrameRate: 30}}, ladder.Premium, 1080)
	o := liveladder.Options{
		Edge: s.edge, Output: s.edge.Derived(), Source: timeline.MainVideo, Timescale: 90000, Encoder: engine,
		Store: rungs{s.stored}, Now: slowly(), Logger: log, Idle: time.Hour,
		Init: func(_ context.Context, n int) ([]byte, error) {
			at, err := s.edge.ReadInit(timeline.MainVideo, n)
			return at.Data, err
		},
		Rungs: func() []liveladder.Rung {
			s.asking.Lock()
			defer s.asking.Unlock()
			var out []liveladder.Rung
			for _, r := range s.sizes {
				out = append(out, liveladder.Rung{
					Rung: r, ID: r.Name,
					Key:     func(msn int64) string { return fmt.Sprintf("media/m/%s/%d.m4s", r.Name, msn) },
					HeadKey: func(msn int64) string { return fmt.Sprintf("media/m/%s/%d.head", r.Name, msn) },
				})
			}
			return out
		},
	}
	for _, opt := range opts {
		opt(&o)
	}
	s.ladder = liveladder.New(o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	all.Go(func() { s.done <- s.ladder.Run(ctx) })
	all.Go(func() { _ = s.edge.Run(ctx) })
	t.Cleanup(func() { cancel(); all.Wait() })
	s.join(film{})
	return s
}

// join is a publication that goes on where the last one ended.
func (s *studio) join(f film) {
	s.t.Helper()
	stands := s.edge.Standing()
	o := packager.Options{
		Edge: s.edge, Segment: 2 * time.Second, Part: 290 * time.Millisecond, At: stands.At, Began: stands.Began,
	}
	for i, r := range stands.Renditions {
		o.Renditions = append(o.Renditions, packager.Rendition{RenditionInfo: r, Next: stands.Next[i]})
	}
	s.cutter = packager.New(o)
	if f.config.Codec != "" {
		s.configure(f)
	}
}

func (s *studio) configure(f film) {
	s.t.Helper()
	if err := s.cutter.Configure(f.config); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cutter.Rate(30, true); err != nil {
		s.t.Fatal(err)
	}
}

// send writes frames; a few behind the beginning of each segment the rungs have to have caught up with the one before.
func (s *studio) send(frames []frame.Frame, watched ...string) {
	s.t.Helper()
	at, since := s.edge.Newest(timeline.MainVideo), 0
	for _, f := range frames {
		f.Received = time.Unix(1e9, 0).Add(f.DTS)
		if err := s.cutter.Write(f); err != nil {
			s.t.Fatal(err)
		}
		since++
		next := s.edge.Newest(timeline.MainVideo)
		if next == at {
			since = 0
		}
		if since == 6 {
			for _, id := range watched {
				s.segment(id, at)
			}
			at = next
		}
	}
}

// segment waits for a segment.
func (s *studio) segment(id string, msn int64) []byte {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	p, err := s.edge.ReadSegment(ctx, id, msn)
	if err != nil {
		s.t.Fatalf("segment %d of %s: %v", msn, id, err)
	}
	if p.Data == nil {
		return s.stored.get(p.Object)
	}
	return p.Data
}

func (s *studio) want(ids ...string) {
	s.t.Helper()
	s.asking.Lock()
	for _, id := range ids {
		if err := s.edge.Derived().Add(id, timeline.MainVideo); err != nil {
			s.asking.Unlock()
			s.t.Fatal(err)
		}
		s.ladder.Want(id)
	}
	s.asking.Unlock()
	for _, id := range ids { // the encoder is at work
		s.part(id, s.edge.Newest(timeline.MainVideo), 0)
	}
}

// part waits for a part.
func (s *studio) part(id string, msn int64, n int) []byte {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for {
		p, err := s.edge.ReadPart(ctx, id, msn, n)
		if err == nil && p.Data == nil {
			return s.stored.get(p.Object)[p.Offset : p.Offset+p.N]
		}
		if err == nil {
			return p.Data
		}
		if !errors.Is(err, window.ErrTimeout) {
			s.t.Fatalf("part %d of segment %d of %s: %v", n, msn, id, err)
		}
	}
}

// close ends the broadcast and waits until all is stored.
func (s *studio) close() {
	s.t.Helper()
	if err := s.cutter.Close(nil); err != nil {
		s.t.Fatal(err)
	}
	s.edge.Close()
	s.ladder.End()
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Error(err)
		}
	case <-time.After(patience):
		s.t.Fatal("the live ladder does not end")
	}
}

// times are the pictures' of a segment: decoding and presentation. keys are the places of key frames.
func times(t testing.TB, data []byte) (decoded, shown []int64, keys []int) {
	t.Helper()
	fragments, err := cmaf.ParseFragments(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fragments {
		at := int64(f.BaseMediaDecodeTime)
		for _, p := range f.Samples {
			if p.Sync {
				keys = append(keys, len(decoded))
			}
			decoded, shown = append(decoded, at), append(shown, at+int64(p.CompositionOffset))
			at += int64(p.Duration)
		}
	}
	slices.Sort(shown)
	return decoded, shown, keys
}

// same checks that a rung's segment has the source's pictures, and one of so many key frames.
func (s *studio) same(id string, msn int64, keys ...int) {
	s.t.Helper()
	decoded, shown, have := times(s.t, s.segment(id, msn))
	wantDecoded, wantShown, _ := times(s.t, s.segment(timeline.MainVideo, msn))
	if !slices.Equal(decoded, wantDecoded) || !slices.Equal(shown, wantShown) {
		s.t.Errorf("segment %d of %s: pictures decoded at %v and shown at %v, not at %v and %v", msn, id, decoded,
			shown, wantDecoded, wantShown)
	}
	if !slices.Contains(keys, len(have)) || have[0] != 0 {
		s.t.Errorf("segment %d of %s: key frames at %v", msn, id, have)
	}
}

// playlist is a rendition's, without what names it.
func (s *studio) playlist(id string) string {
	s.t.Helper()
	text, err := s.edge.Playlist(s.t.Context(), id, window.Reload{MSN: -1, Part: -1}, false)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for l := range strings.Lines(string(text)) {
		if !strings.HasPrefix(l, "#EXT-X-RENDITION-REPORT") {
			out = append(out, strings.ReplaceAll(strings.ReplaceAll(l, `"`+id+"/", `"`), id+"/", ""))
		}
	}
	return strings.ReplaceAll(strings.Join(out, ""), ",INDEPENDENT=YES", "")
}

// since is a playlist from a line on.
func (s *studio) since(id, line string) string {
	_, after, _ := strings.Cut(s.playlist(id), "\n"+line+"\n")
	return after
}

// TestSame makes two rungs of what is sent from the third segment on: they have its pictures, parts and playlist, and
// one decodes to as many pictures.
func TestSame(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]int{"in order": 0, "with B-frames": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := shoot(t, "640x480", 30, 12, b)
			m, said := &mortal{}, &records{}
			s := open(t, true, func(o *liveladder.Options) {
				m.Encoder, o.Encoder, o.Parameters = o.Encoder, m, said.add
			})
			s.configure(f)
			s.send(f.frames[:140])
			s.want("360p", "270p")
			s.send(f.frames[140:], "360p", "270p")
			if b == 0 {
				for k := range 8 {
					s.part("360p", 5, k)
				}
			}
			if have, want := s.since("360p", "2.m4s"), s.since("v", "2.m4s"); b == 0 && have != want {
				t.Errorf("playlist\n%s\nis not\n%s", have, want)
			}
			for msn := int64(1); msn < 5; msn++ {
				s.same("360p", msn, 1)
				s.same("270p", msn, 1)
			}
			if n := m.births(); n != 2 { // the segment before the open one has its own
				t.Errorf("%d encoders", n)
			}
			said.same(t, "360p", "270p")
			s.close()
			for msn := int64(1); msn < 5; msn++ {
				if s.stored.get(fmt.Sprintf("media/m/270p/%d.m4s", msn)) == nil {
					t.Errorf("segment %d is not stored", msn)
				}
			}
		})
	}
}

// records are what encoders have said of their rungs.
type records struct {
	mu  sync.Mutex
	all map[string][][]byte
}

func (r *records) add(rung liveladder.Rung, avcC []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string][][]byte{}
	}
	r.all[rung.ID] = append(r.all[rung.ID], bytes.Clone(avcC))
}

// same checks that two encoders have said the same of each rung.
func (r *records) same(t *testing.T, ids ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if x := r.all[id]; len(x) != 2 || len(x[0]) == 0 || !bytes.Equal(x[0], x[1]) {
			t.Errorf("%s: %x", id, x)
		}
	}
}

// mortal is an encoder that can be killed.
type mortal struct {
	liveladder.Encoder
	mu    sync.Mutex
	kills map[int]context.CancelCauseFunc // of those that are alive
	born  int
}

// idle waits until none is at work.
func (m *mortal) idle(t testing.TB) {
	t.Helper()
	end := time.After(patience)
	for {
		m.mu.Lock()
		alive := len(m.kills)
		m.mu.Unlock()
		if alive == 0 {
			return
		}
		select {
		case <-end:
			t.Fatal("it goes on without viewers")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errKilled = errors.New("killed")

func (m *mortal) Ladder(
	ctx context.Context, job encode.LadderArgs, in func(context.Context, io.Writer) error,
	outs []func(context.Context, io.Reader) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.mu.Lock()
	if m.kills == nil {
		m.kills = map[int]context.CancelCauseFunc{}
	}
	m.born++
	n := m.born
	m.kills[n] = cancel
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.kills, n)
	}()
	return m.Encoder.Ladder(ctx, job, in, outs)
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, kill := range m.kills {
		kill(errKilled)
	}
}

func (m *mortal) births() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.born
}

// listed is an edge that has listed one segment, with one key frame, before it was made.
type listed struct {
	liveladder.Output

	msn int64
}

func (l listed) Dependent(id string, msn int64, number int) bool {
	return msn == l.msn && number > 0 || l.Output.Dependent(id, msn, number)
}

// TestDies kills the encoder in the middle of segments: another one goes on with the next part, and what was published
// stays.
func TestDies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		b         int
		dependent int64 // a segment whose parts are listed already
	}{"in order": {0, -1}, "with B-frames": {2, -1}, "in a listed segment": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := shoot(t, "640x480", 30, 10, tt.b)
			m := &mortal{}
			s := open(t, true, func(o *liveladder.Options) {
				m.Encoder, o.Encoder, o.Output = o.Encoder, m, listed{o.Output, tt.dependent}
			})
			s.configure(f)
			s.send(f.frames[:20])
			s.want("360p", "270p")
			s.send(f.frames[20:150], "360p", "270p")
			s.part("270p", 2, 0)
			before := s.part("270p", 2, 1)
			m.die()
			s.send(f.frames[150:], "360p", "270p")
			s.close()
			for msn := range int64(4) {
				keys := []int{1} // none where the second one goes on in what is listed
				if msn == 2 && tt.dependent < 0 {
					keys = []int{2, 3} // where the second one goes on: the rungs need not have stood at the same part
				}
				if tt.b > 0 && msn == 2 {
					continue // pictures that are decoded before the border is known are key frames too
				}
				s.same("360p", msn, keys...)
				s.same("270p", msn, keys...)
			}
			if after := s.part("270p", 2, 1); !bytes.Equal(before, after) {
				t.Error("a part has changed")
			}
			if n := m.births(); n != 2 {
				t.Errorf("%d encoders", n)
			}
		})
	}
}

// TestAnotherPicture changes the picture's size in the middle, and breaks off and comes back: the rungs have every
// segment, a discontinuity where the source has one, and one init segment.
func TestAnotherPicture(t *testing.T) {
	t.Parallel()
	first, second := shoot(t, "640x480", 30, 5, 0), shoot(t, "480x360", 30, 5, 2)
	m := &mortal{}
	s := open(t, true, func(o *liveladder.Options) { m.Encoder, o.Encoder = o.Encoder, m })
	s.configure(first)
	s.send(first.frames[:20])
	s.want("270p")
	s.send(first.frames[20:], "270p")
	if err := s.cutter.Close(nil); err != nil { // the encoder is away
		t.Fatal(err)
	}
	s.segment("270p", 2)
	s.join(first)
	s.send(first.frames, "270p")
	s.segment("270p", 4)
	if n := m.births(); n != 1 {
		t.Errorf("%d encoders for one picture", n)
	}
	if err := s.cutter.Close(nil); err != nil {
		t.Fatal(err)
	}
	s.segment("270p", 5)
	s.join(second)
	s.send(second.frames[:145], "270p")
	for msn := range int64(8) {
		s.same("270p", msn, 1)
	}
	text := s.playlist("270p")
	if have, want := strings.Count(text, "#EXT-X-DISCONTINUITY\n"), 2; have != want ||
		strings.Count(text, "#EXT-X-MAP") != 1 {
		t.Errorf("%d discontinuities:\n%s", have, text)
	}
	if n := m.births(); n != 2 {
		t.Errorf("%d encoders for two pictures", n)
	}
	s.close()
}

// TestWanted adds a rung to one that is watched, and lets both go: the first goes on without a break, and nothing runs
// at the end.
func TestWanted(t *testing.T) {
	t.Parallel()
	f := shoot(t, "640x480", 30, 14, 0)
	m := &mortal{}
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	s := open(t, true, func(o *liveladder.Options) {
		m.Encoder, o.Encoder, o.Idle = o.Encoder, m, time.Minute
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	s.configure(f)
	s.send(f.frames[:20])
	s.want("270p")
	s.send(f.frames[20:200], "270p")
	s.want("360p")
	s.send(f.frames[200:380], "270p", "360p")
	for msn := range int64(5) {
		s.same("270p", msn, 1)
	}
	for msn := int64(3); msn < 5; msn++ {
		s.same("360p", msn, 1)
	}
	if n := m.births(); n != 3 { // one for each, and one for both
		t.Errorf("%d encoders", n)
	}
	mu.Lock()
	now = now.Add(2 * time.Minute)
	mu.Unlock()
	m.idle(t)
	s.send(f.frames[380:])
	if text := s.playlist("270p"); strings.Contains(text, "6.3.m4s") || !strings.Contains(text, "\n5.m4s") {
		t.Errorf("nobody watches, but\n%s", text)
	}
	s.close()
}

// full is a storage that takes nothing until back is closed.
type full struct {
	rungs

	back chan struct{}
}

func (f full) Keep(ctx context.Context, key string, data []byte) (bool, error) {
	select {
	case <-f.back:
		return f.rungs.Keep(ctx, key, data)
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// TestStorageDoesNotKeepUp: what players have been given of a rung stays until storage has it, and while there is no
// room for more of it none is published: those segments are left to be made when they are asked for.
func TestStorageDoesNotKeepUp(t *testing.T) {
	t.Parallel()
	const room = 500_000
	back, f := make(chan struct{}), shoot(t, "640x480", 30, 16, 0)
	s := open(t, true, func(o *liveladder.Options) {
		o.Waiting, o.Store = liveladder.NewByteBudget(room), full{o.Store.(rungs), back}
	})
	s.configure(f)
	s.send(f.frames[:75])
	id := s.sizes[0].Name
	s.want(id)
	given, left := map[int64][]byte{}, 0
	for i := range 6 {
		from := 75 + 60*i
		s.send(f.frames[from:from+60], id)
		msn := s.edge.Newest(timeline.MainVideo) - 1
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		p, err := s.edge.ReadSegment(ctx, id, msn)
		if cancel(); err != nil {
			t.Fatal(err)
		}
		if p.NotEncoded {
			left++
		} else {
			given[msn] = p.Data
		}
		if held := s.edge.Derived().Held(); held > room {
			t.Errorf("%d bytes wait for storage", held)
		}
	}
	if len(given) == 0 || left == 0 {
		t.Errorf("%d segments are live, %d are left", len(given), left)
	}
	for _, stored := range []bool{false, true} {
		if stored {
			close(back)
			s.close()
		}
		for msn, data := range given {
			if len(data) == 0 || !bytes.Equal(s.segment(id, msn), data) {
				t.Errorf("segment %d is another one, stored: %t", msn, stored)
			}
		}
	}
}
