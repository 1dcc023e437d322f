package workertest

import (
	"bytes"
	"context"
	"errors"

	"millrace/internal/control/asset"
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/ondemand"
	"millrace/internal/mediastore"
	"millrace/internal/storage/blob"
)

// Objects are those of a store, for an ondemand.Library.
type Objects struct{ Store blob.Store }

// Open implements ondemand.Source.
func (o Objects) Open(ctx context.Context, key string) (ondemand.ReaderAtCloser, int64, error) {
	info, err := o.Store.Stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	r, err := blob.ReaderAt(ctx, o.Store, key, info.Size)
	return r, info.Size, err
}

// Samples plays an asset as it is stored, each segment after the other, and counts what is in each rendition.
func (w *World) Samples(a asset.Asset) map[string]int {
	w.T.Helper()
	t, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
	w.Must(err)
	library := ondemand.NewLibrary(Objects{Store: w.Store}, 1<<20)
	count := map[string]int{}
	for _, l := range t.Renditions {
		next := int64(-1)
		for i, c := range l.Chunks {
			if c.Gap {
				next = -1
				continue
			}
			var data []byte
			if c.Object == "" {
				data, err = library.Chunk(w.Ctx(), *l.Source, int64(i), c)
				w.Must(err)
			} else {
				data = w.ReadObject(c.Object)
				if l.Inits[c.Init].Still {
					data, err = ondemand.Still(data, int64(i), c)
					w.Must(err)
				}
				if l.Source == nil {
					w.ReadObject(l.Inits[c.Init].Object)
				}
			}
			f, err := cmaf.ParseFragments(data)
			if err != nil || len(f) != 1 {
				w.T.Fatalf("%s %d: %d fragments, %v", l.ID, i, len(f), err)
			}
			if int64(f[0].BaseMediaDecodeTime) != c.Time || int64(f[0].Duration) != c.Duration ||
				next >= 0 && c.Time != next {
				w.T.Errorf("%s %d: at %d for %d, want %+v, the one before ended at %d", l.ID, i,
					f[0].BaseMediaDecodeTime, f[0].Duration, c, next)
			}
			next = c.Time + c.Duration
			silence := aac.Silence(aac.LC(l.Inits[c.Init].SampleRate, l.Inits[c.Init].Channels))
			for _, x := range f[0].Samples {
				if !bytes.Equal(x.Data, silence) { // it fills holes
					count[l.ID]++
				}
			}
		}
	}
	return count
}

// ReadObject gives what is stored.
func (w *World) ReadObject(key string) []byte {
	w.T.Helper()
	r, err := w.Store.Get(w.Ctx(), key, 0, -1)
	w.Must(err)
	defer func() { _ = r.Close() }()
	data := make([]byte, r.Size)
	for n := 0; n < len(data); {
		k, err := r.Read(data[n:])
		if n += k; n < len(data) {
			w.Must(err)
		}
	}
	return data
}

// ErrStore is of a Store that tests have fail.
var ErrStore = errors.New("the store is away")
