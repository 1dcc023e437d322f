package dashboard

import (
	"context"
	"strconv"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
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
		rows: func(ctx context.Context, all []live.Stream) (out []any) {
			for _, v := range s.measured(ctx, all, true) {
				out = append(out, v)
			}
			return out
		},
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
		rows:   each(func(v asset.Asset) any { return s.video(v) }),
		moving: func(v asset.Asset) bool { return s.video(v).Working() },
		upload: func(v asset.Asset) id.Upload { return v.Upload },
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

// happenedRows are the rows of the event log. Each event is a new row. That a webhook got it, or did not, is no event.
func (s *server) happenedRows() *rowCache[eventKey, happened] {
	return newRowCache(kind[eventKey, happened]{
		view:  &viewer{s.views, "events"},
		about: func(h happening) eventKey { return keyOf(h.sequence) },
		id:    happened.key,
		title: func(v happened) string { return v.Type },
		// Clocks of nodes differ: the order of events is that of their sequence.
		made: func(v happened) time.Time { return time.Unix(v.Sequence, 0) },
		fits: func(f finding, v happened) bool {
			return (f.Status == "" || v.Type == f.Status) &&
				(f.Query == "" || v.ObjectID == f.Query || v.Resource == f.Query)
		},
		rows:   each(func(v happened) any { return v }),
		moving: happened.Waits,
		gone: func(of eventKey, name string) happened {
			sequence, _ := strconv.ParseInt(string(of), 10, 64)
			return happened{Event: event.Event{Sequence: sequence, Type: name}}
		},
		some: s.someEvents,
		load: func(ctx context.Context, p access.Person, f finding) (shown[happened], error) {
			l, err := s.events(ctx, p, f)
			return shown[happened]{finding: l.finding, rows: l.Rows}, err
		},
	})
}
