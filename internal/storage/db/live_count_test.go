package db_test

import (
	"fmt"
	"maps"
	"testing"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestLiveCount: streams are counted by status up to a bound, and above it only those on air.
func TestLiveCount(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		n := 0
		add := func(env id.Environment, states ...live.State) {
			t.Helper()
			n++
			var all []live.Stream
			for i, state := range states {
				s := idleStream(env, fmt.Sprint(env, n, "-", i), at(i))
				if s.State = state; state.HasEncoder() || state == live.Reconnecting {
					s.ActiveAsset = "asset"
				}
				all = append(all, s)
			}
			insertStreams(t, d, all...)
		}
		wants := func(all int, of map[live.Status]int) {
			t.Helper()
			got, err := d.LiveStreams().Count(t.Context(), "env")
			if err != nil || got.All != all || !maps.Equal(got.Of, of) {
				t.Errorf("%+v, %v; want %d, %v", got, err, all, of)
			}
		}
		wants(0, map[live.Status]int{live.StatusActive: 0, live.StatusIdle: 0, live.StatusDisabled: 0})
		add("env", live.Idle, live.Connected, live.Recording, live.Active, live.Waiting, live.Reconnecting,
			live.Disabled)
		add("other", live.Active, live.Idle)
		wants(7, map[live.Status]int{live.StatusActive: 2, live.StatusIdle: 4, live.StatusDisabled: 1})
		many := make([]live.State, live.MaxCounted-7)
		for i := range many {
			many[i] = live.Idle
		}
		add("env", many...)
		wants(1000, map[live.Status]int{live.StatusActive: 2, live.StatusIdle: 997, live.StatusDisabled: 1})
		add("env", live.Active)
		wants(1001, map[live.Status]int{live.StatusActive: 3})
	})
}
