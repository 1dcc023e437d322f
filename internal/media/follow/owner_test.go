package follow_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/id"
	"millrace/internal/media/follow/owner"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/timeline"
)

type asker struct{}

// TestOneNodeAsksForMuch: a node that has a thousand requests under way is refused the next one, and other nodes are
// not.
func TestOneNodeAsksForMuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		from := func(ctx context.Context) id.Node {
			n, _ := ctx.Value(asker{}).(id.Node)
			return n
		}
		h := owner.New(owner.Options{Broadcasts: newNode("", s), Run: "run", From: from, Logger: quiet()})
		now, _ := s.Revised(t.Context(), 0)
		ask := func(n id.Node) int {
			target := wire.Ask{What: wire.Changes, Revision: now}.Target(wire.Of{Stream: stream, Media: media})
			ctx := context.WithValue(t.Context(), asker{}, n)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil))
			return w.Code
		}
		statuses := make(chan int, 1000)
		for range 1000 {
			go func() { statuses <- ask("b") }()
		}
		synctest.Wait()
		if status := ask("b"); status != http.StatusTooManyRequests {
			t.Errorf("one too many: status %d", status)
		}
		if status := ask("c"); status != http.StatusOK {
			t.Errorf("of another node: status %d", status)
		}
		for range 1000 {
			if status := <-statuses; status != http.StatusOK {
				t.Errorf("one that waited: status %d", status)
			}
		}
		if status := ask("b"); status != http.StatusOK {
			t.Errorf("when the others have their responses: status %d", status)
		}
	})
}

// TestSlowReader: a node that does not read what it is sent holds up neither the edge nor other nodes.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		n := newNode("run", s)
		stuck := &stuckWriter{header: http.Header{}, until: make(chan struct{})}
		target := wire.Ask{What: wire.Chunk, Rendition: timeline.MainVideo, Resource: newest(s)}.Target(
			wire.Of{Stream: stream, Media: media})
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			n.ServeHTTP(stuck, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
		}()
		synctest.Wait()
		began := time.Now()
		s.publish(8)
		w := httptest.NewRecorder()
		n.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
		if w.Code != http.StatusOK || w.Body.Len() == 0 || time.Since(began) != 0 {
			t.Errorf("another node: status %d after %v", w.Code, time.Since(began))
		}
		close(stuck.until)
		if broke, _ := (<-done).(error); !errors.Is(broke, http.ErrAbortHandler) {
			t.Errorf("the response that nobody read ended with %v", broke)
		}
	})
}

// stuckWriter takes nothing until a time, and fails then.
type stuckWriter struct {
	header http.Header
	until  chan struct{}
}

func (s *stuckWriter) Header() http.Header { return s.header }

func (*stuckWriter) WriteHeader(int) {}

func (s *stuckWriter) Write([]byte) (int, error) {
	<-s.until
	return 0, http.ErrHandlerTimeout
}
