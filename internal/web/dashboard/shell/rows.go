package shell

import (
	"context"
	"html/template"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/id"
	"millrace/internal/web/follow"
)

const (
	maxRows  = 500 // rows of one kind that are kept for other pages
	maxAtOne = 100 // things that are read at once by their IDs: live.MaxSome, asset.MaxSome
)

// Item is a row of a list as its page shows it.
type Item[ID ~string] interface {
	Row() ID
	Name() string    // as it is shown; empty: it has none
	Made() time.Time // lists have the newest first
	Moves() bool     // work goes on whose progress no events tell
	MadeOf() id.Upload
}

// Source is where the rows of a list come from: live streams, assets or events.
type Source[ID ~string, T Item[ID]] interface {
	// About is what has changed by something that happened; empty: none of these.
	About(h Change) ID
	// Load reads a page of the list.
	Load(ctx context.Context, p access.Person, f Selection) (Loaded[T], error)
	// Some reads rows; what is gone is left out.
	Some(ctx context.Context, env id.Environment, of []ID) ([]T, error)
	// Fits reports whether a row is one of those that are asked for.
	Fits(f Selection, v T) bool
	// Gone is a row that is deleted, as far as it is known.
	Gone(of ID, name string) T
	// Count counts for the filter, with what happened up to since. now has happened already. again: these numbers are
	// those of a moment ago, and may be counted again then.
	Count(
		ctx context.Context, env id.Environment, f Selection, since, now int64,
	) (_ []Count, again time.Duration, _ error)
}

// Count is a number beside a choice of the filter.
type Count struct{ Of, N string }

// Uncounted is of a source whose list has no numbers.
type Uncounted struct{}

// Count implements source.
func (Uncounted) Count(
	context.Context, id.Environment, Selection, int64, int64,
) ([]Count, time.Duration, error) {
	return nil, 0, nil
}

// Loaded is a page of a list as it is loaded.
type Loaded[T any] struct {
	Selection

	Counts []Count
	Rows   []T
}

// Rows has the rows of lists that have changed, rendered once for all pages.
type Rows[ID ~string, T Item[ID]] struct {
	Source[ID, T]

	page *template.Template // with the parts row, gone and beside
	lock follow.Lock
	rows map[rowKey[ID]]CachedRow[T]
}

type rowKey[ID ~string] struct {
	environment id.Environment
	of          ID
}

// CachedRow is a row as it was behind an event.
type CachedRow[T any] struct {
	sequence int64
	Of       T
	HTML     string    // empty: it is deleted
	at       time.Time // when it was read
}

// NewRows is of the rows of a page.
func NewRows[ID ~string, T Item[ID]](s *Shell, page string, from Source[ID, T]) *Rows[ID, T] {
	return &Rows[ID, T]{
		Source: from, page: s.views[page], lock: follow.NewLock(), rows: map[rowKey[ID]]CachedRow[T]{},
	}
}

// render renders a part of the page.
func (rw *Rows[ID, T]) render(part string, of any) (string, error) {
	var b strings.Builder
	err := rw.page.ExecuteTemplate(&b, part, of)
	return b.String(), err
}

// changed gives rows, each with what happened up to a sequence in it, and none whose progress is older than a look. now
// is one that has happened already.
func (rw *Rows[ID, T]) changed(
	ctx context.Context, env id.Environment, since map[ID]int64, now int64,
) (map[ID]CachedRow[T], error) {
	if err := rw.lock.Lock(ctx); err != nil {
		return nil, err
	}
	defer rw.lock.Unlock()
	out := make(map[ID]CachedRow[T], len(since))
	var missing []ID
	for of, sequence := range since {
		r, ok := rw.rows[rowKey[ID]{env, of}]
		if !ok || r.sequence < sequence || r.HTML != "" && r.Of.Moves() && time.Since(r.at) >= ProgressTime {
			r = CachedRow[T]{sequence: now}
			missing = append(missing, of)
		}
		out[of] = r
	}
	for some := range slices.Chunk(missing, maxAtOne) {
		found, err := rw.Some(ctx, env, some)
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			html, err := rw.render("row", v)
			if err != nil {
				return nil, err
			}
			out[v.Row()] = CachedRow[T]{now, v, html, time.Now()}
		}
	}
	if len(rw.rows)+len(missing) > maxRows {
		clear(rw.rows)
	}
	for _, of := range missing {
		rw.rows[rowKey[ID]{env, of}] = out[of]
	}
	return out, nil
}
