package local

import (
	"testing"
	"time"

	"millrace/internal/media/speech"
)

// TestPaceAsksForTime: an engine that was behind and keeps up again looks harder when the machine has time to spare,
// and not before, however long it has kept up.
func TestPaceAsksForTime(t *testing.T) {
	t.Parallel()
	asked, free := 0, false
	p := newPace(speech.Steady, func() bool { asked++; return free })
	p.adjust(time.Second, late+time.Second, 0)
	if p.now() != speech.Quick {
		t.Fatalf("behind, its effort is %d", p.now())
	}
	keepUp := func(long time.Duration) {
		for range long / time.Second {
			p.adjust(time.Second, 0, 0)
		}
	}
	if keepUp(10 * calm); p.now() != speech.Quick || asked == 0 || asked > 10 {
		t.Errorf("on a busy machine its effort is %d, and it has asked %d times", p.now(), asked)
	}
	free = true
	if keepUp(calm); p.now() != speech.Steady {
		t.Errorf("when there is time its effort is %d", p.now())
	}
}
