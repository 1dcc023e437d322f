package follow_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// TestOwnerDies: viewers who wait for a part are told within seconds that the owner is gone, and who asks then as well;
// another node that has the broadcast is followed.
func TestOwnerDies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		broken func(http.ResponseWriter, *http.Request) bool
		within time.Duration
	}{
		"it resets connections": {reset, time.Second + time.Second/2},
		"it says nothing":       {hang, follow.Prompt + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStudio(true, 0)
				s.publish(16)
				f, n, all := pair(t, s, 64<<20)
				v := view(t, f, playback.Watch{})
				waited := make(chan error)
				go func() {
					_, err := v.Playlist(t.Context(), timeline.MainVideo, playback.Reload{MSN: 4, Part: 0}, false)
					waited <- err
				}()
				synctest.Wait()
				began := time.Now()
				n.is(tt.broken)
				if err := <-waited; !fault.Is(err, fault.Unavailable) || time.Since(began) > tt.within {
					t.Errorf("who waited is told %v after %v", err, time.Since(began))
				}
				if _, err := f.Watched(t.Context(), stream); !fault.Is(err, fault.Unavailable) {
					t.Errorf("who asks is told %v", err)
				}
				next := newStudio(true, 1)
				next.publish(20)
				all.mu.Lock()
				all.nodes["b"] = newNode("another run", next)
				all.mu.Unlock()
				all.move("b")
				time.Sleep(2 * time.Second)
				text, err := listed(t.Context(), view(t, f, playback.Watch{}))
				if err != nil || !strings.Contains(text, "v/1-4.m4s") {
					t.Errorf("of the next generation: %v\n%s", err, text)
				}
			})
		})
	}
}

// TestNextGeneration: when the node's broadcast is another writer's, as after a restart, nothing of the earlier one is
// shown; and the next broadcast of the stream is found at once.
func TestNextGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(32)
		f, n, _ := pair(t, s, 64<<20)
		list := func() string {
			t.Helper()
			text, err := listed(t.Context(), view(t, f, playback.Watch{}))
			if err != nil {
				return err.Error()
			}
			return text
		}
		list()
		next := newStudio(true, 1)
		next.publish(32) // as many revisions
		n.mu.Lock()
		n.current = next
		n.mu.Unlock()
		time.Sleep(2 * time.Second)
		if got := list(); !strings.Contains(got, "v/1-7.m4s") || strings.Contains(got, "v/7.m4s") {
			t.Errorf("of the next generation:\n%s", got)
		}
		other := newStudio(true, 0)
		other.ID, other.Title = "media000000002", "Another"
		other.publish(16)
		n.mu.Lock()
		n.earlier, n.current = []*studio{next}, other
		n.mu.Unlock()
		next.Edge.Close()
		time.Sleep(2 * time.Second)
		b, err := f.Watched(t.Context(), stream)
		if err != nil || b.About().Media != other.ID {
			t.Errorf("the next broadcast: %v, %v", b, err)
		}
		old, err := f.Earlier(t.Context(), stream, media)
		if err != nil {
			t.Fatal(err)
		}
		text, err := old.View(playback.Watch{}).Playlist(
			t.Context(), timeline.MainVideo, playback.Reload{MSN: 99, Part: -1}, false,
		)
		if err != nil || !strings.Contains(string(text.Data), "#EXT-X-ENDLIST") {
			t.Errorf("the end of the earlier one: %v\n%s", err, text.Data)
		}
	})
}

// TestLies: what another node sends that can't be true is refused, and is kept from viewers.
func TestLies(t *testing.T) {
	t.Parallel()
	header := func(name, value string) func(*httptest.ResponseRecorder) {
		return func(r *httptest.ResponseRecorder) { r.Header().Set(name, value) }
	}
	video := hls.Resource{Init: -1, MSN: 1, Part: -1, Ext: "m4s"}
	chunk := func(ctx context.Context, v playback.Live) error {
		_, err := delivered.Bytes(v.Chunk(ctx, timeline.MainVideo, video))
		return err
	}
	multivariant := func(ctx context.Context, v playback.Live) error {
		_, err := v.Multivariant(ctx, playback.Clip{})
		return err
	}
	footage := func(ctx context.Context, v playback.Live) error {
		_, err := v.Footage(ctx)
		return err
	}
	playlist := func(ctx context.Context, v playback.Live) error {
		_, err := listed(ctx, v)
		return err
	}
	for name, tt := range map[string]struct {
		lie func(*node) breaker
		ask func(context.Context, playback.Live) error
		is  fault.Kind
	}{
		"a segment shorter than it says": {lie(wire.Chunk, func(r *httptest.ResponseRecorder) {
			r.Body.Truncate(3)
		}), chunk, fault.Unavailable},
		"a segment longer than it says": {lie(wire.Chunk, func(r *httptest.ResponseRecorder) {
			r.Body.WriteString("more")
		}), chunk, fault.Internal},
		"a segment of no length": {lie(wire.Chunk, func(r *httptest.ResponseRecorder) {
			r.Header().Del("Content-Length")
		}), chunk, fault.Internal},
		"a segment of a terabyte": {
			lie(wire.Chunk, header("Content-Length", "1000000000000")), chunk, fault.Internal,
		},
		"garbage beside a segment":  {lie(wire.Chunk, header(wire.MediaHeader, "{{")), chunk, fault.Internal},
		"garbage beside a playlist": {lie(wire.Playlist, header(wire.ListedHeader, "")), playlist, fault.Internal},
		"a playlist of the past": {
			lie(wire.Playlist, header(wire.ListedHeader, `{"At":{"Revision":1}}`)), playlist,
			fault.Internal,
		},
		"garbage as a multivariant playlist": {lie(wire.Multivariant, replaced("[1,2")), multivariant, fault.Internal},
		"lines in a multivariant playlist": {lie(wire.Multivariant, replaced(
			`{"Variants":[{"URI":"v.m3u8","Codecs":["a\n#EXT-X-STREAM-INF"]}]}`)), multivariant, fault.Internal},
		"an address elsewhere in a multivariant playlist": {lie(wire.Multivariant, replaced(
			`{"Variants":[{"URI":"https://example.com/v.m3u8"}]}`)), multivariant, fault.Internal},
		"an error without a kind": {lie(wire.Playlist, func(r *httptest.ResponseRecorder) {
			r.Code = http.StatusTeapot
		}), playlist, fault.Internal},
		"a timeline out of order": {lie(wire.Footage, replaced(`{"segment":{"msn":-1}}`)), footage, fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStudio(true, 0)
				s.publish(16)
				f, n, _ := pair(t, s, 64<<20)
				v := view(t, f, playback.Watch{})
				if err := tt.ask(t.Context(), v); err != nil {
					t.Fatalf("without the lie: %v", err)
				}
				time.Sleep(follow.Unwatched + 2*time.Second) // nothing is kept
				v = view(t, f, playback.Watch{})
				n.is(tt.lie(n))
				if err := tt.ask(t.Context(), v); !fault.Is(err, tt.is) {
					t.Errorf("the error is %v", err)
				}
				n.is(nil)
				if err := tt.ask(t.Context(), view(t, f, playback.Watch{})); err != nil {
					t.Errorf("after the lie: %v", err)
				}
			})
		})
	}
}

// TestChangesOfThePast: an owner that tells of changes of the past is not asked again and again.
func TestChangesOfThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		f, n, _ := pair(t, s, 64<<20)
		n.is(lie(wire.Changes, replaced(`{"Revision":1}`))(n))
		view(t, f, playback.Watch{})
		time.Sleep(5 * time.Second)
		if times, _ := n.count(wire.Changes, ""); times != 1 || f.Following() != 0 {
			t.Errorf("the owner was asked %d times, and %d broadcasts are followed", times, f.Following())
		}
	})
}

// TestLiesOfAbout: a description of another broadcast, or none, is refused.
func TestLiesOfAbout(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", "{}", `{"Media":"m"}`, `[]`, strings.Repeat("x", wire.MaxShort+1)} {
		s := newStudio(true, 0)
		f, n, _ := pair(t, s, 1<<20)
		n.is(lie(wire.About, replaced(text))(n))
		if _, err := f.Earlier(t.Context(), stream, media); !fault.Is(err, fault.Internal) {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

// TestManyWait: an owner is not asked for more at a time than it serves, whatever viewers ask for; those beyond are
// told at once, and the owner's other viewers are not delayed.
func TestManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		f, n, _ := pair(t, s, 64<<20)
		v := view(t, f, playback.Watch{})
		n.is(func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasPrefix(r.URL.Path, wire.Prefix+string(wire.Chunk)) && hang(w, r)
		})
		const viewers = 2 * follow.MostAsked
		told := make(chan error, viewers)
		for i := range viewers {
			go func() {
				r := hls.Resource{Init: -1, MSN: int64(i), Part: -1, Ext: "m4s"}
				_, err := v.Chunk(t.Context(), timeline.MainVideo, r)
				told <- err
			}()
		}
		synctest.Wait()
		if refused := len(told); refused < follow.MostAsked || refused > follow.MostAsked+2 {
			t.Errorf("%d are refused", refused)
		}
		for range len(told) {
			if err := <-told; !fault.Is(err, fault.TooMany) {
				t.Errorf("the error is %v", err)
			}
		}
		if _, err := listed(t.Context(), s.View(playback.Watch{})); err != nil {
			t.Errorf("at the owner: %v", err)
		}
		time.Sleep(10 * time.Second)
		if f.Following() != 1 {
			t.Error("the broadcast is not followed any more")
		}
	})
}
