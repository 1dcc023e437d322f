package streams

import (
	"strings"
	"testing"
	"time"
)

var chartBegin = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// points are values at distances of five seconds; a negative one is missing.
func points(values ...float64) []point {
	var all []point
	for i, v := range values {
		if v >= 0 {
			all = append(all, point{chartBegin.Add(time.Duration(i) * 5 * time.Second), v})
		}
	}
	return all
}

func many(n int, v float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// TestDraw: the newest point stands at the right, ten minutes fill the width, the box reads from 0 to a round number.
func TestDraw(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		points []point
		want   chart
	}{
		"one": {points(5e5), chart{
			Now: "500 kbit/s", Label: "Bitrate: 500 kbit/s now.", Top: "600 kbit/s", Middle: "300 kbit/s",
			Line: "M600 16h0", Area: "M600 96L600 16L600 96Z",
		}},
		"steady": {points(2e6, 2e6, 2e6), chart{
			Now: "2.0 Mbit/s", Label: "Bitrate: 2.0 Mbit/s now, steady in the last 10 seconds.", Top: "4.0 Mbit/s",
			Middle: "2.0 Mbit/s", Line: "M590 48L595 48L600 48", Area: "M590 96L590 48L595 48L600 48L600 96Z",
		}},
		"falls": {points(4e6, 1e6), chart{
			Now:   "1.0 Mbit/s",
			Label: "Bitrate: 1.0 Mbit/s now, between 1.0 Mbit/s and 4.0 Mbit/s in the last 5 seconds.",
			Top:   "6.0 Mbit/s", Middle: "3.0 Mbit/s", Line: "M595 32L600 80", Area: "M595 96L595 32L600 80L600 96Z",
		}},
		"nothing comes": {points(0, 0), chart{
			Now: "0 kbit/s", Label: "Bitrate: 0 kbit/s now, steady in the last 5 seconds.", Top: "0 kbit/s",
			Middle: "0 kbit/s", Line: "M595 96L600 96", Area: "M595 96L595 96L600 96L600 96Z",
		}},
		"a gap": {points(2e6, 2e6, -1, -1, -1, -1, -1, -1, 2e6), chart{
			Now: "2.0 Mbit/s", Label: "Bitrate: 2.0 Mbit/s now, steady in the last 40 seconds.", Top: "4.0 Mbit/s",
			Middle: "2.0 Mbit/s", Line: "M560 48L565 48M600 48h0",
			Area: "M560 96L560 48L565 48L565 96ZM600 96L600 48L600 96Z",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.Name = "Bitrate"
			if got := draw("Bitrate", tt.points, bits); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestDrawWindow: what is older than ten minutes is not drawn, nor told.
func TestDrawWindow(t *testing.T) {
	t.Parallel()
	c := draw("Bitrate", points(append(many(30, 9e6), many(121, 1e6)...)...), bits)
	if !strings.HasPrefix(c.Line, "M0 48L5 48L") || strings.Count(c.Line, "L") != 120 ||
		c.Label != "Bitrate: 1.0 Mbit/s now, steady in the last 10 minutes." {
		t.Errorf("%+v", c)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	for high, want := range map[float64]float64{
		0: 1, -1: 1, 0.25: 0.4, 1: 2, 1.5: 2, 2: 4, 5.4: 6, 9: 10, 9.5: 20, 25: 40, 30: 40, 50: 60, 60: 80, 6.3e6: 8e6,
	} {
		if got := scale(high); got != want {
			t.Errorf("%g: %g, want %g", high, got, want)
		}
	}
}
