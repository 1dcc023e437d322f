package streams

import (
	"context"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// Row, Name, Made, Moves and MadeOf are those of a row.
func (s stream) Row() id.LiveStream { return s.ID }
func (s stream) Name() string       { return s.Settings.Meta.Title }
func (s stream) Made() time.Time    { return s.CreatedAt }
func (stream) Moves() bool          { return false }
func (stream) MadeOf() id.Upload    { return "" }

// streamSource has the rows of the list of live streams.
type streamSource struct{ *room }

// About implements source.
func (streamSource) About(h shell.Change) id.LiveStream {
	if h.Own {
		return h.Stream
	}
	return ""
}

// Load implements source.
func (s streamSource) Load(ctx context.Context, p access.Person, f shell.Selection) (shell.Loaded[stream], error) {
	l, err := s.streams(ctx, p, f)
	return shell.Loaded[stream]{Selection: l.Selection, Counts: l.Counts(), Rows: l.Rows}, err
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
func (streamSource) Fits(f shell.Selection, v stream) bool {
	return listing{Selection: f}.fits(v.Stream)
}

// Gone implements source.
func (s streamSource) Gone(of id.LiveStream, name string) stream {
	out := s.stream(live.Stream{ID: of})
	out.Settings.Meta.Title = name
	return out
}

// Count implements source.
func (s streamSource) Count(
	ctx context.Context, env id.Environment, f shell.Selection, since, now int64,
) ([]shell.Count, time.Duration, error) {
	n, again, err := s.count(ctx, env, since, now)
	return listing{Selection: f, counts: n}.Counts(), again, err
}
