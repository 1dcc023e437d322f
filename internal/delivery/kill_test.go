package delivery_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
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

const (
	childURL = "MILLRACE_TEST_CHILD_URL"
	// the step at which it kills itself; 0: it makes no changes and sends what is left.
	childStep = "MILLRACE_TEST_CHILD_STEP"
	childAt   = "MILLRACE_TEST_CHILD_AT"   // what it dies before or after, if it comes to that first
	childStop = "MILLRACE_TEST_CHILD_STOP" // the step at which it begins to stop as a service does; 0: none
	childNode = "MILLRACE_TEST_CHILD_NODE"
	killsEnv  = "MILLRACE_TEST_KILLS"

	// childLease is short, so that what is another node's does not have to be waited for.
	childLease = time.Second
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		s := &steps{at: os.Getenv(childAt)}
		s.last, _ = strconv.ParseInt(os.Getenv(childStep), 10, 64)
		s.stop, _ = strconv.ParseInt(os.Getenv(childStop), 10, 64)
		child(url, s)
	}
	os.Exit(m.Run())
}

// steps counts what a process does, and kills it in the middle of it.
type steps struct {
	last, stop int64
	at         string // dies there too
	stopping   func()
	count      atomic.Int64
}

// deathMark begins the line that says before or after what the process has died.
const deathMark = "!"

func (s *steps) take(what string) {
	switch n := s.count.Add(1); {
	case n == s.last, what == s.at:
		_, _ = fmt.Fprintln(os.Stdout, deathMark+what)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it is dead
	case n == s.stop:
		s.stopping()
	}
}

// around takes a step before and one after a call.
func around[T any](s *steps, what string, call func() (T, error)) (T, error) {
	s.take("before" + what)
	v, err := call()
	s.take("after" + what)
	return v, err
}

// aroundOnly is around for a call that gives nothing but an error.
func aroundOnly(s *steps, what string, call func() error) error {
	_, err := around(s, what, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// mortalOutbox may die before and after each transaction. It is alone while it lives.
type mortalOutbox struct {
	webhook.Outbox

	steps *steps
}

func (m mortalOutbox) Claim(ctx context.Context, node id.Node, _ time.Duration) ([]webhook.Held, error) {
	return around(m.steps, "Claim", func() ([]webhook.Held, error) { return m.Outbox.Claim(ctx, node, childLease) })
}

func (m mortalOutbox) Queue(
	ctx context.Context, node id.Node, list []webhook.Step,
) (map[id.Webhook][]webhook.Pending, error) {
	return around(m.steps, "Queue", func() (map[id.Webhook][]webhook.Pending, error) {
		return m.Outbox.Queue(ctx, node, list)
	})
}

func (m mortalOutbox) Pending(ctx context.Context, w id.Webhook, limit int) ([]webhook.Pending, error) {
	return around(m.steps, "Pending", func() ([]webhook.Pending, error) { return m.Outbox.Pending(ctx, w, limit) })
}

func (m mortalOutbox) Record(
	ctx context.Context, node id.Node, results []webhook.Result, health map[id.Webhook]time.Time,
) error {
	return aroundOnly(m.steps, "Record", func() error { return m.Outbox.Record(ctx, node, results, health) })
}

// ListEvents numbers, on PostgreSQL, what is committed, in a transaction of its own.
func (m mortalOutbox) ListEvents(ctx context.Context, q event.Query) ([]event.Event, error) {
	return around(m.steps, "ListEvents", func() ([]event.Event, error) { return m.Outbox.ListEvents(ctx, q) })
}

func (m mortalOutbox) Attempts(ctx context.Context, w id.Webhook, sequence int64) ([]webhook.Attempt, error) {
	return around(m.steps, "Attempts", func() ([]webhook.Attempt, error) { return m.Outbox.Attempts(ctx, w, sequence) })
}

// SaveWebhook disables an endpoint.
func (m mortalOutbox) SaveWebhook(ctx context.Context, w webhook.Webhook, events ...event.Event) error {
	return aroundOnly(m.steps, "SaveWebhook", func() error { return m.Outbox.SaveWebhook(ctx, w, events...) })
}

func (m mortalOutbox) FailTried(ctx context.Context, w id.Webhook, why webhook.Attempt, limit int) (int, error) {
	return around(m.steps, "FailTried", func() (int, error) { return m.Outbox.FailTried(ctx, w, why, limit) })
}

func (m mortalOutbox) Release(ctx context.Context, node id.Node) error {
	return aroundOnly(m.steps, "Release", func() error { return m.Outbox.Release(ctx, node) })
}

// child is the process that is killed: it changes live streams and sends what happens. It prints each change that is
// committed.
func child(url string, s *steps) {
	ctx := context.Background() //nolint:forbidigo // a process of its own
	fatal := func(err error) {
		if err != nil {
			_, _ = fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
	}
	d, err := db.Open(ctx, db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
	fatal(err)
	sending, stop := context.WithCancel(ctx)
	s.stopping = stop
	sender := delivery.New(delivery.Options{
		Outbox: mortalOutbox{d, s}, Node: id.Node(os.Getenv(childNode)), Now: time.Now,
		Logger: slog.New(slog.DiscardHandler),
		Body: func(_ context.Context, e event.Event, attempts []webhook.Attempt) ([]byte, error) {
			return json.Marshal(sent{e.Resource, e.Number, e.Sequence, e.ID, len(attempts)})
		},
		Post: func(ctx context.Context, address string, _ map[string]string, body []byte) (delivery.Response, error) {
			s.take("beforePost")
			defer s.take("afterPost")
			req, made := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(string(body)))
			fatal(made)
			resp, failed := new(http.Client).Do(req)
			if failed != nil {
				return delivery.Response{}, failed
			}
			return delivery.Response{Status: resp.StatusCode}, resp.Body.Close()
		},
	})
	go func() { _ = d.Run(ctx) }()
	go func() {
		_ = sender.Run(sending)
		os.Exit(0) // it has stopped
	}()
	if s.last == 0 {
		select {}
	}
	streams := live.New(live.Options{Store: d.LiveStreams()})
	list, err := streams.List(ctx, env, live.ListQuery{})
	fatal(err)
	for n := 0; sending.Err() == nil; n++ {
		s.take("beforeChange")
		if len(list) < 3 || n%17 == 16 {
			made, err := streams.Create(ctx, env, live.CreateInput{}, time.Now())
			fatal(err)
			list = append(list, made)
			_, _ = fmt.Fprintln(os.Stdout, made.ID)
			continue
		}
		text, one := strconv.Itoa(n), list[n%len(list)].ID
		_, err := streams.Patch(ctx, env, one, live.PatchInput{Passthrough: &text}, time.Now())
		fatal(err)
		_, _ = fmt.Fprintln(os.Stdout, one)
	}
	select {} // until it has stopped
}

// receiver is an endpoint that checks the order of what it gets: each resource's events one after the other, the last
// one possibly again.
type receiver struct {
	t    *testing.T
	hook id.Webhook

	mu      sync.Mutex
	last    map[string]sent // of each resource
	first   int             // events that came for the first time
	again   int
	gaps    bool // events may be missing between others: it is disabled now and then
	respond func() int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	text, err := io.ReadAll(req.Body)
	var got sent
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil { // its sender was killed in the middle
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[got.Resource]
	switch {
	case got.ID == last.ID && got.Number == last.Number && got.Sequence == last.Sequence:
		r.again++
	case (got.Number == last.Number+1 || r.gaps && got.Number > last.Number) && got.Sequence > last.Sequence:
		r.first++
	default:
		r.t.Errorf("%s: event %+v behind %+v", req.URL.Path, got, last)
	}
	r.last[got.Resource] = got
	w.WriteHeader(r.respond())
}

func (r *receiver) events() (first, again int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first, r.again
}

// TestKills kills the process between any two steps of change, event and delivery, now and then while it stops. Nothing
// is lost, every resource's events come in order, and what comes twice is the same event. An endpoint that is disabled
// by its own word, and enabled again, gets by a replay what it missed. MILLRACE_TEST_KILLS says how often; make
// storm-events does it 300 times.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 20
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		kills = n
	}
	if testing.Short() {
		kills = 5
	}
	dbtest.Each(t, func(t *testing.T, url string) { killed(t, url, kills) })
}

// TestCrashedNode: what a killed node had under way is sent by another one once the lease is over, in its order, and so
// back and forth.
func TestCrashedNode(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	d := dbtest.Open(t, url)
	receivers := receiversOf(t, d)
	for range 3 {
		out, stop := start(t, url, death{last: 100 + rand.Int64N(100)}, "first")
		_, err := io.Copy(io.Discard, out)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		all := len(logOf(t, d))
		_, stop = start(t, url, death{}, "second")
		await(t, receivers, all)
		stop()
	}
}

func killed(t *testing.T, url string, kills int) {
	t.Helper()
	d := dbtest.Open(t, url)
	receivers := receiversOf(t, d)
	leaves := leaving(t, d)
	committed, deaths, disabled := map[string]int{}, map[string]int{}, 0
	for n := range kills {
		out, stop := start(t, url, deathOf(n), "mortal")
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at, died := strings.CutPrefix(lines.Text(), deathMark); died {
				deaths[at]++
				continue
			}
			if strings.Contains(lines.Text(), " ") {
				t.Fatalf("the process says %s", lines.Text())
			}
			committed[lines.Text()]++
		}
		stop()
		if enable(t, d, leaves.hook) {
			disabled++
		}
	}
	t.Logf("killed %v; an endpoint was disabled %d times", deaths, disabled)
	leaves.stays()
	all := logOf(t, d)
	of := map[string]int{}
	for _, e := range all {
		of[e.Resource]++
	}
	for resource, n := range committed {
		if of[resource] < n {
			t.Errorf("%s: %d events of %d changes", resource, of[resource], n)
		}
	}
	_, stop := start(t, url, death{}, "mortal")
	defer stop()
	began := time.Now()
	await(t, receivers, len(all))
	t.Logf("what was left was delivered in %v", time.Since(began))
	leaves.replayed(d)
	began = time.Now()
	await(t, []*receiver{leaves}, len(all))
	t.Logf("all was delivered again in %v", time.Since(began))
	for i, r := range receivers {
		first, again := r.events()
		t.Logf("%d events over %d kills, %d of them again to endpoint %d", first, kills, again, i)
	}
}

// receiversOf are two endpoints, which refuse something now and then.
func receiversOf(t *testing.T, d *db.DB) (receivers []*receiver) {
	t.Helper()
	for i := range 2 {
		receivers = append(receivers, receiverOf(t, d, strconv.Itoa(i), http.StatusServiceUnavailable, 100))
	}
	return receivers
}

// leaving is an endpoint that wants no more events now and then.
func leaving(t *testing.T, d *db.DB) *receiver {
	t.Helper()
	r := receiverOf(t, d, "leaves", http.StatusGone, 10)
	r.gaps = true
	return r
}

// receiverOf is an endpoint that refuses one event of so many with a status.
func receiverOf(t *testing.T, d *db.DB, name string, refuses, of int) *receiver {
	t.Helper()
	r := &receiver{t: t, last: map[string]sent{}, respond: func() int {
		if rand.IntN(of) == 0 {
			return refuses
		}
		return http.StatusOK
	}}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	in := webhook.CreateInput{Address: srv.URL + "/" + name}
	h, err := webhook.New(d, nil).Create(t.Context(), env, in, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r.hook = h.ID
	return r
}

// enable enables an endpoint, and reports whether it was disabled.
func enable(t *testing.T, d *db.DB, w id.Webhook) bool {
	t.Helper()
	hooks, yes := webhook.New(d, nil), true
	h, err := hooks.Get(t.Context(), env, w)
	if err == nil && !h.Enabled {
		_, err = hooks.Patch(t.Context(), env, w, webhook.PatchInput{Enabled: &yes}, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return !h.Enabled
}

// stays has the endpoint take everything from now on.
func (r *receiver) stays() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond = func() int { return http.StatusOK }
}

// replayed waits until nothing waits for the endpoint, and has all events sent to it again, without a gap.
func (r *receiver) replayed(d *db.DB) {
	r.t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	for waiting := 1; waiting > 0; {
		select {
		case <-look.C:
		case <-late.C:
			r.t.Fatalf("%d events wait for endpoint %s", waiting, r.hook)
		}
		list, err := d.Deliveries(r.t.Context(), r.hook, webhook.DeliveryQuery{State: webhook.Waiting, Limit: 10})
		if err != nil {
			r.t.Fatal(err)
		}
		waiting = len(list)
	}
	r.mu.Lock()
	r.last, r.first, r.gaps = map[string]sent{}, 0, false
	r.mu.Unlock()
	if _, err := webhook.New(d, nil).ReplaySince(r.t.Context(), env, r.hook, time.Unix(0, 0)); err != nil {
		r.t.Fatal(err)
	}
}

// await waits until each endpoint has had so many events. It gives up when nothing has come for a while, not when many
// come slowly.
func await(t *testing.T, receivers []*receiver, events int) {
	t.Helper()
	const patience = 3 * time.Minute
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, r := range receivers {
		for had := -1; ; {
			first, again := r.events()
			if first >= events {
				break
			}
			if first+again > had {
				had = first + again
				late.Reset(patience)
			}
			select {
			case <-look.C:
			case <-late.C:
				t.Fatalf("%d of %d events were delivered to endpoint %s, and no other for %v", first, events, r.hook,
					patience)
			}
		}
	}
}

// death is where a process dies: see childStep, childAt and childStop.
type death struct {
	last, stop int64
	at         string
}

// deathOf is any step for every other process; the others die, in turn, around what seldom happens.
func deathOf(n int) death {
	if n%2 == 0 {
		return death{last: 1 + rand.Int64N(150)}
	}
	seldom := []string{"Record", "ListEvents", "SaveWebhook", "FailTried", "Attempts", "Release"}
	d := death{last: 300, at: []string{"before", "after"}[rand.IntN(2)] + seldom[n/2%len(seldom)]}
	if strings.HasSuffix(d.at, "Release") {
		d.stop = 1 + rand.Int64N(150)
	}
	return d
}

// start starts the process; stop ends it if nothing else has.
func start(t *testing.T, url string, end death, node string) (out io.Reader, stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childNode+"="+node, childAt+"="+end.at,
		childStep+"="+strconv.FormatInt(end.last, 10), childStop+"="+strconv.FormatInt(end.stop, 10))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// logOf is all that has happened.
func logOf(t *testing.T, d *db.DB) (all []event.Event) {
	t.Helper()
	for after := int64(0); ; after = all[len(all)-1].Sequence {
		some, err := d.ListEvents(t.Context(), event.Query{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}
