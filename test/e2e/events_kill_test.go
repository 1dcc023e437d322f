package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"millrace/test/rig"
)

// happening is an event as far as its order goes.
type happening struct {
	ID       string `json:"id"`
	Sequence int64  `json:"sequence"`
	Resource struct {
		ID     string `json:"id"`
		Number int64  `json:"number"`
	} `json:"resource"`
}

// endpoint is where events are sent to.
type endpoint struct {
	t *testing.T

	mu    sync.Mutex
	last  map[string]happening // by resource
	seen  map[string]bool
	again int
}

// ServeHTTP takes an event: the next one of its resource, or the last one once more.
func (e *endpoint) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var h happening
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		return // the service died while it was sending
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.last[h.Resource.ID]
	switch {
	case h.Resource.Number == last.Resource.Number+1 && !e.seen[h.ID]:
	case h.ID == last.ID:
		e.again++
	default:
		e.t.Errorf("number %d (%s) of %s came behind number %d (%s)", h.Resource.Number, h.ID, h.Resource.ID,
			last.Resource.Number, last.ID)
	}
	e.last[h.Resource.ID], e.seen[h.ID] = h, true
}

// counts are how many events have come, and how many of them more than once.
func (e *endpoint) counts() (seen, again int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seen), e.again
}

// TestEventsOverKills kills the service while live streams are changed over the API. Every change that was acknowledged
// has its event, each event reaches the endpoint in the order of its resource, and what comes twice is the same event.
// MILLRACE_TEST_KILLS says how often it is killed.
func TestEventsOverKills(t *testing.T) {
	rig.Parallel(t)
	kills := killsOr(t, 5)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		random := dice(t)
		e := &endpoint{t: t, last: map[string]happening{}, seen: map[string]bool{}}
		sink := httptest.NewServer(e)
		t.Cleanup(sink.Close)
		s := rig.Start(t, rig.Options{Pair: p})
		if code, o := s.Do(t, http.MethodPost, "/system/v1/webhooks", rig.Object{
			"address": sink.URL,
		}); code != http.StatusCreated {
			t.Fatalf("create webhook: %d %v", code, o)
		}
		var streams []string
		for range 4 {
			streams = append(streams, s.CreateLive(t, "standard", nil).Text("id"))
		}
		acknowledged := map[string]int{}
		for range kills {
			changed := make(chan map[string]int)
			go func() { changed <- changes(s, streams) }()
			<-time.After(time.Duration(random.IntN(400)) * time.Millisecond)
			s.Kill(t)
			for stream, n := range <-changed {
				acknowledged[stream] += n
			}
			s.Run(t)
		}
		all := everything(t, s)
		of := map[string]int{}
		for _, h := range all {
			if of[h.Resource.ID]++; int64(of[h.Resource.ID]) != h.Resource.Number {
				t.Errorf("number %d of %s is its %dth event", h.Resource.Number, h.Resource.ID, of[h.Resource.ID])
			}
		}
		for stream, n := range acknowledged {
			if of[stream] < n+1 { // and that of its creation
				t.Errorf("%s: %d events of %d changes", stream, of[stream], n)
			}
		}
		seen, again := e.counts()
		for end := time.Now().Add(patience); seen < len(all); seen, again = e.counts() {
			if time.Now().After(end) {
				t.Fatalf("%d of %d events were delivered", seen, len(all))
			}
			rig.Pause(50 * time.Millisecond)
		}
		t.Logf("%d events over %d kills, %d of them again", len(all), kills, again)
	})
}

// changes changes live streams until the service is away, and says how many changes of each it acknowledged.
func changes(s *rig.Server, streams []string) map[string]int {
	done := map[string]int{}
	url, authorization := s.HTTP, s.Authorization()
	for n := 0; ; n++ {
		stream := streams[n%len(streams)]
		body := bytes.NewBufferString(fmt.Sprintf(`{"passthrough":"change %d"}`, n))
		r, err := http.NewRequest(http.MethodPatch, url+"/video/v1/live-streams/"+stream, body) //nolint:noctx // the service is killed
		if err != nil {
			return done
		}
		r.Header.Set("Authorization", authorization)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return done
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return done
		}
		if resp.StatusCode == http.StatusOK {
			done[stream]++
		}
	}
}

// everything is all that has happened, oldest first.
func everything(t *testing.T, s *rig.Server) (all []happening) {
	t.Helper()
	for cursor := "0"; ; {
		_, o := s.Do(t, http.MethodGet, "/system/v1/events?order=asc&limit=100&cursor="+cursor, nil)
		var page struct {
			Data []happening `json:"data"`
			Next string      `json:"next_cursor"`
		}
		text, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(text, &page)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Data) == 0 {
			return all
		}
		all, cursor = append(all, page.Data...), page.Next
	}
}
