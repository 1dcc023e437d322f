package ondemand_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
)

// one is a store of one file that counts how often it is opened.
type one struct {
	data  []byte
	opens atomic.Int64
}

func (o *one) Open(context.Context, string) (ondemand.ReaderAtCloser, int64, error) {
	o.opens.Add(1)
	return nopCloser{bytes.NewReader(o.data)}, int64(len(o.data)), nil
}

type nopCloser struct{ io.ReaderAt }

func (nopCloser) Close() error { return nil }

func seed(f *testing.F, name string, args ...string) []byte {
	f.Helper()
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil
	}
	path := filepath.Join(f.TempDir(), name)
	out, err := exec.CommandContext(f.Context(), ffmpeg,
		append(append([]string{"-nostdin", "-loglevel", "error"}, args...), path)...).CombinedOutput()
	if err != nil {
		f.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

var tiny = []string{
	"-f", "lavfi", "-i", "color=s=32x32:r=5:d=9", "-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono", "-t", "9", "-c:v",
	"libx264", "-g", "5", "-bf", "2", "-pix_fmt", "yuv420p", "-c:a", "aac",
}

// Whatever a file says of itself, its plan is either refused or gives segments that can be made, with times that fit.
func FuzzPlan(f *testing.F) {
	f.Add(seed(f, "a.mp4", tiny...))
	f.Add(seed(f, "f.mp4", append(tiny, "-movflags", "+frag_keyframe+empty_moov")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := &one{data: data}
		library := ondemand.NewLibrary(store, 1<<20)
		x, err := library.File(t.Context(), "x")
		if err != nil {
			return
		}
		var video, audio *mp4.Track
		for _, tr := range x.Tracks {
			switch tr.Config.Codec {
			case frame.H264:
				video = tr
			case frame.AAC:
				audio = tr
			}
		}
		var idrs []int
		if video != nil {
			if idrs, err = mp4.IDRs(bytes.NewReader(data), video); err != nil {
				return
			}
		}
		p, err := ondemand.Plan(video, audio, idrs, "x")
		if err != nil {
			return
		}
		for _, l := range p.Renditions {
			for i, c := range l.Chunks {
				if c.Duration < 0 || c.Time < 0 || math.Round(l.Seconds(i)) > float64(p.Target) {
					t.Fatalf("%s %d: %+v, target %d", l.ID, i, c, p.Target)
				}
				if c.Gap || i > 20 {
					continue
				}
				b, err := library.Chunk(t.Context(), *l.Source, int64(i), c)
				if err != nil {
					t.Fatalf("%s %d: %v", l.ID, i, err)
				}
				if got, err := cmaf.ParseFragments(b); err != nil || len(got) != 1 ||
					int64(got[0].BaseMediaDecodeTime) != c.Time {
					t.Fatalf("%s %d: %d fragments, %v", l.ID, i, len(got), err)
				}
			}
		}
	})
}

// Whatever comes as a stream is refused or cut into segments whose times fit.
func FuzzStream(f *testing.F) {
	f.Add(seed(f, "f.mp4",
		append(tiny, "-movflags", "+frag_keyframe+empty_moov+default_base_moof", "-frag_duration", "1000000")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var entries []timeline.Entry
		got, err := ondemand.Stream(cmaf.NewReader(bytes.NewReader(data), cmaf.ReaderOptions{}), ondemand.StreamOptions{
			Prefix: "p/",
		}, func(s ondemand.Sealed) error {
			entries = append(entries, s.Entries...)
			return nil
		})
		if err != nil {
			return
		}
		if _, err := timeline.Build(entries); err != nil {
			t.Fatal(err)
		}
		for _, l := range got.Renditions {
			for i, c := range l.Chunks {
				if c.Time < 0 || c.Duration < 0 {
					t.Fatalf("%s %d: %+v", l.ID, i, c)
				}
			}
		}
	})
}

func TestNothingToPlay(t *testing.T) {
	t.Parallel()
	if _, err := ondemand.Plan(nil, nil, nil, "x"); !errors.Is(err, ondemand.ErrNothing) {
		t.Errorf("got %v", err)
	}
	if _, err := ondemand.Stream(cmaf.NewReader(bytes.NewReader(nil), cmaf.ReaderOptions{}),
		ondemand.StreamOptions{Prefix: ""}, nil); !errors.Is(err, ondemand.ErrNothing) {
		t.Errorf("got %v", err)
	}
}

// An index is made once however many ask, and again only when there was no room to keep it.
func TestLibrary(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(ffmpeg(t, "a.mp4", args(picture("5", "10"), sound("5"), h264("10"))...))
	if err != nil {
		t.Fatal(err)
	}
	store := &one{data: data}
	library := ondemand.NewLibrary(store, 10_000)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, asked := library.File(t.Context(), "a")
			if asked != nil {
				t.Error(asked)
			}
		})
	}
	all.Wait()
	first := store.opens.Load()
	if first != 1 {
		t.Errorf("opened %d times", first)
	}
	x, err := library.File(t.Context(), "a")
	if err != nil || store.opens.Load() != first {
		t.Errorf("opened again, %v", err)
	}
	for _, key := range []string{"b", "c", "d", "e", "f", "g", "h"} {
		if _, err := library.File(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if n := int64(10_000) / x.Bytes(); n > 6 {
		t.Fatalf("%d indexes fit", n)
	}
	before := store.opens.Load()
	if _, err := library.File(t.Context(), "a"); err != nil || store.opens.Load() != before+1 {
		t.Errorf("it was kept, or %v", err)
	}
	track := x.Tracks[0]
	for name, src := range map[string]timeline.Source{
		"track": {Object: "a", Track: 99}, "samples": {Object: "a", Track: track.ID},
	} {
		for _, c := range []timeline.Chunk{{From: -1, To: 2}, {From: 0, To: track.Len() + 1}, {From: 3, To: 3}} {
			if _, err := library.Chunk(t.Context(), src, 0, c); !errors.Is(err, ondemand.ErrUnknown) {
				t.Errorf("%s: %v", name, err)
			}
			if _, _, err := library.Segment(t.Context(), src, 0, c); !errors.Is(err, ondemand.ErrUnknown) {
				t.Errorf("%s to copy: %v", name, err)
			}
		}
	}
	if _, err := library.Init(t.Context(), timeline.Source{Object: "a", Track: 99}); !errors.Is(err,
		ondemand.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}
