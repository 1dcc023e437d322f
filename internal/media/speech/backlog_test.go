package speech

import (
	"testing"
	"time"
)

// add gives a backlog so many seconds of sound in blocks of a tenth.
func add(b *Backlog, from, long time.Duration) {
	const block = SampleRate / 10
	for n := Samples(from); n < Samples(from+long); n += block {
		b.Add(n, make([]int16, block))
	}
}

// taken are where the blocks that wait begin and end.
func taken(t *testing.T, b *Backlog) (from, to time.Duration) {
	t.Helper()
	b.End()
	from = -1
	for {
		next, ok := b.Take(t.Context())
		if !ok {
			return from, to
		}
		if from < 0 {
			from = Duration(next.First)
		} else if Duration(next.First) != to {
			t.Errorf("from %s it goes on at %s", to, Duration(next.First))
		}
		to = Duration(next.End())
	}
}

// TestBacklogJumpsToLive: where more waits than is of use, the oldest is left out, so that the newest is recognised at
// once, in one stretch; what was given already stays.
func TestBacklogJumpsToLive(t *testing.T) {
	t.Parallel()
	b := NewBacklog(20*time.Second, 7*time.Second)
	add(b, 0, 2*time.Second)
	for range 20 {
		if _, ok := b.Take(t.Context()); !ok {
			t.Fatal("it has ended")
		}
	}
	add(b, 2*time.Second, 28*time.Second)
	held, ahead, left := b.Waiting()
	if ahead < time.Second || ahead > 7100*time.Millisecond || held != ahead+2*time.Second ||
		held+left != 30*time.Second {
		t.Errorf("%s held, of which %s wait, %s left out", held, ahead, left)
	}
	if from, to := taken(t, b); to != 30*time.Second || to-from != ahead {
		t.Errorf("from %s to %s", from, to)
	}
}

// TestBacklogIsBounded: somebody who takes everything and gets done with nothing is given no more than so much.
func TestBacklogIsBounded(t *testing.T) {
	t.Parallel()
	b := NewBacklog(20*time.Second, 7*time.Second)
	for n := range 600 {
		add(b, time.Duration(n)*100*time.Millisecond, 100*time.Millisecond)
		if _, ahead, _ := b.Waiting(); ahead > 0 {
			_, _ = b.Take(t.Context())
		}
	}
	if held, _, left := b.Waiting(); held != 20*time.Second || left != 40*time.Second {
		t.Errorf("%s held, %s left out", held, left)
	}
}
