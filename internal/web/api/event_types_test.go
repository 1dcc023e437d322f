package api

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
)

// eventTypes are the events of the wire format, with what causes each here, the scenario of TestEventTypes in which it
// is shown in the form of the API, and the test, with its package, in which requests or an encoder's stream cause it.
// One that can't happen has the reason in their place.
var eventTypes = []struct{ typ, cause, scenario, test, never string }{
	{"video.asset.created", "an asset is created, by URL, clip, upload or broadcast", "file", "e2e.TestLive", ""},
	{"video.asset.ready", "it can be played", "file", "e2e.TestDownloads", ""},
	{"video.asset.errored", "nothing could be made of its input", "failures", "e2e.TestFailuresAreTold", ""},
	{"video.asset.updated", "its owner changes it, a playback ID or a track", "file", "api.TestOfficialSDK", ""},
	{"video.asset.deleted", "it is deleted, or expires as a test", "file", "api.TestOfficialSDK", ""},
	{"video.asset.live_stream_completed", "the recording of a broadcast is complete", "recording", "e2e.TestLive", ""},
	{
		"video.asset.warning", "an image for it can't be used, or its input is damaged", "file",
		"e2e.TestFailuresAreTold", "",
	},
	{"video.asset.non_standard_input_detected", "its input has to be encoded", "file", "e2e.TestFailuresAreTold", ""},
	{
		"video.asset.static_renditions.preparing", "mp4_support asks for files of a whole asset", "mp4",
		"e2e.TestDownloads", "",
	},
	{"video.asset.static_renditions.ready", "all of them are made", "mp4", "e2e.TestDownloads", ""},
	{"video.asset.static_renditions.deleted", "mp4_support is changed", "mp4", "e2e.TestDownloads", ""},
	{"video.asset.static_renditions.errored", "one of them can't be made", "failures", "e2e.TestFailuresAreTold", ""},
	{"video.asset.static_rendition.created", "a file is asked for", "files", "e2e.TestDownloadsOfRecordings", ""},
	{"video.asset.static_rendition.ready", "it is made", "files", "e2e.TestDownloadsOfRecordings", ""},
	{"video.asset.static_rendition.errored", "it can't be made", "files", "e2e.TestFailuresAreTold", ""},
	{"video.asset.static_rendition.deleted", "it is deleted", "files", "e2e.TestDownloads", ""},
	{"video.asset.static_rendition.skipped", "it would have to be scaled up", "files", "e2e.TestDownloads", ""},
	{
		"video.asset.master.preparing", "master_access is temporary and the asset is whole", "files",
		"e2e.TestDownloads", "",
	},
	{"video.asset.master.ready", "the master can be downloaded", "files", "e2e.TestDownloads", ""},
	{"video.asset.master.deleted", "master_access is none, or a day has passed", "files", "e2e.TestDownloads", ""},
	{"video.asset.master.errored", "it can't be made", "failures", "e2e.TestFailuresAreTold", ""},
	{
		"video.asset.track.created", "a track is asked for, or a text track is found in a file", "tracks",
		"e2e.TestTracks", "",
	},
	{"video.asset.track.ready", "it is made", "tracks", "e2e.TestTracks", ""},
	{"video.asset.track.errored", "it can't be made", "tracks", "e2e.TestTracks", ""},
	{"video.asset.track.deleted", "it is deleted", "tracks", "e2e.TestTracks", ""},
	{"video.asset.shots.created", "", "", "", "shots of a picture are not looked for: generate_shots is refused"},
	{"video.asset.shots.ready", "", "", "", "likewise"},
	{"video.asset.shots.skipped", "", "", "", "likewise"},
	{"video.asset.shots.errored", "", "", "", "likewise"},
	{"video.asset.shots.deleted", "", "", "", "likewise"},
	{"video.upload.created", "a direct upload is created", "uploads", "e2e.TestFailuresAreTold", ""},
	{"video.upload.asset_created", "its file is there", "uploads", "e2e.TestFailuresAreTold", ""},
	{"video.upload.cancelled", "it is cancelled", "uploads", "e2e.TestCancelledUploadLeavesNothing", ""},
	{"video.upload.errored", "no asset could be made of its file", "uploads", "e2e.TestFailuresAreTold", ""},
	{"video.live_stream.created", "a live stream is created", "broadcast", "e2e.TestLive", ""},
	{"video.live_stream.connected", "an encoder connects", "broadcast", "e2e.TestLive", ""},
	{"video.live_stream.recording", "its first frames are accepted", "broadcast", "e2e.TestLive", ""},
	{"video.live_stream.active", "the stream can be played", "broadcast", "e2e.TestLive", ""},
	{"video.live_stream.disconnected", "the encoder leaves", "broadcast", "e2e.TestLive", ""},
	{"video.live_stream.idle", "the broadcast has ended", "broadcast", "e2e.TestLive", ""},
	{
		"video.live_stream.updated", "its owner changes it, its key or a playback ID", "broadcast",
		"api.TestOfficialSDKWebhooks", "",
	},
	{"video.live_stream.enabled", "it is enabled", "broadcast", "api.TestOfficialSDK", ""},
	{
		"video.live_stream.disabled", "it is disabled, or is a test whose time is over", "broadcast",
		"api.TestOfficialSDK", "",
	},
	{"video.live_stream.deleted", "it is deleted", "broadcast", "api.TestOfficialSDK", ""},
	{
		"video.live_stream.warning", "its slate can't be used, or the encoder has a trouble", "broadcast",
		"e2e.TestHealth", "",
	},
	{"video.live_stream.simulcast_target.created", "a target is added", "broadcast", "e2e.TestSimulcast", ""},
	{"video.live_stream.simulcast_target.idle", "the encoder leaves", "broadcast", "e2e.TestSimulcast", ""},
	{"video.live_stream.simulcast_target.starting", "an encoder connects", "broadcast", "e2e.TestSimulcast", ""},
	{
		"video.live_stream.simulcast_target.broadcasting", "the destination takes the stream", "broadcast",
		"e2e.TestSimulcast", "",
	},
	{
		"video.live_stream.simulcast_target.errored", "the link can't be made, or breaks", "broadcast",
		"e2e.TestSimulcast", "",
	},
	{"video.live_stream.simulcast_target.deleted", "a target is deleted", "broadcast", "api.TestOfficialSDK", ""},
	{"video.live_stream.simulcast_target.updated", "", "", "", "a target has no settings that can be changed"},
	{"video.delivery.high_traffic", "", "", "", "it is about a bill"},
	{"robots.*", "", "", "", "jobs of language models are not part of the service: directives are refused"},
}

// plot makes things happen.
type plot struct {
	t          *testing.T
	streams    *live.Service
	broadcasts live.Broadcasts
	assets     assetsAndWork
	uploads    *upload.Service
	store      upload.Store
}

func (p plot) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestEventTypes: every event that can happen does, in the scenario that the table names, and each can be shown in the
// form of the API.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	scenarios := map[string]func(plot){
		"broadcast": plot.broadcast, "recording": plot.recording, "file": plot.file, "files": plot.files,
		"mp4": plot.mp4, "tracks": plot.tracks,
		"failures": plot.failures, "uploads": plot.upload,
	}
	seen := map[string]map[string]bool{}
	known := map[string]bool{}
	tests := testsOf(t, os.DirFS("../../.."))
	for name, happen := range scenarios {
		d := dbtest.Open(t, dbtest.SQLite(t))
		happen(plot{
			t, live.New(live.Options{Store: d.LiveStreams()}), live.NewBroadcasts(d.LiveStreams()),
			newAssets(asset.Options{Store: d.Assets()}), upload.New(upload.Options{Store: d.Uploads()}), d.Uploads(),
		})
		all, err := d.ListEvents(t.Context(), event.Query{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		form := EventForm{
			Environment: d.Access().Environment, LiveStream: d.LiveStreams().Find, Asset: d.Assets().Find,
			Upload: d.Uploads().Find,
		}
		seen[name] = map[string]bool{}
		for _, e := range all {
			seen[name][e.Type] = true
			if gone := e.Type == asset.EventDeleted || e.Type == live.EventDeleted; e.Last() != gone {
				t.Errorf("%s: the last of its resource is %t, want %t", e.Type, e.Last(), gone)
			}
			if _, err := form.Send(t.Context(), e); err != nil {
				t.Errorf("%s: %v", e.Type, err)
			}
		}
	}
	for _, want := range eventTypes {
		known[want.typ] = true
		if slices.Contains(EventTypes(), want.typ) != (want.never == "") {
			t.Errorf("%s: EventTypes and the table differ", want.typ)
		}
		switch {
		case want.never != "":
			for name := range scenarios {
				if seen[name][want.typ] {
					t.Errorf("%s can not happen (%s), and does in %s", want.typ, want.never, name)
				}
			}
		case want.cause == "" || !seen[want.scenario][want.typ]:
			t.Errorf("%s does not happen in %s", want.typ, want.scenario)
		case !tests[want.test]:
			t.Errorf("%s: there is no test %q", want.typ, want.test)
		}
	}
	for _, typ := range EventTypes() {
		if !known[typ] && strings.HasPrefix(typ, "video.") {
			t.Errorf("%s is not in the table", typ)
		}
	}
	for name := range scenarios {
		for typ := range seen[name] {
			if !known[typ] && strings.HasPrefix(typ, "video.") {
				t.Errorf("%s happens in %s and is not in the table", typ, name)
			}
		}
	}
}

var declaredTest = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsOf are the tests through the API and the wire, each behind the last part of its folder's path.
func testsOf(t *testing.T, tree fs.FS) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, folder := range []string{"internal/web/api", "test/e2e"} {
		files, err := fs.Glob(tree, folder+"/*_test.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", folder, err)
		}
		for _, file := range files {
			text, err := fs.ReadFile(tree, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declaredTest.FindAllSubmatch(text, -1) {
				tests[path.Base(folder)+"."+string(m[1])] = true
			}
		}
	}
	return tests
}

func (p plot) broadcast() {
	ctx := p.t.Context()
	st, err := p.streams.Create(ctx, envID, live.CreateInput{}, noon)
	p.must(err)
	target, err := p.streams.AddSimulcastTarget(ctx, envID, st.ID,
		live.SimulcastTarget{URL: "rtmp://example.com/app", StreamKey: "k"}, noon)
	p.must(err)
	st, err = p.broadcasts.Connect(ctx, live.Connection{
		StreamKey: st.StreamKey, Protocol: "rtmp", NewAsset: "asset1", Owner: live.Owner{Node: "node", Run: "run"},
	}, noon)
	p.must(err)
	p.must(p.broadcasts.Recording(ctx, st.ID, st.Writer(), false, noon))
	p.must(p.broadcasts.Active(ctx, st.ID, st.Writer(), noon))
	p.must(p.broadcasts.Warn(ctx, st.ID, st.Writer(), live.Warning{
		Type: live.CustomSlateUnavailable, Message: "m",
	}, noon))
	p.must(p.broadcasts.Target(ctx, st.ID, st.Writer(), target.ID, live.LinkUp, noon))
	p.must(p.broadcasts.Target(ctx, st.ID, st.Writer(), target.ID, live.LinkDown, noon))
	_, err = p.broadcasts.Disconnected(ctx, st.ID, st.Writer(), noon)
	p.must(err)
	_, err = p.broadcasts.End(ctx, st.ID, st.Writer(), live.EndWindow, noon)
	p.must(err)
	_, err = p.streams.ResetStreamKey(ctx, envID, st.ID, noon)
	p.must(err)
	p.must(p.streams.Disable(ctx, envID, st.ID, noon))
	p.must(p.streams.Enable(ctx, envID, st.ID, noon))
	p.must(p.streams.DeleteSimulcastTarget(ctx, envID, st.ID, target.ID, noon))
	p.must(p.streams.Delete(ctx, envID, st.ID, noon))
}

func (p plot) recording() {
	ctx := p.t.Context()
	a, err := p.assets.Record(ctx, asset.NewRecording{
		ID: "rec1", Environment: envID, LiveStream: "live1", Media: "m",
	}, noon)
	p.must(err)
	g := measured()
	g.Entries = []asset.TimelineEntry{{Data: []byte("x")}}
	p.must(p.assets.Ready(ctx, a.ID, g, noon))
	p.must(p.assets.EndLive(ctx, a.ID, asset.Writer{}, nil, noon))
	p.must(p.assets.Finish(ctx, a.ID, asset.Finished{Index: "i", Facts: *g.Facts}, noon))
}

// whole makes an asset of a file that is there as a whole.
func (p plot) whole(o assetopt.Options) asset.Asset {
	p.t.Helper()
	ctx := p.t.Context()
	o.Inputs = []assetopt.Input{{URL: "https://example.com/a.mp4"}}
	a, err := p.assets.Create(ctx, envID, asset.CreateInput{Options: o}, noon)
	p.must(err)
	p.must(p.assets.Ready(ctx, a.ID, measured(), noon))
	p.must(p.assets.Finish(ctx, a.ID, asset.Finished{Index: "i", Facts: *measured().Facts}, noon))
	a, err = p.assets.Find(ctx, a.ID)
	p.must(err)
	return a
}

func (p plot) file() {
	ctx, text := p.t.Context(), "x"
	a := p.whole(assetopt.Options{})
	p.must(p.assets.SetNonStandard(ctx, a.ID, asset.NonStandard{VideoCodec: "hevc"}, noon))
	p.must(p.assets.Warn(ctx, a.ID, asset.Warning{Type: asset.InputTruncated, Message: "m"}, noon))
	_, err := p.assets.Patch(ctx, envID, a.ID, asset.PatchInput{Passthrough: &text}, noon)
	p.must(err)
	p.must(p.assets.Delete(ctx, envID, a.ID, noon))
}

func (p plot) files() {
	ctx := p.t.Context()
	a := p.whole(assetopt.Options{MasterAccess: assetopt.Temporary, StaticRenditions: []assetopt.StaticRendition{
		{Resolution: "720p"}, {Resolution: "audio-only"}, {Resolution: "1080p"},
	}})
	p.must(p.assets.StaticReady(ctx, a.ID, asset.StaticRendition{ID: a.Static.Files[0].ID}, noon))
	p.must(p.assets.StaticFailed(ctx, a.ID, a.Static.Files[1].ID, asset.Errors{Type: "t"}, noon))
	p.must(p.assets.DeleteStatic(ctx, envID, a.ID, a.Static.Files[0].ID, noon))
	p.must(p.assets.MasterReady(ctx, a.ID, a.Master.ID, noon))
	_, err := p.assets.SetMasterAccess(ctx, envID, a.ID, assetopt.NoMaster, noon)
	p.must(err)
}

func (p plot) mp4() {
	ctx := p.t.Context()
	a := p.whole(assetopt.Options{MP4Support: "capped-1080p"})
	p.must(p.assets.StaticReady(ctx, a.ID, asset.StaticRendition{ID: a.Static.Files[0].ID}, noon))
	_, err := p.assets.SetMP4Support(ctx, envID, a.ID, assetopt.NoMP4, noon)
	p.must(err)
}

func (p plot) tracks() {
	ctx := p.t.Context()
	a := p.whole(assetopt.Options{})
	add := func(language string) asset.Track {
		track, err := p.assets.AddTrack(ctx, envID, a.ID, asset.TrackInput{
			URL: "https://example.com/a.srt", Type: asset.TextTrack, LanguageCode: language,
		}, noon)
		p.must(err)
		return track
	}
	good, bad := add("en"), add("de")
	p.must(p.assets.TrackReady(ctx, a.ID, good, noon))
	p.must(p.assets.TrackFailed(ctx, a.ID, bad.ID, asset.Errors{Type: "t"}, noon))
	p.must(p.assets.DeleteTrack(ctx, envID, a.ID, good.ID, noon))
}

func (p plot) failures() {
	ctx := p.t.Context()
	for _, o := range []assetopt.Options{{MP4Support: "capped-1080p"}, {MasterAccess: assetopt.Temporary}} {
		o.Inputs = []assetopt.Input{{URL: "https://example.com/a.mp4"}}
		a, err := p.assets.Create(ctx, envID, asset.CreateInput{Options: o}, noon)
		p.must(err)
		p.must(p.assets.Fail(ctx, a.ID, asset.Errors{Type: "invalid_input", Messages: []string{"m"}}, noon))
	}
}

func (p plot) upload() {
	ctx := p.t.Context()
	create := func() upload.Upload {
		u, err := p.uploads.Create(ctx, envID, upload.CreateInput{CORSOrigin: "*"}, noon)
		p.must(err)
		return u
	}
	_, err := p.uploads.Cancel(ctx, envID, create().ID, noon)
	p.must(err)
	u := create()
	c, err := p.uploads.Completed(u, id.Asset("asset1"), noon)
	p.must(err)
	p.must(p.store.Save(ctx, c))
	p.must(p.uploads.Fail(ctx, u.ID, upload.Error{Type: "t", Message: "m"}, noon))
}
