package main

import (
	"math"
	"testing"
)

// TestSamples: what a window has added to a histogram gives the bucket of a quantile.
func TestSamples(t *testing.T) {
	before := readSamples(`# HELP x_seconds Times.
x_seconds_bucket{le="0.001"} 5
x_seconds_bucket{le="0.01"} 5
x_seconds_bucket{le="+Inf"} 5
x_seconds_count 5
`)
	s := readSamples(`x_seconds_bucket{le="0.001"} 14
x_seconds_bucket{le="0.01"} 24
x_seconds_bucket{le="+Inf"} 25
x_seconds_sum 0.25
x_seconds_count 25
other_bucket{le="0.0001"} 25
`).since(before)
	for q, want := range map[float64]float64{0.45: 0.001, 0.5: 0.01, 0.95: 0.01, 0.99: math.Inf(1)} {
		if got := s.atMost("x_seconds", q); got != want {
			t.Errorf("%v of it take at most %v, and not %v", q, got, want)
		}
	}
	if got := before.since(before).atMost("x_seconds", 0.5); got != 0 {
		t.Errorf("nothing takes %v", got)
	}
}
