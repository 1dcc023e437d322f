package id_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/id"
)

var opaque = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// TestNew makes IDs that are of one length and never the same.
func TestNew(t *testing.T) {
	t.Parallel()
	at, seen := time.Now(), map[string]bool{}
	for range 1000 {
		for _, made := range []struct {
			id     string
			length int
		}{{id.New(), 44}, {id.NewOrdered(at), 31}} {
			if len(made.id) != made.length || !opaque.MatchString(made.id) || seen[made.id] {
				t.Fatalf("%q, seen before: %v; want another one of %d letters and digits", made.id, seen[made.id],
					made.length)
			}
			seen[made.id] = true
		}
	}
}

// TestNewIsRandom finds each digit at each place of what is random.
func TestNewIsRandom(t *testing.T) {
	t.Parallel()
	found, ordered := make([]map[byte]bool, 44), make([]map[byte]bool, 22)
	note := func(all []map[byte]bool, text string) {
		for i := range all {
			if all[i] == nil {
				all[i] = map[byte]bool{}
			}
			all[i][text[i]] = true
		}
	}
	for range 5000 {
		note(found, id.New())
		note(ordered, id.NewOrdered(time.Now())[9:])
	}
	for i, digits := range slices.Concat(found, ordered) {
		if i%11 < 10 && len(digits) != 62 { // the last of 11 digits is less than 22
			t.Errorf("%d digits at place %d, want 62", len(digits), i)
		}
	}
}

// TestNewOrderedByTime has those of a later millisecond behind, also where an order does not tell capitals apart.
func TestNewOrderedByTime(t *testing.T) {
	t.Parallel()
	var all []string
	at := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)
	all = append(all, id.NewOrdered(at))
	for _, step := range []time.Duration{
		2 * 365 * 24 * time.Hour, 50 * 365 * 24 * time.Hour, time.Second, time.Hour, 100 * 365 * 24 * time.Hour,
	} {
		at = at.Add(step)
		for range 100 {
			at = at.Add(time.Millisecond)
			all = append(all, id.NewOrdered(at))
		}
	}
	if !slices.IsSorted(all) || !slices.IsSortedFunc(all, func(a, b string) int {
		return strings.Compare(strings.ToLower(a), strings.ToLower(b))
	}) {
		t.Errorf("not in the order of their times: %q", all)
	}
}
