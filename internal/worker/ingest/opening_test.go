package ingest_test

import (
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/encode"
	"millrace/internal/mediastore"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// TestBeginningIsPlayedFirst: what is played as it is can be watched while its decoder is tried. When nothing decodes
// the asset is errored, and nothing of it is left.
func TestBeginningIsPlayedFirst(t *testing.T) {
	t.Parallel()
	bare := filmtest.Args(filmtest.Sound("13"), []string{"-c:a", "aac"})
	for name, tt := range map[string]struct {
		args    []string
		listed  int    // segments
		instead string // of trying to decode; empty: nothing
		want    string // of the asset's error; empty: it is ready
	}{
		"a film":     {filmtest.Video(), 3, "", ""},
		"a moment":   {filmtest.Args(filmtest.Picture("3"), filmtest.Sound("3"), filmtest.H264), 2, "", ""},
		"sound":      {bare, 3, "", ""},
		"no picture": {filmtest.Video(), 3, "exit 1", "nothing of the file's video can be decoded"},
		"no sound":   {bare, 3, "exit 1", "nothing of the file's audio can be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := workertest.Options{Folder: true}
			if tt.instead != "" {
				o.Engine = hampered(t, decodes, tt.instead, encode.DefaultBounds(), 0)
			}
			w := newWorld(t, o)
			a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(filmtest.File(t, "a.mp4", tt.args...))})
			err := w.DoAll()
			a = w.Asset(a.ID)
			if len(w.Jobs.Grew) == 0 {
				t.Fatal("its beginning was not listed")
			}
			first := w.Jobs.Grew[0]
			as := first.Asset
			line, bad := mediastore.FromRows(first.Entries)
			w.Must(bad)
			if as.Status != asset.Preparing || len(line.Marks) != tt.listed || as.Facts.Duration < 2.9 {
				t.Errorf("%s with %d segments of %g s", as.Status, len(line.Marks), as.Facts.Duration)
			}
			if tt.want != "" {
				if a.Status != asset.Errored || len(w.Objects()) > 0 ||
					!strings.Contains(a.Errors.Messages[0], tt.want) {
					t.Errorf("the asset is %s (%+v, %v), stored: %v", a.Status, a.Errors, err, w.Objects())
				}
				w.NothingLeft()
				return
			}
			w.Must(err)
			whole, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
			w.Must(err)
			if a.Status != asset.Ready || whole.Target != line.Target {
				t.Errorf("the asset is %s, with a target of %d s behind one of %d", a.Status, whole.Target, line.Target)
			}
			for i, l := range line.Renditions {
				for k := range l.Chunks {
					if l.Chunks[k] != whole.Renditions[i].Chunks[k] {
						t.Errorf("segment %d of %s was listed as %+v and is %+v", k, l.ID, l.Chunks[k],
							whole.Renditions[i].Chunks[k])
					}
				}
			}
			w.NothingLeft()
		})
	}
}
