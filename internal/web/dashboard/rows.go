package dashboard

import (
	"context"
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

// kind is what the rows of lists are about: live streams or assets.
type kind[ID ~string, T any] struct {
	view  *viewer            // the page with the templates row and gone
	about func(happening) ID // what has changed by it; empty: none of these
	id    func(T) ID
	title func(T) string // as it is shown; empty: it has no name
	made  func(T) time.Time
	fits  func(finding, T) bool
	// rows are those of which the template row is made, in the order of what they show.
	rows   func(context.Context, []T) []any
	gone   func(of ID, name string) T // one that is deleted, as far as it is known
	moving func(T) bool               // work goes on whose progress no events tell; nil: never
	upload func(T) id.Upload          // that it was made of; empty: of none. nil: none of these are
	some   func(context.Context, id.Environment, []ID) ([]T, error)
	load   func(context.Context, access.Person, finding) (shown[T], error)
	// count counts for the filter, as server.count does; nil: it has no numbers.
	count func(ctx context.Context, env id.Environment, f finding, since, now int64) ([]count, time.Duration, error)
}

// each is kind.rows where one row does not depend on what is known elsewhere.
func each[T any](row func(T) any) func(context.Context, []T) []any {
	return func(_ context.Context, all []T) (out []any) {
		for _, v := range all {
			out = append(out, row(v))
		}
		return out
	}
}

// viewer renders parts of one page.
type viewer struct {
	views views
	page  string
}

func (v *viewer) render(name string, of any) (string, error) {
	var b strings.Builder
	err := v.views[v.page].ExecuteTemplate(&b, name, of)
	return b.String(), err
}

// shown is a page of a list as it is loaded.
type shown[T any] struct {
	finding

	Counts []count
	rows   []T
}

// rowCache has the rows of lists that have changed, rendered once for all pages.
type rowCache[ID ~string, T any] struct {
	kind[ID, T]

	lock follow.Lock
	rows map[rowKey[ID]]cachedRow[T]
}

type rowKey[ID ~string] struct {
	environment id.Environment
	of          ID
}

// cachedRow is a row as it was behind an event.
type cachedRow[T any] struct {
	sequence int64
	of       T
	html     string // empty: it is deleted
	moves    bool
	at       time.Time // when it was read
}

func newRowCache[ID ~string, T any](of kind[ID, T]) *rowCache[ID, T] {
	return &rowCache[ID, T]{kind: of, lock: follow.NewLock(), rows: map[rowKey[ID]]cachedRow[T]{}}
}

// changed gives rows, each with what happened up to a sequence in it, and none whose progress is older than a look. now
// is one that has happened already.
func (c *rowCache[ID, T]) changed(
	ctx context.Context, env id.Environment, since map[ID]int64, now int64,
) (map[ID]cachedRow[T], error) {
	if err := c.lock.Lock(ctx); err != nil {
		return nil, err
	}
	defer c.lock.Unlock()
	out := make(map[ID]cachedRow[T], len(since))
	var missing []ID
	for of, sequence := range since {
		r, ok := c.rows[rowKey[ID]{env, of}]
		if !ok || r.sequence < sequence || r.moves && time.Since(r.at) >= progressTime {
			r = cachedRow[T]{sequence: now}
			missing = append(missing, of)
		}
		out[of] = r
	}
	for some := range slices.Chunk(missing, maxAtOne) {
		found, err := c.some(ctx, env, some)
		if err != nil {
			return nil, err
		}
		shown := c.kind.rows(ctx, found)
		for i, v := range found {
			html, err := c.view.render("row", shown[i])
			if err != nil {
				return nil, err
			}
			out[c.id(v)] = cachedRow[T]{now, v, html, c.moves(v), time.Now()}
		}
	}
	if len(c.rows)+len(missing) > maxRows {
		clear(c.rows)
	}
	for _, of := range missing {
		c.rows[rowKey[ID]{env, of}] = out[of]
	}
	return out, nil
}

func (c *rowCache[ID, T]) moves(v T) bool { return c.moving != nil && c.moving(v) }
