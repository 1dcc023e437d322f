package metrics

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// The outcomes of an attempt.
const done, putOff, triedAgain, refused, failed, panicked = "done", "put_off", "tried_again", "refused", "failed",
	"panicked"

// Handlers counts the attempts of jobs. Each series is there from the beginning: Prometheus sees no increase in one
// that begins with 1.
func (m *Metrics) Handlers(all []job.Handler) []job.Handler {
	out := make([]job.Handler, len(all))
	for i, h := range all {
		m.working.WithLabelValues(h.Kind)
		for _, outcome := range []string{done, putOff, triedAgain, refused, failed, panicked} {
			m.jobs.WithLabelValues(h.Kind, outcome)
		}
		work := h.Work
		h.Work = func(ctx context.Context, j job.Job) (err error) {
			running := m.working.WithLabelValues(h.Kind)
			running.Inc()
			outcome := panicked
			defer func() {
				running.Dec()
				m.jobs.WithLabelValues(h.Kind, outcome).Inc()
			}()
			err = work(ctx, j)
			outcome = outcomeOf(j, err)
			return err
		}
		out[i] = h
	}
	return out
}

func outcomeOf(j job.Job, err error) string {
	_, snoozed := errors.AsType[*job.SnoozeError](err)
	switch {
	case err == nil:
		return done
	case snoozed, j.Waits(err):
		return putOff
	case !fault.Permanent(err) && !j.Last():
		return triedAgain
	case fault.Outside(err) && !j.Deadly():
		return refused
	}
	return failed
}

// Store measures what s takes.
func (m *Metrics) Store(s blob.Store) blob.Store {
	t := &store{s, m}
	if local, ok := s.(blob.Local); ok {
		return &localStore{t, local}
	}
	if limited, ok := s.(blob.Limited); ok {
		return &limitedStore{t, limited}
	}
	return t
}

type store struct {
	blob.Store

	m *Metrics
}

// localStore keeps the further ability of a folder.
type localStore struct {
	*store
	blob.Local
}

// limitedStore keeps that of a bucket.
type limitedStore struct {
	*store
	blob.Limited
}

func (s *store) note(operation string, began time.Time, err error) {
	outcome := "ok"
	switch {
	case err == nil:
	case fault.Is(err, fault.NotFound):
		outcome = "absent"
	default:
		outcome = "error"
	}
	s.m.storage.WithLabelValues(operation, outcome).Observe(time.Since(began).Seconds())
}

// Objects implements blob.Sized: what s tells, if it does, it tells here, too.
func (s *store) Objects(ctx context.Context, prefix string) iter.Seq2[blob.Object, error] {
	return blob.Objects(ctx, s.Store, prefix)
}

// Put implements blob.Store.
func (s *store) Put(ctx context.Context, key string, r io.Reader) error {
	began := time.Now()
	err := s.Store.Put(ctx, key, r)
	s.note("put", began, err)
	return err
}

// PutNew implements blob.Store.
func (s *store) PutNew(ctx context.Context, key string, data []byte) (bool, error) {
	began := time.Now()
	created, err := s.Store.PutNew(ctx, key, data)
	s.note("put", began, err)
	return created, err
}

// Get implements blob.Store.
func (s *store) Get(ctx context.Context, key string, off, n int64) (*blob.Reader, error) {
	began := time.Now()
	r, err := s.Store.Get(ctx, key, off, n)
	s.note("get", began, err)
	return r, err
}

// Stat implements blob.Store.
func (s *store) Stat(ctx context.Context, key string) (blob.Info, error) {
	began := time.Now()
	info, err := s.Store.Stat(ctx, key)
	s.note("stat", began, err)
	return info, err
}

// Delete implements blob.Store.
func (s *store) Delete(ctx context.Context, keys ...string) error {
	began := time.Now()
	err := s.Store.Delete(ctx, keys...)
	s.note("delete", began, err)
	return err
}

// Link implements blob.Store.
func (s *store) Link(ctx context.Context, key string, f *os.File) error {
	began := time.Now()
	err := s.Store.Link(ctx, key, f)
	s.note("link", began, err)
	return err
}

// Adopt implements blob.Store.
func (s *store) Adopt(ctx context.Context, key, path string) error {
	began := time.Now()
	err := s.Store.Adopt(ctx, key, path)
	s.note("adopt", began, err)
	return err
}
