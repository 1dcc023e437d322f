package shell

import (
	"net/url"
	"slices"
	"testing"
)

// TestSearchGoesOn: a search shows a page at a time, goes on where it has ended, also where it has found nothing among
// as many rows as it looks through, and finds each row once.
func TestSearchGoesOn(t *testing.T) {
	t.Parallel()
	const rows = 2345
	list := func(page, limit int) (out []int, err error) {
		for n := (page - 1) * limit; n < min(page*limit, rows); n++ {
			out = append(out, n)
		}
		return out, nil
	}
	for what, fits := range map[string]func(int) bool{
		"many":      func(n int) bool { return n%7 == 0 },
		"each":      func(int) bool { return true },
		"the last":  func(n int) bool { return n == rows-1 },
		"none":      func(int) bool { return false },
		"one block": func(n int) bool { return n >= 1000 && n < 1050 },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var all, want []int
			for n := range rows {
				if fits(n) {
					want = append(want, n)
				}
			}
			at := LivePath + "?q=x"
			for pages := 0; at != ""; pages++ {
				u, err := url.Parse(at)
				if err != nil || pages > rows {
					t.Fatalf("page %d at %q: %v", pages, at, err)
				}
				f := Select(u.Query(), LivePath)
				found, err := Searched(&f, list, fits)
				if err != nil || len(found) > PerPage || f.newest() != (pages == 0) || (f.Prev == "") != (pages == 0) {
					t.Fatalf("page %d: %d rows, %+v, %v", pages, len(found), f, err)
				}
				all, at = append(all, found...), f.Next
			}
			if !slices.Equal(all, want) {
				t.Errorf("found %d of %d: %v", len(all), len(want), all)
			}
		})
	}
}
