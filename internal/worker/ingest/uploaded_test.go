package ingest_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// uploaded makes the asset of a file that lies in the store already.
func (w *world) uploaded(path string) asset.Asset {
	w.T.Helper()
	m := id.Media(id.New())
	f, err := os.Open(path)
	w.Must(err)
	w.Must(w.Store.Store.Put(w.Ctx(), objectkey.SourceFile(m), f))
	w.Must(f.Close())
	c, err := w.Uploaded(asset.NewUpload{
		Upload: "u", Environment: workertest.Env, Options: assetopt.Options{}, Media: m,
	}, w.Now())
	w.Must(err)
	w.Must(w.Jobs.Insert(w.Ctx(), c))
	// the upload's own
	w.Handlers[asset.JobUploadFail] = job.Handler{Work: func(context.Context, job.Job) error { return nil }}

	_ = w.DoAll() // what can't be made says so
	return w.Asset(c.Asset.ID)
}

// TestUploadedFiles: one that plays as it is stays where it is, one that has to be unpacked goes when that is done, and
// of one that can't be played nothing stays.
func TestUploadedFiles(t *testing.T) {
	t.Parallel()
	text := t.TempDir() + "/a.mp4"
	if err := os.WriteFile(text, []byte("no film\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path   string
		status asset.Status
		stays  bool
	}{
		"MP4":      {filmtest.Usual(t, "a.mp4"), asset.Ready, true},
		"Matroska": {filmtest.Usual(t, "a.mkv"), asset.Ready, false},
		"text":     {text, asset.Errored, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			a := w.uploaded(tt.path)
			if a.Status != tt.status || a.Origin != asset.FromUpload {
				t.Errorf("asset is %s: %+v", a.Status, a.Errors)
			}
			stored := w.Objects()
			if slices.Contains(stored, objectkey.SourceFile(a.Media)) != tt.stays ||
				tt.status == asset.Errored && len(stored) > 0 {
				t.Errorf("stored: %v", stored)
			}
			w.NothingLeft()
		})
	}
}
