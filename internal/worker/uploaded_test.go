package worker_test

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
)

// uploaded makes the asset of a file that lies in the store already.
func (w *world) uploaded(path string) asset.Asset {
	w.t.Helper()
	m := id.Media(id.New())
	f, err := os.Open(path)
	w.must(err)
	w.must(w.store.Store.Put(w.ctx(), objectkey.SourceFile(m), f))
	w.must(f.Close())
	c, err := w.Uploaded(asset.NewUpload{Upload: "u", Environment: env, Options: assetopt.Options{}, Media: m}, w.now())
	w.must(err)
	w.must(w.jobs.Insert(w.ctx(), c))
	w.handle[asset.JobUploadFail] = job.Handler{Work: func(context.Context, job.Job) error { return nil }} // the upload's own

	_ = w.work() // what can't be made says so
	return w.find(c.Asset.ID)
}

// TestUploadedFiles: one that plays as it is stays where it is, one that has to be unpacked goes when that is done, and of one that can't be
// played nothing stays.
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
		"MP4":      {clip(t, "a.mp4"), asset.Ready, true},
		"Matroska": {clip(t, "a.mkv"), asset.Ready, false},
		"text":     {text, asset.Errored, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			a := w.uploaded(tt.path)
			if a.Status != tt.status || a.Origin != asset.FromUpload {
				t.Errorf("asset is %s: %+v", a.Status, a.Errors)
			}
			stored := w.objects()
			if slices.Contains(stored, objectkey.SourceFile(a.Media)) != tt.stays || tt.status == asset.Errored && len(stored) > 0 {
				t.Errorf("stored: %v", stored)
			}
			w.nothingLeft()
		})
	}
}
