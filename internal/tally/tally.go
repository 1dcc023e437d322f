// Package tally writes what this node has delivered, and who is watching, from the counters in memory to the database
// every few seconds. It must never know who was served, SQL or HTTP. Its one goroutine is Run.
package tally

import (
	"context"
	"log/slog"
	"time"

	"millrace/internal/control/usage"
	"millrace/internal/id"
	"millrace/internal/media/metering"
)

// Options is what a Tally needs.
type Options struct {
	Meter  *metering.Meter
	Usage  usage.Work
	Share  func(ctx context.Context, now time.Time) error // tells other nodes who is watching
	Now    func() time.Time
	Logger *slog.Logger
}

// Tally is a lifecycle service. What it has not carried yet is lost when the process is killed: at most what was
// delivered within every.
type Tally struct {
	opt Options
	// due is what the database has not taken yet, while it is away. It is bounded by the assets that are watched
	// meanwhile.
	due map[metering.Asset]metering.Lengths
}

const (
	// every is how often what was delivered is written down.
	every = 5 * time.Second
	// prune is how often something old is removed, and soon how often while there is more.
	prune, soon = time.Hour, 30 * time.Second
	// last is how long the database may take to take the last of it when the service stops.
	last = 5 * time.Second
)

// New returns a Tally.
func New(o Options) *Tally { return &Tally{opt: o, due: map[metering.Asset]metering.Lengths{}} }

// Name implements lifecycle.Service.
func (*Tally) Name() string { return "delivery usage" }

// Run writes down what is delivered until ctx ends, and then the rest: whatever serves viewers must have ended by then.
func (t *Tally) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	prunes := time.NewTimer(soon)
	defer prunes.Stop()
	for {
		select {
		case <-ctx.Done():
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
			defer cancel()
			if err := t.carry(rest); err != nil {
				t.late(ctx, err)
			}
			return context.Cause(ctx)
		case <-tick.C:
			if err := t.carry(ctx); err != nil && ctx.Err() == nil { // else the last one takes it
				t.late(ctx, err)
			}
			if err := t.opt.Share(ctx, t.opt.Now()); err != nil && ctx.Err() == nil {
				t.opt.Logger.WarnContext(ctx, "other nodes are not told who is watching", "error", err)
			}
		case <-prunes.C:
			prunes.Reset(t.forget(ctx))
		}
	}
}

// late says what is not written down.
func (t *Tally) late(ctx context.Context, err error) {
	t.opt.Logger.WarnContext(ctx, "delivery usage is not written down yet", "assets", len(t.due), "error", err)
}

// carry writes down what there is.
func (t *Tally) carry(ctx context.Context) error {
	for a, lengths := range t.opt.Meter.Take() {
		sum := t.due[a]
		for tier, d := range lengths {
			sum[tier] += d
		}
		t.due[a] = sum
	}
	if len(t.due) == 0 {
		return nil
	}
	all := make([]usage.Delivered, 0, len(t.due))
	for a, lengths := range t.due {
		all = append(all, usage.Delivered{
			Asset:       id.Asset(a.ID),
			Environment: id.Environment(a.Environment),
			LiveStream:  id.LiveStream(a.LiveStream),
			Seconds:     seconds(lengths),
		})
	}
	if err := t.opt.Usage.Add(ctx, all, t.opt.Now()); err != nil {
		return err //nolint:wrapcheck // the log line says what it was about
	}
	clear(t.due)
	return nil
}

func seconds(l metering.Lengths) usage.Seconds {
	return usage.Seconds{
		AudioOnly: l[metering.AudioOnly].Seconds(),
		Tier720:   l[metering.Tier720].Seconds(),
		Tier1080:  l[metering.Tier1080].Seconds(),
		Tier1440:  l[metering.Tier1440].Seconds(),
		Tier2160:  l[metering.Tier2160].Seconds(),
	}
}

// forget removes some of what is too old, and says when to look again.
func (t *Tally) forget(ctx context.Context) time.Duration {
	more, err := t.opt.Usage.Forget(ctx, t.opt.Now())
	switch {
	case err != nil && ctx.Err() == nil:
		t.opt.Logger.WarnContext(ctx, "remove old delivery usage", "error", err)
	case more:
		return soon
	}
	return prune
}
