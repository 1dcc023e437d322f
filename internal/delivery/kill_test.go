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
	childURL  = "MILLRACE_TEST_CHILD_URL"
	childStep = "MILLRACE_TEST_CHILD_STEP" // the step at which it kills itself; 0: it makes no changes and sends what is left
	childNode = "MILLRACE_TEST_CHILD_NODE"
	killsEnv  = "MILLRACE_TEST_KILLS"

	// childLease is short, so that what is another node's does not have to be waited for.
	childLease = time.Second
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		last, _ := strconv.ParseInt(os.Getenv(childStep), 10, 64)
		child(url, last)
	}
	os.Exit(m.Run())
}

// steps counts what a process does, and kills it in the middle of it.
type steps struct {
	last  int64
	count atomic.Int64
}

func (s *steps) take() {
	if s.count.Add(1) == s.last {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it is dead
	}
}

// around takes a step before and one after a call.
func around[T any](s *steps, call func() (T, error)) (T, error) {
	s.take()
	v, err := call()
	s.take()
	return v, err
}

// mortalOutbox may die before and after each transaction. It is alone while it lives.
type mortalOutbox struct {
	webhook.Outbox

	steps *steps
}

func (o mortalOutbox) Claim(ctx context.Context, node id.Node, _ time.Duration) ([]webhook.Held, error) {
	return around(o.steps, func() ([]webhook.Held, error) { return o.Outbox.Claim(ctx, node, childLease) })
}

func (o mortalOutbox) Queue(
	ctx context.Context, node id.Node, list []webhook.Step,
) (map[id.Webhook][]webhook.Pending, error) {
	return around(o.steps, func() (map[id.Webhook][]webhook.Pending, error) { return o.Outbox.Queue(ctx, node, list) })
}

func (o mortalOutbox) Pending(ctx context.Context, w id.Webhook, limit int) ([]webhook.Pending, error) {
	return around(o.steps, func() ([]webhook.Pending, error) { return o.Outbox.Pending(ctx, w, limit) })
}

func (o mortalOutbox) Record(ctx context.Context, node id.Node, results []webhook.Result, health map[id.Webhook]time.Time) error {
	_, err := around(o.steps, func() (int, error) { return 0, o.Outbox.Record(ctx, node, results, health) })
	return err
}

// child is the process that is killed: it changes live streams and sends what happens. It prints each change that is committed.
func child(url string, last int64) {
	ctx := context.Background() //nolint:forbidigo // a process of its own
	fatal := func(err error) {
		if err != nil {
			_, _ = fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
	}
	d, err := db.Open(ctx, db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
	fatal(err)
	s := &steps{last: last}
	sender := delivery.New(delivery.Options{
		Outbox: mortalOutbox{d, s}, Node: id.Node(os.Getenv(childNode)), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Body: func(_ context.Context, e event.Event, attempts []webhook.Attempt) ([]byte, error) {
			return json.Marshal(sent{e.Resource, e.Number, e.Sequence, e.ID, len(attempts)})
		},
		Post: func(ctx context.Context, address string, _ map[string]string, body []byte) (delivery.Response, error) {
			s.take()
			defer s.take()
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
	go func() { _ = sender.Run(ctx) }()
	if last == 0 {
		select {}
	}
	streams := live.New(live.Options{Store: d.LiveStreams()})
	list, err := streams.List(ctx, env, live.ListQuery{})
	fatal(err)
	for n := 0; ; n++ {
		s.take()
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
}

// receiver is an endpoint that checks the order of what it gets: each resource's events one after the other, the last one possibly again.
type receiver struct {
	t *testing.T

	mu      sync.Mutex
	last    map[string]sent // of each resource
	first   int             // events that came for the first time
	again   int
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
	case got.Number == last.Number+1 && got.Sequence > last.Sequence:
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

// TestKills kills the process between any two steps of change, event and delivery. Nothing is lost, every resource's events come in order,
// and what comes twice is the same event. MILLRACE_TEST_KILLS says how often; make storm-events does it 300 times.
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

// TestCrashedNode: what a killed node had under way is sent by another one once the lease is over, in its order, and so back and forth.
func TestCrashedNode(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	d := dbtest.Open(t, url)
	receivers := receiversOf(t, d)
	for range 3 {
		out, stop := start(t, url, 100+rand.Int64N(100), "first")
		_, err := io.Copy(io.Discard, out)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		all := len(logOf(t, d))
		_, stop = start(t, url, 0, "second")
		await(t, receivers, all)
		stop()
	}
}

func killed(t *testing.T, url string, kills int) {
	t.Helper()
	d := dbtest.Open(t, url)
	receivers := receiversOf(t, d)
	committed := map[string]int{}
	for range kills {
		out, stop := start(t, url, 1+rand.Int64N(150), "mortal")
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), " ") {
				t.Fatalf("the process says %s", lines.Text())
			}
			committed[lines.Text()]++
		}
		stop()
	}
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
	_, stop := start(t, url, 0, "mortal")
	defer stop()
	await(t, receivers, len(all))
	for i, r := range receivers {
		first, again := r.events()
		t.Logf("%d events over %d kills, %d of them again to endpoint %d", first, kills, again, i)
	}
}

// receiversOf are two endpoints, which refuse something now and then.
func receiversOf(t *testing.T, d *db.DB) (receivers []*receiver) {
	t.Helper()
	for i := range 2 {
		r := &receiver{t: t, last: map[string]sent{}, respond: func() int {
			if rand.IntN(100) == 0 {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}}
		srv := httptest.NewServer(r)
		t.Cleanup(srv.Close)
		_, err := webhook.New(d, nil).Create(t.Context(), env, webhook.CreateInput{Address: fmt.Sprintf("%s/%d", srv.URL, i)}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		receivers = append(receivers, r)
	}
	return receivers
}

// await waits until each endpoint has had so many events.
func await(t *testing.T, receivers []*receiver, events int) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	for i, r := range receivers {
		for first, _ := r.events(); first < events; first, _ = r.events() {
			select {
			case <-look.C:
			case <-late.C:
				t.Fatalf("%d of %d events were delivered to endpoint %d", first, events, i)
			}
		}
	}
}

// start starts the process; stop ends it if nothing else has.
func start(t *testing.T, url string, last int64, node string) (out io.Reader, stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childStep+"="+strconv.FormatInt(last, 10), childNode+"="+node)
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
