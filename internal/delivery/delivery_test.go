package delivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/delivery"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const env id.Environment = "env"

// got is one request to an endpoint.
type got struct {
	address  string
	resource string
	number   int64
	sequence int64
	id       string
	at       time.Time
	attempts int
}

// world is a dispatcher on a database, and endpoints that respond as a function says.
type world struct {
	t       *testing.T
	db      *db.DB
	streams *live.Service
	hooks   *webhook.Service
	respond func(ctx context.Context, g got) (int, error)
	asks    time.Duration // what endpoints ask for by Retry-After
	log     *slog.Logger
	prepare func(d *delivery.Dispatcher) // before it runs

	mu   sync.Mutex
	all  []got
	more chan struct{}
}

func newWorld(t *testing.T, d *db.DB) *world {
	t.Helper()
	return &world{
		t: t, db: d, streams: live.New(live.Options{Store: d.LiveStreams()}),
		hooks:   webhook.New(d, []string{live.EventCreated, webhook.EventDisabled, "video.asset.ready"}),
		more:    make(chan struct{}, 1),
		respond: func(context.Context, got) (int, error) { return 200, nil }, log: slog.New(slog.DiscardHandler),
		prepare: func(*delivery.Dispatcher) {},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) body(_ context.Context, e event.Event, attempts []webhook.Attempt) ([]byte, error) {
	return json.Marshal(sent{e.Resource, e.Number, e.Sequence, e.ID, len(attempts)})
}

// sent is what the endpoints of these tests get.
type sent struct {
	Resource string `json:"resource"`
	Number   int64  `json:"number"`
	Sequence int64  `json:"sequence"`
	ID       string `json:"id"`
	Attempts int    `json:"attempts"`
}

func (w *world) post(
	ctx context.Context, address string, signed map[string]string, body []byte,
) (delivery.Response, error) {
	var s sent
	if err := json.Unmarshal(body, &s); err != nil || signed["Webhook-Id"] != s.ID ||
		!strings.HasPrefix(signed["Mux-Signature"], "t="+signed["Webhook-Timestamp"]+",v1=") {
		w.t.Errorf("%s %s: %v", signed, body, err)
	}
	g := got{address, s.Resource, s.Number, s.Sequence, s.ID, time.Now(), s.Attempts}
	w.mu.Lock()
	w.all = append(w.all, g)
	w.mu.Unlock()
	status, err := w.respond(ctx, g)
	select {
	case w.more <- struct{}{}:
	default:
	}
	headers := map[string][]string{"Content-Type": {"text/plain"}, "Via": {"a", "b"}}
	return delivery.Response{Status: status, Headers: headers, Body: []byte("response"), RetryAfter: w.asks}, err
}

// run runs a dispatcher until stop is called.
func (w *world) run(node id.Node) (stop func()) {
	w.t.Helper()
	return w.runOn(w.db, node)
}

func (w *world) runOn(outbox webhook.Outbox, node id.Node) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	d := delivery.New(delivery.Options{
		Outbox: outbox, Body: w.body, Post: w.post, Node: node, Now: time.Now, Logger: w.log,
	})
	w.prepare(d)
	go func() { defer close(ended); _ = d.Run(ctx) }()
	return func() { cancel(); <-ended }
}

func (w *world) hook(address string, types ...string) webhook.Webhook {
	w.t.Helper()
	h, err := w.hooks.Create(w.t.Context(), env, webhook.CreateInput{Address: address, Types: types}, time.Now())
	w.must(err)
	return h
}

// only is the one endpoint that there is.
func (w *world) only() id.Webhook {
	w.t.Helper()
	list, err := w.hooks.List(w.t.Context(), env, 0, 0)
	w.must(err)
	return list[0].ID
}

func (w *world) stream() id.LiveStream {
	w.t.Helper()
	s, err := w.streams.Create(w.t.Context(), env, live.CreateInput{}, time.Now())
	w.must(err)
	return s.ID
}

// change makes an event of a stream.
func (w *world) change(s id.LiveStream) {
	w.t.Helper()
	text := "x"
	_, err := w.streams.Patch(w.t.Context(), env, s, live.PatchInput{Passthrough: &text}, time.Now())
	w.must(err)
}

// requests are those to an address so far.
func (w *world) requests(address string) (out []got) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.all {
		if g.address == address {
			out = append(out, g)
		}
	}
	return out
}

// until waits for a condition that requests bring about.
func (w *world) until(is func() bool) {
	w.t.Helper()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	for !is() {
		select {
		case <-w.more:
		case <-late.C:
			w.t.Fatal("it does not come")
		}
	}
}

func (w *world) deliveries(h id.Webhook, state webhook.State) []webhook.Delivery {
	w.t.Helper()
	list, err := w.db.Deliveries(w.t.Context(), h, webhook.DeliveryQuery{State: state, Limit: 1000})
	w.must(err)
	return list
}

// TestDelivery: every endpoint gets every event that it wants, in the order of each resource, and what came of it is
// written down.
func TestDelivery(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		listening := make(chan error, 1)
		go func() { listening <- d.Run(ctx) }()
		w := newWorld(t, d)
		w.stream() // before there are endpoints
		all, created := w.hook("http://all"), w.hook("http://created", live.EventCreated)
		w.respond = func(context.Context, got) (int, error) { return 204, nil }
		stop := w.run("node")
		const streams, changes = 5, 8
		var ids []id.LiveStream
		for range streams {
			ids = append(ids, w.stream())
		}
		for range changes {
			for _, s := range ids {
				w.change(s)
			}
		}
		w.until(func() bool {
			return len(w.requests("http://all")) == streams*(changes+1) && len(w.requests("http://created")) == streams
		})
		stop()
		numbers := map[string]int64{}
		for _, g := range w.requests("http://all") {
			if numbers[g.resource]++; g.number != numbers[g.resource] {
				t.Errorf("number %d of %s came as the %dth", g.number, g.resource, numbers[g.resource])
			}
		}
		for h, n := range map[id.Webhook]int{all.ID: streams * (changes + 1), created.ID: streams} {
			list := w.deliveries(h, webhook.Delivered)
			if len(list) != n {
				t.Errorf("%d deliveries are recorded, want %d", len(list), n)
			}
			for _, one := range list {
				if len(one.Attempts) != 1 || one.Attempts[0].Status != 204 || one.Attempts[0].Body != "response" ||
					one.EventID == "" {
					t.Errorf("delivery %+v", one)
				}
			}
		}
		if n := len(w.requests("http://all")); n != streams*(changes+1) {
			t.Errorf("%d requests", n)
		}
		cancel()
		w.must(<-listening)
	})
}

// TestTwoNodes share the endpoints of a database, take each other's over when one stops, and lose nothing: each event
// comes once, in the order of its resource, and never beside another one of that.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	a, b := dbtest.Open(t, url), dbtest.Open(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan error, 2)
	for _, d := range []*db.DB{a, b} {
		go func() { listening <- d.Run(ctx) }()
	}
	w := newWorld(t, a)
	var flight sync.Map // address and resource
	w.respond = func(_ context.Context, g got) (int, error) {
		if _, beside := flight.LoadOrStore(g.address+g.resource, true); beside {
			t.Errorf("two events of %s at once", g.resource)
		}
		defer flight.Delete(g.address + g.resource)
		runtime.Gosched()
		return 200, nil
	}
	stopA, stopB := w.runOn(a, "a"), w.runOn(b, "b")
	const hooks, streams = 6, 4
	var addresses []string
	for i := range hooks {
		addresses = append(addresses, fmt.Sprintf("http://hook%d", i))
		w.hook(addresses[i])
	}
	var ids []id.LiveStream
	for range streams {
		ids = append(ids, w.stream())
	}
	events := streams
	changes := func(rounds int) {
		others := live.New(live.Options{Store: b.LiveStreams()})
		for n := range rounds {
			for _, s := range ids {
				if events++; n%2 == 0 {
					w.change(s)
					continue
				}
				text := "y"
				_, err := others.Patch(t.Context(), env, s, live.PatchInput{Passthrough: &text}, time.Now())
				w.must(err)
			}
		}
	}
	everywhere := func() bool {
		for _, at := range addresses {
			if len(w.requests(at)) < events {
				return false
			}
		}
		return true
	}
	changes(6)
	stopA() // in the middle of it
	changes(6)
	w.until(everywhere)
	stopA = w.runOn(a, "a")
	changes(3)
	stopB()
	changes(3)
	w.until(everywhere)
	stopA()
	for _, at := range addresses {
		numbers := map[string]int64{}
		for _, g := range w.requests(at) {
			if numbers[g.resource]++; g.number != numbers[g.resource] {
				t.Errorf("%s: number %d of %s came as the %dth", at, g.number, g.resource, numbers[g.resource])
			}
		}
	}
	cancel()
	w.must(<-listening)
	w.must(<-listening)
}

// long is for what lasts a day or more: make check leaves it out.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a day has thousands of rounds")
	}
}

// bubble runs a test on SQLite with the clock of synctest.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	url := dbtest.SQLite(t)
	dbtest.Fill(t, url)
	synctest.Test(t, func(t *testing.T) {
		d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(newWorld(t, d))
	})
}

// TestRetry: an event that is refused is tried again with growing pauses, holds back those of its resource alone, and
// is given up after a day.
func TestRetry(t *testing.T) {
	t.Parallel()
	long(t)
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		bad, good := w.stream(), w.stream()
		w.respond = func(_ context.Context, g got) (int, error) {
			if g.resource == string(bad) && g.number == 1 {
				return 500, nil
			}
			return 200, nil
		}
		defer w.run("node")()
		w.change(bad)
		began := time.Now()
		for range 25 {
			w.change(good)
			time.Sleep(time.Hour)
		}
		var times []time.Time
		var second time.Time
		for i, g := range w.requests("http://a") {
			switch {
			case g.resource == string(bad) && g.number == 1:
				times = append(times, g.at)
				if g.attempts != len(times)-1 {
					w.t.Errorf("request %d tells of %d attempts", len(times), g.attempts)
				}
			case g.resource == string(bad):
				second = g.at
			case g.at.Sub(began).Truncate(time.Hour) != g.at.Sub(began):
				w.t.Errorf("request %d of the other stream is late: %v", i, g.at.Sub(began))
			}
		}
		if len(times) < 25 || len(times) > webhook.MaxAttempts {
			w.t.Errorf("%d attempts", len(times))
		}
		for i, at := range times[1:9] { // before the other stream's second event, after which it may be tried early
			pause, want := at.Sub(times[i]), 5*time.Second<<i
			if pause < want*3/4 || pause > want*5/4+time.Second {
				w.t.Errorf("pause %d is %v, want about %v", i, pause, want)
			}
		}
		last := times[len(times)-1].Sub(times[0])
		if last < webhook.Patience || last > webhook.Patience+time.Second || second.Before(times[len(times)-1]) {
			w.t.Errorf("given up after %v, the next one came at %v", last, second.Sub(times[0]))
		}
		failed := w.deliveries(h.ID, webhook.Failed)
		if len(failed) != 1 || len(failed[0].Attempts) != len(times) {
			w.t.Errorf("failed %+v", failed)
		}
		if len(w.deliveries(h.ID, webhook.Delivered)) != 27 {
			w.t.Errorf("%d were delivered", len(w.deliveries(h.ID, webhook.Delivered)))
		}
	})
}

// TestDisabled: an endpoint that fails for a day is disabled, others are told of it, and what it missed can be
// replayed.
func TestDisabled(t *testing.T) {
	t.Parallel()
	long(t)
	bubble(t, func(w *world) {
		var text bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&text, nil))
		dead := w.hook("http://dead/secret")
		w.hook("http://other", webhook.EventDisabled)
		var healthy atomic.Bool
		w.respond = func(ctx context.Context, g got) (int, error) {
			if g.address == "http://dead/secret" && !healthy.Load() {
				<-ctx.Done()
				return 0, errors.New("it took too long")
			}
			return 200, nil
		}
		defer w.run("node")()
		first := time.Now()
		s := w.stream()
		for range 26 {
			w.change(s)
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		line := fmt.Sprintf("level=WARN msg=\"disabled a webhook that has failed for too long\" webhook_id=%s "+
			"after=24h0m0s", dead.ID)
		if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), line) ||
			strings.Contains(text.String(), "secret") {
			w.t.Errorf("the log has %s", &text)
		}
		h, err := w.hooks.Get(w.t.Context(), env, dead.ID)
		w.must(err)
		failed, waiting := w.deliveries(dead.ID, webhook.Failed), w.deliveries(dead.ID, webhook.Waiting)
		for _, one := range waiting {
			if len(one.Attempts) > 0 {
				w.t.Errorf("it waits after attempts: %+v", one)
			}
		}
		if h.Enabled || h.FailingSince.IsZero() || len(waiting) == 0 || len(failed) == 0 ||
			len(failed[0].Attempts) == 0 {
			w.t.Errorf("after a day %+v with %d waiting and %d failed", h, len(waiting), len(failed))
		}
		if got := w.requests("http://other"); len(got) != 1 || got[0].resource != string(dead.ID) {
			w.t.Errorf("told %+v", got)
		}
		if _, err = w.hooks.ReplaySince(w.t.Context(), env, dead.ID, first); err == nil {
			w.t.Error("a disabled endpoint was replayed to")
		}
		tried := len(w.requests("http://dead/secret"))
		healthy.Store(true)
		yes := true
		_, err = w.hooks.Patch(w.t.Context(), env, dead.ID, webhook.PatchInput{Enabled: &yes}, time.Now())
		w.must(err)
		w.change(s)
		time.Sleep(time.Minute)
		sent := w.requests("http://dead/secret")[tried:]
		for i, g := range sent[:len(sent)-1] {
			if want := waiting[len(waiting)-1-i].EventID; g.id != want {
				w.t.Errorf("once it was enabled request %d was %+v, want what waited", i, g)
			}
		}
		if last := sent[len(sent)-1]; len(sent) != len(waiting)+1 || last.number != 28 {
			w.t.Errorf("%d requests once it was enabled, want the %d that waited and the new event", len(sent),
				len(waiting))
		}
		tried = len(w.requests("http://dead/secret"))
		_, err = w.hooks.ReplaySince(w.t.Context(), env, dead.ID, first)
		w.must(err)
		time.Sleep(time.Minute)
		replayed := w.requests("http://dead/secret")[tried:]
		if len(replayed) != 29 { // of the stream 28, and that it was disabled
			w.t.Errorf("%d events were replayed", len(replayed))
		}
		numbers := map[string]int64{}
		for _, g := range replayed {
			if g.number <= numbers[g.resource] {
				w.t.Errorf("%s: number %d behind %d", g.resource, g.number, numbers[g.resource])
			}
			numbers[g.resource] = g.number
		}
		one, err := w.hooks.ReplayEvent(w.t.Context(), env, dead.ID, replayed[3].id)
		w.must(err)
		if one.State != webhook.Waiting {
			w.t.Errorf("replayed %+v", one)
		}
		time.Sleep(time.Minute)
		if all := w.requests("http://dead/secret"); all[len(all)-1].id != replayed[3].id {
			w.t.Errorf("the last one is %+v", all[len(all)-1])
		}
	})
}

// TestGone: an endpoint that responds with 410 is disabled at once, others are told of it, and what waits for it is
// given up. Once it is enabled again it is sent what happens from then on.
func TestGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var text bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&text, nil))
		gone := w.hook("http://gone/secret")
		w.hook("http://other", webhook.EventDisabled)
		var status atomic.Int64
		status.Store(200)
		w.respond = func(_ context.Context, g got) (int, error) {
			if g.address == "http://gone/secret" {
				return int(status.Load()), nil
			}
			return 200, nil
		}
		defer w.run("node")()
		s := w.stream()
		synctest.Wait()
		status.Store(410)
		w.change(s)
		synctest.Wait() // no time passes
		line := "level=WARN msg=\"disabled a webhook whose endpoint responded with 410 Gone\" webhook_id="
		if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), line+string(gone.ID)+"\n") {
			w.t.Errorf("the log has %s", &text)
		}
		h, err := w.hooks.Get(w.t.Context(), env, gone.ID)
		w.must(err)
		if failed := w.deliveries(gone.ID, webhook.Failed); h.Enabled || len(failed) != 1 ||
			failed[0].Attempts[0].Status != 410 || len(w.deliveries(gone.ID, webhook.Waiting)) != 0 {
			w.t.Errorf("%+v with failed %+v", h, failed)
		}
		if got := w.requests("http://other"); len(got) != 1 || got[0].resource != string(gone.ID) {
			w.t.Errorf("told %+v", got)
		}
		w.change(s)
		time.Sleep(time.Hour)
		if got := w.requests("http://gone/secret"); len(got) != 2 {
			w.t.Errorf("%d requests, want none after the 410", len(got))
		}
		status.Store(200)
		yes := true
		_, err = w.hooks.Patch(w.t.Context(), env, gone.ID, webhook.PatchInput{Enabled: &yes}, time.Now())
		w.must(err)
		w.change(s)
		time.Sleep(time.Minute)
		if got := w.requests("http://gone/secret"); len(got) != 3 || got[2].number != 4 {
			w.t.Errorf("once it is enabled again %+v", got)
		}
	})
}

// TestAttemptsOfReplay: an event that is replayed, alone or with others, tells of all attempts before and what the
// endpoint has responded.
func TestAttemptsOfReplay(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		w.respond = func(context.Context, got) (int, error) {
			if len(w.requests("http://a")) == 1 {
				return 503, nil
			}
			return 200, nil
		}
		defer w.run("node")()
		began := time.Now()
		w.stream()
		time.Sleep(time.Minute)
		_, err := w.hooks.ReplayEvent(w.t.Context(), env, h.ID, w.requests("http://a")[0].id)
		w.must(err)
		time.Sleep(time.Minute)
		_, err = w.hooks.ReplaySince(w.t.Context(), env, h.ID, began)
		w.must(err)
		time.Sleep(time.Minute)
		var told []int
		for _, g := range w.requests("http://a") {
			told = append(told, g.attempts)
		}
		if !slices.Equal(told, []int{0, 1, 2, 3}) {
			w.t.Errorf("the requests tell of %v attempts", told)
		}
		list := w.deliveries(h.ID, webhook.Delivered)
		if len(list) != 1 || len(list[0].Attempts) != 4 {
			w.t.Fatalf("recorded %+v", list)
		}
		for i, a := range list[0].Attempts {
			if a.Webhook != h.ID || a.Number != i+1 || len(a.Headers) != 2 || a.Headers["Via"] != "a, b" {
				w.t.Errorf("attempt %d is %+v", i+1, a)
			}
		}
	})
}

// TestSlowEndpoints: a dead one and a hanging one delay nobody else.
func TestSlowEndpoints(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://dead")
		w.hook("http://hanging")
		w.hook("http://well")
		w.respond = func(ctx context.Context, g got) (int, error) {
			switch g.address {
			case "http://dead":
				return 0, errors.New("connection refused")
			case "http://hanging":
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 200, nil
		}
		defer w.run("node")()
		for range 500 {
			s := w.stream()
			synctest.Wait()
			if all := w.requests("http://well"); len(all) == 0 || all[len(all)-1].resource != string(s) {
				w.t.Fatal("it is not delivered at once")
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// TestRestart: what waits is sent by the next process, and by another node once the lease of the first is over.
func TestRestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://a")
		var down sync.Mutex
		w.respond = func(context.Context, got) (int, error) {
			if down.TryLock() {
				return 503, nil
			}
			return 200, nil
		}
		stop := w.run("node")
		s := w.stream()
		synctest.Wait()
		stop()
		w.change(s)
		time.Sleep(time.Minute)
		stop = w.run("node")
		time.Sleep(time.Minute)
		stop()
		text := ""
		for _, g := range w.requests("http://a") {
			text += fmt.Sprintf("%d/%d ", g.number, g.attempts)
		}
		if text != "1/0 1/1 2/0 " {
			w.t.Errorf("requests %s", text)
		}
	})
}

// TestTestEvent goes to the endpoint that is tested alone, whatever it wants.
func TestTestEvent(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		tested := w.hook("http://a", "video.asset.ready")
		w.hook("http://b")
		defer w.run("node")()
		e, err := w.hooks.Test(w.t.Context(), env, tested.ID, time.Now())
		w.must(err)
		if e.Sequence == 0 || e.Number != 1 {
			w.t.Errorf("it is told as event %d, number %d of the webhook", e.Sequence, e.Number)
		}
		time.Sleep(time.Second)
		if a := w.requests("http://a"); len(a) != 1 || a[0].id != e.ID || len(w.requests("http://b")) != 0 {
			w.t.Errorf("sent %+v and %+v", a, w.requests("http://b"))
		}
	})
}
