package follow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// said is a response with its error, as it can be compared.
func said(v any, err error) string {
	if err != nil {
		return fmt.Sprintf("%d: %q", fault.KindOf(err), fault.Messages(err))
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// all is everything that can be asked of a broadcast that stands still.
func all(ctx context.Context, v playback.Live) map[string]string {
	out := map[string]string{}
	clips := map[string]playback.Clip{
		"": {}, " by seconds": {From: 2, To: 5},
		" by day":     {Begin: time.Unix(1e9+2, 0).UTC(), End: time.Unix(1e9+5, 5e8).UTC()},
		" of nothing": {Begin: time.Unix(2e9, 0).UTC()},
	}
	for name, c := range clips {
		out["multivariant"+name] = said(v.Multivariant(ctx, c))
	}
	for _, r := range []string{"v", "a", "small", "t1", "t2", "nothing"} {
		for name, c := range clips {
			for _, gzip := range []bool{false, true} {
				for _, reload := range []playback.Reload{
					{MSN: -1, Part: -1},
					{MSN: -1, Part: -1, Skip: true},
					{MSN: -1, Part: -1, TextHoldBack: true},
					{MSN: 3, Part: -1},
					{MSN: 4, Part: 0},
					{MSN: 3, Part: 9},
					{MSN: 99, Part: 1},
				} {
					reload.Clip = c
					t, err := v.Playlist(ctx, r, reload, gzip)
					out[fmt.Sprint("playlist ", r, name, gzip, reload)] = said(t, err)
				}
			}
		}
		for name := range strings.FieldsSeq("init-0.mp4 init-1.mp4 0.m4s 3.m4s 4.1.m4s 3.vtt 4.9.m4s 2-3.m4s") {
			res, _ := hls.ParseResource(name)
			b, err := v.Chunk(ctx, r, res)
			b.Watched.Of = nil // each node counts what it sends
			data, err := delivered.Bytes(b, err)
			b.Data, b.Reader, b.Size = data, nil, 0
			out["chunk "+r+" "+name] = said(b, err)
			for clip, c := range clips {
				out["covers "+r+" "+name+clip] = said(v.Covers(ctx, r, res, c))
			}
			from, to, err := v.TextSpan(ctx, r, res)
			out["span "+r+" "+name] = said([]time.Duration{from, to}, err)
		}
		d, err := v.Text(ctx, r)
		out["text "+r] = said(d.Cues(), err)
	}
	out["pictures"] = said(v.Pictures(ctx))
	f, err := v.Footage(ctx)
	out["footage"] = said(nil, err)
	if err != nil {
		return out
	}
	out["footage"] = said(f.Timeline.Entries(), nil)
	out["film init"] = said(f.Source.Init(ctx, 0))
	out["film"] = said(delivered.Bytes(f.Source.Segment(ctx, 3)))
	if f.Newest != nil {
		init, data, err := f.Newest(ctx)
		out["film newest"] = said(fmt.Sprint(init, string(data)), err)
	}
	return out
}

// TestEqual: whatever is asked of a broadcast, a node that follows it gives the bytes and errors of its owner.
func TestEqual(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		low   bool
		watch playback.Watch
		parts int
		ended bool
	}{
		"low latency": {low: true, parts: 18},
		"low latency, all of it": {low: true, parts: 18, watch: playback.Watch{Event: true, Texts: []playback.TextName{
			{Rendition: "t1", Name: `Words & "more"`, Language: "en"}, {Rendition: "t2", Name: "Added", Added: true},
		}}},
		"standard latency":    {parts: 18},
		"nothing to play yet": {low: true, parts: 2},
		"ended":               {low: true, parts: 18, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { equal(t, tt.low, tt.watch, tt.parts, tt.ended) })
		})
	}
}

func equal(t *testing.T, low bool, watch playback.Watch, parts int, ended bool) {
	t.Helper()
	s := newStudio(low, 0)
	s.View(watch)
	s.publish(parts)
	if ended {
		s.Edge.Close()
	}
	all(t.Context(), s.View(watch)) // renditions begin when they are asked for
	f, n, _ := pair(t, s, 64<<20)
	for range 2 { // what is asked for and what is kept
		want := all(t.Context(), s.View(watch))
		got := all(t.Context(), view(t, f, watch))
		for _, what := range slices.Sorted(maps.Keys(want)) {
			if got[what] != want[what] {
				t.Errorf("%s: %.300s, want %.300s", what, got[what], want[what])
			}
		}
	}
	if b, err := f.OfAsset(t.Context(), stream, asset); err != nil || !reflect.DeepEqual(b.About(), s.About()) {
		t.Errorf("by its asset: %+v, %v", b, err)
	}
	if b, err := f.Earlier(t.Context(), stream, media); err != nil || b.HasTexts() != s.HasTexts() {
		t.Errorf("by its media: %+v, %v", b, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.asked) == 0 {
		t.Error("nothing was asked of the owner")
	}
}

// TestBlockingIsEqual: who waits for a part is given the playlist that lists it, plain, compressed and by delta, the
// same bytes as at the owner.
func TestBlockingIsEqual(t *testing.T) {
	t.Parallel()
	synctest.Test(t, blocking)
}

func blocking(t *testing.T) {
	t.Helper()
	s := newStudio(true, 0)
	s.publish(16)
	f, _, _ := pair(t, s, 64<<20)
	v := view(t, f, playback.Watch{})
	for i := range 8 {
		msn, part := int64(s.msn), s.part
		type answer struct {
			key  string
			data []byte
		}
		answers := make(chan answer, 16)
		count := 0
		for _, gzip := range []bool{false, true} {
			for _, skip := range []bool{false, true} {
				for who, live := range map[string]playback.Live{"owner": s.View(playback.Watch{}), "follower": v} {
					count++
					go func() {
						r := playback.Reload{MSN: msn, Part: part, Skip: skip}
						text, err := live.Playlist(t.Context(), timeline.MainVideo, r, gzip)
						if err != nil {
							t.Error(err)
						}
						answers <- answer{fmt.Sprint(who, gzip, skip), text.Data}
					}()
				}
			}
		}
		synctest.Wait()
		s.publish(1)
		got := map[string][]byte{}
		for range count {
			a := <-answers
			got[a.key] = a.data
		}
		for _, gzip := range []bool{false, true} {
			for _, skip := range []bool{false, true} {
				k := fmt.Sprint(gzip, skip)
				if !bytes.Equal(got["owner"+k], got["follower"+k]) {
					t.Errorf("part %d, gzip and skip %s: %q, want %q", i, k, got["follower"+k], got["owner"+k])
				}
			}
		}
	}
}

// TestReached: a playlist says of itself which requests it is the response to, as its edge does.
func TestReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(12)
		waited, at := 0, 0
		for range 9 {
			for _, rendition := range []string{timeline.MainVideo, "t1"} {
				v := s.View(playback.Watch{})
				now, err := v.Playlist(t.Context(), rendition, playback.Reload{MSN: -1, Part: -1}, false)
				if err != nil {
					t.Fatal(err)
				}
				for msn := range int64(8) {
					for part := -1; part < 8; part++ {
						r, began := playback.Reload{MSN: msn, Part: part}, time.Now()
						if _, err = v.Playlist(t.Context(), rendition, r, false); err != nil {
							continue // too far
						}
						reached := time.Since(began) == 0
						if got := now.At.Reached(r); got != reached {
							t.Errorf("%s with %d segments and %d parts: %+v: %t", rendition, s.msn, s.part, r, got)
						}
						if reached {
							at++
						} else {
							waited++
						}
					}
				}
			}
			s.publish(1)
		}
		if waited < 20 || at < 100 {
			t.Errorf("%d were to wait, and %d were not", waited, at)
		}
	})
}
