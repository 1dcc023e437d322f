package db_test

import (
	"maps"
	"slices"
	"testing"

	"millrace/internal/control/audience"
	"millrace/internal/sketch"
	"millrace/internal/storage/db/dbtest"
)

func TestAudiences(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		s := dbtest.Open(t, url).Audiences()
		const p, q = 1<<63 + 5, 7 // one of them is negative as a column
		of := func(viewers ...uint64) sketch.Sketch { return sketch.Of(viewers) }
		tell := func(v audience.Views) {
			t.Helper()
			if err := s.Tell(t.Context(), "a", v); err != nil {
				t.Fatal(err)
			}
		}
		report := func(want audience.Views, keys ...uint64) {
			t.Helper()
			got, err := s.Reported(t.Context(), "b", keys)
			if err != nil || len(got) > 1 {
				t.Fatal(got, err)
			}
			var v audience.Views
			if len(got) > 0 {
				v = got[0]
			}
			if !maps.EqualFunc(v, want, func(a, b sketch.Sketch) bool { return slices.Equal(a, b) }) {
				t.Errorf("%v, want %v", v, want)
			}
		}
		tell(audience.Views{p: of(1, 2, 1<<64-1), q: of(3)})
		report(audience.Views{p: of(1, 2, 1<<64-1), q: of(3)}, p, q, 9)
		report(audience.Views{q: of(3)}, q)
		report(nil)
		tell(audience.Views{q: of(4)})
		report(audience.Views{q: of(4)}, p, q)
		if own, err := s.Reported(t.Context(), "a", []uint64{q}); err != nil || len(own) != 0 {
			t.Errorf("its own: %v, %v", own, err)
		}
		tell(nil)
		report(nil, p, q)
	})
}
