package retain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/control/retention"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/worker/retain"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

const day = 24 * time.Hour

// world is one with the jobs of retention, and a policy that deletes what is older than ten days.
type world struct {
	*workertest.World

	policies *retention.Service
	deleted  []int64
	ahead    time.Duration // of the worker's clock to the database's
	retired  retired
}

// timed has a database whose clock is that of the test.
type timed struct {
	retention.Store

	now func() time.Time
}

func (t timed) Now(context.Context) (time.Time, error) { return t.now(), nil }

// retired deletes assets, and may be kept from it.
type retired struct {
	*asset.Work

	before func(a id.Asset) error
}

func (r *retired) Retire(ctx context.Context, a id.Asset, gone func(*asset.Asset) bool, now time.Time) error {
	if r.before != nil {
		if err := r.before(a); err != nil {
			return err
		}
	}
	return r.Work.Retire(ctx, a, gone, now)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: workertest.New(t, workertest.Options{})}
	store := timed{db.Retention(w.DB), w.Now}
	w.policies, w.retired.Work = retention.New(store), w.Work
	_, err := w.DB.Access().EnsureDefault(w.Ctx(), access.Environment{
		ID: workertest.Env, Name: "Default", Kind: "production", CreatedAt: w.Now(),
	})
	w.Must(err)
	worker := &retain.Worker{
		Store: store, Assets: &w.retired, Objects: w.Store, Logger: slog.New(slog.DiscardHandler),
		Now:     func() time.Time { return w.Now().Add(w.ahead) },
		Deleted: func(bytes int64) { w.deleted = append(w.deleted, bytes) },
	}
	for _, h := range worker.Handlers() {
		w.Handlers[h.Kind] = h
	}
	return w
}

// set turns retention on and lets the grace period pass.
func (w *world) set(l retention.Limits) {
	w.T.Helper()
	_, err := w.policies.Set(w.Ctx(), workertest.Env, l, time.Hour)
	w.Must(err)
	w.pass(2 * time.Hour)
}

func (w *world) pass(d time.Duration) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Clock = w.Clock.Add(d)
}

func (w *world) there(a asset.Asset) bool {
	w.T.Helper()
	_, err := w.Find(w.Ctx(), a.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		w.T.Fatal(err)
	}
	return err == nil
}

// plain makes an asset of nothing but a row.
func (w *world) plain(name string) asset.Asset {
	w.T.Helper()
	a := asset.Asset{
		ID: id.Asset(name), Environment: workertest.Env, Status: asset.Errored, Media: id.Media(name),
		CreatedAt: w.Now().Truncate(time.Millisecond), UpdatedAt: w.Now().Truncate(time.Millisecond),
	}
	w.Must(w.DB.Assets().Insert(w.Ctx(), asset.Change{Asset: a}))
	return a
}

// TestRetention deletes a source and not the clip of it, which plays on, with the event and the audit entry of a
// deletion; what remains is measured again.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.NewRecording(6, w.Now())
	w.Must(w.EndLive(w.Ctx(), source.ID, asset.Writer{}, nil, w.Now()))
	w.Must(w.DoAll())
	w.pass(5 * day)
	clip := w.ClipOf(source, 2, nil)
	w.Must(w.DoAll())
	exempt := w.plain("exempt")
	w.Must(w.Do(retention.Measure(), 1))
	stored, err := db.Retention(w.DB).Stored(w.Ctx(), workertest.Env)
	if err != nil || stored.Unmeasured != 0 || stored.Bytes == 0 {
		t.Fatalf("measured %+v, %v", stored, err)
	}
	w.set(retention.Limits{MaxAgeDays: 10})
	w.Must(w.Do(retention.Run(workertest.Env), 1))
	if !w.there(source) {
		t.Fatal("deleted too early")
	}
	w.pass(6 * day)
	w.Must(w.Do(retention.Run(workertest.Env), 1))
	if w.there(source) || !w.there(clip) || !w.there(exempt) || len(w.deleted) != 1 || w.deleted[0] == 0 {
		t.Fatalf("source %v, clip %v; counted %v", w.there(source), w.there(clip), w.deleted)
	}
	w.Must(w.Do(retention.Measure(), 1)) // before the files are deleted
	w.Must(w.DoAll())                    // media.purge
	if frames := w.Samples(w.Asset(clip.ID))["v"]; frames == 0 {
		t.Error("the clip has no pictures any more")
	}
	w.Must(w.Do(retention.Measure(), 1))
	less, err := db.Retention(w.DB).Stored(w.Ctx(), workertest.Env)
	if err != nil || less.Bytes == 0 || less.Bytes >= stored.Bytes {
		t.Errorf("stored are %d bytes, before %d; %v", less.Bytes, stored.Bytes, err)
	}
	events, err := w.DB.ListEvents(w.Ctx(), event.Query{Limit: 100, Types: []string{asset.EventDeleted}})
	if err != nil || len(events) != 1 || events[0].ObjectID != string(source.ID) {
		t.Errorf("events %+v, %v", events, err)
	}
	log, err := w.DB.AuditLog(w.Ctx(), audit.Query{Limit: 9, Operation: "delete-asset"})
	if err != nil || len(log) != 1 || log[0].Actor != (audit.Actor{Type: "retention"}) ||
		log[0].Environment != workertest.Env ||
		log[0].Resource != (audit.Resource{Type: "asset", ID: string(source.ID)}) {
		t.Errorf("audit log %+v, %v", log, err)
	}
	w.Must(w.SetExempt(w.Ctx(), workertest.Env, exempt.ID, true, w.Now()))
	w.pass(90 * day)
	w.Must(w.Do(retention.Run(workertest.Env), 1))
	w.Must(w.DoAll())
	if w.there(clip) || !w.there(exempt) {
		t.Errorf("clip %v, exempt %v", w.there(clip), w.there(exempt))
	}
	w.NothingLeft()
}

// TestRetentionOfWrongClock: a node whose clock is ahead deletes nothing before the database's time, neither within the
// grace period nor by age.
func TestRetentionOfWrongClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ahead = 30 * day
	old := w.plain("old")
	w.pass(20 * day)
	young := w.plain("young")
	_, err := w.policies.Set(w.Ctx(), workertest.Env, retention.Limits{MaxAgeDays: 10}, time.Hour)
	w.Must(err)
	w.Must(w.Do(retention.Run(workertest.Env), 1))
	if !w.there(old) {
		t.Error("deleted within the grace period")
	}
	w.pass(2 * time.Hour)
	w.Must(w.Do(retention.Run(workertest.Env), 1))
	if w.there(old) || !w.there(young) {
		t.Errorf("after the grace period: old %v, young %v", w.there(old), w.there(young))
	}
}

// TestRetentionChangesMeanwhile: what happens to the policy or to an asset while a run deletes counts at once, and a
// run that ends in the middle is gone on with.
func TestRetentionChangesMeanwhile(t *testing.T) {
	t.Parallel()
	crash := errors.New("the process ends")
	for name, tt := range map[string]struct {
		before func(w *world) error // the second one is deleted
		want   error
		left   []string // when the run has ended
		end    []string // when another one has
	}{
		"turned off": {func(w *world) error {
			return w.policies.TurnOff(w.Ctx(), workertest.Env)
		}, nil, []string{"c"}, []string{"c"}},
		"changed": {func(w *world) error {
			_, err := w.policies.Set(w.Ctx(), workertest.Env, retention.Limits{MaxAgeDays: 10}, time.Hour)
			return err
		}, nil, []string{"c"}, []string{"c"}},
		"exempted": {func(w *world) error {
			return w.SetExempt(w.Ctx(), workertest.Env, "b", true, w.Now())
		}, nil, []string{"b"}, []string{"b"}},
		"deleted by somebody": {func(w *world) error {
			return w.Delete(w.Ctx(), workertest.Env, "b", w.Now())
		}, nil, nil, nil},
		"ended": {func(*world) error { return crash }, crash, []string{"b", "c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, name := range []string{"a", "b", "c"} {
				w.plain(name)
			}
			w.pass(20 * day)
			w.set(retention.Limits{MaxAgeDays: 10})
			w.retired.before = func(a id.Asset) error {
				if a == "b" {
					w.retired.before = nil
					return tt.before(w)
				}
				return nil
			}
			left := func() (names []string) {
				for _, name := range []string{"a", "b", "c"} {
					if w.there(asset.Asset{ID: id.Asset(name)}) {
						names = append(names, name)
					}
				}
				return names
			}
			if err := w.Do(retention.Run(workertest.Env), 1); !errors.Is(err, tt.want) {
				t.Fatal(err)
			}
			if got := left(); !slices.Equal(got, tt.left) {
				t.Errorf("left %q, want %q", got, tt.left)
			}
			w.Must(w.Do(retention.Run(workertest.Env), 2))
			if got := left(); !slices.Equal(got, tt.end) {
				t.Errorf("in the end left %q, want %q", got, tt.end)
			}
		})
	}
}

// TestRetentionInBatches gives the place of the queue back after a hundred deletions.
func TestRetentionInBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 101 {
		w.plain(string(rune('a'+i/26)) + string(rune('a'+i%26)))
	}
	w.pass(20 * day)
	w.set(retention.Limits{MaxAgeDays: 10})
	var later *job.SnoozeError
	if err := w.Do(retention.Run(workertest.Env), 1); !errors.As(err, &later) || len(w.deleted) != 100 {
		t.Fatalf("%d deleted, %v", len(w.deleted), err)
	}
	w.Must(w.Do(retention.Run(workertest.Env), 1))
	if len(w.deleted) != 101 {
		t.Errorf("%d deleted", len(w.deleted))
	}
}

// TestMeasure measures what has come or has changed, and nothing twice.
func TestMeasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ReadyAsset(filmtest.Usual(t, "small.mp4"))
	w.Must(w.Do(retention.Measure(), 1))
	all, err := db.Retention(w.DB).Candidates(w.Ctx(), workertest.Env, retention.Place{}, 9)
	var sum int64
	for _, key := range w.Objects() {
		info, failed := w.Store.Stat(w.Ctx(), key)
		w.Must(failed)
		sum += info.Size
	}
	if err != nil || len(all) != 1 || sum == 0 || all[0].Media[0].Bytes != sum {
		t.Fatalf("%+v, %v; stored are %d bytes", all, err, sum)
	}
	key := "media/" + string(all[0].Asset.Media) + "/more.mp4"
	w.Must(w.Store.Put(w.Ctx(), key, bytes.NewReader(make([]byte, 1000))))
	measured := func() int64 {
		t.Helper()
		w.Must(w.Do(retention.Measure(), 1))
		stored, err := db.Retention(w.DB).Stored(w.Ctx(), workertest.Env)
		w.Must(err)
		return stored.Bytes
	}
	if got := measured(); got != sum {
		t.Errorf("without a change of the asset it is measured again: %d", got)
	}
	w.pass(31 * day)
	if got := measured(); got != sum+1000 {
		t.Errorf("after a month it is not measured again: %d, not %d", got, sum+1000)
	}
}

// unlisted is a store that does not list what begins with a prefix.
type unlisted struct {
	blob.Store

	prefix string
	err    error
}

func (u unlisted) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if strings.HasPrefix(prefix, u.prefix) {
		return func(yield func(string, error) bool) { yield("", u.err) }
	}
	return u.Store.List(ctx, prefix)
}

// TestMeasureGoesOn: media that can't be listed keep no others from being measured.
func TestMeasureGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 60 { // more than are measured at a time
		w.plain(fmt.Sprintf("a%02d", i))
	}
	w.plain("b")
	w.plain("c")
	refused := errors.New("refused")
	worker := &retain.Worker{
		Store: timed{db.Retention(w.DB), w.Now}, Objects: unlisted{w.Store, "media/a", refused}, Now: w.Now,
	}
	for _, h := range worker.Handlers() {
		w.Handlers[h.Kind] = h
	}
	if err := w.Do(retention.Measure(), 1); !errors.Is(err, refused) {
		t.Errorf("measure: %v", err)
	}
	stored, err := db.Retention(w.DB).Stored(w.Ctx(), workertest.Env)
	if err != nil || stored.Unmeasured != 60 {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

type policies struct {
	retention.Store
	all []retention.Policy
}

func (policies) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (p policies) Policies(context.Context) ([]retention.Policy, error) { return p.all, nil }

type queue struct{ got []string }

func (q *queue) Enqueue(_ context.Context, jobs ...job.Insert) error {
	for _, j := range jobs {
		q.got = append(q.got, j.Kind+" "+j.Key)
	}
	return nil
}

// TestClock asks for a run of each policy whose grace period is over, and for media to be measured.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		c := &retain.Clock{
			Store: policies{all: []retention.Policy{
				{Environment: "a", StartsAt: time.Now()}, {Environment: "b", StartsAt: time.Now().Add(time.Minute)},
			}},
			Queue: q, Logger: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		_ = c.Run(ctx)
		want := []string{
			"retention.measure all", "retention.run a", "retention.measure all", "retention.run a", "retention.run b",
		}
		if !slices.Equal(q.got, want) {
			t.Errorf("asked for %q", q.got)
		}
	})
}
