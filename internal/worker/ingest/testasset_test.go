package ingest_test

import (
	"image/color"
	"math"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// TestClipThatIsATest: a test asset of a stretch of another one has ten seconds of it, and the mark in its corner.
func TestClipThatIsATest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	source := w.ReadyAsset(filmtest.File(t, "grey.mp4", grey("640x360", "13")...))
	from := 1.5
	a, err := w.Create(w.Ctx(), workertest.Env, asset.CreateInput{Options: assetopt.Options{
		Test: true, Inputs: []assetopt.Input{{URL: "svc://assets/" + string(source.ID), StartTime: &from}},
	}}, w.Now())
	w.Must(err)
	for _, j := range w.Jobs.Take() {
		if j.Kind != asset.JobExpire { // a day later
			w.Must(w.Do(j, 1))
		}
	}
	if a = w.Asset(a.ID); a.Status != asset.Ready || math.Abs(a.Facts.Duration-10) > 0.15 || !a.Facts.HasAudio {
		t.Fatalf("%s, %+v, %+v", a.Status, a.Facts, a.Errors)
	}
	if len(a.Uses) != 0 {
		t.Errorf("it uses %v", a.Uses)
	}
	img := w.frame(a, 0)
	shows(t, img, 20, 340, color.NRGBA{0x80, 0x80, 0x80, 0xff})
	if corner := img.NRGBAAt(605, 20); corner.R > 0x68 {
		t.Errorf("there is no mark: the corner is %v", corner)
	}
}
