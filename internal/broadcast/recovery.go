package broadcast

import (
	"context"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
)

// recover takes over broadcasts that nobody leads: those of this node before its last end, those of nodes that are
// gone, and those that a defect has ended here.
func (l *Service) recover(ctx context.Context, starting bool) error {
	orphans, err := l.opt.Streams.Orphans(ctx, l.opt.Owner, starting)
	if err != nil {
		return err
	}
	for _, h := range l.observer.missing() {
		switch s, err := l.opt.Streams.Find(ctx, h.Stream); {
		case err == nil && s.Owner == l.opt.Owner && s.Epoch == h.Epoch && s.Generation == h.Generation:
			orphans = append(orphans, s)
		case err != nil && !fault.Is(err, fault.NotFound):
			return err
		}
	}
	for _, s := range orphans {
		if l.broadcasts.leads(s.ID) && s.Owner == l.opt.Owner {
			continue
		}
		switch err := l.tryAdopt(ctx, s); {
		case err == nil:
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // ended, or another node was faster
			l.opt.Logger.DebugContext(ctx, "broadcast needs no recovery", "live_stream_id", s.ID, "asset_id",
				s.ActiveAsset, "reason", err)
		default:
			l.opt.Logger.ErrorContext(ctx, "recover broadcast", "live_stream_id", s.ID, "asset_id", s.ActiveAsset,
				"error", err)
		}
	}
	return nil
}

// adopt goes on with a broadcast whose owner died: its encoder is away since the owner was heard of last.
func (l *Service) adopt(ctx context.Context, s live.Stream) error {
	asked, own := l.opt.Now(), s.Node == l.opt.Owner.Node
	taking := taker{all: l.promises}
	defer taking.done()
	if !own && taking.bound(s.Owner) > 0 {
		return fault.New(fault.Conflict, "the owner of the broadcast has no database, and goes on")
	}
	s, err := l.opt.Streams.Adopt(ctx, s.ID, s.Writer(), l.opt.Owner, asked)
	if err != nil {
		return err
	}
	defer l.broadcasts.open(s.ID)()
	if s.DisconnectedAt.IsZero() { // disabled meanwhile, and so without a state that would say it
		s.DisconnectedAt = asked
	}
	if err = l.broadcasts.of(s.ID).supersede(ctx, s); err != nil {
		return err
	}
	a, before, err := l.record(ctx, s, false)
	if err != nil {
		return err
	}
	before.own = own
	_, err = l.start(ctx, s, a, before)
	if err == nil {
		l.opt.Logger.InfoContext(ctx, "broadcast recovered", "live_stream_id", s.ID, "asset_id", a.ID, "epoch",
			int64(s.Epoch))
	}
	return err
}

// stored is what is stored of a broadcast: nothing, or a timeline of so many rows.
type stored struct {
	timeline *timeline.Timeline
	rows     int64
	own      bool // nobody but this node has recorded it lately
}

// record makes or finds the asset of a broadcast and what it holds already. When the asset is complete already, only
// the end of the broadcast was not recorded: then it is recorded, and the error is errEnding.
func (l *Service) record(ctx context.Context, s live.Stream, fresh bool) (asset.Asset, stored, error) {
	if fresh {
		a, err := l.make(ctx, s)
		return a, stored{}, err
	}
	a, err := l.opt.Assets.Find(ctx, s.ActiveAsset)
	switch {
	case fault.Is(err, fault.NotFound): // anyone who began the broadcast died before
		a, err = l.make(ctx, s)
		return a, stored{}, err
	case err != nil:
		return a, stored{}, err
	case !a.IsLive:
		_, err = l.opt.Streams.End(ctx, s.ID, s.Writer(), live.EndCrash, l.opt.Now())
		if err == nil || fault.Permanent(err) {
			err = errEnding
		}
		return a, stored{}, err
	}
	if err = l.broadcasts.released(ctx, a.Media); err != nil {
		return a, stored{}, err
	}
	before, err := l.before(ctx, a.ID)
	return a, before, err
}

// make makes the asset of a broadcast.
func (l *Service) make(ctx context.Context, s live.Stream) (asset.Asset, error) {
	r := asset.NewRecording{
		ID: s.ActiveAsset, Environment: s.Environment, LiveStream: s.ID, Test: s.Settings.Test,
		Origin: asset.FromLive(s.Protocol), Media: id.Media(id.New()),
	}
	if s.Settings.NewAsset != nil {
		r.Options = *s.Settings.NewAsset
	}
	for _, e := range s.Settings.EmbeddedSubtitles {
		r.Texts = append(r.Texts, asset.LiveText{
			Name: e.Name, LanguageCode: e.LanguageCode, Passthrough: e.Passthrough, Source: asset.Embedded,
			Channel: e.LanguageChannel, ClosedCaptions: true,
		})
	}
	texts, err := l.opt.Speech.Tracks(ctx, s)
	if err != nil {
		return asset.Asset{}, err
	}
	r.Texts = append(r.Texts, texts...)
	return l.opt.Assets.Record(ctx, r, l.opt.Now())
}

func (l *Service) before(ctx context.Context, a id.Asset) (stored, error) {
	rows, err := l.opt.Assets.Timeline(ctx, a, 0)
	if err != nil || len(rows) == 0 {
		return stored{}, err
	}
	t, err := mediastore.FromRows(rows)
	return stored{timeline: t, rows: rows[len(rows)-1].Sequence + 1}, err
}
