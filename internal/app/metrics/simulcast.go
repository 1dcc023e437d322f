package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

// targetStates are the states that a link's facts lead to.
var targetStates = map[live.TargetFact]string{ //nolint:gochecknoglobals // a table
	live.LinkUp: "broadcasting", live.LinkDown: "errored", live.LinkImpossible: "fatal",
}

// broadcasts counts what becomes of the links to simulcast targets.
type broadcasts struct {
	live.Broadcasts

	links *prometheus.CounterVec
}

// Broadcasts counts what b is told.
func (m *Metrics) Broadcasts(b live.Broadcasts) live.Broadcasts {
	for _, state := range targetStates {
		m.links.WithLabelValues(state)
	}
	return broadcasts{b, m.links}
}

// Target implements live.Broadcasts. What means nothing in the stream's state is not counted.
func (b broadcasts) Target(
	ctx context.Context, s id.LiveStream, w live.Writer, t id.SimulcastTarget, f live.TargetFact, now time.Time,
) error {
	err := b.Broadcasts.Target(ctx, s, w, t, f, now)
	if state := targetStates[f]; err == nil && state != "" {
		b.links.WithLabelValues(state).Inc()
	}
	return err
}
