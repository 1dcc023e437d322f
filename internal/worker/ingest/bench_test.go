package ingest_test

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
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// BenchmarkHourReady takes an hour of H.264 and AAC that is on local disk to its first segments of picture and sound:
// told from other formats, indexed, checked, planned, stored, on record, and read back.
func BenchmarkHourReady(b *testing.B) {
	minute := filmtest.File(b, "minute.mp4",
		filmtest.Args(filmtest.Picture("60"), filmtest.Sound("60"), filmtest.H264)...)
	hour := filmtest.File(b, "hour.mp4", "-stream_loop", "59", "-i", minute, "-c", "copy")
	w := newWorld(b, workertest.Options{})
	for b.Loop() {
		b.StopTimer()
		a := w.NewAsset(assetopt.Input{URL: w.Site.URL + "/not-asked-for"})
		j := w.Jobs.Take()[0]
		copyFile(b, hour, filepath.Join(w.Scratch, "asset-"+string(a.ID))) // as the download leaves it
		b.StartTimer()
		if err := w.Do(j, 1); err != nil {
			b.Fatal(err)
		}
		a = w.Asset(a.ID)
		t, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
		if err != nil || a.Status != asset.Ready {
			b.Fatal(err)
		}
		library := ondemand.NewLibrary(workertest.Objects{Store: w.Store}, 1<<30)
		for _, l := range t.Renditions {
			if _, err := library.Chunk(w.Ctx(), *l.Source, 0, l.Chunks[0]); err != nil {
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
