package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"millrace/internal/media/speech"
)

const (
	// late is how far behind an engine gives up its wide beams.
	late = 6 * time.Second
	// inTime is how little sound an engine leaves lying that keeps up. One that has for calm, and twice as long each
	// time that turned out too soon, gets its wide beams back when nobody speaks and the machine has time to spare.
	inTime   = time.Second
	calm     = time.Minute
	calmMost = time.Hour
)

// pace decides how hard an engine looks: less hard while it is behind.
type pace struct {
	wanted speech.Effort
	spare  func() bool // the machine has processor time to spare

	mu      sync.Mutex
	effort  speech.Effort
	keepsUp time.Duration // sound for which the engine has kept up
	calm    time.Duration // after how much of that it gets its beams back
	change  context.CancelCauseFunc
}

func newPace(wanted speech.Effort, spare func() bool) *pace {
	return &pace{wanted: wanted, effort: wanted, calm: calm, spare: spare}
}

// spare reports whether fewer threads of this machine run, or want to, than there are processors: on average over the
// last minute, as the system tells. Where it does not there is.
func spare() bool {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return true
	}
	var threads float64
	if _, err = fmt.Sscan(string(data), &threads); err != nil {
		return true
	}
	return threads < float64(runtime.NumCPU())
}

var errEffort = errors.New("the engine is to look harder, or less hard")

// begin says how hard the process looks that begins now. It is ended by errEffort once another should take its place.
func (p *pace) begin(end context.CancelCauseFunc) speech.Effort {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change = end
	return p.effort
}

// now is how hard the engine looks.
func (p *pace) now() speech.Effort {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.effort
}

// adjust is told, with each stretch of sound that comes, how much is held and how much of that has not been given to
// the engine.
func (p *pace) adjust(long, held, ahead time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case held > late:
		if p.keepsUp = 0; p.effort > speech.Quick {
			p.set(p.effort - 1)
		}
	case ahead > inTime:
		p.keepsUp = 0
	default:
		p.keepsUp += long
		if p.effort < p.wanted && p.keepsUp >= p.calm && held <= inTime {
			if !p.spare() { // it is asked again when as long has passed
				p.keepsUp = 0
				return
			}
			p.keepsUp, p.calm = 0, min(2*p.calm, calmMost)
			p.set(p.effort + 1)
		}
	}
}

// set is called with the lock.
func (p *pace) set(e speech.Effort) {
	p.effort = e
	if p.change != nil {
		p.change(errEffort)
	}
}
