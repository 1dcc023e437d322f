package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

const (
	endpoints   = 16
	eventsEach  = 480              // that a phase makes
	eventsPause = time.Second / 32 // between two: 512 deliveries a second
)

// arrivals are the endpoints of the measurement: they note when the events of live streams come.
type arrivals struct {
	mu   sync.Mutex
	came map[string][]time.Time // of each stream, from the endpoints that are well
	more chan struct{}
	over chan struct{} // nobody hangs any more
}

func (a *arrivals) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now() // the first byte has come
	if strings.HasPrefix(r.URL.Path, "/hanging") {
		select {
		case <-r.Context().Done():
		case <-a.over:
		}
		return
	}
	text, err := io.ReadAll(r.Body)
	var e struct {
		Object struct {
			ID string `json:"id"`
		} `json:"object"`
	}
	if err != nil || json.Unmarshal(text, &e) != nil {
		return
	}
	a.mu.Lock()
	a.came[e.Object.ID] = append(a.came[e.Object.ID], now)
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

func (a *arrivals) of(stream string) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.came[stream]
}

// webhooks measures how soon events are at their endpoints, and what a dead and a hanging endpoint cost the others.
func (b *bench) webhooks(ctx context.Context) error {
	a := &arrivals{came: map[string][]time.Time{}, more: make(chan struct{}, 1), over: make(chan struct{})}
	srv := httptest.NewServer(a)
	defer srv.Close()
	defer close(a.over)
	m, err := b.millrace()
	if err != nil {
		return err
	}
	defer m.stop()
	for i := range endpoints {
		if _, err = m.hook(fmt.Sprintf("%s/well/%d", srv.URL, i)); err != nil {
			return err
		}
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	_ = nobody.Close()
	var bad []string
	for _, address := range []string{"http://" + nobody.Addr().String() + "/dead", srv.URL + "/hanging"} {
		key, err := m.hook(address)
		if err != nil {
			return err
		}
		bad = append(bad, key)
	}
	var well, beside, rates []float64
	for i := range 2 * max(3, b.rounds) { // in turns, as the machine may have other work
		ill := i%2 == 1
		if err := m.enable(bad, ill); err != nil {
			return err
		}
		took, rate, err := m.events(ctx, a)
		if err != nil {
			return err
		}
		if ill {
			beside = append(beside, took...)
		} else {
			well, rates = append(well, took...), append(rates, rate)
		}
	}
	b.out.begin("Webhooks: 16 endpoints, SQLite, from the request that causes an event", "-")
	b.out.alone("deliveries", "1/s", median(rates), "500")
	b.out.alone("first byte at the endpoint, median", "ms", median(well), "")
	b.out.alone("first byte at the endpoint, p95", "ms", percentile(well, 0.95), "at most 100")
	b.out.pair("the same beside a dead and a hanging endpoint (without), p95", "ms", percentile(beside, 0.95),
		percentile(well, 0.95), "at most 1.10 times")
	return nil
}

// hook makes an endpoint and gives its ID.
func (m *millrace) hook(address string) (string, error) {
	c := m.client()
	defer c.Close()
	var made struct {
		ID string `json:"id"`
	}
	err := call(c, "POST", "/system/v1/webhooks", fmt.Sprintf(`{"address":%q}`, address), &made)
	return made.ID, err
}

func (m *millrace) enable(hooks []string, on bool) error {
	c := m.client()
	defer c.Close()
	for _, key := range hooks {
		if err := call(c, "PATCH", "/system/v1/webhooks/"+key, fmt.Sprintf(`{"enabled":%t}`, on), nil); err != nil {
			return err
		}
	}
	return nil
}

// events makes events at a steady pace and gives how long each delivery took, in milliseconds, and how many there were
// a second.
func (m *millrace) events(ctx context.Context, a *arrivals) (took []float64, rate float64, err error) {
	c := m.client()
	defer c.Close()
	pace := time.NewTicker(eventsPause)
	defer pace.Stop()
	asked := map[string]time.Time{}
	begin := time.Now()
	for range eventsEach {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		at := time.Now()
		var s liveStream
		if err = call(c, "POST", "/video/v1/live-streams", `{}`, &s); err != nil {
			return nil, 0, err
		}
		asked[s.ID] = at
	}
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for stream, at := range asked {
		for len(a.of(stream)) < endpoints {
			select {
			case <-a.more:
			case <-late.C:
				return nil, 0, fmt.Errorf("%d of %d deliveries of an event came", len(a.of(stream)), endpoints)
			}
		}
		for _, came := range a.of(stream) {
			took = append(took, float64(came.Sub(at))/float64(time.Millisecond))
		}
	}
	return took, float64(len(took)) / time.Since(begin).Seconds(), nil
}
