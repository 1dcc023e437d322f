package broadcast

import (
	"context"
	"fmt"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/rendition"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// Policy is when the renditions below a broadcast's video are made.
type Policy string

// The policies.
const (
	OnDemand Policy = "on_demand" // while somebody watches one
	Always   Policy = "always"
	Off      Policy = "off"
)

// Renditions is how the renditions below the videos of broadcasts are made.
type Renditions struct {
	rendition.Makers

	// Policy is that of an environment. It is asked as a broadcast begins.
	Policy func(ctx context.Context, e id.Environment) (Policy, error)
}

// packagerTimescale is that of every broadcast's video.
const packagerTimescale = 90000

// renditionPolicy is that of a stream.
func (svc *Service) renditionPolicy(ctx context.Context, s live.Stream) (Policy, error) {
	if svc.opt.Below == nil {
		return Off, nil
	}
	p, err := svc.opt.Below.Policy(ctx, s.Environment)
	if err != nil {
		return Off, fmt.Errorf("read policy of live renditions: %w", err)
	}
	return p, nil
}

// newBelow returns nil where there are no renditions below: test streams stay as they are, and a stream without a
// picture has none.
func (b *broadcast) newBelow(policy Policy) *rendition.Live {
	o := b.opt.Below
	if policy == Off || b.stream.Settings.Test || b.stream.Settings.AudioOnly {
		return nil
	}
	return rendition.NewLive(rendition.LiveOptions{
		Media: b.asset.Media, Edge: b.edge, Timescale: packagerTimescale, Always: policy == Always,
		Limits: rendition.Limits{Quality: b.asset.Quality(), MaxResolution: b.asset.Options.MaxResolution},
		Makers: o.Makers, AwaitStored: b.awaitStored, Now: b.opt.Now, Logger: b.log,
	})
}

// view is a broadcast as it can be watched.
func (b *broadcast) view() edgeview.Broadcast {
	v := edgeview.Broadcast{
		ID: b.asset.Media, Edge: b.edge, Below: rendition.None{}, Meter: b.meter, Title: b.title, Asset: b.asset.ID,
		Began: b.asset.CreatedAt,
	}
	if b.below != nil {
		v.Below = b.below
	}
	return v
}

// awaitStored waits until a segment of the video is stored, and makes sure that the broadcast is still this node's:
// another one's has other media under the same number, which renditions must not be mixed with.
func (b *broadcast) awaitStored(ctx context.Context, msn int64) error {
	if err := b.edge.Stored(ctx, timeline.MainVideo, msn); err != nil {
		return window.Fault(err)
	}
	select {
	case <-b.stored:
		if b.edge.Ended() && !b.recorder.ended() { // nothing is added by anybody
			return nil
		}
	default:
	}
	mine, err := b.recorder.hold(ctx)
	if err == nil && !mine {
		return fault.New(fault.Conflict, "this node no longer owns the broadcast")
	}
	return err
}
