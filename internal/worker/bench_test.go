package worker_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/ondemand"
	"millrace/internal/mediastore"
)

// BenchmarkHourReady takes an hour of H.264 and AAC that is on local disk to its first segments of picture and sound: told from other
// formats, indexed, checked, planned, stored, on record, and read back.
func BenchmarkHourReady(b *testing.B) {
	minute := ffmpeg(b, "minute.mp4", args(picture("60"), sound("60"), h264)...)
	hour := ffmpeg(b, "hour.mp4", "-stream_loop", "59", "-i", minute, "-c", "copy")
	w := newWorld(b, options{})
	for b.Loop() {
		b.StopTimer()
		a := w.create(assetopt.Input{URL: w.site.URL + "/not-asked-for"})
		j := w.jobs.take()[0]
		copyFile(b, hour, filepath.Join(w.scratch, "asset-"+string(a.ID))) // as the download leaves it
		b.StartTimer()
		if err := w.do(j, 1); err != nil {
			b.Fatal(err)
		}
		a = w.find(a.ID)
		t, err := mediastore.Timeline(w.ctx(), w.store, w.Work, a)
		if err != nil || a.Status != asset.Ready {
			b.Fatal(err)
		}
		library := ondemand.NewLibrary(objects{w.store}, 1<<30)
		for _, l := range t.Renditions {
			if _, err := library.Chunk(w.ctx(), *l.Source, 0, l.Chunks[0]); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func copyFile(b *testing.B, from, to string) {
	b.Helper()
	in, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, in.Close(), out.Close()); err != nil {
		b.Fatal(err)
	}
}
