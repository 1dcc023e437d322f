package asset

import (
	"math"
	"testing"
	"time"
)

// working is work that is seen at times: seconds since it began.
type working struct {
	pace Pace
	now  time.Time
}

func begun() *working {
	w := &working{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.at(0)
	return w
}

// at has so much be done now.
func (w *working) at(percent float64) { _, w.pace = progressed(w.pace, percent, w.now) }

// wait lets time pass.
func (w *working) wait(d time.Duration) { w.now = w.now.Add(d) }

// gain has work get on in steps, of percent each, every so often.
func (w *working) gain(n int, step float64, each time.Duration) {
	from := w.pace[len(w.pace)-1].Percent
	for i := range n {
		w.wait(each)
		w.at(from + step*float64(i+1))
	}
}

// wants checks how long the rest is said to take, by a tenth more or less.
func (w *working) wants(t *testing.T, when string, want time.Duration) {
	t.Helper()
	if got := w.pace.Left(w.now); math.Abs(float64(got-want)) > float64(want)/10 {
		t.Errorf("%s: %s are left, want %s", when, got, want)
	}
}

// TestPace: how long work still takes is told by its pace of late, as soon as there is one, and goes down between
// steps.
func TestPace(t *testing.T) {
	t.Parallel()
	w := begun()
	w.wants(t, "at the beginning", 0)
	w.gain(1, 2, 4*time.Second)
	w.wants(t, "after one step, too soon", 0)
	w.gain(3, 2, 4*time.Second)
	w.wants(t, "after 8 % in 16 s", 184*time.Second)
	w.wait(3 * time.Second)
	w.wants(t, "3 s later", 181*time.Second)
	w.gain(10, 1, 20*time.Second) // the machine has become busy
	w.wants(t, "at a percent each 20 s", 82*20*time.Second)
	w.gain(60, 1, time.Second)
	w.wants(t, "at a percent a second", 22*time.Second)
	if n := len(w.pace); n > 14 {
		t.Errorf("%d marks are kept", n)
	}
	w.gain(22, 1, time.Second)
	if got := w.pace.Left(w.now); got != time.Second {
		t.Errorf("at its end %s are left", got)
	}
}

// TestPaceIsHeldUp: work that stands still for longer than it did before takes longer, and at last nobody knows.
func TestPaceIsHeldUp(t *testing.T) {
	t.Parallel()
	w := begun()
	w.gain(10, 1, 10*time.Second)
	w.wants(t, "at a percent each 10 s", 900*time.Second)
	w.wait(40 * time.Second)
	w.wants(t, "after 40 s without a step", 1340*time.Second)
	w.wait(150 * time.Second)
	if got := w.pace.Left(w.now); got != 0 {
		t.Errorf("after three minutes without a step %s are left", got)
	}
	w.at(11)
	w.wants(t, "with the first step behind that", 0)
	w.gain(1, 1, 15*time.Second)
	w.wants(t, "with the second", 88*15*time.Second)
}

// TestPaceOfSlowWork: work whose steps are further apart than what the pace is taken from has one all the same.
func TestPaceOfSlowWork(t *testing.T) {
	t.Parallel()
	w := begun()
	w.gain(5, 2, 10*time.Minute)
	w.wants(t, "at 2 % each ten minutes", 45*10*time.Minute)
}

// TestPaceOutlastsARestart: work that is begun again soon goes on at the pace that it had; long after, it needs a new
// one, as where the clock was set back.
func TestPaceOutlastsARestart(t *testing.T) {
	t.Parallel()
	w := begun()
	w.gain(40, 1, time.Second)
	w.wants(t, "before", 60*time.Second)
	w.wait(5 * time.Second)
	w.at(0)
	w.wants(t, "begun again", 100*45*time.Second/40)
	w.gain(20, 1, time.Second)
	w.wants(t, "20 s later", 80*62*time.Second/57)
	w.wait(time.Hour)
	w.at(0)
	w.wants(t, "begun again after an hour", 0)
	w.gain(10, 1, time.Second)
	w.wants(t, "10 s later", 90*time.Second)
	w.wait(-time.Minute)
	w.at(12)
	w.wants(t, "when the clock was set back", 0)
}

// TestPaceIsBounded: no pace gives a time that can't be told.
func TestPaceIsBounded(t *testing.T) {
	t.Parallel()
	w := begun()
	w.gain(1, 1e-300, time.Hour)
	if got := w.pace.Left(w.now); got <= 0 || got > mostLeft {
		t.Errorf("hardly anything is done: %s are left", got)
	}
	w.wait(time.Hour)
	w.at(1e-300)
	w.wants(t, "nothing more is done", 0)
}
