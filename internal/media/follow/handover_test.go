package follow_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/follow"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// handOver has a node give its studio up, whose viewers are not shown an end.
func (n *node) handOver() {
	n.mu.Lock()
	n.moves = true
	s := n.current
	n.mu.Unlock()
	s.Edge.Yield()
}

// takes has another node go on with the broadcast.
func (f *fleet) takes(url string) *studio {
	next := newStudio(true, 1)
	next.publish(20)
	f.mu.Lock()
	f.nodes[url] = newNode("another run", next)
	f.mu.Unlock()
	f.move(url)
	return next
}

// TestHandedOver: who comes while a broadcast is handed over waits for the next owner, at the node that had it and at
// one that has not followed it; who comes to one that has sees what it had. If there is none, each is told in the end.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, here, lost bool
		waits              time.Duration
	}{
		"it was followed":         {before: true},
		"it was not followed":     {waits: 2 * time.Second},
		"this node had it":        {here: true, waits: 2 * time.Second},
		"nobody takes it":         {lost: true, waits: 10 * time.Second},
		"nobody takes it from us": {here: true, lost: true, waits: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStudio(true, 0)
				s.publish(16)
				n := newNode("run", s)
				all := &fleet{nodes: map[string]*node{"a": n}, has: "a"}
				f := follow.New(follow.Options{
					Peer: all, Directory: all, Bytes: 64 << 20, Now: time.Now, Logger: quiet(),
					Moves: func(id.LiveStream) bool { return tt.here },
				})
				t.Cleanup(f.Close)
				if tt.before {
					if _, err := listed(t.Context(), view(t, f, playback.Watch{})); err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // it waits for a change
				}
				if tt.here {
					all.move("here")
				}
				n.handOver()
				synctest.Wait()
				began := time.Now()
				if !tt.lost {
					time.AfterFunc(2*time.Second, func() { all.takes("b") })
				}
				b, err := f.Watched(t.Context(), stream)
				took := time.Since(began)
				if took < tt.waits || took > tt.waits+time.Second {
					t.Errorf("it took %v, want %v", took, tt.waits)
				}
				if tt.lost {
					if err == nil {
						t.Error("a broadcast was found that nobody has")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				text, err := listed(t.Context(), b.View(playback.Watch{}))
				if err != nil || !strings.Contains(text, "v/3.m4s") && !strings.Contains(text, "v/1-4.m4s") {
					t.Errorf("%v\n%s", err, text)
				}
				time.Sleep(4 * time.Second)
				text, err = listed(t.Context(), view(t, f, playback.Watch{}))
				if err != nil || !strings.Contains(text, "v/1-4.m4s") {
					t.Errorf("of the next owner: %v\n%s", err, text)
				}
			})
		})
	}
}

// TestLasting: who waits for a part of a broadcast that leaves this node, or comes to it, is given that by who has the
// broadcast then. Other errors are told at once.
func TestLasting(t *testing.T) {
	t.Parallel()
	wait := func(ctx context.Context, l follow.Lasting) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := l.View(playback.Watch{}).Playlist(
				ctx, timeline.MainVideo, playback.Reload{MSN: 4, Part: 0}, false)
			done <- err
		}()
		synctest.Wait()
		return done
	}
	next := func() (playback.Broadcast, error) {
		s := newStudio(true, 1)
		s.publish(20)
		return s.Broadcast, nil
	}
	leave := func(t *testing.T, next func() (playback.Broadcast, error)) error {
		t.Helper()
		s := newStudio(true, 0)
		s.publish(16)
		done := wait(t.Context(), follow.Lasting{
			Broadcast: s.Broadcast, Moved: edgeview.Moved,
			Next: func(context.Context) (playback.Broadcast, error) { return next() },
		})
		s.Edge.Yield()
		return <-done
	}
	t.Run("it leaves", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			if err := leave(t, next); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("it leaves, and is not found again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			nowhere := func() (playback.Broadcast, error) { return nil, playback.Inactive() }
			if err := leave(t, nowhere); !fault.Is(err, fault.Unavailable) {
				t.Error(err)
			}
		})
	})
	t.Run("it comes here", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStudio(true, 0)
			s.publish(16)
			f, n, all := pair(t, s, 64<<20)
			b, err := f.Watched(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			done := wait(t.Context(), follow.Lasting{
				Broadcast: b, Moved: edgeview.Moved,
				Next: func(context.Context) (playback.Broadcast, error) { return next() },
			})
			all.move("here")
			n.handOver()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
}
