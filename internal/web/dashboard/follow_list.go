package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/id"
)

const (
	maxRows = 500 // rows that are kept for other pages
	maxNew  = 100 // live streams that a page counts as new
)

// rowCache has the rows of lists that have changed, rendered once for all pages.
type rowCache struct {
	turn turn
	rows map[rowKey]cachedRow
}

type rowKey struct {
	environment id.Environment
	stream      id.LiveStream
}

// cachedRow is a row as it was behind an event.
type cachedRow struct {
	sequence int64
	stream   live.Stream
	html     string // empty: the live stream is deleted
}

func newRowCache() *rowCache { return &rowCache{turn: newTurn(), rows: map[rowKey]cachedRow{}} }

// changed gives rows of live streams, each with what happened up to a sequence in it. now is one that has happened
// already.
func (s *server) changed(
	ctx context.Context, env id.Environment, since map[id.LiveStream]int64, now int64,
) (map[id.LiveStream]cachedRow, error) {
	if err := s.rows.turn.take(ctx); err != nil {
		return nil, err
	}
	defer s.rows.turn.give()
	out := make(map[id.LiveStream]cachedRow, len(since))
	var missing []id.LiveStream
	for stream, sequence := range since {
		r, ok := s.rows.rows[rowKey{env, stream}]
		if !ok || r.sequence < sequence {
			r = cachedRow{sequence: now}
			missing = append(missing, stream)
		}
		out[stream] = r
	}
	for some := range slices.Chunk(missing, live.MaxSome) {
		found, err := s.Live.Some(ctx, env, some)
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			html, err := s.renderPart("row", s.stream(v))
			if err != nil {
				return nil, err
			}
			out[v.ID] = cachedRow{now, v, html}
		}
	}
	if len(s.rows.rows)+len(missing) > maxRows {
		clear(s.rows.rows)
	}
	for _, stream := range missing {
		s.rows.rows[rowKey{env, stream}] = out[stream]
	}
	return out, nil
}

// renderPart renders a part of the list.
func (s *server) renderPart(name string, v any) (string, error) {
	var b strings.Builder
	err := s.views["live"].ExecuteTemplate(&b, name, v)
	return b.String(), err
}

// followList keeps a page of the list up to date.
func (s *server) followList(w http.ResponseWriter, r *http.Request, p access.Person) {
	q := r.URL.Query()
	f := &followedList{s: s, rows: map[id.LiveStream]string{}, changed: map[id.LiveStream]int64{}}
	for _, row := range q["row"][:min(len(q["row"]), perPage)] {
		f.rows[id.LiveStream(row)] = ""
	}
	f.read = func(ctx context.Context, p access.Person) (listing, error) { return s.listing(ctx, p, q) }
	s.keepUpToDate(w, r, p, f)
}

// followedList is an open page of the list. Its rows change in their places and stay, also when they would not be
// listed any more; what is new waits until the page is loaded again.
type followedList struct {
	listing // as it was when all of it was shown last

	s       *server
	read    func(context.Context, access.Person) (listing, error)
	rows    map[id.LiveStream]string // the names of those that it has
	changed map[id.LiveStream]int64  // since when
	all     bool                     // everything may have changed
	oldest  time.Time                // live streams that were made before are on another page; zero: on this one
	fresh   map[id.LiveStream]bool   // fit, and are not on the page
	count   int64                    // sequence of what the counts have not in them; 0: nothing
	said    string                   // what the part beside the rows was made of that was sent last
}

func (f *followedList) noteAll() { f.all = true }

func (f *followedList) note(h happening) bool {
	if !h.own {
		return false
	}
	f.count = h.sequence
	if _, has := f.rows[h.stream]; has || f.Page <= 1 {
		f.changed[h.stream] = h.sequence
	}
	return true
}

func (f *followedList) show(
	ctx context.Context, p access.Person, sequence int64,
) (parts string, again time.Duration, err error) {
	var out strings.Builder
	const before, after = "<table><tbody>", "</tbody></table>"
	out.WriteString(before)
	if f.all {
		if err = f.start(ctx, p, &out, sequence); err != nil {
			return "", 0, err
		}
	}
	changed, err := f.s.changed(ctx, p.Environment.ID, f.changed, sequence)
	if err != nil {
		return "", 0, err
	}
	size := 0
	for _, r := range changed {
		size += len(r.html)
	}
	out.Grow(size)
	for stream, r := range changed {
		if err = f.showOne(&out, stream, r); err != nil {
			return "", 0, err
		}
	}
	clear(f.changed)
	f.all = false
	if out.Len() == len(before) {
		out.Reset()
	} else {
		out.WriteString(after)
	}
	again, err = f.beside(ctx, p, &out, sequence)
	return out.String(), again, err
}

// beside shows what is new and the counts, when they are others.
func (f *followedList) beside(
	ctx context.Context, p access.Person, out *strings.Builder, sequence int64,
) (again time.Duration, err error) {
	if f.count > 0 && f.Query == "" {
		f.counts, again, err = f.s.count(ctx, p.Environment.ID, f.count, sequence)
		if err != nil {
			return 0, err
		}
	}
	if again == 0 {
		f.count = 0
	}
	said := fmt.Sprint(f.New(), f.Counts())
	if said == f.said {
		return again, nil
	}
	f.said = said
	return again, f.s.views["live"].ExecuteTemplate(out, "beside", f)
}

// start reads the page as it would be loaded now: rows that it has are shown, others are new. Those that are not listed
// any more are left to be shown one by one.
func (f *followedList) start(ctx context.Context, p access.Person, rows *strings.Builder, sequence int64) (err error) {
	if f.listing, err = f.read(ctx, p); err != nil {
		return err
	}
	f.count = 0
	clear(f.changed)
	for stream := range f.rows {
		f.changed[stream] = sequence
	}
	f.fresh, f.oldest = map[id.LiveStream]bool{}, time.Time{}
	for _, v := range f.Rows {
		if _, has := f.rows[v.ID]; has {
			html, err := f.s.renderPart("row", v)
			if err != nil {
				return err
			}
			rows.WriteString(html)
			f.rows[v.ID] = v.Settings.Meta.Title
			delete(f.changed, v.ID)
		} else if f.Page == 1 {
			f.fresh[v.ID] = true
		}
	}
	if n := len(f.Rows); n == perPage {
		f.oldest = f.Rows[n-1].CreatedAt
	}
	f.Rows = nil
	return nil
}

// showOne shows a live stream that has changed: in its row, or as one more or less that is new.
func (f *followedList) showOne(rows *strings.Builder, of id.LiveStream, r cachedRow) error {
	name, has := f.rows[of]
	switch {
	case has && r.html == "":
		gone := stream{Stream: live.Stream{ID: of}}
		gone.Settings.Meta.Title = name
		html, err := f.s.renderPart("gone", gone)
		if err != nil {
			return err
		}
		rows.WriteString(html)
	case has:
		rows.WriteString(r.html)
		f.rows[of] = r.stream.Settings.Meta.Title
	case r.html != "" && f.fits(r.stream) && r.stream.CreatedAt.After(f.oldest):
		if len(f.fresh) < maxNew {
			f.fresh[of] = true
		}
	default:
		delete(f.fresh, of)
	}
	return nil
}

// New is how many live streams the page has not, as text; empty: none.
func (f *followedList) New() string { return atMost(len(f.fresh), maxNew-1) }

// atMost is a number as text, which says so when there are more than most; 0 is empty.
func atMost(n, most int) string {
	switch {
	case n == 0:
		return ""
	case n > most:
		return strconv.Itoa(most) + "+"
	}
	return strconv.Itoa(n)
}
