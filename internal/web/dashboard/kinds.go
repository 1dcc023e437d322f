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

// Row, Name, Made, Moves and MadeOf are those of a row.
func (s stream) Row() id.LiveStream { return s.ID }
func (s stream) Name() string       { return s.Settings.Meta.Title }
func (s stream) Made() time.Time    { return s.CreatedAt }
func (stream) Moves() bool          { return false }
func (stream) MadeOf() id.Upload    { return "" }

// streamSource has the rows of the list of live streams.
type streamSource struct{ *server }

// About implements source.
func (streamSource) About(h happening) id.LiveStream {
	if h.own {
		return h.stream
	}
	return ""
}

// Load implements source.
func (s streamSource) Load(ctx context.Context, p access.Person, f finding) (shown[stream], error) {
	l, err := s.streams(ctx, p, f)
	return shown[stream]{l.finding, l.Counts(), l.Rows}, err
}

// Some implements source.
func (s streamSource) Some(ctx context.Context, env id.Environment, of []id.LiveStream) ([]stream, error) {
	found, err := s.Live.Some(ctx, env, of)
	if err != nil {
		return nil, err
	}
	return s.measured(ctx, found, true), nil
}

// Fits implements source.
func (streamSource) Fits(f finding, v stream) bool { return listing{finding: f}.fits(v.Stream) }

// Gone implements source.
func (s streamSource) Gone(of id.LiveStream, name string) stream {
	out := s.stream(live.Stream{ID: of})
	out.Settings.Meta.Title = name
	return out
}

// Count implements source.
func (s streamSource) Count(
	ctx context.Context, env id.Environment, f finding, since, now int64,
) ([]count, time.Duration, error) {
	n, again, err := s.count(ctx, env, since, now)
	return listing{finding: f, counts: n}.Counts(), again, err
}

// Row, Made, Moves and MadeOf are those of a row, beside Name.
func (v video) Row() id.Asset     { return v.ID }
func (v video) Made() time.Time   { return v.CreatedAt }
func (v video) Moves() bool       { return v.Working() }
func (v video) MadeOf() id.Upload { return v.Upload }

// videoSource has the rows of the list of assets.
type videoSource struct {
	*server
	uncounted
}

// About implements source.
func (videoSource) About(h happening) id.Asset { return h.asset }

// Load implements source.
func (s videoSource) Load(ctx context.Context, p access.Person, f finding) (shown[video], error) {
	l, err := s.videos(ctx, p, f)
	return shown[video]{finding: l.finding, Rows: l.Rows}, err
}

// Some implements source.
func (s videoSource) Some(ctx context.Context, env id.Environment, of []id.Asset) (out []video, err error) {
	found, err := s.Assets.Some(ctx, env, of)
	for _, a := range found {
		out = append(out, s.video(a))
	}
	return out, err
}

// Fits implements source.
func (videoSource) Fits(f finding, v video) bool { return assetList{finding: f}.fits(v.Asset) }

// Gone implements source.
func (s videoSource) Gone(of id.Asset, name string) video {
	out := s.video(asset.Asset{ID: of})
	out.Options.Meta.Title = name
	return out
}

// Row, Name, Made, Moves and MadeOf are those of a row. Clocks of nodes differ: the order of events is that of their
// sequence.
func (h happened) Row() eventKey   { return keyOf(h.Sequence) }
func (h happened) Name() string    { return h.Type }
func (h happened) Made() time.Time { return time.Unix(h.Sequence, 0) }
func (h happened) Moves() bool     { return h.Waits() }
func (happened) MadeOf() id.Upload { return "" }

// eventSource has the rows of the event log. Each event is a new row. That a webhook got it, or did not, is no event.
type eventSource struct {
	*server
	uncounted
}

// About implements source.
func (eventSource) About(h happening) eventKey { return keyOf(h.sequence) }

// Load implements source.
func (s eventSource) Load(ctx context.Context, p access.Person, f finding) (shown[happened], error) {
	l, err := s.events(ctx, p, f)
	return shown[happened]{finding: l.finding, Rows: l.Rows}, err
}

// Some implements source.
func (s eventSource) Some(ctx context.Context, env id.Environment, keys []eventKey) ([]happened, error) {
	return s.someEvents(ctx, env, keys)
}

// Fits implements source.
func (eventSource) Fits(f finding, v happened) bool {
	return (f.Status == "" || v.Type == f.Status) && (f.Query == "" || v.ObjectID == f.Query || v.Resource == f.Query)
}

// Gone implements source.
func (eventSource) Gone(of eventKey, name string) happened {
	sequence, _ := strconv.ParseInt(string(of), 10, 64)
	return happened{Event: event.Event{Sequence: sequence, Type: name}}
}
