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

// objects are what is stored.
type objects map[string]string

func (o objects) Open(_ context.Context, key string, _, _ int64) (delivered.Body, error) {
	data, ok := o[key]
	if !ok {
		return delivered.Body{}, fault.New(fault.NotFound, "there is no such object")
	}
	return delivered.Body{Data: []byte(data)}, nil
}

// TestOwnerDies: while nobody has the broadcast of an owner that has gone its viewers have their last playlists, what
// they had of its media, and segments that are stored. Who waits for a part gets it from the next owner, and what was
// in memory is there still. If there is none, who waits is told in the end, and nothing is followed any more.
func TestOwnerDies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		broken func(http.ResponseWriter, *http.Request) bool
		within time.Duration // until it is noticed
		ends   bool          // there is no next one
	}{
		"it resets connections":           {broken: reset, within: time.Second + time.Second/2},
		"it says nothing":                 {broken: hang, within: follow.Prompt + time.Second},
		"it resets connections, and ends": {broken: reset, within: time.Second + time.Second/2, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStudio(true, 0)
				s.publish(18)
				f, n, all := pair(t, s, 64<<20)
				v := view(t, f, playback.Watch{Objects: objects{"media/" + string(media) + "/v/2.m4s": "stored"}})
				before, err := listed(t.Context(), v)
				if err != nil {
					t.Fatal(err)
				}
				chunk := func(r hls.Resource) string {
					r.Init, r.Ext = -1, "m4s"
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					data, err := delivered.Bytes(v.Chunk(ctx, timeline.MainVideo, r))
					if err != nil {
						return err.Error()
					}
					return string(data)
				}
				part := hls.Resource{MSN: 4, Part: 1}
				had := chunk(part)
				type response struct {
					text string
					err  error
				}
				waited := make(chan response, 1)
				go func() {
					text, err := v.Playlist(
						t.Context(), timeline.MainVideo, playback.Reload{MSN: 4, Part: 2}, false,
					)
					waited <- response{string(text.Data), err}
				}()
				synctest.Wait()
				all.move("")
				n.is(tt.broken)
				time.Sleep(tt.within)
				for range 3 {
					time.Sleep(time.Second)
					v = view(t, f, playback.Watch{Objects: objects{"media/" + string(media) + "/v/2.m4s": "stored"}})
					if text, err := listed(t.Context(), v); err != nil || text != before {
						t.Fatalf("while nobody has it: %v\n%s", err, text)
					}
				}
				if got := chunk(part); got != had || !strings.HasPrefix(had, "v 4 1.") {
					t.Errorf("a part that is kept is %q, was %q", got, had)
				}
				if got := chunk(hls.Resource{MSN: 2, Part: -1}); got != "stored" {
					t.Errorf("a segment that is stored is %q", got)
				}
				if tt.ends {
					time.Sleep(time.Minute)
					if r := <-waited; !fault.Is(r.err, fault.Unavailable) || f.Following() != 0 || f.Kept() != 0 {
						t.Errorf("who waited is told %v, %d are followed, %d bytes kept", r.err, f.Following(),
							f.Kept())
					}
					return
				}
				next := newStudio(true, 1)
				next.publish(20)
				all.mu.Lock()
				all.nodes["b"] = newNode("another run", next)
				all.mu.Unlock()
				all.move("b")
				began := time.Now()
				r := <-waited
				if r.err != nil || !strings.Contains(r.text, "v/1-4.m4s") || time.Since(began) > time.Second {
					t.Errorf("who waited has after %v: %v\n%s", time.Since(began), r.err, r.text)
				}
				v = view(t, f, playback.Watch{})
				if text, err := listed(t.Context(), v); err != nil || !strings.Contains(text, "v/1-4.m4s") {
					t.Errorf("of the next generation: %v\n%s", err, text)
				}
				if got := chunk(part); got != had {
					t.Errorf("a part that was kept is %q, was %q", got, had)
				}
			})
		})
	}
}

// TestOwnerIsHere: when this node itself has the broadcast of an owner that has gone, who waits is told so at once.
func TestOwnerIsHere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		f, n, all := pair(t, s, 64<<20)
		v := view(t, f, playback.Watch{})
		waited := make(chan error, 1)
		go func() {
			_, err := v.Playlist(t.Context(), timeline.MainVideo, playback.Reload{MSN: 4, Part: 0}, false)
			waited <- err
		}()
		synctest.Wait()
		all.move("")
		n.is(reset)
		time.Sleep(3 * time.Second)
		all.move("here")
		began := time.Now()
		if err := <-waited; !fault.Is(err, fault.Unavailable) || time.Since(began) > time.Second {
			t.Errorf("who waited is told %v after %v", err, time.Since(began))
		}
	})
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
