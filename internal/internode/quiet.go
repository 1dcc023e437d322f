package internode

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	tellEvery = time.Minute
	mostTold  = 256 // kinds of lines that are remembered
)

// quiet logs a line of each kind once a minute, whatever others can cause.
type quiet struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	told map[string]*telling
}

type telling struct {
	at   time.Time
	more int // that were not logged since
}

func (q *quiet) warn(ctx context.Context, kind, line string, args ...any) {
	more, ok := q.may(kind)
	if !ok {
		return
	}
	if more > 0 {
		args = append(args, "not_logged", more)
	}
	q.log.WarnContext(ctx, line, args...)
}

func (q *quiet) may(kind string) (more int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	t := q.told[kind]
	if t == nil {
		if q.told == nil || len(q.told) >= mostTold {
			q.told = map[string]*telling{}
		}
		q.told[kind] = &telling{at: now}
		return 0, true
	}
	if now.Sub(t.at) < tellEvery {
		t.more++
		return 0, false
	}
	more, t.at, t.more = t.more, now, 0
	return more, true
}
