package ingest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/mediastore"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// A file that browsers would stop at is encoded anew where that can be seen beforehand, and its owner is told. hlscheck
// decodes what is played as strictly as they do.
func TestDamagedIsMended(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file   string
		damage func(t *testing.T, data []byte)
		told   bool
	}{
		"whole": {"a.mp4", func(*testing.T, []byte) {}, false},
		"lengths of NAL units": {"a.mp4", func(t *testing.T, data []byte) {
			for _, i := range []int{70, 200} {
				of(t, data, frame.Video, i)[1] = 0xff
			}
		}, true},
		"types of NAL units": {"a.mp4", func(t *testing.T, data []byte) {
			of(t, data, frame.Video, 70)[4] = 0xff
		}, true},
		"headers of slices": {"a.mp4", func(t *testing.T, data []byte) {
			clear(of(t, data, frame.Video, 70)[5:9])
		}, true},
		"sound": {"a.mp4", func(t *testing.T, data []byte) {
			for i := 50; i < 90; i++ {
				scribble(of(t, data, frame.Audio, i))
			}
		}, true},
		"sound, and what lies deep in pictures": {"a.mp4", func(t *testing.T, data []byte) {
			scribble(of(t, data, frame.Audio, 50))
			for i := 65; i < 85; i++ {
				x := of(t, data, frame.Video, i)
				scribble(x[len(x)/2:])
			}
		}, true},
		"whole MPEG-TS": {"a.ts", func(*testing.T, []byte) {}, false},
		"torn MPEG-TS": {"a.ts", func(_ *testing.T, data []byte) {
			for i := 100; i < len(data)/188; i += 97 { // it becomes null packets, which is as good as none
				copy(data[188*i:], []byte{0x47, 0x1f, 0xff, 0x10})
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			data, err := os.ReadFile(filmtest.Usual(t, tt.file))
			w.Must(err)
			tt.damage(t, data)
			path := filepath.Join(t.TempDir(), tt.file)
			w.Must(os.WriteFile(path, data, 0o600))
			a := w.ReadyAsset(path)
			warnings := w.Jobs.Warn
			if tt.told != (len(warnings) == 1) || tt.told && warnings[0].Type != asset.InputDamaged {
				t.Errorf("told: %v", warnings)
			}
			line, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
			w.Must(err)
			if got := line.Duration().Seconds(); got < 12.7 || got > 13.3 {
				t.Errorf("lasts %.3f s, want 13", got)
			}
			w.conforms(url(w.watch(), a))
		})
	}
}

// of is sample i of an MP4's picture or sound.
func of(t *testing.T, data []byte, kind frame.Kind, i int) []byte {
	t.Helper()
	f, err := mp4.Index(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.Tracks {
		if x.Kind != kind {
			continue
		}
		_, at, err := mp4.Layout(x, i, i+1)
		if err != nil {
			t.Fatal(err)
		}
		return data[at[0].Offset : at[0].Offset+at[0].Length]
	}
	t.Fatal("no such track")
	return nil
}

// scribble changes every third byte.
func scribble(b []byte) {
	for i := 0; i < len(b); i += 3 {
		b[i] ^= 0x5a
	}
}
