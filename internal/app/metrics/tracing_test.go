package metrics

import (
	"context"
	"iter"
	"slices"
	"testing"

	"millrace/internal/config"
	"millrace/internal/storage/blob"
)

// bucket is a storage that has a limit, as buckets do.
type bucket struct{ blob.Store }

func (bucket) MaxGrown() int64 { return 83 }

// Objects implements blob.Sized.
func (bucket) Objects(context.Context, string) iter.Seq2[blob.Object, error] {
	return func(yield func(blob.Object, error) bool) { yield(blob.Object{Key: "a"}, nil) }
}

// TestSamplers: each sampler that the setting may name is one.
func TestSamplers(t *testing.T) {
	t.Parallel()
	all := config.Settings()
	i := slices.IndexFunc(all, func(s config.Setting) bool { return s.Foreign == "OTEL_TRACES_SAMPLER" })
	for _, name := range all[i].Words {
		to := config.Traces{Endpoint: "http://collector.test", Sampler: name}
		if _, err := NewTracing(to, "a", "1.2.3", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// folder is one on this machine.
type folder struct{ blob.Store }

func (folder) Path(key string) (string, bool) { return "/" + key, true }

// TestWrappedStorage: a storage that is counted and traced can do what it could before. Without the limit of a bucket
// an upload that is too large would be refused at its end only.
func TestWrappedStorage(t *testing.T) {
	t.Parallel()
	tracing, err := NewTracing(config.Traces{Endpoint: "http://collector.test"}, "a", "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	var nobody *Tracing
	counted := New("1.2.3")
	for name, wrap := range map[string]func(blob.Store) blob.Store{
		"counted": counted.Store,
		"traced":  tracing.Store,
		"both":    func(s blob.Store) blob.Store { return tracing.Store(counted.Store(s)) },
		"neither": nobody.Store,
	} {
		if l, ok := wrap(bucket{}).(blob.Limited); !ok || l.MaxGrown() != 83 {
			t.Errorf("%s, a bucket has lost its limit", name)
		}
		for o, err := range blob.Objects(t.Context(), wrap(bucket{}), "") { // else it is asked for more than it has
			if o.Key != "a" || err != nil {
				t.Errorf("%s, a bucket lists %v, %v", name, o, err)
			}
		}
		if l, ok := wrap(folder{}).(blob.Local); !ok {
			t.Errorf("%s, a folder has lost its paths", name)
		} else if path, _ := l.Path("a"); path != "/a" {
			t.Errorf("%s, a folder has the path %q", name, path)
		}
		if _, ok := wrap(folder{}).(blob.Limited); ok {
			t.Errorf("%s, a folder has a limit", name)
		}
	}
}

// Stat implements blob.Store.
func (folder) Stat(context.Context, string) (blob.Info, error) { return blob.Info{}, nil }

// TestViewersCostNothing: what is read for viewers, who are in no trace, allocates nothing where traces are made.
func TestViewersCostNothing(t *testing.T) { //nolint:paralleltest // counts allocations of the whole process
	tracing, err := NewTracing(config.Traces{Endpoint: "http://collector.test"}, "a", "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := tracing.Store(folder{}), t.Context()
	if n := testing.AllocsPerRun(100, func() {
		if _, failed := s.Stat(ctx, "a"); failed != nil {
			t.Error(failed)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
