package db_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func fullTrack(a id.Asset, name string, created time.Time) asset.Track {
	return asset.Track{
		ID: id.Track("t-" + name), Asset: a, Type: asset.AudioTrack, Status: asset.TrackReady, Primary: true,
		TextType:   "subtitles",
		TextSource: "uploaded", LanguageCode: "en", Name: name, ClosedCaptions: true, Passthrough: "p?'",
		URL:       "https://u:p@h/x",
		Rendition: "r-" + name, Channel: "cc1", Forced: true,
		Speech: &asset.Speech{Language: "auto", Phrases: []string{"p"}, Of: "t"}, Progress: 4, Confidence: 0.5,
		Object: "media/x", Duration: 1.5, MaxWidth: 2, MaxHeight: 3, MaxFrameRate: 29.97, MaxChannels: 2,
		Errors: &asset.Errors{Type: "x", Messages: []string{"m"}}, CreatedAt: created,
		Pace: asset.Pace{{At: at(2), Percent: 3.5}},
	}
}

// fullAsset has every field set, so that a forgotten column is found.
func fullAsset(name string) asset.Asset {
	a := asset.Asset{
		ID: id.Asset("a-" + name), Environment: "env", Status: asset.Ready,
		Progress: asset.Progress{State: "live", Percent: -1},
		Origin:   asset.FromClip, LiveStream: "live", SourceAsset: "source", Upload: "u-" + id.Upload(name),
		IsLive: true,
		Options: assetopt.Options{
			Inputs: []assetopt.Input{{URL: "https://h/?a=1"}}, Passthrough: "ä'?\\", VideoQuality: "plus",
		},
		PlaybackIDs: []playbackid.ID{
			{ID: id.Playback("q2-" + name), Policy: "signed"},
			{ID: id.Playback("q1-" + name), Policy: "drm", DRMConfigurationID: "d"},
		},
		Facts: asset.Facts{
			Duration: 2.5, Width: 3, Height: 4, FrameRate: 30, Channels: 2, HasVideo: true, HasAudio: true,
			Offered: asset.Size{Width: 1, Height: 2},
		},
		Errors: &asset.Errors{Type: "t", Messages: []string{"a", "b"}},
		Limit:  10, Exempt: true,
		Recordings:    []asset.Recording{{StartedAt: at(3), Duration: 2, Type: "content"}},
		ThumbnailTime: new(1.25),
		InputInfo:     []asset.InputInfo{{Settings: assetopt.Input{URL: "u"}}},
		Static: asset.Static{Status: asset.FileReady, Files: []asset.StaticRendition{{
			ID: "file", Asset: id.Asset("a-" + name), Name: "720p.mp4", Ext: "mp4", Resolution: "720p",
			Type: "advanced", Status: asset.FileErrored,
			ResolutionTier: "720p", Width: 1280, Height: 720, Bitrate: 1e6, Size: 5e9, Passthrough: "p",
			Errors: &asset.Errors{Type: "t", Messages: []string{"m"}},
		}}},
		Master: &asset.Master{
			ID: "master", Status: asset.FileReady, Signature: "s", Expires: time.Unix(1767225600, 0).UTC(),
		},
		NonStandard: &asset.NonStandard{VideoCodec: "hevc", PixelFormat: "yuv420p10le"},
		Media:       id.Media("m-" + name), Uses: []id.Media{"n2", "n1"}, Index: "media/index", Entries: 3,
		CreatedAt: at(1), UpdatedAt: at(2), Revision: 4,
	}
	a.Tracks = []asset.Track{fullTrack(a.ID, name+"2", at(1)), fullTrack(a.ID, name+"1", at(1))}
	return a
}

func plainAsset(env id.Environment, name string, created time.Time) asset.Asset {
	return asset.Asset{
		ID: id.Asset("a-" + name), Environment: env, Status: asset.Preparing, Origin: asset.FromURL,
		Media:     id.Media("m-" + name),
		CreatedAt: created, UpdatedAt: created,
	}
}

func insertAssets(t *testing.T, d *db.DB, assets ...asset.Asset) {
	t.Helper()
	for _, a := range assets {
		must(t, d.Assets().Insert(t.Context(), asset.Change{Asset: a, Tracks: a.Tracks}))
	}
}

func assetNames(assets []asset.Asset) []string {
	out := []string{}
	for _, a := range assets {
		out = append(out, string(a.ID))
	}
	return out
}

func TestAssetRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.Assets()
		want := fullAsset("a")
		every(t, want)
		every(t, want.Tracks[0])
		must(t,
			store.Insert(t.Context(), asset.Change{
				Asset: want, Tracks: want.Tracks, Events: happened("one"), Jobs: wish("k"),
			}))
		for how, read := range map[string]func() (asset.Asset, error){
			"get":  func() (asset.Asset, error) { return store.Get(t.Context(), "env", want.ID) },
			"find": func() (asset.Asset, error) { return store.Find(t.Context(), want.ID) },
		} {
			got, err := read()
			must(t, err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s gives\n%+v, want\n%+v", how, got, want)
			}
		}
		next := want
		next.Status, next.IsLive, next.Uses, next.Errors = asset.Errored, false, []id.Media{"n3"}, nil
		next.PlaybackIDs = want.PlaybackIDs[1:]
		changed := want.Tracks[1]
		changed.Name, changed.Status, changed.Object = "other", asset.TrackErrored, "elsewhere"
		added := fullTrack(want.ID, "0", at(1)) // at the very same time, and first by ID
		must(t, store.Save(t.Context(), asset.Change{
			From: asset.Ready, Asset: next, Tracks: []asset.Track{changed, added},
			Dropped: []id.Track{want.Tracks[0].ID}, Events: happened("two"),
		}))
		next.Revision++
		next.Tracks = []asset.Track{changed, added}
		got, err := store.Find(t.Context(), want.ID)
		must(t, err)
		if !reflect.DeepEqual(got, next) {
			t.Errorf("after save\n%+v, want\n%+v", got, next)
		}
		if n := pending(t, d, "k"); n != 1 || len(eventTypes(t, d)) != 2 {
			t.Errorf("%d jobs and events %v, want 1 and 2", n, eventTypes(t, d))
		}
	})
}

func TestAssetAbsent(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, ctx := d.Assets(), t.Context()
		insertAssets(t, d, plainAsset("env", "a", at(0)))
		for what, read := range map[string]func() (asset.Asset, error){
			"other environment": func() (asset.Asset, error) { return store.Get(ctx, "other", "a-a") },
			"unknown":           func() (asset.Asset, error) { return store.Get(ctx, "env", "a-x") },
			"unknown to find":   func() (asset.Asset, error) { return store.Find(ctx, "a-x") },
			"U+0000":            func() (asset.Asset, error) { return store.Get(ctx, "env", "a-a\x00") },
			"not UTF-8":         func() (asset.Asset, error) { return store.Find(ctx, "\xff") },
		} {
			_, err := read()
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		unknown := plainAsset("env", "x", at(0))
		c := asset.Change{From: asset.Preparing, Asset: unknown, Events: happened("x"), Jobs: wish("x")}
		wantKind(t, store.Save(ctx, c), fault.NotFound)
		wantKind(t, store.Delete(ctx, c), fault.NotFound)
		c.Asset = plainAsset("env", "a", at(0))
		wantKind(t, store.Insert(ctx, c), fault.Conflict)
		if n := pending(t, d, "x"); n != 0 || len(eventTypes(t, d)) != 0 {
			t.Errorf("refused changes left %d jobs and events %v", n, eventTypes(t, d))
		}
	})
}

// TestAssetRollback makes the last step of a change fail: nothing of it may stay.
func TestAssetRollback(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		a := plainAsset("env", "a", at(0))
		insertAssets(t, d, a)
		want, err := d.Assets().Find(t.Context(), a.ID)
		must(t, err)
		broken := happened("one")
		broken = append(broken, broken[0]) // the same event ID twice
		a.PlaybackIDs, a.Uses, a.Status = []playbackid.ID{{ID: "p", Policy: "public"}}, []id.Media{"u"}, asset.Ready
		err = d.Assets().Save(t.Context(), asset.Change{
			From: asset.Preparing, Asset: a, Tracks: []asset.Track{fullTrack(a.ID, "x", at(0))},
			Entries: []asset.TimelineEntry{{Sequence: 0, Data: []byte("x")}}, Events: broken, Jobs: wish("k"),
		})
		if err == nil {
			t.Fatal("saved")
		}
		got, err := d.Assets().Find(t.Context(), a.ID)
		must(t, err)
		entries, err := d.Assets().Timeline(t.Context(), a.ID, 0)
		must(t, err)
		if !reflect.DeepEqual(got, want) || len(entries) != 0 {
			t.Errorf("left behind: %+v, %d entries", got, len(entries))
		}
		if n := pending(t, d, "k"); n != 0 || len(eventTypes(t, d)) != 0 {
			t.Errorf("left behind: %d jobs, events %v", n, eventTypes(t, d))
		}
	})
}

func TestAssetCompareAndSet(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.Assets()
		a := plainAsset("env", "a", at(0))
		a.Revision = 9
		insertAssets(t, d, a)
		old := a
		old.Revision = 8
		for what, c := range map[string]asset.Change{
			"status": {From: asset.Ready, Asset: a}, "revision": {From: asset.Preparing, Asset: old},
		} {
			c.Events, c.Jobs = happened(what), wish("x")
			wantKind(t, store.Save(t.Context(), c), fault.Conflict)
			wantKind(t, store.Delete(t.Context(), c), fault.Conflict)
		}
		errs := together(16, func(i int) error {
			mine := a
			mine.Options.Passthrough = fmt.Sprint(i)
			return store.Save(t.Context(), asset.Change{
				From: asset.Preparing, Asset: mine, Events: happened("won"),
				Entries: []asset.TimelineEntry{{Sequence: int64(i), Data: []byte{byte(i)}}},
			})
		})
		if won, lost := count(errs, isNil), count(errs, isConflict); won != 1 || lost != 15 {
			t.Errorf("%d writers won and %d lost, want 1 and 15: %v", won, lost, errs)
		}
		entries, err := store.Timeline(t.Context(), a.ID, 0)
		must(t, err)
		if got := eventTypes(t, d); !slices.Equal(got, []string{"won"}) || len(entries) != 1 {
			t.Errorf("events %v and %d entries, want one each", got, len(entries))
		}
	})
}

func TestAppend(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, ctx := d.Assets(), t.Context()
		a := plainAsset("env", "a", at(0))
		a.LiveStream, a.IsLive = "live", true
		broken, over := plainAsset("env", "broken", at(0)), plainAsset("env", "over", at(0))
		broken.Status, broken.IsLive = asset.Errored, true
		insertAssets(t, d, a, broken, over)
		data := []byte{0, 1, 0xff, '?', '\'', '\\'}
		entry := asset.TimelineEntry{Sequence: 0, Data: data}
		must(t, store.Append(ctx, a.ID, asset.Writer{}, []asset.TimelineEntry{entry}))
		must(t, store.Append(ctx, a.ID, asset.Writer{}, []asset.TimelineEntry{
			{Sequence: 0, Data: []byte("again")}, {Sequence: 1, Data: []byte("one")},
		}))
		got, err := store.Timeline(ctx, a.ID, 0)
		must(t, err)
		if len(got) != 2 || !bytes.Equal(got[0].Data, data) || string(got[1].Data) != "one" {
			t.Errorf("timeline %v", got)
		}
		row, err := store.Find(ctx, a.ID)
		must(t, err)
		if row.Revision != a.Revision || !row.UpdatedAt.Equal(a.UpdatedAt) {
			t.Errorf("the row has changed: %+v", row)
		}
		for id, want := range map[id.Asset]fault.Kind{
			broken.ID: fault.Conflict, over.ID: fault.Conflict, "a-x": fault.NotFound, "\x00": fault.NotFound,
		} {
			wantKind(t, store.Append(ctx, id, asset.Writer{}, []asset.TimelineEntry{entry}), want)
		}
	})
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.Assets()
		a := plainAsset("env", "a", at(0))
		insertAssets(t, d, a, plainAsset("env", "b", at(0)))
		data := make([]byte, 256)
		for i := range data {
			data[i] = byte(i)
		}
		save := func(forget bool, entries ...asset.TimelineEntry) {
			t.Helper()
			must(t,
				store.Save(t.Context(), asset.Change{
					From: asset.Preparing, Asset: a, Forget: forget, Entries: entries,
				}))
			a.Revision++
		}
		save(false, asset.TimelineEntry{Sequence: 0, Data: data}, asset.TimelineEntry{Sequence: 1, Data: []byte("one")})
		save(false, asset.TimelineEntry{Sequence: 1, Data: []byte("other")}, asset.TimelineEntry{
			Sequence: 2, Data: []byte{},
		})
		got, err := store.Timeline(t.Context(), a.ID, 0)
		must(t, err)
		if len(got) != 3 || !bytes.Equal(got[0].Data, data) || string(got[1].Data) != "one" || len(got[2].Data) != 0 ||
			got[2].Sequence != 2 {
			t.Errorf("got %v; a sequence that is stored already is skipped", got)
		}
		if got, err = store.Timeline(t.Context(), a.ID, 2); err != nil || len(got) != 1 {
			t.Errorf("from 2: %v, %v", got, err)
		}
		if got, err = store.Timeline(t.Context(), "a-b", 0); err != nil || len(got) != 0 {
			t.Errorf("another asset's: %v, %v", got, err)
		}
		save(true)
		if got, err = store.Timeline(t.Context(), a.ID, 0); err != nil || len(got) != 0 {
			t.Errorf("after forgetting: %v, %v", got, err)
		}
	})
}

func TestAssetDelete(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.Assets()
		a, b := fullAsset("a"), fullAsset("b")
		insertAssets(t, d, a, b)
		must(t,
			store.Save(t.Context(), asset.Change{
				From: a.Status, Asset: a, Entries: []asset.TimelineEntry{{Sequence: 0, Data: []byte("x")}},
			}))
		a.Revision++
		must(t,
			store.Delete(t.Context(), asset.Change{
				From: a.Status, Asset: a, Events: happened("gone"), Jobs: wish("k"),
			}))
		_, err := store.Find(t.Context(), a.ID)
		wantKind(t, err, fault.NotFound)
		_, err = d.Access().PlaybackID(t.Context(), a.PlaybackIDs[0].ID)
		wantKind(t, err, fault.NotFound)
		entries, err := store.Timeline(t.Context(), a.ID, 0)
		must(t, err)
		if len(entries) != 0 {
			t.Errorf("entries %v", entries)
		}
		got, err := store.Find(t.Context(), b.ID)
		must(t, err)
		if !reflect.DeepEqual(got, b) {
			t.Errorf("another asset became %+v", got)
		}
		users, err := store.Users(t.Context(), "n1")
		must(t, err)
		if !slices.Equal(assetNames(users), []string{"a-b"}) {
			t.Errorf("users are %v", assetNames(users))
		}
		if n := pending(t, d, "k"); n != 1 || len(eventTypes(t, d)) != 1 {
			t.Errorf("%d jobs and events %v, want one each", n, eventTypes(t, d))
		}
		// nothing is left that stands in the way
		insertAssets(t, d, func() asset.Asset { c := fullAsset("a"); c.Revision = 0; return c }())
	})
}

func TestAssetUsersAndUnfinished(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		owner, clip, other := plainAsset("env", "1", at(1)), plainAsset("elsewhere", "2", at(2)),
			plainAsset("env", "3", at(3))
		clip.Uses = []id.Media{"m-1", "m-9"}
		clip.Status, clip.Index = asset.Ready, "x"
		other.Status, other.IsLive = asset.Ready, true
		file, track, master, failed := clip, clip, clip, clip
		for i, a := range []*asset.Asset{&file, &track, &master, &failed} {
			name := fmt.Sprint(4 + i)
			a.ID, a.Media, a.Uses, a.CreatedAt = id.Asset("a-"+name), id.Media("m-"+name), nil, at(4+i)
		}
		file.Static.Files = []asset.StaticRendition{{Status: asset.FileReady}, {Status: asset.FilePreparing}}
		master.Master = &asset.Master{Status: asset.FileReady}
		failed.Status, failed.Index, failed.Master = asset.Errored, "", &asset.Master{Status: asset.FileErrored}
		insertAssets(t, d, owner, clip, other, file, master, failed)
		must(t,
			d.Assets().Insert(t.Context(), asset.Change{
				Asset: track, Tracks: []asset.Track{{ID: "t", Asset: track.ID, Status: asset.TrackPreparing}},
			}))
		for m, want := range map[id.Media][]string{
			"m-1": {"a-1", "a-2"}, "m-9": {"a-2"}, "m-3": {"a-3"}, "m-x": {}, "": {},
		} {
			got, err := d.Assets().Users(t.Context(), m)
			must(t, err)
			if !slices.Equal(assetNames(got), want) {
				t.Errorf("users of %q are %v, want %v", m, assetNames(got), want)
			}
		}
		got, err := d.Assets().Unfinished(t.Context())
		must(t, err)
		want := []string{"a-1", "a-3", "a-4", "a-5", "a-6"}
		if !slices.Equal(assetNames(got), want) {
			t.Errorf("unfinished are %v, want %v", assetNames(got), want)
		}
		for _, a := range got { // the last of it is done
			a.Status, a.Index, a.IsLive, a.Static, a.Master = asset.Ready, "x", false, asset.Static{}, nil
			c := asset.Change{From: got[slices.Index(want, string(a.ID))].Status, Asset: a}
			for _, tr := range a.Tracks {
				tr.Status = asset.TrackReady
				c.Tracks = append(c.Tracks, tr)
			}
			must(t, d.Assets().Save(t.Context(), c))
		}
		if got, err = d.Assets().Unfinished(t.Context()); err != nil || len(got) > 0 {
			t.Errorf("unfinished are %v, %v in the end", assetNames(got), err)
		}
	})
}

func TestAssetList(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		for i := range 7 {
			a := plainAsset("env", fmt.Sprint(i), at(i/3)) // some at the same time
			if i%2 == 0 {
				a.LiveStream = "live"
			}
			a.PlaybackIDs = []playbackid.ID{{ID: id.Playback(fmt.Sprint("p", i)), Policy: "public"}}
			a.Tracks = []asset.Track{fullTrack(a.ID, fmt.Sprint(i), at(0))}
			insertAssets(t, d, a)
		}
		insertAssets(t, d, plainAsset("other", "x", at(1)))
		list := func(q asset.ListQuery) ([]string, string) {
			t.Helper()
			got, next, err := d.Assets().List(t.Context(), "env", q)
			must(t, err)
			for _, a := range got {
				if len(a.PlaybackIDs) != 1 || len(a.Tracks) != 1 || string(a.Tracks[0].Asset) != string(a.ID) {
					t.Errorf("%s comes with %v and %v", a.ID, a.PlaybackIDs, a.Tracks)
				}
			}
			return assetNames(got), next
		}
		for _, tt := range []struct {
			q    asset.ListQuery
			want []string
			more bool
		}{
			{asset.ListQuery{Page: 1, Limit: 3}, []string{"a-6", "a-5", "a-4"}, true},
			{asset.ListQuery{Page: 3, Limit: 3}, []string{"a-0"}, false},
			{asset.ListQuery{Page: 4, Limit: 3}, []string{}, false},
			{asset.ListQuery{Page: 1, Limit: 7}, []string{"a-6", "a-5", "a-4", "a-3", "a-2", "a-1", "a-0"}, false},
			{asset.ListQuery{Page: 1, Limit: 3, LiveStream: "live"}, []string{"a-6", "a-4", "a-2"}, true},
			{asset.ListQuery{Page: 1, Limit: 3, LiveStream: "x\x00"}, []string{}, false},
			{asset.ListQuery{Page: 1, Limit: 3, Upload: "u"}, []string{}, false},
		} {
			got, next := list(tt.q)
			if !slices.Equal(got, tt.want) || (next != "") != tt.more {
				t.Errorf("%+v gives %v and cursor %q, want %v", tt.q, got, next, tt.want)
			}
		}
		// A cursor's pages neither repeat nor miss one, whatever is added meanwhile.
		var all []string
		q := asset.ListQuery{Page: 1, Limit: 2}
		for round := 0; ; round++ {
			got, next := list(q)
			all = append(all, got...)
			if q.Cursor = next; next == "" {
				break
			}
			a := plainAsset("env", fmt.Sprint("new", round), at(100))
			a.PlaybackIDs = []playbackid.ID{{ID: id.Playback(fmt.Sprint("new", round)), Policy: "public"}}
			a.Tracks = []asset.Track{fullTrack(a.ID, fmt.Sprint("new", round), at(0))}
			insertAssets(t, d, a)
		}
		if want := []string{"a-6", "a-5", "a-4", "a-3", "a-2", "a-1", "a-0"}; !slices.Equal(all, want) {
			t.Errorf("by cursor %v, want %v", all, want)
		}
		for _, bad := range []string{"x", "!!", "bm90aGluZw", "MS4A", "MS4", "YS5h"} {
			if _, _, err := d.Assets().List(t.Context(), "env", asset.ListQuery{Limit: 1, Cursor: bad}); !fault.Is(err,
				fault.Invalid) {
				t.Errorf("cursor %q: %v", bad, err)
			}
		}
	})
}
