// Package conform holds a running presentation against hlscheck inside a test. It knows playback URLs only.
package conform

import (
	"context"
	"math"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// Check watches a playlist and fails the test for each finding.
func Check(t *testing.T, o hlscheck.Options) *hlscheck.Report {
	t.Helper()
	if o.Decoder == "" {
		o.Decoder = rig.FFmpeg(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), o.Follow+3*time.Minute)
	defer cancel()
	r, err := hlscheck.Check(ctx, o)
	if err != nil {
		t.Fatalf("check %s: %v", o.URL, err)
	}
	for _, f := range r.Findings {
		t.Errorf("%s", f)
	}
	return r
}

// Applied fails the test when a rule that it is about was never applied.
func Applied(t *testing.T, r *hlscheck.Report, rules ...string) {
	t.Helper()
	if u := r.Unchecked(rules...); len(u) > 0 {
		t.Errorf("rules never applied: %v", u)
	}
}

// Finished holds a finished asset against the specification and against its duration in seconds.
func Finished(t *testing.T, url string, duration float64) {
	t.Helper()
	r := Check(t, hlscheck.Options{URL: url})
	Applied(t, r, "average-bandwidth", "bandwidth", "segment-duration", "ranges")
	if len(r.Renditions) > 1 {
		Applied(t, r, "align-ends", "align-start")
	}
	for _, v := range r.Renditions {
		if !v.Ended {
			t.Errorf("%s has not ended", v.URL)
		}
		if math.Abs(v.Seconds-duration) > 0.5 {
			t.Errorf("%s: segments last %.2f s, the asset %.2f s", v.URL, v.Seconds, duration)
		}
	}
}

// PlaybackID gives a resource's first playback ID.
func PlaybackID(t *testing.T, o rig.Object) string {
	t.Helper()
	id := o.Text("playback_ids.0.id")
	if id == "" {
		t.Fatalf("no playback ID: %v", o)
	}
	return id
}
