package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/upload"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// notebook is a set of services that write down what they are asked for and return the same resources every time. What
// they are asked about decides the rest: the ID "absent" is not found, "broken" breaks, "away" is unavailable, "busy"
// is in the wrong state.
type notebook struct{ calls []string }

func (n *notebook) note(call string, args ...any) {
	for _, a := range args {
		b, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		call += " " + string(b)
	}
	n.calls = append(n.calls, call)
}

func outcome(name string) error {
	switch name {
	case "absent":
		return fault.New(fault.NotFound, "live stream or asset not found")
	case "bare":
		return &fault.Error{Kind: fault.NotFound}
	case "broken":
		return errors.New("read row: password=hunter2")
	case "away":
		return fault.Wrap(fault.Unavailable, errors.New("dial 10.0.0.7"), "database away")
	case "busy":
		return fault.New(fault.Conflict, "latency_mode may be changed only while the live stream is idle")
	case "many":
		var l fault.List
		l.Add("passthrough must be at most 255 characters")
		l.Add("reconnect_window must be from 0 to 1800 seconds")
		return l.Err()
	case "denied":
		return fault.New(fault.Denied, "the primary audio track can't be deleted")
	case "panic":
		panic("broken invariant")
	}
	return nil
}

func (n *notebook) options() Options {
	return Options{
		Received: func(context.Context, upload.Upload) (int64, error) { return 262144, nil },
		Now:      now, Logger: quietLogger(io.Discard), Live: n.live(), Assets: n.assets(), Uploads: &fakeUploads{n},
		Health: metered{}, Usage: &fakeUsage{n},
		Viewers:      Viewers{Signing: &fakeSigning{n}, Restrictions: &fakeRestrictions{n}, DRM: fakeDRM{n}},
		Vocabularies: fakeVocabularies{n},
		Installation: Installation{Nodes: notedNodes{n}, Retention: &fakeRetention{n}},
		Webhooks:     fakeWebhooks{n}, Events: notedEvents{n}, EventForm: testForm(),
		Callers: Callers{
			Audit: notedAudit{n},
			Access: fakeAccess{notebook: n, lookup: func(_ id.Environment, p id.Playback) (playbackid.Object, error) {
				n.note("access.Lookup", p)
				return playbackid.Object{
					ID: playbackid.ID{ID: p, Policy: playbackid.Signed}, Kind: playbackid.OfAsset, ObjectID: "asset1",
				}, outcome(string(p))
			}},
		},
	}
}

// notedEvents has two events.
type notedEvents struct{ *notebook }

func (n notedEvents) ListEvents(_ context.Context, q event.Query) ([]event.Event, error) {
	n.note("events.List", q)
	return happened()[5:7], nil
}

func (n notedEvents) AttemptsOf(_ context.Context, sequences []int64, most int) (map[int64][]webhook.Attempt, error) {
	n.note("events.AttemptsOf", sequences, most)
	return map[int64][]webhook.Attempt{sequences[0]: {{
		Webhook: "hook1", Number: 3, At: noon,
		Address: "https://a.example", Status: 204, Duration: time.Second,
	}}}, nil
}

func (notedEvents) LastEvent(context.Context) (int64, error)  { return 110, nil }
func (notedEvents) FirstEvent(context.Context) (int64, error) { return 3, nil }
func (notedEvents) News() <-chan struct{}                     { return nil }

func (n *notebook) live() *fakeLive {
	return &fakeLive{
		create: func(in live.CreateInput) (live.Stream, error) {
			n.note("live.Create", in)
			return plainStream(), outcome(in.Passthrough)
		},
		get: func(s id.LiveStream) (live.Stream, error) {
			n.note("live.Get", s)
			if s == "plain" {
				return plainStream(), nil
			}
			return fullStream(), outcome(string(s))
		},
		list: func(q live.ListQuery) ([]live.Stream, error) {
			n.note("live.List", q)
			if q.Page > 1 {
				return nil, nil
			}
			return []live.Stream{plainStream()}, nil
		},
		patch: func(s id.LiveStream, in live.PatchInput) (live.Stream, error) {
			n.note("live.Patch", s, in)
			return plainStream(), outcome(string(s))
		},
		generated: func(s id.LiveStream, in []assetopt.GeneratedSubtitle) (live.Stream, error) {
			n.note("live.SetGeneratedSubtitles", s, in)
			return plainStream(), outcome(string(s))
		},
		remove: func(s id.LiveStream) error { n.note("live.Delete", s); return outcome(string(s)) },
		act:    func(verb string, s id.LiveStream) error { n.note("live."+verb, s); return outcome(string(s)) },
		reset: func(s id.LiveStream) (live.Stream, error) {
			n.note("live.ResetStreamKey", s)
			return plainStream(), outcome(string(s))
		},
		addID: func(s id.LiveStream, r playbackid.Request) (playbackid.ID, error) {
			n.note("live.AddPlaybackID", s, r)
			return playbackid.ID{
				ID: "pb1", Policy: r.Policy, DRMConfigurationID: r.DRMConfigurationID,
			}, outcome(string(s))
		},
		getID: func(s id.LiveStream, p id.Playback) (playbackid.ID, error) {
			n.note("live.GetPlaybackID", s, p)
			return playbackid.ID{ID: p, Policy: playbackid.Public}, outcome(string(s))
		},
		deleteID: func(s id.LiveStream, p id.Playback) error {
			n.note("live.DeletePlaybackID", s, p)
			return outcome(string(s))
		},
		addTarget: func(s id.LiveStream, in live.SimulcastTarget) (live.SimulcastTarget, error) {
			n.note("live.AddSimulcastTarget", s, in)
			in.ID, in.State = "sim2", live.TargetIdle
			return in, outcome(string(s))
		},
		getTarget: func(s id.LiveStream, t id.SimulcastTarget) (live.SimulcastTarget, error) {
			n.note("live.GetSimulcastTarget", s, t)
			return live.SimulcastTarget{
				ID: t, State: live.TargetErrored, URL: "srt://example.com:6000?streamid=a",
			}, outcome(string(t))
		},
		dropTarget: func(s id.LiveStream, t id.SimulcastTarget) error {
			n.note("live.DeleteSimulcastTarget", s, t)
			return outcome(string(s))
		},
	}
}

func (n *notebook) assets() *fakeAssets {
	return &fakeAssets{
		setExempt: func(a id.Asset, exempt bool) error {
			n.note("assets.SetExempt", a, exempt)
			return outcome(string(a))
		},
		create: func(in asset.CreateInput) (asset.Asset, error) {
			n.note("asset.Create", in)
			return preparingAsset(), outcome(in.Options.Passthrough)
		},
		get: func(a id.Asset) (asset.Asset, error) {
			n.note("asset.Get", a)
			if strings.HasPrefix(string(a), "preparing") {
				return preparingAsset(), nil
			}
			return fullAsset(), outcome(string(a))
		},
		list: func(q asset.ListQuery) ([]asset.Asset, string, error) {
			n.note("asset.List", q)
			if q.Cursor != "" {
				return nil, "", nil
			}
			return []asset.Asset{preparingAsset()}, "next1", nil
		},
		patch: func(a id.Asset, in asset.PatchInput) (asset.Asset, error) {
			n.note("asset.Patch", a, in)
			return preparingAsset(), outcome(string(a))
		},
		remove: func(a id.Asset) error { n.note("asset.Delete", a); return outcome(string(a)) },
		addID: func(a id.Asset, r playbackid.Request) (playbackid.ID, error) {
			n.note("asset.AddPlaybackID", a, r)
			return playbackid.ID{ID: "pb1", Policy: r.Policy}, outcome(string(a))
		},
		getID: func(a id.Asset, p id.Playback) (playbackid.ID, error) {
			n.note("asset.GetPlaybackID", a, p)
			return playbackid.ID{ID: p, Policy: playbackid.Public}, outcome(string(a))
		},
		deleteID: func(a id.Asset, p id.Playback) error {
			n.note("asset.DeletePlaybackID", a, p)
			return outcome(string(a))
		},
		addTrack: func(a id.Asset, in asset.TrackInput) (asset.Track, error) {
			n.note("asset.AddTrack", a, in)
			return textTrack(), outcome(string(a))
		},
		patchTrack: func(a id.Asset, t id.Track, in asset.TrackPatch) (asset.Track, error) {
			n.note("asset.PatchTrack", a, t, in)
			return textTrack(), outcome(string(a))
		},
		deleteTrack: func(a id.Asset, t id.Track) error {
			n.note("asset.DeleteTrack", a, t)
			return outcome(string(t))
		},
		addStatic: func(a id.Asset, r assetopt.StaticRendition) (asset.StaticRendition, error) {
			n.note("asset.AddStatic", a, r)
			return bigFile(), outcome(string(a))
		},
		dropStatic: func(a id.Asset, f id.StaticRendition) error {
			n.note("asset.DeleteStatic", a, f)
			return outcome(string(f))
		},
		setMP4: func(a id.Asset, v string) (asset.Asset, error) {
			n.note("asset.SetMP4Support", a, v)
			b := preparingAsset()
			b.Options.MP4Support = v
			b.Static = asset.Static{Status: asset.FileReady, Files: []asset.StaticRendition{bigFile()}}
			return b, outcome(string(a))
		},
		setMaster: func(a id.Asset, v string) (asset.Asset, error) {
			n.note("asset.SetMasterAccess", a, v)
			b := preparingAsset()
			b.Options.MasterAccess = v
			b.Master = &asset.Master{
				ID: "m1", Status: asset.FileReady, Signature: "signature", Expires: noon.Add(time.Hour),
			}
			return b, outcome(string(a))
		},
	}
}

func plainStream() live.Stream {
	return live.Stream{
		ID: "live1", StreamKey: "key1", SRTPassphrase: "pass1", State: live.Idle, CreatedAt: noon,
		Settings: live.Settings{LatencyMode: live.Standard, ReconnectWindow: 60, MaxContinuous: 43200},
	}
}

func fullStream() live.Stream {
	s := plainStream()
	s.State, s.Epoch, s.ActiveAsset, s.RecentAssets, s.Protocol = live.Active, 3, "asset3",
		[]id.Asset{"asset1", "asset2"}, "rtmp"
	s.PlaybackIDs = []playbackid.ID{
		{ID: "pb1", Policy: playbackid.Public}, {ID: "pb2", Policy: playbackid.DRM, DRMConfigurationID: "drm1"},
	}
	yes := true
	s.Settings = live.Settings{
		LatencyMode: live.Low, ReconnectWindow: 2.5, SlateForStandard: true,
		ReconnectSlateURL: "https://example.com/slate.png",
		MaxContinuous:     600, Passthrough: "p <&> ü",
		Meta: assetopt.Meta{Title: "t", CreatorID: "c", ExternalID: "e"}, AudioOnly: true, Test: true,
		NewAsset: &assetopt.Options{
			PlaybackPolicies: []playbackid.Policy{playbackid.Public},
			AdvancedPolicies: []playbackid.Request{{Policy: playbackid.DRM, DRMConfigurationID: "drm1"}},
			Inputs: []assetopt.Input{{Name: "main"}, {
				URL: "https://example.com/logo.png", Overlay: &assetopt.Overlay{VerticalAlign: "top", Width: "10%"},
			}},
			Passthrough: "asset", Meta: assetopt.Meta{Title: "t"}, MP4Support: "none", VideoQuality: "plus",
			MaxResolution:    "1080p",
			StaticRenditions: []assetopt.StaticRendition{{Resolution: "highest"}}, MasterAccess: "none",
			NormalizeAudio: true, CopyOverlays: &yes, GenerateShots: true, Test: true,
		},
		EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
			{Name: "English CC", LanguageCode: "en", LanguageChannel: "cc1"},
		},
		GeneratedSubtitles: []assetopt.GeneratedSubtitle{
			{Name: "English", LanguageCode: "en", VocabularyIDs: []string{"v1"}},
		},
		SimulcastTargets: []live.SimulcastTarget{
			{ID: "sim1", URL: "rtmp://example.com/app", StreamKey: "k"},
			{ID: "sim2", State: live.TargetFatal, URL: "srt://example.com:6000"},
		},
	}
	return s
}

func preparingAsset() asset.Asset {
	return asset.Asset{
		ID: "asset1", Status: asset.Preparing, Progress: asset.Progress{State: "ingesting"}, Origin: asset.FromURL,
		CreatedAt: noon,
		Options: assetopt.Options{
			Inputs: []assetopt.Input{{URL: "https://example.com/a.mp4"}}, EncodingTier: "smart",
		},
	}
}

func fullAsset() asset.Asset {
	a := asset.Asset{
		ID: "asset9", Status: asset.Errored, Progress: asset.Progress{State: "live", Percent: -1},
		Origin: asset.FromLiveRTMP, CreatedAt: noon,
		LiveStream: "live1", SourceAsset: "asset8", Upload: "upload1", IsLive: true,
		NonStandard: &asset.NonStandard{VideoCodec: "hevc"}, ThumbnailTime: new(2.5),
		Options: assetopt.Options{
			Passthrough: "p", Meta: assetopt.Meta{Title: "t"}, VideoQuality: "plus",
			MP4Support: "audio-only,capped-1080p", MasterAccess: "temporary",
			MaxResolution: "2160p", NormalizeAudio: true, GenerateShots: true, Test: true,
			StaticRenditions: []assetopt.StaticRendition{
				{Resolution: "highest", Passthrough: "x"}, {Resolution: "audio-only"}, {Resolution: "720p"},
			},
		},
		Static: asset.Static{Files: []asset.StaticRendition{
			{
				ID: "f1", Name: "highest.mp4", Ext: "mp4", Resolution: "highest", Type: "standard",
				Status: asset.FilePreparing, Passthrough: "x",
			},
			{
				ID: "f2", Name: "audio.m4a", Ext: "m4a", Resolution: "audio-only", Type: "standard",
				Status: asset.FileSkipped,
			},
			bigFile(),
		}},
		Master:      &asset.Master{ID: "m1", Status: asset.FilePreparing},
		PlaybackIDs: []playbackid.ID{{ID: "pb1", Policy: playbackid.Public}},
		Facts: asset.Facts{
			Duration: 12.345, Width: 1920, Height: 800, FrameRate: 29.97, Channels: 2, HasVideo: true, HasAudio: true,
		},
		Errors:     &asset.Errors{Type: "invalid_input", Messages: []string{"the file is empty"}},
		Recordings: []asset.Recording{{StartedAt: noon.Add(250 * time.Millisecond), Duration: 10.5, Type: "content"}},
		Tracks: []asset.Track{
			{
				ID: "t1", Type: asset.VideoTrack, Status: asset.TrackReady, Duration: 12.3, MaxWidth: 1920,
				MaxHeight: 800, MaxFrameRate: 29.97,
			},
			{
				ID: "t2", Type: asset.AudioTrack, Status: asset.TrackReady, Primary: true, Name: "Default",
				LanguageCode: "und", MaxChannels: 2, Duration: 12.3,
			},
			textTrack(),
		},
	}
	info := asset.InputInfo{Settings: assetopt.Input{URL: "https://example.com/a.mp4"}}
	info.File.ContainerFormat = "mov,mp4"
	info.File.Tracks = []asset.InputTrack{
		{Type: "video", Duration: 12.3, Encoding: "h264", Width: 1920, Height: 800, FrameRate: 29.97},
		{Type: "audio", SampleRate: 48000, Channels: 2},
	}
	a.InputInfo = []asset.InputInfo{info}
	return a
}

func bigFile() asset.StaticRendition {
	return asset.StaticRendition{
		ID: "f3", Name: "720p.mp4", Ext: "mp4", Resolution: "720p", Type: "advanced", Status: asset.FileReady,
		ResolutionTier: "720p", Width: 1280,
		Height: 720, Bitrate: 2_000_000, Size: 5_000_000_000,
	}
}

func textTrack() asset.Track {
	return asset.Track{
		ID: "t3", Type: asset.TextTrack, Status: asset.TrackPreparing, TextType: "subtitles", TextSource: "uploaded",
		LanguageCode: "en",
		Name:         "English", Passthrough: "p", URL: "https://example.com/secret.srt",
	}
}
