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

// stored is what is stored of a broadcast: nothing, or a timeline of so many rows.
type stored struct {
	timeline *timeline.Timeline
	rows     int64
	own      bool   // nobody but this node has recorded it lately
	copied   Copied // what was published elsewhere, and may not be stored
	ended    bool   // it was another node's, whose process had ended a moment ago
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
