package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// torturer is the worst encoder there is: what it sends is sound, but not how.
type torturer struct {
	t     *testing.T
	s     *rig.Server
	l     rig.Object
	wire  *rig.Wire
	clock time.Duration // the encoder's
	sent  int64         // bytes
	whole float64       // seconds of media
	beats int           // flashes and beeps
}

// dial connects, as often as it takes: for a moment the connection before may still be there.
func (tt *torturer) dial() {
	tt.t.Helper()
	ctx, cancel := context.WithTimeout(tt.t.Context(), patience)
	defer cancel()
	for {
		w, err := rig.Dial(ctx, tt.s.RTMP, tt.l.Text("stream_key"))
		if err == nil {
			tt.wire = w
			return
		}
		if ctx.Err() != nil {
			tt.t.Fatalf("connect: %v", err)
		}
		wait(20 * time.Millisecond)
	}
}

// play sends some time of a file, and its clock goes on.
func (tt *torturer) play(clip *rig.Clips, from, lag int, long time.Duration) {
	tt.t.Helper()
	if err := tt.wire.Play(clip, from, lag, long, tt.clock); err != nil {
		tt.t.Fatalf("play: %v", err)
	}
	tt.clock += long
	tt.whole += long.Seconds()
	tt.beats += int(long.Seconds())
}

func (tt *torturer) drop() {
	tt.sent += tt.wire.Sent()
	tt.wire.Drop()
}

// TestTorture has one broadcast endure everything at once: sound first, a clock that wraps, another size, a clock that
// jumps by 26 hours and back, a reset, a flapping connection, other codecs on the same connection, another protocol. It
// makes one asset that can be read from end to end, is as long as what was sent, and is in step throughout.
func TestTorture(t *testing.T) {
	rig.Parallel(t, rig.Long)
	const second = time.Second
	small, large := rig.Record(t, "libx264", "aac", "320x180", 5), rig.Record(t, "libx264", "aac", "426x240", 4)
	hevc, av1 := rig.Record(t, "libx265", "libopus", "320x180", 2), rig.Record(t, "libaom-av1", "aac", "320x180", 2)
	s := rig.Start(t, rig.Options{})
	t.Cleanup(func() { noSecrets(t, s) })
	x := &torturer{t: t, s: s, l: s.CreateLive(t, "low", rig.Object{"reconnect_window": 60})}
	id := x.l.Text("id")
	began := time.Now()

	x.dial()
	x.clock = (1<<32 - 3500) * time.Millisecond // wraps after 3.5 s
	x.play(small, 0, 1, 5*second)               // sound first, for a second
	x.play(large, 0, 0, 2*second)               // another size
	x.clock += 26 * time.Hour
	x.play(large, 2, 0, 2*second)
	x.clock -= 52 * time.Hour
	x.play(small, 1, 0, 2*second)
	l := s.AwaitLive(t, id, "active", patience, func(o rig.Object) bool { return o.Text("status") == "active" })
	asset := l.Text("active_asset_id")
	x.drop()
	for i := range 8 {
		x.clock = time.Duration(i%3+1) * time.Hour
		x.dial()
		x.play(small, i%5, 0, 200*time.Millisecond)
		x.drop()
	}
	x.dial()
	x.play(hevc, 0, 0, 2*second)
	x.play(av1, 0, 0, 2*second)
	x.drop()
	clip := rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Flash: true, Seconds: 4}
	if said, err := rig.PublishTo(t, s.SRTURL(x.l, ""), clip).Wait(t, patience); err != nil {
		t.Errorf("encoder over SRT: %v: %s", err, said)
	}
	x.sent += int64(clip.Seconds) * 400_000 / 8
	x.whole += clip.Seconds
	x.beats += int(clip.Seconds)
	s.AwaitLive(t, id, "without encoder", patience, away)
	took := time.Since(began).Seconds()
	s.Complete(t, id)

	l = s.AwaitLive(t, id, "idle", patience, func(o rig.Object) bool { return o.Text("status") == "idle" })
	if got := l.Texts("recent_asset_ids"); !slices.Equal(got, []string{asset}) {
		t.Fatalf("the assets are %v, want %s alone", got, asset)
	}
	a := s.AwaitAsset(t, asset, "finished", patience, rig.Finished)
	x.endured(a, took)
}

// TestPlaysThroughAnotherSize has Chromium watch while an encoder changes the size of its pictures on the same
// connection, and back: the player goes on by itself.
func TestPlaysThroughAnotherSize(t *testing.T) {
	rig.Paced(t)
	small, large := rig.Record(t, "libx264", "aac", "320x180", 6), rig.Record(t, "libx264", "aac", "640x360", 6)
	s := rig.Start(t, rig.Options{})
	x := &torturer{t: t, s: s, l: s.CreateLive(t, "low", rig.Object{"reconnect_window": 60})}
	x.dial()
	t.Cleanup(x.wire.Drop)
	clips := []*rig.Clips{small, large, small, large}
	seen := make(chan struct{}, len(clips))
	sent := make(chan error, 1)
	go func() { // each size goes on until the page has shown it, however late that begins
		clock := time.Second
		for _, clip := range clips {
			for shown := false; !shown; clock += 6 * time.Second {
				if err := x.wire.Play(clip, 0, 0, 6*time.Second, clock); err != nil {
					sent <- err
					return
				}
				select {
				case <-seen:
					shown = true
				default:
				}
			}
		}
		sent <- nil
	}()
	page := browser.Start(t).Open(t, s.WatchURL(x.l.Text("playback_ids.0.id")))
	page.FirstPicture(t, patience)
	page.Eval(t, "window.notReloaded = true", nil)
	var p browser.Probe
	for i, width := range []int{320, 640, 320, 640} {
		p = page.Until(t, fmt.Sprintf("pictures of size %d", i+1), patience, func(p browser.Probe) bool {
			return p.Width == width
		})
		seen <- struct{}{}
	}
	var stayed bool
	page.Eval(t, "Boolean(window.notReloaded)", &stayed)
	if !stayed || p.Restarts > 0 || p.Error != "" ||
		slices.ContainsFunc(p.Errors, func(e string) bool { return strings.Contains(e, "fatal") }) {
		t.Errorf("after three changes: %+v", p)
	}
	if err := <-sent; err != nil {
		t.Errorf("play: %v", err)
	}
}

// endured looks at what was recorded; the encoder has been there for so many seconds.
func (tt *torturer) endured(a rig.Object, took float64) {
	t, url := tt.t, tt.s.PlayURL(a.Text("playback_ids.0.id"))
	slate, slack := 0.0, 2.5
	for _, r := range a.List("recording_times") {
		if r.Text("type") == "slate" {
			slate += r.Number("duration")
			slack += 0.5 // for so long the last picture stands before it
		}
	}
	// each connection begins with a key frame
	if d := a.Number("duration"); math.Abs(d-slate-tt.whole) > slack || d > took+2 {
		t.Errorf("duration %.3f s with %.3f s of slate; in %.1f s %.1f were sent", d, slate, took, tt.whole)
	}
	r := check(t, "finished", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)},
		append(slices.Clone(finishedRules), bothTracksRules...)...)
	for _, v := range r.Renditions {
		if !v.Ended || v.Discontinuities < 6 {
			t.Errorf("%s has ended %t with %d discontinuities", v.URL, v.Ended, v.Discontinuities)
		}
	}
	have := read(t, url, true)
	for kind, p := range have {
		if math.Abs(p.last-p.first-a.Number("duration")) > 1 || p.gap > 1 {
			t.Errorf("%s from %.3f to %.3f s with a hole of %.3f s in %.3f s", kind, p.first, p.last, p.gap,
				a.Number("duration"))
		}
	}
	inStep(t, url, tt.beats-2)
	stored := int64(0)
	err := filepath.WalkDir(tt.s.Dir, func(p string, e fs.DirEntry, err error) error {
		// a rung: made because this test has watched it
		if err == nil && e.IsDir() && strings.Contains(e.Name(), "p-") {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || filepath.Ext(p) == ".db" || filepath.Ext(p) == ".db-wal" ||
			filepath.Ext(p) == ".db-shm" {
			return err
		}
		info, err := e.Info()
		if err == nil {
			stored += info.Size()
		}
		return err
	})
	t.Logf("%.1f s with %.1f of slate, %d bytes stored of %d sent, %v", a.Number("duration"), slate, stored, tt.sent,
		have)
	// boxes weigh something, and so does the slate
	if slack := int64(slate * 50_000); err != nil || stored > tt.sent*3/2+slack {
		t.Errorf("%d bytes are stored of %d that were sent: %v", stored, tt.sent, err)
	}
}
