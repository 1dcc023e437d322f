package db_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// fullStream has every field set, so that a forgotten column is found.
func fullStream(name string) live.Stream {
	return live.Stream{
		ID: id.LiveStream("s-" + name), Environment: "env", StreamKey: "key-" + name, SRTPassphrase: "pass-" + name,
		State: live.Active,
		Settings: live.Settings{
			LatencyMode: live.Low, ReconnectWindow: 12.5, ReconnectChosen: true, SlateForStandard: true,
			ReconnectSlateURL: "https://h/s?a=b",
			MaxContinuous:     600, Passthrough: "it's \"ä?\" -- \\ 🎥",
			Meta:      assetopt.Meta{Title: "t", CreatorID: "c", ExternalID: "e"},
			AudioOnly: true, Test: true,
			NewAsset: &assetopt.Options{Passthrough: "p", PlaybackPolicies: []playbackid.Policy{"signed"}},
			EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
				{Name: "n", LanguageCode: "en", LanguageChannel: "cc1", Passthrough: "x"},
			},
			GeneratedSubtitles: []assetopt.GeneratedSubtitle{
				{Name: "g", LanguageCode: "de", VocabularyIDs: []string{"v"}},
			},
			SimulcastTargets: []live.SimulcastTarget{{ID: "t", URL: "rtmp://h/app", StreamKey: "k", Passthrough: "y"}},
		},
		PlaybackIDs: []playbackid.ID{
			{ID: id.Playback("p2-" + name), Policy: "public"},
			{ID: id.Playback("p1-" + name), Policy: "drm", DRMConfigurationID: "d"},
		},
		Epoch: 7, ActiveAsset: "asset", RecentAssets: []id.Asset{"old", "newer"}, Protocol: "rtmp", CreatedAt: at(1),
		UpdatedAt: at(2),
		StartedAt: at(3), DisconnectedAt: at(4), Owner: live.Owner{Node: "node", Run: "run"}, ActiveAt: at(6),
		Silent: true, EndWanted: live.EndComplete, Revision: 3, Generation: 4, Reserved: 5, Orphaned: true,
	}
}

func idleStream(env id.Environment, name string, created time.Time) live.Stream {
	return live.Stream{
		ID: id.LiveStream("s-" + name), Environment: env, StreamKey: "key-" + name, State: live.Idle,
		CreatedAt: created, UpdatedAt: created,
		Settings: live.Settings{LatencyMode: live.Standard},
	}
}

func insertStreams(t *testing.T, d *db.DB, streams ...live.Stream) {
	t.Helper()
	for _, s := range streams {
		must(t, d.LiveStreams().Insert(t.Context(), live.Change{Stream: s}))
	}
}

func names(streams []live.Stream) []string {
	out := []string{}
	for _, s := range streams {
		out = append(out, string(s.ID))
	}
	return out
}

func TestLiveRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.LiveStreams()
		want := fullStream("a")
		every(t, want, "DeletedAt")
		must(t, store.Insert(t.Context(), live.Change{Stream: want, Events: happened("one"), Jobs: wish("k")}))
		for how, read := range map[string]func() (live.Stream, error){
			"get":  func() (live.Stream, error) { return store.Get(t.Context(), "env", want.ID) },
			"find": func() (live.Stream, error) { return store.Find(t.Context(), want.ID) },
			"key":  func() (live.Stream, error) { return store.ByKey(t.Context(), want.StreamKey) },
		} {
			got, err := read()
			must(t, err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s gives\n%+v, want\n%+v", how, got, want)
			}
		}
		if got := eventTypes(t, d); !slices.Equal(got, []string{"one"}) {
			t.Errorf("events %v", got)
		}
		if n := pending(t, d, "k"); n != 1 {
			t.Errorf("%d jobs, want 1", n)
		}
		next := want
		next.State, next.Settings.Passthrough, next.EndWanted = live.Disabled, "", live.EndDelete
		next.PlaybackIDs = []playbackid.ID{want.PlaybackIDs[1], {ID: "p3", Policy: "signed"}}
		next.DeletedAt = at(9)
		must(t,
			store.Save(t.Context(), live.Change{
				From: live.Active, FromEpoch: 7, Stream: next, Events: happened("two"),
			}))
		next.Revision++
		got, err := store.Find(t.Context(), want.ID)
		must(t, err)
		if !reflect.DeepEqual(got, next) {
			t.Errorf("after save\n%+v, want\n%+v", got, next)
		}
	})
}

// every fails for fields of v that are zero, but for those named.
func every(t *testing.T, v any, but ...string) {
	t.Helper()
	val := reflect.ValueOf(v)
	for i := range val.NumField() {
		if name := val.Type().Field(i).Name; val.Field(i).IsZero() && !slices.Contains(but, name) {
			t.Errorf("the test sets no %s", name)
		}
	}
}

func TestLiveAbsent(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, ctx := d.LiveStreams(), t.Context()
		gone := fullStream("gone")
		gone.DeletedAt, gone.PlaybackIDs = at(1), nil
		insertStreams(t, d, idleStream("env", "a", at(0)), gone)
		for what, read := range map[string]func() (live.Stream, error){
			"other environment": func() (live.Stream, error) { return store.Get(ctx, "other", "s-a") },
			"unknown":           func() (live.Stream, error) { return store.Get(ctx, "env", "s-x") },
			"unknown to find":   func() (live.Stream, error) { return store.Find(ctx, "s-x") },
			"unknown key":       func() (live.Stream, error) { return store.ByKey(ctx, "key-x") },
			"another case":      func() (live.Stream, error) { return store.Get(ctx, "env", "S-A") },
			"U+0000":            func() (live.Stream, error) { return store.Get(ctx, "env", "s-a\x00") },
			"not UTF-8":         func() (live.Stream, error) { return store.ByKey(ctx, "\xff") },
			"deleted":           func() (live.Stream, error) { return store.Get(ctx, "env", gone.ID) },
			"deleted, by key":   func() (live.Stream, error) { return store.ByKey(ctx, gone.StreamKey) },
		} {
			t.Run(what, func(t *testing.T) {
				_, err := read()
				wantKind(t, err, fault.NotFound)
			})
		}
		if _, err := store.Find(ctx, gone.ID); err != nil {
			t.Errorf("a deleted stream with a broadcast is not found by the media side: %v", err)
		}
		all, err := store.Broadcasting(ctx)
		must(t, err)
		if got := names(all); !slices.Equal(got, []string{"s-gone"}) {
			t.Errorf("broadcasting are %v", got)
		}
		all, err = store.List(ctx, "env", live.ListQuery{Page: 1, Limit: 10})
		must(t, err)
		if got := names(all); !slices.Equal(got, []string{"s-a"}) {
			t.Errorf("listed are %v", got)
		}
		unknown := idleStream("env", "x", at(0))
		wantKind(t, store.Save(ctx, live.Change{From: live.Idle, Stream: unknown}), fault.NotFound)
		wantKind(t, store.Delete(ctx, live.Change{From: live.Idle, Stream: unknown}), fault.NotFound)
		_, _, err = store.Hold(ctx, "s-x", live.Owner{Node: "n", Run: "r"})
		wantKind(t, err, fault.NotFound)
	})
}

func TestLiveInsertTwice(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		insertStreams(t, d, idleStream("env", "a", at(0)))
		sameKey := idleStream("env", "b", at(0))
		sameKey.StreamKey = "key-a"
		for _, s := range []live.Stream{idleStream("env", "a", at(0)), sameKey} {
			err := d.LiveStreams().Insert(t.Context(), live.Change{Stream: s, Events: happened("x"), Jobs: wish("x")})
			wantKind(t, err, fault.Conflict)
		}
		if n := pending(t, d, "x"); n != 0 || len(eventTypes(t, d)) != 0 {
			t.Errorf("a refused insert left %d jobs and events %v", n, eventTypes(t, d))
		}
	})
}

// TestLiveRollback makes the last step of a change fail: nothing of it may stay.
func TestLiveRollback(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		s := idleStream("env", "a", at(0))
		insertStreams(t, d, s)
		broken := happened("one")
		broken = append(broken, broken[0]) // the same event ID twice
		s.PlaybackIDs = []playbackid.ID{{ID: "p", Policy: "public"}}
		s.Settings.Passthrough = "changed"
		if err := d.LiveStreams().Save(t.Context(), live.Change{
			From: live.Idle, Stream: s, Events: broken, Jobs: wish("k"),
		}); err == nil {
			t.Fatal("saved")
		}
		got, err := d.LiveStreams().Find(t.Context(), s.ID)
		must(t, err)
		if got.Settings.Passthrough != "" || len(got.PlaybackIDs) != 0 || got.Revision != 0 {
			t.Errorf("left behind: %+v", got)
		}
		if n := pending(t, d, "k"); n != 0 || len(eventTypes(t, d)) != 0 {
			t.Errorf("left behind: %d jobs, events %v", n, eventTypes(t, d))
		}
	})
}

func TestLiveCompareAndSet(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.LiveStreams()
		s := idleStream("env", "a", at(0))
		s.Epoch, s.Revision = 4, 9
		insertStreams(t, d, s)
		for what, c := range map[string]live.Change{
			"state": {From: live.Active, FromEpoch: 4, Stream: s},
			"epoch": {From: live.Idle, FromEpoch: 3, Stream: s},
			"revision": {
				From: live.Idle, FromEpoch: 4, Stream: func() live.Stream { o := s; o.Revision = 8; return o }(),
			},
		} {
			t.Run(what, func(t *testing.T) {
				c.Events, c.Jobs = happened("x"), wish("x")
				wantKind(t, store.Save(t.Context(), c), fault.Conflict)
				wantKind(t, store.Delete(t.Context(), c), fault.Conflict)
			})
		}
		if n := pending(t, d, "x"); n != 0 || len(eventTypes(t, d)) != 0 {
			t.Errorf("a late writer left %d jobs and events %v", n, eventTypes(t, d))
		}
		errs := together(16, func(i int) error {
			mine := s
			mine.State, mine.Settings.Passthrough = live.Connected, fmt.Sprint(i)
			return store.Save(t.Context(), live.Change{
				From: live.Idle, FromEpoch: 4, Stream: mine, Events: happened("won"),
			})
		})
		if won, lost := count(errs, isNil), count(errs, isConflict); won != 1 || lost != 15 {
			t.Errorf("%d writers won and %d lost, want 1 and 15: %v", won, lost, errs)
		}
		if got := eventTypes(t, d); len(got) != 1 {
			t.Errorf("events %v, want one", got)
		}
	})
}

func TestLiveDelete(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		s := fullStream("a")
		insertStreams(t, d, s, fullStream("b"))
		must(t,
			d.LiveStreams().Delete(t.Context(), live.Change{
				From: live.Active, FromEpoch: 7, Stream: s, Events: happened("deleted"), Jobs: wish("k"),
			}))
		_, err := d.LiveStreams().Find(t.Context(), s.ID)
		wantKind(t, err, fault.NotFound)
		_, err = d.Access().PlaybackID(t.Context(), s.PlaybackIDs[0].ID)
		wantKind(t, err, fault.NotFound)
		if _, err = d.Access().PlaybackID(t.Context(), "p1-b"); err != nil {
			t.Errorf("another stream's playback ID went along: %v", err)
		}
		if n := pending(t, d, "k"); n != 1 || len(eventTypes(t, d)) != 1 {
			t.Errorf("%d jobs and events %v, want one each", n, eventTypes(t, d))
		}
	})
}

func TestLiveList(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		var all []live.Stream
		states := []live.State{
			live.Idle, live.Connected, live.Recording, live.Active, live.Waiting, live.Reconnecting, live.Disabled,
		}
		for i, state := range states {
			s := idleStream("env", fmt.Sprint(i), at(i/2)) // some at the same time
			s.State = state
			s.PlaybackIDs = []playbackid.ID{{ID: id.Playback(fmt.Sprint("p", i)), Policy: "public"}}
			all = append(all, s)
		}
		insertStreams(t, d, all...)
		insertStreams(t, d, idleStream("other", "x", at(1)))
		for _, tt := range []struct {
			what string
			q    live.ListQuery
			want []string
		}{
			{"newest first", live.ListQuery{Page: 1, Limit: 3}, []string{"s-6", "s-5", "s-4"}},
			{"second page", live.ListQuery{Page: 2, Limit: 3}, []string{"s-3", "s-2", "s-1"}},
			{"last page", live.ListQuery{Page: 3, Limit: 3}, []string{"s-0"}},
			{"behind the end", live.ListQuery{Page: 4, Limit: 3}, []string{}},
			{"idle", live.ListQuery{Page: 1, Limit: 10, Status: live.StatusIdle}, []string{"s-4", "s-2", "s-1", "s-0"}},
			{"active", live.ListQuery{Page: 1, Limit: 10, Status: live.StatusActive}, []string{"s-5", "s-3"}},
			{"disabled", live.ListQuery{Page: 1, Limit: 10, Status: live.StatusDisabled}, []string{"s-6"}},
			{"by key", live.ListQuery{Page: 1, Limit: 10, StreamKey: "key-2"}, []string{"s-2"}},
			{"by another's key", live.ListQuery{Page: 1, Limit: 10, StreamKey: "key-x"}, []string{}},
			{"by an impossible key", live.ListQuery{Page: 1, Limit: 10, StreamKey: "\x00"}, []string{}},
		} {
			t.Run(tt.what, func(t *testing.T) {
				got, err := d.LiveStreams().List(t.Context(), "env", tt.q)
				must(t, err)
				if !slices.Equal(names(got), tt.want) {
					t.Errorf("got %v, want %v", names(got), tt.want)
				}
				for _, s := range got {
					if len(s.PlaybackIDs) != 1 {
						t.Errorf("%s has %d playback IDs", s.ID, len(s.PlaybackIDs))
					}
				}
			})
		}
	})
}

// TestCreateLatency is no timed test; it logs what 16 clients see, and that all of them get through.
func TestCreateLatency(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx, stop := context.WithCancel(t.Context())
		var house sync.WaitGroup
		house.Go(func() { must(t, d.Run(ctx)) })
		defer house.Wait()
		defer stop()
		service := live.New(live.Options{Store: d.LiveStreams()})
		const clients, each = 16, 40
		took := make([][]time.Duration, clients)
		errs := together(clients, func(i int) error {
			for range each {
				began := time.Now()
				if _, err := service.Create(t.Context(), "env", live.CreateInput{
					PlaybackPolicies: []playbackid.Policy{"public"},
				}, began); err != nil {
					return err
				}
				took[i] = append(took[i], time.Since(began))
			}
			return nil
		})
		if n := count(errs, isNil); n != clients {
			t.Fatalf("%d of %d clients got through: %v", n, clients, errs)
		}
		all := slices.Concat(took...)
		slices.Sort(all)
		t.Logf("p50 %v, p99 %v, max %v", all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
	})
}
