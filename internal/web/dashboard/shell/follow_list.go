package shell

import (
	"context"
	"fmt"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/id"
)

const (
	maxNew     = 100 // rows that a page counts as new
	maxUploads = 50  // uploads that a page may name as its own
)

// FollowList keeps a page of a list up to date.
func FollowList[ID ~string, T Item[ID]](c *Rows[ID, T], find func(*Request) Selection) Handler {
	return func(r *Request) (View, error) {
		f := &followedList[ID, T]{
			c: c, asked: find(r), rows: map[ID]string{}, changed: map[ID]int64{}, moving: map[ID]string{},
			uploads: map[id.Upload]bool{},
		}
		q := r.URL.Query()
		for _, row := range atMostFirst(q["row"], PerPage) {
			f.rows[ID(row)] = ""
		}
		for _, u := range atMostFirst(q["upload"], maxUploads) {
			if u != "" {
				f.uploads[id.Upload(u)] = true
			}
		}
		return KeepOpen(f), nil
	}
}

// followedList is an open page of a list. Its rows change in their places and stay, also when they would not be listed
// any more; what is new waits until the page is loaded again, but for what the page has uploaded itself.
type followedList[ID ~string, T Item[ID]] struct {
	Loaded[T] // as it was when all of it was shown last

	c       *Rows[ID, T]
	asked   Selection
	rows    map[ID]string      // the names of those that it has
	changed map[ID]int64       // since when
	moving  map[ID]string      // those whose progress no events tell, as they were sent last
	uploads map[id.Upload]bool // that the page makes itself
	all     bool               // everything may have changed
	oldest  time.Time          // what was made before is on another page; zero: on this one
	fresh   map[ID]bool        // fit, and are not on the page
	count   int64              // sequence of what the counts have not in them; 0: nothing
	besides string             // what the part beside the rows was made of that was sent last
}

func (f *followedList[ID, T]) NoteAll() { f.all = true }

func (f *followedList[ID, T]) Note(h Change) bool {
	of := f.c.About(h)
	if of == "" {
		return false
	}
	f.count = h.Sequence
	if _, has := f.rows[of]; has || f.newest() {
		f.changed[of] = h.Sequence
	}
	return true
}

func (f *followedList[ID, T]) Show(
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
	for of := range f.moving {
		f.changed[of] = max(f.changed[of], 0)
	}
	changed, err := f.c.changed(ctx, p.Environment.ID, f.changed, sequence)
	if err != nil {
		return "", 0, err
	}
	size := 0
	for _, r := range changed {
		size += len(r.HTML)
	}
	out.Grow(size)
	for of, r := range changed {
		if err = f.showOne(&out, of, r); err != nil {
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
	if len(f.moving) > 0 && (again == 0 || again > ProgressTime) {
		again = ProgressTime
	}
	return out.String(), again, err
}

// beside shows what is new and the counts, when they are others.
func (f *followedList[ID, T]) beside(
	ctx context.Context, p access.Person, out *strings.Builder, sequence int64,
) (again time.Duration, err error) {
	if f.count > 0 && f.Query == "" {
		f.Counts, again, err = f.c.Count(ctx, p.Environment.ID, f.Selection, f.count, sequence)
		if err != nil {
			return 0, err
		}
	}
	if again == 0 {
		f.count = 0
	}
	besides := fmt.Sprint(f.New(), f.Counts)
	if besides == f.besides {
		return again, nil
	}
	f.besides = besides
	html, err := f.c.render("beside", f)
	out.WriteString(html)
	return again, err
}

// start reads the page as it would be loaded now: rows that it has are shown, others are new. Those that are not listed
// any more are left to be shown one by one.
func (f *followedList[ID, T]) start(
	ctx context.Context, p access.Person, rows *strings.Builder, sequence int64,
) (err error) {
	if f.Loaded, err = f.c.Load(ctx, p, f.asked); err != nil {
		return err
	}
	f.count = 0
	clear(f.changed)
	clear(f.moving)
	for of := range f.rows {
		f.changed[of] = sequence
	}
	f.fresh, f.oldest = map[ID]bool{}, time.Time{}
	for _, v := range f.Rows {
		of := v.Row()
		if _, has := f.rows[of]; has || f.uploaded(v) {
			html, err := f.c.render("row", v)
			if err != nil {
				return err
			}
			f.put(rows, of, CachedRow[T]{Of: v, HTML: html})
			delete(f.changed, of)
		} else if f.newest() {
			f.fresh[of] = true
		}
	}
	if n := len(f.Rows); n == PerPage {
		f.oldest = f.Rows[n-1].Made()
	}
	f.Rows = nil
	return nil
}

// uploaded reports whether something was made of an upload of the page itself.
func (f *followedList[ID, T]) uploaded(v T) bool {
	return f.uploads[v.MadeOf()]
}

// put shows a row that the page has, or gets.
func (f *followedList[ID, T]) put(rows *strings.Builder, of ID, r CachedRow[T]) {
	f.rows[of] = r.Of.Name()
	sent, moved := f.moving[of]
	if r.Of.Moves() {
		f.moving[of] = r.HTML
	} else {
		delete(f.moving, of)
	}
	if !moved || sent != r.HTML {
		rows.WriteString(r.HTML)
	}
}

// showOne shows what has changed: in its row, or as one more or less that is new.
func (f *followedList[ID, T]) showOne(rows *strings.Builder, of ID, r CachedRow[T]) error {
	name, has := f.rows[of]
	switch {
	case has && r.HTML == "":
		html, err := f.c.render("gone", f.c.Gone(of, name))
		if err != nil {
			return err
		}
		delete(f.moving, of)
		rows.WriteString(html)
	case has:
		f.put(rows, of, r)
	case r.HTML != "" && f.c.Fits(f.Selection, r.Of) && r.Of.Made().After(f.oldest):
		if f.uploaded(r.Of) {
			f.put(rows, of, r)
		} else if len(f.fresh) < maxNew {
			f.fresh[of] = true
		}
	default:
		delete(f.fresh, of)
	}
	return nil
}

// New is how many rows the page has not, as text; empty: none.
func (f *followedList[ID, T]) New() string { return AtMost(len(f.fresh), maxNew-1) }

// Self is the address of the page.
func (f *followedList[ID, T]) Self() string { return f.Address(f.Page) }

// atMostFirst are the first of all, at most so many.
func atMostFirst(all []string, most int) []string { return all[:min(len(all), most)] }
