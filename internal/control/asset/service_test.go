package asset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const env = id.Environment("env")

// recorder notes the jobs of the changes that were committed.
type recorder struct {
	asset.Store
	mu   sync.Mutex
	jobs []job.Insert
}

func (r *recorder) note(c asset.Change, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.jobs = append(r.jobs, c.Jobs...)
	}
	return err
}

func (r *recorder) Insert(ctx context.Context, c asset.Change) error {
	return r.note(c, r.Store.Insert(ctx, c))
}

func (r *recorder) Save(ctx context.Context, c asset.Change) error {
	return r.note(c, r.Store.Save(ctx, c))
}

func (r *recorder) Delete(ctx context.Context, c asset.Change) error {
	return r.note(c, r.Store.Delete(ctx, c))
}

// world is a service on a real store, with a clock that goes on by a second per call.
type world struct {
	*asset.Service
	*asset.Work
	t     *testing.T
	db    *db.DB
	store *recorder
	clock time.Time
	seen  int // events read already
}

func newWorld(t *testing.T) *world {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	w := &world{t: t, db: d, store: &recorder{Store: d.Assets()}, clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	o := asset.Options{Store: w.store, DRM: configurations}
	w.Service, w.Work = asset.New(o), asset.NewWork(o)
	return w
}

// configurations are d, and e, with which nothing is given in clear.
func configurations(_ context.Context, _ id.Environment, name string) (playbackid.Configuration, error) {
	if name != "d" && name != "e" {
		return playbackid.Configuration{}, fault.New(fault.NotFound, "the DRM configuration does not exist")
	}
	return playbackid.Configuration{EncryptedOnly: name == "e"}, nil
}

func (w *world) now() time.Time {
	w.clock = w.clock.Add(time.Second)
	return w.clock
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantKind(err error, want fault.Kind) {
	w.t.Helper()
	if err == nil || fault.KindOf(err) != want {
		w.t.Errorf("error %v of kind %d, want kind %d", err, fault.KindOf(err), want)
	}
}

// happened checks the events and jobs since the last call: "ready", "track.created", … and "job asset.ingest", sorted
// within a kind.
func (w *world) happened(want ...string) {
	w.t.Helper()
	all, err := w.db.Events(w.ctx(), env, time.Time{}, 10_000)
	w.must(err)
	var got []string
	for _, e := range all[w.seen:] {
		got = append(got, strings.TrimPrefix(e.Type, "video.asset."))
		if text := string(e.Data); strings.Contains(text, "secret") || strings.Contains(text, "media-") {
			w.t.Errorf("event %s shows what the API does not: %s", e.Type, text)
		}
		var head struct {
			ID string `json:"id"`
		}
		w.must(json.Unmarshal(e.Data, &head))
		kind := "asset"
		if strings.Contains(e.Type, ".track.") {
			kind = "track"
		} else if strings.Contains(e.Type, ".static_rendition.") {
			kind = asset.EventFileObject
		}
		if e.ObjectKind != kind || e.ObjectID != head.ID || head.ID == "" {
			w.t.Errorf("event %s is about %s %s, its data about %s", e.Type, e.ObjectKind, e.ObjectID, head.ID)
		}
	}
	w.seen = len(all)
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for _, j := range w.store.jobs {
		got = append(got, "job "+j.Kind)
	}
	w.store.jobs = nil
	if !slices.Equal(got, want) {
		w.t.Errorf("happened %v, want %v", got, want)
	}
}

func (w *world) find(a id.Asset) asset.Asset {
	w.t.Helper()
	got, err := w.Find(w.ctx(), a)
	w.must(err)
	return got
}

func (w *world) create(inputs ...assetopt.Input) asset.Asset {
	w.t.Helper()
	if len(inputs) == 0 {
		inputs = []assetopt.Input{{URL: "https://u:secret@h/v.mp4"}}
	}
	a, err := w.Create(w.ctx(), env, asset.CreateInput{
		Options: assetopt.Options{Inputs: inputs, PlaybackPolicies: []playbackid.Policy{"public"}},
	}, w.now())
	w.must(err)
	return a
}

// forget drops what happened so far.
func (w *world) forget() {
	w.t.Helper()
	all, err := w.db.Events(w.ctx(), env, time.Time{}, 10_000)
	w.must(err)
	w.seen, w.store.jobs = len(all), nil
}

// ready is an asset on demand that is finished.
func (w *world) ready() asset.Asset {
	w.t.Helper()
	a := w.create()
	w.must(w.Finish(w.ctx(), a.ID, finished(), w.now()))
	w.forget()
	return w.find(a.ID)
}

func finished() asset.Finished {
	return asset.Finished{
		Index: "media-x/index", Facts: asset.Facts{Duration: 10, HasVideo: true, HasAudio: true}, Tracks: mainTracks(),
	}
}

func mainTracks() []asset.Track {
	return []asset.Track{
		{Type: asset.VideoTrack, Rendition: "v", Duration: 10, MaxWidth: 1280, MaxHeight: 720, MaxFrameRate: 30},
		{Type: asset.AudioTrack, Rendition: "a", Duration: 10, MaxChannels: 2},
	}
}

func (w *world) record(a id.Asset) asset.Asset {
	w.t.Helper()
	got, err := w.Record(w.ctx(), asset.NewRecording{
		ID: a, Environment: env, LiveStream: "live", Media: "media-" + id.Media(a),
		Options: assetopt.Options{PlaybackPolicies: []playbackid.Policy{"signed"}, Passthrough: "p"},
	}, w.now())
	w.must(err)
	return got
}

func entries(from, n int64) []asset.TimelineEntry {
	var out []asset.TimelineEntry
	for i := range n {
		out = append(out, asset.TimelineEntry{Sequence: from + i, Data: []byte(fmt.Sprint("entry ", from+i))})
	}
	return out
}

func TestCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create()
	w.happened("created", "job asset.ingest")
	if a.Status != asset.Preparing || a.Origin != asset.FromURL || a.Progress != (asset.Progress{State: "ingesting"}) ||
		len(a.PlaybackIDs) != 1 || a.Media == "" ||
		a.Options.VideoQuality != "basic" || a.Options.MaxResolution != "1080p" {
		t.Errorf("made %+v", a)
	}
	got, err := w.Get(w.ctx(), env, a.ID)
	w.must(err)
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", a) {
		t.Errorf("create gives\n%+v, the store has\n%+v", a, got)
	}
	_, err = w.Create(w.ctx(), env, asset.CreateInput{}, w.now())
	w.wantKind(err, fault.Invalid)
	w.happened()
}

func TestCreateWithTracks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create(assetopt.Input{URL: "https://h/v.mp4", Name: "Original", LanguageCode: "fr"},
		assetopt.Input{URL: "https://u:secret@h/1.srt", Type: "text", TextType: "subtitles", LanguageCode: "en"},
		assetopt.Input{URL: "https://h/x.png", Overlay: &assetopt.Overlay{}},
		assetopt.Input{
			URL: "https://h/2.srt", Type: "text", TextType: "subtitles", LanguageCode: "en", Name: "English",
			ClosedCaptions: true, Passthrough: "p",
		},
		assetopt.Input{URL: "https://h/3.m4a", Type: "audio", LanguageCode: "de"})
	w.happened("created", "track.created", "track.created", "track.created", "job asset.ingest")
	names := func() (out []string) {
		for _, tr := range w.find(a.ID).Tracks {
			out = append(out, fmt.Sprintf("%s %s %s %s %v", tr.Type, tr.Name, tr.LanguageCode, tr.Status, tr.Primary))
		}
		return out
	}
	if got, want := names(),
		[]string{
			"text English (2) en preparing false", "text English en preparing false", "audio German de preparing false",
		}; !slices.Equal(got, want) {
		t.Errorf("tracks %q, want %q", got, want)
	}
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{Tracks: mainTracks(), Entries: entries(0, 1)}, w.now()))
	w.happened("ready", "job track.ingest", "job track.ingest", "job track.ingest")
	if got := names(); got[3] != "video   ready false" || got[4] != "audio Original fr ready true" {
		t.Errorf("tracks %q", got)
	}
	w.must(w.Finish(w.ctx(), a.ID, finished(), w.now()))
	w.happened()
	if n := len(w.find(a.ID).Tracks); n != 5 {
		t.Errorf("%d tracks, want 5: they are known by their rendition", n)
	}
}

// TestClipToTheEnd: an end up to a second past the source's is its end, as shown durations are rounded.
func TestClipToTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.ready()
	for end, want := range map[float64]bool{10: true, 11: true, 11.1: false} {
		in := assetopt.Input{URL: "mux://assets/" + string(source.ID), EndTime: &end}
		_, err := w.Create(w.ctx(), env, asset.CreateInput{
			Options: assetopt.Options{Inputs: []assetopt.Input{in}},
		}, w.now())
		if (err == nil) != want || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("to second %v of 10: %v", end, err)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.ready()
	clip := func(in assetopt.Input) (asset.Asset, error) {
		in.URL = "mux://assets/" + string(source.ID)
		return w.Create(w.ctx(), env, asset.CreateInput{
			Options: assetopt.Options{Inputs: []assetopt.Input{in}},
		}, w.now())
	}
	a, err := clip(assetopt.Input{StartTime: new(1.0), EndTime: new(2.0)})
	w.must(err)
	if a.Origin != asset.FromClip || a.SourceAsset != source.ID || !slices.Equal(a.Uses, []id.Media{source.Media}) ||
		a.Media == source.Media {
		t.Errorf("made %+v", a)
	}
	w.happened("created", "job asset.ingest")
	_, err = clip(assetopt.Input{StartTime: new(9.6)})
	w.wantKind(err, fault.Invalid)
	_, err = clip(assetopt.Input{EndTime: new(12.0)})
	w.wantKind(err, fault.Invalid)
	for what, in := range map[string]assetopt.Input{
		"unknown": {URL: "svc://assets/x"}, "preparing": {URL: "svc://assets/" + string(a.ID)},
	} {
		_, err = w.Create(w.ctx(), env, asset.CreateInput{
			Options: assetopt.Options{Inputs: []assetopt.Input{in}},
		}, w.now())
		if fault.KindOf(err) != fault.Invalid && fault.KindOf(err) != fault.Conflict ||
			!strings.HasPrefix(fault.Messages(err)[0], "inputs[0].url must name an asset that") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = w.Create(w.ctx(), "other", asset.CreateInput{
		Options: assetopt.Options{Inputs: []assetopt.Input{{URL: "svc://assets/" + string(source.ID)}}},
	}, w.now())
	w.wantKind(err, fault.Invalid)
	w.must(w.Delete(w.ctx(), env, source.ID, w.now()))
	w.happened("deleted", "job media.purge")
	users, err := w.Users(w.ctx(), source.Media)
	w.must(err)
	if len(users) != 1 || users[0].ID != a.ID {
		t.Errorf("the clip does not keep its bytes: %v", users)
	}
	w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
	w.happened("deleted", "job media.purge", "job media.purge") // its own and the source's
}

// TestAllFaults: a request is told all that is wrong with it at once, also what only the source of a clip, the track or
// the asset tells.
func TestAllFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.ready()
	long := strings.Repeat("a", assetopt.MaxTitle+1)
	clip := func(of id.Asset, start, end float64) error {
		o := assetopt.Options{Meta: assetopt.Meta{Title: long}, Inputs: []assetopt.Input{{
			URL: "svc://assets/" + string(of), StartTime: &start, EndTime: &end,
		}}}
		_, err := w.Create(w.ctx(), env, asset.CreateInput{Options: o}, w.now())
		return err
	}
	track, err := w.AddTrack(w.ctx(), env, source.ID, asset.TrackInput{
		URL: "https://h/x", Type: "text", LanguageCode: "en", Name: "English",
	}, w.now())
	w.must(err)
	_, err = w.AddTrack(w.ctx(), env, source.ID, asset.TrackInput{
		URL: "https://h/y", Type: "text", LanguageCode: "fi", Name: "Suomi",
	}, w.now())
	w.must(err)
	taken, language, far := "Suomi", "?", new(1e9)
	_, patched := w.PatchTrack(w.ctx(), env, source.ID, track.ID, asset.TrackPatch{
		Name: &taken, LanguageCode: &language,
	}, w.now())
	_, thumbnail := w.Patch(w.ctx(), env, source.ID, asset.PatchInput{Passthrough: &long, ThumbnailTime: &far}, w.now())
	for name, tt := range map[string]struct {
		err  error
		want []string // how the messages begin
	}{
		"beyond the end": {
			clip(source.ID, 9.8, 30),
			[]string{"meta.title may", "inputs[0].start_time must", "inputs[0].end_time must"},
		},
		"no times":  {clip(source.ID, -1, -2), []string{"meta.title", "inputs[0].start_time", "inputs[0].end_time"}},
		"no source": {clip("none", 0, 1), []string{"inputs[0].url must name an asset that exists", "meta.title"}},
		"track":     {patched, []string{"language_code must", "name must be unique"}},
		"thumbnail": {thumbnail, []string{"passthrough may", "thumbnail_time must"}},
	} {
		got := fault.Messages(tt.err)
		fits := len(got) == len(tt.want) && fault.Is(tt.err, fault.Invalid)
		for i := 0; fits && i < len(got); i++ {
			fits = strings.HasPrefix(got[i], tt.want[i])
		}
		if !fits {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestClipName: the source's audio tracks come along, so that the clip's own can't have the name of one.
func TestClipName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.ready()
	_, err := w.AddTrack(w.ctx(), env, source.ID, asset.TrackInput{
		URL: "https://h/x", Type: "audio", LanguageCode: "en", Name: "Commentary",
	}, w.now())
	w.must(err)
	for name, want := range map[string]string{
		"Commentary": "inputs[0].name must be unique among the audio tracks, and the source asset has one of that name",
		"Default":    "", "": "",
	} {
		in := assetopt.Input{URL: "svc://assets/" + string(source.ID), Name: name}
		_, err := w.Create(w.ctx(), env, asset.CreateInput{
			Options: assetopt.Options{Inputs: []assetopt.Input{in}},
		}, w.now())
		if got := strings.Join(fault.Messages(err), "; "); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestMainTrackNamed: a name that nobody chose makes way for one that somebody did.
func TestMainTrackNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create(assetopt.Input{URL: "https://h/x"}, assetopt.Input{
		URL: "https://h/y", Type: "audio", LanguageCode: "fr", Name: asset.DefaultAudio,
	})
	w.must(w.Grow(w.ctx(), a.ID, asset.Growth{
		Tracks: []asset.Track{{Type: asset.AudioTrack, Rendition: "a"}},
	}, w.now()))
	for _, track := range w.find(a.ID).Tracks {
		if want := map[bool]string{true: "Default (2)", false: "Default"}[track.Primary]; track.Name != want {
			t.Errorf("a track is called %q, want %q", track.Name, want)
		}
	}
}

// TestQueuesOfJobs: what depends on somebody else's host is in nobody's way.
func TestQueuesOfJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.ready()
	w.create()
	_, err := w.AddTrack(w.ctx(), env, source.ID, asset.TrackInput{
		URL: "https://h/x", Type: "text", LanguageCode: "en",
	}, w.now())
	w.must(err)
	clip := assetopt.Input{URL: "mux://assets/" + string(source.ID)}
	w.create(clip)
	marked := assetopt.Options{Test: true, Inputs: []assetopt.Input{clip}} // a clip of a test asset is encoded, not cut
	_, err = w.Create(w.ctx(), env, asset.CreateInput{Options: marked}, w.now())
	w.must(err)
	w.must(w.Delete(w.ctx(), env, source.ID, w.now()))
	var got []string
	for _, j := range w.store.jobs {
		got = append(got, j.Kind+" "+string(j.Queue))
	}
	want := []string{"asset.ingest fetching", "track.ingest fetching", "asset.ingest clips"}
	want = append(want, "asset.ingest fetching", "asset.expire cleanup", "media.purge cleanup")
	if !slices.Equal(got, want) {
		t.Errorf("jobs %q, want %q", got, want)
	}
}

func TestPatchAndPlaybackIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ready()
	got, err := w.Patch(w.ctx(), env, a.ID, asset.PatchInput{
		Passthrough: new("new"), Meta: &assetopt.MetaPatch{Meta: assetopt.Meta{Title: "t"}},
	}, w.now())
	w.must(err)
	if got.Options.Passthrough != "new" || got.Options.Meta.Title != "t" || !got.UpdatedAt.Equal(w.clock) ||
		len(got.Options.Inputs) != 1 {
		t.Errorf("patched %+v", got)
	}
	w.happened("updated")
	_, err = w.Patch(w.ctx(), env, a.ID, asset.PatchInput{
		Passthrough: new(strings.Repeat("x", 256)), Meta: &assetopt.MetaPatch{Meta: assetopt.Meta{CreatorID: "\x00"}},
	}, w.now())
	if got := fault.Messages(err); !slices.Equal(got, []string{
		"passthrough may have at most 255 characters", "meta.creator_id must not contain the character U+0000",
	}) {
		t.Errorf("messages %q", got)
	}
	p, err := w.AddPlaybackID(w.ctx(), env, a.ID, playbackid.Request{Policy: "signed"}, w.now())
	w.must(err)
	same, err := w.GetPlaybackID(w.ctx(), env, a.ID, p.ID)
	w.must(err)
	if same != p {
		t.Errorf("got %v, want %v", same, p)
	}
	w.must(w.DeletePlaybackID(w.ctx(), env, a.ID, p.ID, w.now()))
	w.happened("updated", "updated")
	w.wantKind(w.DeletePlaybackID(w.ctx(), env, a.ID, p.ID, w.now()), fault.NotFound)
	_, err = w.GetPlaybackID(w.ctx(), env, a.ID, p.ID)
	w.wantKind(err, fault.NotFound)
	_, err = w.AddPlaybackID(w.ctx(), env, a.ID, playbackid.Request{}, w.now())
	w.wantKind(err, fault.Invalid)
	_, err = w.AddPlaybackID(w.ctx(), env, a.ID, playbackid.Request{Policy: "drm", DRMConfigurationID: "absent"},
		w.now())
	w.wantKind(err, fault.Invalid)
	// the asset is basic
	_, err = w.AddPlaybackID(w.ctx(), env, a.ID, playbackid.Request{Policy: "drm", DRMConfigurationID: "d"}, w.now())
	w.wantKind(err, fault.Conflict)
	w.happened()
}

func TestThumbnailTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create()
	patch := func(v *float64) error {
		_, err := w.Patch(w.ctx(), env, a.ID, asset.PatchInput{ThumbnailTime: &v}, w.now())
		return err
	}
	refused := func(v float64, want string) {
		t.Helper()
		if got := fault.Messages(patch(&v)); !slices.Equal(got, []string{want}) {
			t.Errorf("%v: messages %q, want %q", v, got, want)
		}
	}
	w.must(patch(new(50.0))) // nobody knows how long it is
	refused(-0.1, "thumbnail_time must be a number from 0 to 86400")
	refused(86401, "thumbnail_time must be a number from 0 to 86400")
	w.must(w.Finish(w.ctx(), a.ID, asset.Finished{Index: "i", Facts: asset.Facts{Duration: 10.5}}, w.now()))
	refused(10.6, "thumbnail_time must be a number from 0 to 10.5")
	for _, v := range []*float64{new(10.5), new(0.0)} {
		w.must(patch(v))
		if got := w.find(a.ID).ThumbnailTime; got == nil || *got != *v {
			t.Errorf("stored %v, want %v", got, *v)
		}
	}
	got, err := w.Patch(w.ctx(), env, a.ID, asset.PatchInput{Passthrough: new("p")}, w.now())
	w.must(err)
	if got.ThumbnailTime == nil {
		t.Error("another patch has cleared it")
	}
	w.must(patch(nil))
	w.must(patch(nil))
	if got := w.find(a.ID).ThumbnailTime; got != nil {
		t.Errorf("cleared, but %v", *got)
	}
}

func TestOthersEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ready()
	const other = id.Environment("other")
	track := asset.TrackInput{URL: "https://h/x.srt", Type: "text", LanguageCode: "en"}
	_, get := w.Get(w.ctx(), other, a.ID)
	_, patch := w.Patch(w.ctx(), other, a.ID, asset.PatchInput{}, w.now())
	_, add := w.AddPlaybackID(w.ctx(), other, a.ID, playbackid.Request{Policy: "public"}, w.now())
	_, pid := w.GetPlaybackID(w.ctx(), other, a.ID, a.PlaybackIDs[0].ID)
	_, addTrack := w.AddTrack(w.ctx(), other, a.ID, track, w.now())
	_, patchTrack := w.PatchTrack(w.ctx(), other, a.ID, a.Tracks[1].ID, asset.TrackPatch{}, w.now())
	for what, err := range map[string]error{
		"get": get, "patch": patch, "add playback ID": add, "get playback ID": pid, "add track": addTrack,
		"patch track":        patchTrack,
		"delete":             w.Delete(w.ctx(), other, a.ID, w.now()),
		"delete track":       w.DeleteTrack(w.ctx(), other, a.ID, a.Tracks[1].ID, w.now()),
		"delete playback ID": w.DeletePlaybackID(w.ctx(), other, a.ID, a.PlaybackIDs[0].ID, w.now()),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", what, err)
		}
	}
	if list, next, err := w.List(w.ctx(), other, asset.ListQuery{}); err != nil || len(list) != 0 || next != "" {
		t.Errorf("list gives %v, %q, %v", list, next, err)
	}
	w.happened()
}

func TestRecording(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.record("rec")
	if a.Status != asset.Preparing || !a.IsLive || a.Progress != (asset.Progress{State: "live", Percent: -1}) ||
		a.Origin != asset.FromLiveRTMP || len(a.PlaybackIDs) != 1 ||
		a.Options.VideoQuality != "plus" || a.LiveStream != "live" || a.Options.Passthrough != "p" {
		t.Errorf("made %+v", a)
	}
	again := w.record("rec")
	if again.PlaybackIDs[0] != a.PlaybackIDs[0] {
		t.Error("recorded twice")
	}
	w.happened("created")
	w.must(w.Grow(w.ctx(), a.ID, asset.Growth{Entries: entries(0, 2), Tracks: mainTracks()}, w.now()))
	w.happened()
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{Entries: entries(1, 2), Facts: &asset.Facts{Duration: 4}}, w.now()))
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{}, w.now()))
	w.happened("ready")
	w.wantKind(w.Delete(w.ctx(), env, a.ID, w.now()), fault.Conflict)
	longer := mainTracks()
	longer[0].Duration = 20
	recordings := []asset.Recording{{StartedAt: w.clock, Duration: 20, Type: "content"}}
	w.must(w.Grow(w.ctx(), a.ID, asset.Growth{Entries: entries(3, 1), Tracks: longer, Recordings: recordings}, w.now()))
	got := w.find(a.ID)
	if got.Status != asset.Ready || !got.IsLive || got.Entries != 4 || len(got.Tracks) != 2 ||
		got.Tracks[0].Duration != 20 || got.Tracks[1].Name != "Default" ||
		!got.Tracks[1].Primary || len(got.Recordings) != 1 || got.Progress.State != "live" {
		t.Errorf("grown %+v", got)
	}
	stored, err := w.Timeline(w.ctx(), a.ID, 0)
	w.must(err)
	if len(stored) != 4 || string(stored[3].Data) != "entry 3" {
		t.Errorf("timeline %v", stored)
	}
	w.wantKind(w.Finish(w.ctx(), a.ID, finished(), w.now()), fault.Conflict)
	w.must(w.EndLive(w.ctx(), a.ID, asset.Writer{}, nil, w.now()))
	w.must(w.EndLive(w.ctx(), a.ID, asset.Writer{}, recordings, w.now()))
	w.happened("job asset.finish")
	if got = w.find(a.ID); got.IsLive || len(got.Recordings) != 1 || got.Status != asset.Ready {
		t.Errorf("ended %+v", got)
	}
	for _, err := range []error{
		w.Grow(w.ctx(), a.ID, asset.Growth{Entries: entries(4, 1)}, w.now()),
		w.SetProgress(w.ctx(), a.ID, asset.Progress{State: "ingesting"}, w.now()),
		w.Fail(w.ctx(), a.ID, asset.Errors{Type: "x"}, w.now()),
	} {
		w.wantKind(err, fault.Conflict)
	}
	w.must(w.Finish(w.ctx(), a.ID, finished(), w.now()))
	w.must(w.Finish(w.ctx(), a.ID, finished(), w.now()))
	w.happened("live_stream_completed")
	got = w.find(a.ID)
	if stored, err = w.Timeline(w.ctx(), a.ID, 0); err != nil || len(stored) != 0 || got.Index == "" ||
		got.Progress != (asset.Progress{State: "completed", Percent: 100}) || got.Facts.Duration != 10 {
		t.Errorf("finished %+v with %d entries, %v", got, len(stored), err)
	}
	w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
	w.happened("deleted", "job media.purge")
	w.wantKind(w.Grow(w.ctx(), a.ID, asset.Growth{}, w.now()), fault.NotFound)
}

// TestRecordingEndsEarly ends broadcasts that never were playable.
func TestRecordingEndsEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record("nothing")
	w.must(w.EndLive(w.ctx(), "nothing", asset.Writer{}, nil, w.now()))
	w.happened("created", "errored")
	if got := w.find("nothing"); got.Status != asset.Errored || got.IsLive || got.Errors == nil ||
		got.Progress != (asset.Progress{State: "errored", Percent: -1}) {
		t.Errorf("ended %+v", got)
	}
	w.must(w.EndLive(w.ctx(), "nothing", asset.Writer{}, nil, w.now()))
	w.wantKind(w.Finish(w.ctx(), "nothing", finished(), w.now()), fault.Conflict)
	w.record("little")
	w.must(w.Grow(w.ctx(), "little", asset.Growth{Entries: entries(0, 1)}, w.now()))
	w.must(w.EndLive(w.ctx(), "little", asset.Writer{}, nil, w.now()))
	w.happened("created", "job asset.finish")
	w.wantKind(w.Ready(w.ctx(), "little", asset.Growth{}, w.now()), fault.Conflict)
	w.must(w.Finish(w.ctx(), "little", finished(), w.now()))
	w.happened("ready", "live_stream_completed")
	if left, err := w.Unfinished(w.ctx()); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestIngest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create()
	w.forget()
	w.must(w.SetProgress(w.ctx(), a.ID, asset.Progress{State: "ingesting", Percent: 50}, w.now()))
	w.must(w.SetInputInfo(w.ctx(), a.ID, []asset.InputInfo{{Settings: a.Options.Inputs[0]}}, w.now()))
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{
		Entries: entries(0, 1), Progress: &asset.Progress{State: "transcoding", Percent: 1},
	}, w.now()))
	w.happened("ready")
	w.must(w.Grow(w.ctx(), a.ID, asset.Growth{Entries: entries(1, 1)}, w.now())) // playable while it is rewritten
	got := w.find(a.ID)
	if got.Progress.State != "transcoding" || len(got.InputInfo) != 1 || got.Entries != 2 {
		t.Errorf("rewritten %+v", got)
	}
	w.wantKind(w.Finish(w.ctx(), a.ID, asset.Finished{}, w.now()), fault.Internal)
	w.must(w.Finish(w.ctx(), a.ID, finished(), w.now()))
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{}, w.now()))
	w.happened()
	w.wantKind(w.Grow(w.ctx(), a.ID, asset.Growth{Entries: entries(2, 1)}, w.now()), fault.Conflict)
}

func TestFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create(assetopt.Input{URL: "https://h/v"}, assetopt.Input{
		URL: "https://h/1.srt", Type: "text", TextType: "subtitles", LanguageCode: "en",
	})
	w.forget()
	why := asset.Errors{Type: "invalid_input", Messages: []string{"no video"}}
	w.must(w.Fail(w.ctx(), a.ID, why, w.now()))
	w.must(w.Fail(w.ctx(), a.ID, why, w.now()))
	w.happened("errored", "track.errored")
	got := w.find(a.ID)
	if got.Status != asset.Errored || got.Errors.Messages[0] != "no video" ||
		got.Tracks[0].Status != asset.TrackErrored || got.Tracks[0].Errors == nil {
		t.Errorf("failed %+v", got)
	}
	w.wantKind(w.Ready(w.ctx(), a.ID, asset.Growth{}, w.now()), fault.Conflict)
	_, err := w.AddTrack(w.ctx(), env, a.ID, asset.TrackInput{
		URL: "https://h/x", Type: "text", LanguageCode: "en",
	}, w.now())
	w.wantKind(err, fault.Conflict)
	w.happened()
}

// TestNothingIsLost lets a broadcast grow while the API changes its asset.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.record("rec")
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{Entries: entries(0, 1), Tracks: mainTracks()}, w.now()))
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		now := w.now()
		wg.Go(func() {
			if i%2 == 0 {
				errs[i] = w.Grow(w.ctx(), a.ID, asset.Growth{Entries: entries(int64(1+i/2), 1)}, now)
				return
			}
			_, errs[i] = w.AddTrack(w.ctx(), env, a.ID, asset.TrackInput{
				URL: "https://h/x", Type: "text", LanguageCode: "en",
			}, now)
		})
	}
	wg.Wait()
	w.must(errors.Join(errs...))
	got := w.find(a.ID)
	names := map[string]bool{}
	for _, tr := range got.Tracks {
		names[tr.Name] = true
	}
	stored, err := w.Timeline(w.ctx(), a.ID, 0)
	w.must(err)
	if len(got.Tracks) != 10 || len(names) != 10 || got.Entries != 9 || len(stored) != 9 {
		t.Errorf("%d tracks with names %v, %d entries of %d", len(got.Tracks), names, len(stored), got.Entries)
	}
}
