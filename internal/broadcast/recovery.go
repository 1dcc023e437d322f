package broadcast

import (
	"context"
	"slices"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
)

// recover takes over broadcasts that nobody leads: those of this node before its last end, those of nodes that are
// gone, and those that a defect has ended here.
func (svc *Service) recover(ctx context.Context, starting bool) error {
	orphans, err := svc.opt.Streams.Orphans(ctx, svc.opt.Owner, starting)
	if err != nil {
		svc.blind = svc.opt.Now()
		return err
	}
	// While the database was away nobody could renew a row: those that live have not all come back to it.
	unsure := svc.opt.Now().Sub(svc.blind) < live.OrphanedAfter
	if unsure || svc.opt.Spectator || svc.broadcasts.draining() {
		orphans = slices.DeleteFunc(orphans, func(s live.Stream) bool { return s.Node != svc.opt.Owner.Node })
	}
	for _, h := range svc.observer.missing() {
		switch s, err := svc.opt.Streams.Find(ctx, h.Stream); {
		case err == nil && s.Owner == svc.opt.Owner && s.Epoch == h.Epoch && s.Generation == h.Generation:
			orphans = append(orphans, s)
		case err != nil && !fault.Is(err, fault.NotFound):
			return err
		}
	}
	for _, s := range orphans {
		if svc.broadcasts.leads(s.ID) && s.Owner == svc.opt.Owner {
			continue
		}
		switch err := svc.tryAdopt(ctx, s); {
		case err == nil:
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // ended, or another node was faster
			svc.opt.Logger.DebugContext(ctx, "broadcast needs no recovery", "live_stream_id", s.ID, "asset_id",
				s.ActiveAsset, "reason", err)
		default:
			svc.opt.Logger.ErrorContext(ctx, "recover broadcast", "live_stream_id", s.ID, "asset_id", s.ActiveAsset,
				"error", err)
		}
	}
	return nil
}

// adopt goes on with a broadcast whose owner died: its encoder is away since the owner was heard of last.
func (svc *Service) adopt(ctx context.Context, s live.Stream) error {
	asked, own := svc.opt.Now(), s.Node == svc.opt.Owner.Node
	taking := taker{all: svc.promises}
	defer taking.done()
	if !own && taking.bound(s.Owner) > 0 {
		return fault.New(fault.Conflict, "the owner of the broadcast has no database, and goes on")
	}
	s, err := svc.opt.Streams.Adopt(ctx, s.ID, s.Writer(), svc.opt.Owner, asked)
	if err != nil {
		return err
	}
	defer svc.broadcasts.open(s.ID)()
	if s.DisconnectedAt.IsZero() { // disabled meanwhile, and so without a state that would say it
		s.DisconnectedAt = asked
	}
	if err = svc.broadcasts.of(s.ID).supersede(ctx, s); err != nil {
		return err
	}
	a, before, err := svc.record(ctx, s, false)
	if err != nil {
		return err
	}
	before.own = own
	_, err = svc.start(ctx, s, a, before)
	if err == nil {
		svc.opt.Logger.InfoContext(ctx, "broadcast recovered", "live_stream_id", s.ID, "asset_id", a.ID, "epoch",
			int64(s.Epoch))
	}
	return err
}

// stored is what is stored of a broadcast: nothing, or a timeline of so many rows.
type stored struct {
	timeline *timeline.Timeline
	rows     int64
	own      bool   // nobody but this node has recorded it lately
	copied   Copied // what was published elsewhere, and may not be stored
}

// record makes or finds the asset of a broadcast and what it holds already. When the asset is complete already, only
// the end of the broadcast was not recorded: then it is recorded, and the error is errEnding.
func (svc *Service) record(ctx context.Context, s live.Stream, fresh bool) (asset.Asset, stored, error) {
	if fresh {
		a, err := svc.make(ctx, s)
		return a, stored{}, err
	}
	a, err := svc.opt.Assets.Find(ctx, s.ActiveAsset)
	switch {
	case fault.Is(err, fault.NotFound): // anyone who began the broadcast died before
		a, err = svc.make(ctx, s)
		return a, stored{}, err
	case err != nil:
		return a, stored{}, err
	case !a.IsLive:
		_, err = svc.opt.Streams.End(ctx, s.ID, s.Writer(), live.EndCrash, svc.opt.Now())
		if err == nil || fault.Permanent(err) {
			err = errEnding
		}
		return a, stored{}, err
	}
	if err = svc.broadcasts.released(ctx, a.Media); err != nil {
		return a, stored{}, err
	}
	before, err := svc.before(ctx, a.ID)
	return a, before, err
}

// make makes the asset of a broadcast.
func (svc *Service) make(ctx context.Context, s live.Stream) (asset.Asset, error) {
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
	texts, err := svc.opt.Speech.Tracks(ctx, s)
	if err != nil {
		return asset.Asset{}, err
	}
	r.Texts = append(r.Texts, texts...)
	return svc.opt.Assets.Record(ctx, r, svc.opt.Now())
}

func (svc *Service) before(ctx context.Context, a id.Asset) (stored, error) {
	rows, err := svc.opt.Assets.Timeline(ctx, a, 0)
	if err != nil || len(rows) == 0 {
		return stored{}, err
	}
	t, err := mediastore.FromRows(rows)
	return stored{timeline: t, rows: rows[len(rows)-1].Sequence + 1}, err
}
