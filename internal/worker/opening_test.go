package worker_test

import (
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/encode"
	"millrace/internal/mediastore"
)

// TestBeginningIsPlayedFirst: what is played as it is can be watched while its decoder is tried. When nothing decodes
// the asset is errored, and nothing of it is left.
func TestBeginningIsPlayedFirst(t *testing.T) {
	t.Parallel()
	bare := args(sound("13"), []string{"-c:a", "aac"})
	for name, tt := range map[string]struct {
		args    []string
		listed  int    // segments
		instead string // of trying to decode; empty: nothing
		want    string // of the asset's error; empty: it is ready
	}{
		"a film":     {video(), 3, "", ""},
		"a moment":   {args(picture("3"), sound("3"), h264), 2, "", ""},
		"sound":      {bare, 3, "", ""},
		"no picture": {video(), 3, "exit 1", "nothing of the file's video can be decoded"},
		"no sound":   {bare, 3, "exit 1", "nothing of the file's audio can be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{folder: true}
			if tt.instead != "" {
				o.engine = hampered(t, decodes, tt.instead, encode.DefaultBounds(), 0)
			}
			w := newWorld(t, o)
			a := w.create(assetopt.Input{URL: w.site.offer(ffmpeg(t, "a.mp4", tt.args...))})
			err := w.work()
			a = w.find(a.ID)
			if len(w.jobs.grew) == 0 {
				t.Fatal("its beginning was not listed")
			}
			first := w.jobs.grew[0]
			as := first.Asset
			line, bad := mediastore.FromRows(first.Entries)
			w.must(bad)
			if as.Status != asset.Preparing || len(line.Marks) != tt.listed || as.Facts.Duration < 2.9 {
				t.Errorf("%s with %d segments of %g s", as.Status, len(line.Marks), as.Facts.Duration)
			}
			if tt.want != "" {
				if a.Status != asset.Errored || len(w.objects()) > 0 ||
					!strings.Contains(a.Errors.Messages[0], tt.want) {
					t.Errorf("the asset is %s (%+v, %v), stored: %v", a.Status, a.Errors, err, w.objects())
				}
				w.nothingLeft()
				return
			}
			w.must(err)
			whole, err := mediastore.Timeline(w.ctx(), w.store, w.Work, a)
			w.must(err)
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
			w.nothingLeft()
		})
	}
}
