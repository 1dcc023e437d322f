package shell

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// PerPage is how many rows a page of a list has.
	PerPage = 50
	// maxSearched is how many rows a search looks through before it shows what it has found.
	maxSearched, searchPage = 1000, 100
	maxQuery                = 255 // bytes
)

// Selection is what of a list is shown, and how much of it there is.
type Selection struct {
	Status, Query string
	Page          int
	Before        int64  // of what has a sequence, in place of the page: what is before this one; 0: from the newest on
	Prev, Next    string // addresses
	From          int    // of a search: how many of the newest rows it leaves out
	Searched      int    // how many were looked through when there are more; 0: all
	Filtered      bool
	path          string    // of the list
	Names         [2]string // of Status and Query in addresses
}

// newest reports whether it is what new rows belong on.
func (s Selection) newest() bool { return s.Page <= 1 && s.Before == 0 && s.From == 0 }

// Select reads what a query asks for; a state that is none of states counts as all.
func Select(q url.Values, path string, states ...string) Selection {
	f := Selection{
		Status: q.Get("status"), Query: strings.TrimSpace(q.Get("q")), Page: max(1, number(q.Get("page"))), path: path,
		Names: [2]string{"status", "q"},
	}
	if !slices.Contains(states, f.Status) {
		f.Status = ""
	}
	if len(f.Query) > maxQuery || !utf8.ValidString(f.Query) {
		f.Query = ""
	}
	f.From = number(q.Get("from"))
	f.Filtered = f.Query != "" || f.Status != ""
	return f
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n > 1_000_000 {
		return 0
	}
	return n
}

// query is what the address of a page of the list says.
func (s Selection) query(page int) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{s.Names[0]: s.Status, s.Names[1]: s.Query} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if s.From > 0 {
		q.Set("from", strconv.Itoa(s.From))
	}
	if s.Before > 0 {
		q.Set("before", strconv.FormatInt(s.Before, 10))
	}
	return q
}

// Address is that of a page of the list.
func (s Selection) Address(page int) string {
	if q := s.query(page); len(q) > 0 {
		return s.path + "?" + q.Encode()
	}
	return s.path
}

// FollowAddress is the address of the events that change a page, with the rows that it has.
func FollowAddress[T any, ID ~string](f Selection, rows []T, of func(T) ID) string {
	q := f.query(f.Page)
	for _, row := range rows {
		q.Add("row", string(of(row)))
	}
	return f.path + "/follow?" + q.Encode()
}

// lister reads a page of a list, from 1, of so many rows.
type lister[T any] func(page, limit int) ([]T, error)

// Paged reads the page that is asked for, and looks whether there is another one.
func Paged[T any](f *Selection, list lister[T]) ([]T, error) {
	rows, err := list(f.Page, PerPage)
	if err != nil {
		return nil, err
	}
	if f.Page > 1 {
		f.Prev = f.Address(f.Page - 1)
	}
	if len(rows) == PerPage {
		more, err := list(f.Page*PerPage+1, 1)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			f.Next = f.Address(f.Page + 1)
		}
	}
	return rows, nil
}

// Searched looks through so many rows, the newest first, for those that fit, and ends with a page full of them. Next
// goes on where it has ended, and Prev leads back to the newest.
func Searched[T any](f *Selection, list lister[T], fits func(T) bool) (rows []T, err error) {
	f.Page = 1
	if f.From > 0 {
		f.Prev = f.from(0)
	}
	at := f.From
	for at < f.From+maxSearched {
		found, err := list(at/searchPage+1, searchPage)
		if err != nil {
			return nil, err
		}
		for _, v := range found[min(at%searchPage, len(found)):] {
			if len(rows) == PerPage && fits(v) {
				f.Next = f.from(at)
				return rows, nil
			}
			if fits(v) {
				rows = append(rows, v)
			}
			at++
		}
		if len(found) < searchPage {
			return rows, nil
		}
	}
	f.Searched, f.Next = maxSearched, f.from(at)
	return rows, nil
}

// from is the address of the search without so many of the newest rows.
func (s Selection) from(n int) string {
	s.From = n
	return s.Address(1)
}

// Contain reports whether a text is in one of others, whatever the case.
func Contain(want string, texts ...string) bool {
	want = strings.ToLower(want)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), want) })
}

// Each has a row for each of what was read.
func Each[T, R any](all []T, row func(T) R) []R {
	out := make([]R, len(all))
	for i, v := range all {
		out[i] = row(v)
	}
	return out
}
