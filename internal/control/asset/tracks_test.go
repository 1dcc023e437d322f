package asset_test

import (
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/id"
)

func text(language, name string) asset.TrackInput {
	return asset.TrackInput{URL: "https://u:secret@h/x.srt", Type: "text", LanguageCode: language, Name: name}
}

func TestAddTrack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ready()
	tr, err := w.AddTrack(w.ctx(), env, a.ID, asset.TrackInput{
		URL: "https://u:secret@h/x.srt", Type: "text", TextType: "subtitles", LanguageCode: "en-US",
		ClosedCaptions: true, Passthrough: "p",
	}, w.now())
	w.must(err)
	if tr.Status != asset.TrackPreparing || tr.Name != "American English" || tr.TextType != "subtitles" ||
		tr.TextSource != "uploaded" || !tr.ClosedCaptions ||
		tr.Passthrough != "p" || tr.Asset != a.ID || tr.Rendition != string(tr.ID) || tr.Primary {
		t.Errorf("made %+v", tr)
	}
	w.happened("track.created", "job track.ingest")
	audio, err := w.AddTrack(w.ctx(), env, a.ID, asset.TrackInput{
		URL: "https://h/x.mp3", Type: "audio", LanguageCode: "en",
	}, w.now())
	w.must(err)
	if audio.Name != "English" || audio.TextType != "" || audio.TextSource != "" || audio.Primary {
		t.Errorf("made %+v", audio)
	}
	names := []string{}
	for range 3 {
		tr, err = w.AddTrack(w.ctx(), env, a.ID, text("en", ""), w.now())
		w.must(err)
		names = append(names, tr.Name)
	}
	if want := []string{"English", "English (2)", "English (3)"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q: audio and text are groups of their own", names, want)
	}
	_, err = w.AddTrack(w.ctx(), env, a.ID, text("de", "English"), w.now())
	if got := fault.Messages(err); !slices.Equal(got, []string{"name must be unique among the asset's text tracks"}) {
		t.Errorf("messages %q", got)
	}
	w.forget()
	_, err = w.AddTrack(w.ctx(), env, "x", text("en", ""), w.now())
	w.wantKind(err, fault.NotFound)
	preparing := w.create()
	w.forget()
	_, err = w.AddTrack(w.ctx(), env, preparing.ID, text("en", ""), w.now())
	w.wantKind(err, fault.Conflict)
	w.happened()
}

func TestAddTrackRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ready()
	for _, tt := range []struct {
		in   asset.TrackInput
		want []string
	}{
		{
			asset.TrackInput{},
			[]string{"url is required", "type is required: text or audio", "language_code is required"},
		},
		{
			asset.TrackInput{
				URL: "svc://assets/x", Type: "video", TextType: "captions", LanguageCode: "english", Name: "\x00",
				Passthrough: strings.Repeat("x", 256),
			},
			[]string{
				"url must be an absolute http or https URL", "type must be one of: text, audio",
				"text_type must be one of: subtitles", "language_code must be a BCP 47 language tag",
				"name must not contain the character U+0000", "passthrough may have at most 255 characters",
			},
		},
		{
			asset.TrackInput{
				URL: "https://h/x", Type: "audio", TextType: "subtitles", LanguageCode: "en", ClosedCaptions: true,
			},
			[]string{
				"text_type may be set only when type is text", "closed_captions may be set only when type is text",
			},
		},
	} {
		_, err := w.AddTrack(w.ctx(), env, a.ID, tt.in, w.now())
		got := fault.Messages(err)
		if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
			t.Errorf("%+v: messages %q, want %q", tt.in, got, tt.want)
		}
	}
	w.happened()
}

func TestPatchTrack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ready()
	one, err := w.AddTrack(w.ctx(), env, a.ID, text("en", ""), w.now())
	w.must(err)
	_, err = w.AddTrack(w.ctx(), env, a.ID, text("de", ""), w.now())
	w.must(err)
	w.forget()
	got, err := w.PatchTrack(w.ctx(), env, a.ID, one.ID, asset.TrackPatch{
		LanguageCode: new("en-GB"), Name: new("British"), ClosedCaptions: new(true), Passthrough: new("p"),
	}, w.now())
	w.must(err)
	if got.LanguageCode != "en-GB" || got.Name != "British" || !got.ClosedCaptions || got.Passthrough != "p" ||
		got.Status != asset.TrackPreparing || got.URL != one.URL {
		t.Errorf("patched %+v", got)
	}
	got, err = w.PatchTrack(w.ctx(), env, a.ID, one.ID, asset.TrackPatch{LanguageCode: new("de"), Name: new("")},
		w.now())
	w.must(err)
	if got.Name != "German (2)" {
		t.Errorf("a cleared name became %q", got.Name)
	}
	w.happened("updated", "updated")
	primary := a.Tracks[1]
	if got, err = w.PatchTrack(w.ctx(), env, a.ID, primary.ID,
		asset.TrackPatch{Name: new("Main"), LanguageCode: new("fr")}, w.now()); err != nil || got.Name != "Main" ||
		!got.Primary {
		t.Errorf("primary audio %+v, %v", got, err)
	}
	w.happened("updated")
	for _, tt := range []struct {
		track asset.Track
		in    asset.TrackPatch
		want  string
	}{
		{one, asset.TrackPatch{Name: new("German")}, "name must be unique"},
		{one, asset.TrackPatch{LanguageCode: new("")}, "language_code must be a BCP 47 language tag"},
		{one, asset.TrackPatch{Passthrough: new("\x00")}, "passthrough must not contain the character U+0000"},
		{primary, asset.TrackPatch{ClosedCaptions: new(true)}, "closed_captions may be set only for text tracks"},
		{a.Tracks[0], asset.TrackPatch{Name: new("x")}, "only text and audio tracks can be changed"},
		{asset.Track{ID: "x"}, asset.TrackPatch{}, "the track does not exist"},
	} {
		_, err := w.PatchTrack(w.ctx(), env, a.ID, tt.track.ID, tt.in, w.now())
		if got := fault.Messages(err); len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("messages %q, want %q", got, tt.want)
		}
	}
	w.happened()
}

func TestDeleteTrack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ready()
	tr, err := w.AddTrack(w.ctx(), env, a.ID, text("en", ""), w.now())
	w.must(err)
	w.forget()
	for _, main := range a.Tracks {
		w.wantKind(w.DeleteTrack(w.ctx(), env, a.ID, main.ID, w.now()), fault.Conflict)
	}
	w.must(w.DeleteTrack(w.ctx(), env, a.ID, tr.ID, w.now()))
	w.wantKind(w.DeleteTrack(w.ctx(), env, a.ID, tr.ID, w.now()), fault.NotFound)
	w.happened("track.deleted", "job media.purge")
	if n := len(w.find(a.ID).Tracks); n != 2 {
		t.Errorf("%d tracks are left, want 2", n)
	}
	w.wantKind(w.TrackReady(w.ctx(), a.ID, tr, w.now()), fault.NotFound) // its worker is late
}

func TestTrackOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ready()
	good, err := w.AddTrack(w.ctx(), env, a.ID, text("en", ""), w.now())
	w.must(err)
	bad, err := w.AddTrack(w.ctx(), env, a.ID, text("de", ""), w.now())
	w.must(err)
	w.forget()
	done := asset.Track{ID: good.ID, Object: "media-x/t.vtt", Duration: 9, Name: "worker's own", LanguageCode: "xx"}
	w.must(w.TrackReady(w.ctx(), a.ID, done, w.now()))
	w.must(w.TrackReady(w.ctx(), a.ID, done, w.now()))
	why := asset.Errors{Type: "invalid_input", Messages: []string{"no cues"}}
	w.must(w.TrackFailed(w.ctx(), a.ID, bad.ID, why, w.now()))
	w.must(w.TrackFailed(w.ctx(), a.ID, bad.ID, why, w.now()))
	w.happened("track.ready", "track.errored")
	w.wantKind(w.TrackFailed(w.ctx(), a.ID, good.ID, why, w.now()), fault.Conflict)
	w.wantKind(w.TrackReady(w.ctx(), a.ID, bad, w.now()), fault.Conflict)
	got := w.find(a.ID)
	if tr := got.Tracks[2]; tr.Status != asset.TrackReady || tr.Object != done.Object || tr.Name != "English" ||
		tr.LanguageCode != "en" || tr.Duration != 9 {
		t.Errorf("ready %+v", tr)
	}
	if tr := got.Tracks[3]; tr.Status != asset.TrackErrored || tr.Errors.Messages[0] != "no cues" {
		t.Errorf("errored %+v", tr)
	}
	if got.Status != asset.Ready {
		t.Errorf("a broken track made the asset %s", got.Status)
	}
	again, err := w.AddTrack(w.ctx(), env, a.ID, text("de", bad.Name), w.now())
	if err != nil || again.Name != bad.Name {
		t.Errorf("the name of a broken track is not free: %q, %v", again.Name, err)
	}
	if _, err = w.AddTrack(w.ctx(), env, a.ID, text("de", bad.Name), w.now()); !fault.Is(err, fault.Invalid) {
		t.Errorf("the name of a track that is preparing is free: %v", err)
	}
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, q := range []asset.ListQuery{{Page: -1}, {Limit: 101}, {Limit: -1}, {Cursor: "x"}} {
		_, _, err := w.List(w.ctx(), env, q)
		w.wantKind(err, fault.Invalid)
	}
	_, err := w.Some(w.ctx(), env, make([]id.Asset, asset.MaxSome+1))
	w.wantKind(err, fault.Invalid)
}

// TestFoundTextTracks: of text tracks that come with a finished asset there are the same events as of others; again
// changes nothing.
func TestFoundTextTracks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create()
	w.forget()
	f := finished()
	f.Tracks = append(f.Tracks,
		asset.Track{
			Type: asset.TextTrack, Status: asset.TrackReady, TextSource: asset.Embedded, Rendition: "s0",
			Name: "English", LanguageCode: "en", Object: "x",
		},
		asset.Track{
			Type: asset.TextTrack, Status: asset.TrackReady, TextSource: asset.Embedded, Rendition: "s1",
			Name: "German", LanguageCode: "de", Object: "y", Forced: true,
		},
	)
	w.must(w.Finish(w.ctx(), a.ID, f, w.now()))
	w.happened("track.created", "track.created", "ready", "track.ready", "track.ready")
	if got := w.find(a.ID).Tracks; len(got) != 4 || !got[3].Forced || got[2].Forced {
		t.Errorf("tracks: %+v", got)
	}
	w.must(w.Finish(w.ctx(), a.ID, f, w.now()))
	w.happened()
}

// TestCaptionTracks: tracks of captions are there with the asset, and their one job comes when it is whole. A name that
// was chosen is unique, one that nobody chose gives way.
func TestCaptionTracks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	input := func(embedded ...assetopt.EmbeddedSubtitle) asset.CreateInput {
		return asset.CreateInput{Options: assetopt.Options{Inputs: []assetopt.Input{
			{URL: "https://h/x.mp4", EmbeddedSubtitles: embedded},
			{URL: "https://h/x.srt", Type: "text", TextType: "subtitles", LanguageCode: "en", Name: "English"},
		}}}
	}
	_, err := w.Create(w.ctx(), env, input(assetopt.EmbeddedSubtitle{Name: "English"}), w.now())
	w.wantKind(err, fault.Invalid)
	w.forget()
	a, err := w.Create(w.ctx(), env,
		input(assetopt.EmbeddedSubtitle{}, assetopt.EmbeddedSubtitle{
			LanguageCode: "fr", LanguageChannel: "cc3", Name: "French",
		}), w.now())
	w.must(err)
	w.happened("created", "track.created", "track.created", "track.created", "job asset.ingest")
	var names []string
	for _, x := range a.WaitsForCaptions() {
		names = append(names, x.Channel+" "+x.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"cc1 English (2)", "cc3 French"}) {
		t.Errorf("tracks of captions: %q", names)
	}
	w.must(w.Finish(w.ctx(), a.ID, finished(), w.now()))
	w.happened("ready", "job track.ingest", "job asset.captions")
	row := w.find(a.ID)
	if left := row.Left(w.now()); len(left) != 2 || left[1].Kind != asset.JobCaptions {
		t.Errorf("work that is left: %+v", left)
	}
	for _, x := range row.WaitsForCaptions() {
		w.must(w.TrackReady(w.ctx(), a.ID, x, w.now()))
	}
	row = w.find(a.ID)
	if left := row.Left(w.now()); len(left) != 1 {
		t.Errorf("work that is left: %+v", left)
	}
}

// TestTracksOfRecordings: what a live stream wants of each recording becomes tracks of it, beside those of the
// broadcast, and is fetched when the recording is ready, which it is while it is live.
func TestTracksOfRecordings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, err := w.Record(w.ctx(), asset.NewRecording{
		ID: "rec", Environment: env, LiveStream: "live", Media: "media-x",
		Texts: []asset.LiveText{{Source: asset.Embedded, LanguageCode: "en", Channel: "cc1", ClosedCaptions: true}},
		Options: assetopt.Options{Inputs: []assetopt.Input{
			{},
			{
				URL: "https://u:secret@h/a.srt", Type: "text", TextType: "subtitles", LanguageCode: "en",
				Passthrough: "p",
			},
			{URL: "https://h/logo.png", Overlay: &assetopt.Overlay{}},
			{URL: "https://h/b.m4a", Type: "audio", LanguageCode: "de", Name: "Kommentar"},
		}},
	}, w.now())
	w.must(err)
	w.happened("created", "track.created", "track.created", "track.created")
	var got []string
	for _, x := range w.find(a.ID).Tracks {
		got = append(got, strings.Join([]string{string(x.Type), x.TextSource, x.Name, x.Passthrough, x.URL}, " "))
	}
	slices.Sort(got)
	want := []string{
		"audio  Kommentar  https://h/b.m4a", "text embedded English  ",
		"text uploaded English (2) p https://u:secret@h/a.srt",
	}
	if !slices.Equal(got, want) {
		t.Errorf("tracks %q, want %q", got, want)
	}
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{}, w.now()))
	w.happened("ready", "track.ready", "job track.ingest", "job track.ingest")
	if got := w.find(a.ID); !got.IsLive {
		t.Errorf("the asset is %s, live %t", got.Status, got.IsLive)
	}
}
