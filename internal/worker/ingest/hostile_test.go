package ingest_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/objectkey"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
	"millrace/test/hostile"
)

// TestHostileFiles: whatever a file claims, the asset ends, with a reason that a person understands, and nothing is
// left of the file.
func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it decodes for long")
	}
	t.Parallel()
	good, err := os.ReadFile(filmtest.File(t, "good.mp4",
		filmtest.Args(filmtest.Picture("2"), filmtest.H264, []string{"-an"})...))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, workertest.Options{Stall: 3 * time.Second})
	for _, f := range hostile.Files(good) { //nolint:paralleltest // one job after the other
		t.Run(f.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(path, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(path)})
			_ = w.DoAll() // the asset says it
			var memory runtime.MemStats
			if runtime.ReadMemStats(&memory); memory.HeapSys>>20 > 1500 {
				t.Errorf("this test and those beside it have had %d MB of memory", memory.HeapSys>>20)
			}
			a = w.Asset(a.ID)
			w.wantEnded(t, a, f)
		})
	}
}

func (w *world) wantEnded(t *testing.T, a asset.Asset, f hostile.File) {
	t.Helper()
	switch {
	case a.Status == asset.Ready && f.Plays:
		if a.Facts.Duration > 12*3600+1 {
			t.Errorf("it lasts %.0f s", a.Facts.Duration)
		}
		w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
		w.Must(w.DoAll())
	case a.Status != asset.Errored || a.Errors == nil || len(a.Errors.Messages) != 1:
		t.Fatalf("the asset is %s: %+v", a.Status, a.Errors)
	default:
		said := a.Errors.Messages[0]
		if strings.Contains(said, "service") || !strings.Contains(said, f.Want) || strings.Contains(said, w.Scratch) ||
			len(said) > 300 {
			t.Errorf("the reason is %q, want %q", said, f.Want)
		}
	}
	left, err := os.ReadDir(w.Scratch)
	if err != nil || len(left) > 0 {
		t.Errorf("in the scratch folder: %v, %v", left, err)
	}
	for _, key := range w.Objects() {
		if strings.HasPrefix(key, objectkey.Media(a.Media)) {
			t.Errorf("%s is left", key)
		}
	}
}

// TestHostileServers: responses that never end, or that are not what they say.
func TestHostileServers(t *testing.T) { //nolint:tparallel // one job after the other
	t.Parallel()
	w := newWorld(t, workertest.Options{MaxSize: 4 << 20})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 64<<20))
	_ = z.Close()
	for _, f := range []struct { //nolint:paralleltest // one job after the other
		hostile.File
		handle http.HandlerFunc
	}{
		{hostile.File{Name: "endless", Want: "is larger than"}, func(rw http.ResponseWriter, r *http.Request) {
			chunk := bytes.Repeat([]byte{0x47}, 1<<16)
			for r.Context().Err() == nil {
				if _, err := rw.Write(chunk); err != nil {
					return
				}
			}
		}},
		{hostile.File{Name: "packed", Want: "gzip"}, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Encoding", "gzip")
			_, _ = rw.Write(packed.Bytes())
		}},
		{
			hostile.File{Name: "a length of a petabyte", Want: "is larger than"},
			func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Length", "1125899906842624")
				_, _ = rw.Write(make([]byte, 100))
			},
		},
		{hostile.File{Name: "shorter than it says"}, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "100000")
			_, _ = rw.Write(make([]byte, 100))
		}},
	} {
		t.Run(f.Name, func(t *testing.T) {
			a := w.NewAsset(assetopt.Input{URL: w.Site.Handle(f.handle)})
			_ = w.DoAll() // the asset says it
			w.wantEnded(t, w.Asset(a.ID), f.File)
		})
	}
}
