package dashboard

import (
	"context"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
)

// streamRows are the rows of the list of live streams.
func (s *server) streamRows() *rowCache[id.LiveStream, live.Stream] {
	return newRowCache(kind[id.LiveStream, live.Stream]{
		view: &viewer{s.views, "live"},
		about: func(h happening) id.LiveStream {
			if h.own {
				return h.stream
			}
			return ""
		},
		id:    func(v live.Stream) id.LiveStream { return v.ID },
		title: func(v live.Stream) string { return v.Settings.Meta.Title },
		made:  func(v live.Stream) time.Time { return v.CreatedAt },
		fits:  func(f finding, v live.Stream) bool { return listing{finding: f}.fits(v) },
		row:   func(v live.Stream) any { return s.stream(v) },
		gone: func(of id.LiveStream, name string) live.Stream {
			out := live.Stream{ID: of}
			out.Settings.Meta.Title = name
			return out
		},
		some: s.Live.Some,
		load: func(ctx context.Context, p access.Person, f finding) (shown[live.Stream], error) {
			l, rows, err := s.streams(ctx, p, f)
			return shown[live.Stream]{l.finding, l.Counts(), rows}, err
		},
		count: func(
			ctx context.Context, env id.Environment, f finding, since, now int64,
		) ([]count, time.Duration, error) {
			n, again, err := s.count(ctx, env, since, now)
			return listing{finding: f, counts: n}.Counts(), again, err
		},
	})
}

// assetRows are the rows of the list of assets.
func (s *server) assetRows() *rowCache[id.Asset, asset.Asset] {
	return newRowCache(kind[id.Asset, asset.Asset]{
		view:   &viewer{s.views, "assets"},
		about:  func(h happening) id.Asset { return h.asset },
		id:     func(v asset.Asset) id.Asset { return v.ID },
		title:  func(v asset.Asset) string { return v.Options.Meta.Title },
		made:   func(v asset.Asset) time.Time { return v.CreatedAt },
		fits:   func(f finding, v asset.Asset) bool { return assetList{finding: f}.fits(v) },
		row:    func(v asset.Asset) any { return s.video(v) },
		moving: func(v asset.Asset) bool { return s.video(v).Working() },
		gone: func(of id.Asset, name string) asset.Asset {
			out := asset.Asset{ID: of}
			out.Options.Meta.Title = name
			return out
		},
		some: s.Assets.Some,
		load: func(ctx context.Context, p access.Person, f finding) (shown[asset.Asset], error) {
			l, rows, err := s.videos(ctx, p, f)
			return shown[asset.Asset]{finding: l.finding, rows: rows}, err
		},
	})
}
