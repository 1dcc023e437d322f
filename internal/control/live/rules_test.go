package live_test

import (
	"reflect"
	"strings"
	"testing"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// wantMessages wants these messages, each by its beginning; none: no error.
func wantMessages(t *testing.T, err error, want ...string) {
	t.Helper()
	got := fault.Messages(err)
	ok := len(got) == len(want) && (err == nil) == (len(want) == 0)
	for i := range min(len(got), len(want)) {
		ok = ok && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("got %v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCreateRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := w.now()
	target := func(url, key string) []live.SimulcastTarget {
		return []live.SimulcastTarget{{URL: url, StreamKey: key}}
	}
	const form = "simulcast_targets[0].url must have the form rtmp://host/app, rtmps://host/app or " +
		"srt://host:port?streamid=…&passphrase=…"
	for _, tt := range []struct {
		name string
		in   live.CreateInput
		want []string
	}{
		{"nothing", live.CreateInput{}, nil},
		{
			"policies of both kinds",
			live.CreateInput{
				PlaybackPolicies: []playbackid.Policy{"public"},
				AdvancedPolicies: []playbackid.Request{{Policy: "drm", DRMConfigurationID: "d"}},
			},
			[]string{"playback_policies and advanced_playback_policies must not be used together"},
		},
		{
			"drm",
			live.CreateInput{PlaybackPolicies: []playbackid.Policy{"drm"}},
			[]string{"playback_policies[0] must be public or signed"},
		},
		{
			"of the assets too",
			live.CreateInput{
				NewAsset: &assetopt.Options{
					PlaybackPolicies: []playbackid.Policy{"drm"}, Meta: assetopt.Meta{Title: strings.Repeat("x", 513)},
					VideoQuality: "basic",
				},
			},
			[]string{
				"new_asset_settings.playback_policies[0] must be public or signed",
				"new_asset_settings.meta.title may have at most 512 characters",
				"new_asset_settings.video_quality must be one of: plus, premium",
			},
		},
		{
			"window",
			live.CreateInput{ReconnectWindow: new(1800.5)},
			[]string{"reconnect_window must be a number from 0 to 1800"},
		},
		{
			"negative window",
			live.CreateInput{ReconnectWindow: new(-1.0)},
			[]string{"reconnect_window must be a number from 0 to 1800"},
		},
		{"longest window", live.CreateInput{ReconnectWindow: new(1800.0)}, nil},
		{
			"short",
			live.CreateInput{MaxContinuous: new(59)},
			[]string{"max_continuous_duration must be a whole number of seconds from 60 to 43200"},
		},
		{
			"long",
			live.CreateInput{MaxContinuous: new(43201)},
			[]string{"max_continuous_duration must be a whole number of seconds from 60 to 43200"},
		},
		{
			"slate",
			live.CreateInput{ReconnectSlateURL: "x.png"},
			[]string{"reconnect_slate_url must be an absolute http or https URL"},
		},
		{
			"passthrough",
			live.CreateInput{Passthrough: strings.Repeat("ä", 256), Meta: assetopt.Meta{CreatorID: "\x00"}},
			[]string{
				"passthrough may have at most 255 characters", "meta.creator_id must not contain the character U+0000",
			},
		},
		{
			"latency",
			live.CreateInput{LatencyMode: "fast"},
			[]string{"latency_mode must be one of: standard, reduced, low"},
		},
		{
			"both flags",
			live.CreateInput{LowLatency: new(true), ReducedLatency: new(true)},
			[]string{"low_latency and reduced_latency must not both be true; use latency_mode"},
		},
		{
			"flag against mode",
			live.CreateInput{LatencyMode: live.Standard, LowLatency: new(true)},
			[]string{"low_latency contradicts latency_mode; use latency_mode alone"},
		},
		{
			"mode against flag",
			live.CreateInput{LatencyMode: live.Reduced, ReducedLatency: new(false)},
			[]string{"reduced_latency contradicts latency_mode; use latency_mode alone"},
		},
		{
			"flag with its mode",
			live.CreateInput{LatencyMode: live.Low, LowLatency: new(true), ReducedLatency: new(false)},
			nil,
		},
		{
			"captions",
			live.CreateInput{
				EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
					{LanguageCode: "x!", LanguageChannel: "cc5", Name: "\x00", Passthrough: strings.Repeat("x", 256)},
				},
			},
			[]string{
				"embedded_subtitles[0].name must not contain the character U+0000",
				"embedded_subtitles[0].passthrough may have at most 255 characters",
				"embedded_subtitles[0].language_code must be a BCP 47 language tag",
				"embedded_subtitles[0].language_channel must be one of: cc1, cc2, cc3, cc4",
			},
		},
		{
			"many captions",
			live.CreateInput{
				EmbeddedSubtitles:  make([]assetopt.EmbeddedSubtitle, 5),
				GeneratedSubtitles: make([]assetopt.GeneratedSubtitle, 2),
			},
			[]string{"embedded_subtitles may have at most 4 entries", "generated_subtitles may have at most 1 entries"},
		},
		{
			"captions of every channel",
			live.CreateInput{
				EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
					{},
					{LanguageChannel: "cc2", LanguageCode: "es"},
					{LanguageChannel: "cc3", Name: "More"},
					{LanguageChannel: "cc4"},
				},
				GeneratedSubtitles: make([]assetopt.GeneratedSubtitle, 1),
			},
			nil,
		},
		{
			"captions twice",
			live.CreateInput{
				EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
					{Name: "A"}, {Name: "A", LanguageChannel: "cc1"}, {Name: "B", LanguageChannel: "cc2"},
				},
				GeneratedSubtitles: []assetopt.GeneratedSubtitle{{Name: "B"}},
			},
			[]string{
				"embedded_subtitles[1].name must be unique among the text tracks",
				"embedded_subtitles[1].language_channel is asked for twice",
				"generated_subtitles[0].name must be unique",
			},
		},
		{
			"captions with low latency",
			live.CreateInput{
				LowLatency: new(true), EmbeddedSubtitles: make([]assetopt.EmbeddedSubtitle, 1),
				GeneratedSubtitles: make([]assetopt.GeneratedSubtitle, 1),
			},
			nil,
		},
		{
			"captions of audio",
			live.CreateInput{
				AudioOnly: true, EmbeddedSubtitles: make([]assetopt.EmbeddedSubtitle, 1),
				GeneratedSubtitles: make([]assetopt.GeneratedSubtitle, 1),
			},
			[]string{"embedded_subtitles must not be set when audio_only is true"},
		},
		{
			"overlays on audio",
			live.CreateInput{
				AudioOnly: true,
				NewAsset: &assetopt.Options{
					Inputs: []assetopt.Input{{}, {URL: "https://h/x", Overlay: &assetopt.Overlay{}}},
				},
			},
			[]string{"new_asset_settings.inputs may have no overlays when audio_only is true"},
		},
		{"tracks on audio", live.CreateInput{AudioOnly: true, NewAsset: &assetopt.Options{Inputs: []assetopt.Input{
			{}, {URL: "https://h/x", Type: "audio", LanguageCode: "de"},
		}}}, nil},
		{"the name of a text input", live.CreateInput{
			EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{{Name: "A"}},
			NewAsset: &assetopt.Options{Inputs: []assetopt.Input{
				{}, {URL: "https://h/x", Type: "text", TextType: "subtitles", LanguageCode: "de", Name: "A"},
			}},
		}, []string{"new_asset_settings.inputs[1].name must be unique among the text tracks"}},
		{
			"same name",
			live.CreateInput{
				EmbeddedSubtitles:  []assetopt.EmbeddedSubtitle{{Name: "A"}},
				GeneratedSubtitles: []assetopt.GeneratedSubtitle{{Name: "A"}},
			},
			[]string{"generated_subtitles[0].name must be unique among the text tracks"},
		},
		{
			"generated language",
			live.CreateInput{GeneratedSubtitles: []assetopt.GeneratedSubtitle{{LanguageCode: "ja"}}},
			[]string{"generated_subtitles[0].language_code must be one of: en, es, fr, de, pt, it"},
		},
		{"rtmp target", live.CreateInput{SimulcastTargets: target("rtmp://h/app", "key")}, nil},
		{"rtmps target", live.CreateInput{SimulcastTargets: target("rtmps://h:443/app/x", "")}, nil},
		{
			"srt target",
			live.CreateInput{SimulcastTargets: target("srt://h:6001?streamid=a&passphrase=0123456789", "")},
			nil,
		},
		{
			"srt target with key",
			live.CreateInput{SimulcastTargets: target("srt://h:6001", "key")},
			[]string{"simulcast_targets[0].stream_key may be set only for rtmp and rtmps"},
		},
		{"srt without port", live.CreateInput{SimulcastTargets: target("srt://h", "")}, []string{form}},
		{"rtmp without app", live.CreateInput{SimulcastTargets: target("rtmp://h/", "")}, []string{form}},
		{"http target", live.CreateInput{SimulcastTargets: target("http://h/app", "")}, []string{form}},
		{"no target", live.CreateInput{SimulcastTargets: target("", "")}, []string{form}},
		{
			"long target",
			live.CreateInput{SimulcastTargets: target("rtmp://h/"+strings.Repeat("x", 8192), "\x00")},
			[]string{
				"simulcast_targets[0].stream_key must not contain the character U+0000",
				"simulcast_targets[0].url may have at most 8192 characters",
			},
		},
		{
			"srt options",
			live.CreateInput{
				SimulcastTargets: target("srt://h:6001?streamid=a&passphrase=0123456789&pbkeylen=32&latency=200&mode=caller&x=1", ""),
			},
			nil,
		},
		{"srt to nobody", live.CreateInput{SimulcastTargets: target("srt://:6001?streamid=a", "")}, []string{form}},
		{"srt with a path", live.CreateInput{SimulcastTargets: target("srt://h:6001/x", "")}, []string{form}},
		{
			"srt with a bad query",
			live.CreateInput{SimulcastTargets: target("srt://h:6001?streamid=%zz", "")},
			[]string{form},
		},
		{
			"srt options out of bounds",
			live.CreateInput{
				SimulcastTargets: target("srt://h:6001?passphrase=short&pbkeylen=17&latency=-1&mode=listener&streamid="+
					strings.Repeat("x", 513), ""),
			},
			[]string{
				"simulcast_targets[0].url: streamid may have at most 512 bytes",
				"simulcast_targets[0].url: passphrase must have 10 to 79 characters",
				"simulcast_targets[0].url: pbkeylen must be one of: 0, 16, 24, 32",
				"simulcast_targets[0].url: latency must be a whole number of milliseconds from 0 to 10000",
				"simulcast_targets[0].url: mode must be caller",
			},
		},
		{
			"rtmp with a port out of range",
			live.CreateInput{SimulcastTargets: target("rtmp://h:65536/app", "key")},
			[]string{form},
		},
		{
			"rtmp with credentials",
			live.CreateInput{SimulcastTargets: target("rtmp://u:p@h/app", "key")},
			[]string{"simulcast_targets[0].url must not hold a user name or password"},
		},
		{"opaque target", live.CreateInput{SimulcastTargets: target("rtmp:h/app", "key")}, []string{form}},
		{
			"seven targets",
			live.CreateInput{SimulcastTargets: make([]live.SimulcastTarget, 7)},
			[]string{"simulcast_targets may have at most 6 entries"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.Create(t.Context(), "rules", tt.in, now)
			wantMessages(t, err, tt.want...)
		})
	}
}

func TestCreateDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct {
		in     live.CreateInput
		mode   live.LatencyMode
		window float64
	}{
		{live.CreateInput{}, live.Standard, 60},
		{live.CreateInput{LatencyMode: live.Reduced}, live.Reduced, 0},
		{live.CreateInput{LatencyMode: live.Low}, live.Low, 0},
		{live.CreateInput{LowLatency: new(true)}, live.Low, 0},
		{live.CreateInput{ReducedLatency: new(true), LowLatency: new(false)}, live.Reduced, 0},
		{live.CreateInput{LatencyMode: live.Low, ReconnectWindow: new(12.5)}, live.Low, 12.5},
		{live.CreateInput{ReconnectWindow: new(0.0)}, live.Standard, 0},
	} {
		s := w.create(tt.in)
		if s.Settings.LatencyMode != tt.mode || s.Settings.ReconnectWindow != tt.window ||
			s.Settings.MaxContinuous != 43200 || s.State != live.Idle {
			t.Errorf("%+v gives %+v", tt.in, s.Settings)
		}
	}
	s := w.create(live.CreateInput{
		EmbeddedSubtitles:  make([]assetopt.EmbeddedSubtitle, 1),
		GeneratedSubtitles: []assetopt.GeneratedSubtitle{{LanguageCode: "de-AT"}},
		SimulcastTargets:   []live.SimulcastTarget{{URL: "rtmp://h/app", StreamKey: "k"}},
	})
	if e := s.Settings.EmbeddedSubtitles[0]; e.Name != "English" || e.LanguageCode != "en" ||
		e.LanguageChannel != "cc1" {
		t.Errorf("embedded subtitles %+v", e)
	}
	several := w.create(live.CreateInput{
		EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
			{}, {LanguageChannel: "cc2"}, {LanguageChannel: "cc3", LanguageCode: "es"},
		},
	})
	for i, want := range []string{"English", "English (cc2)", "Spanish"} {
		if got := several.Settings.EmbeddedSubtitles[i].Name; got != want {
			t.Errorf("captions %d are called %q, want %q", i, got, want)
		}
	}
	both := w.create(live.CreateInput{
		EmbeddedSubtitles:  make([]assetopt.EmbeddedSubtitle, 1),
		GeneratedSubtitles: []assetopt.GeneratedSubtitle{{Name: "English"}},
	})
	if got := both.Settings.EmbeddedSubtitles[0].Name; got != "English (cc1)" {
		t.Errorf("beside generated subtitles with the chosen name English captions are called %q", got)
	}
	if g := s.Settings.GeneratedSubtitles[0]; g.Name != "German" || g.LanguageCode != "de" {
		t.Errorf("generated subtitles %+v", g)
	}
	if got := s.Settings.SimulcastTargets[0]; got.ID == "" || got.State != live.TargetIdle {
		t.Errorf("target %+v", got)
	}
	if len(s.StreamKey) != 36 || len(s.SRTPassphrase) < 22 || len(s.SRTPassphrase) > 64 || s.Epoch != 0 ||
		len(s.PlaybackIDs) != 0 {
		t.Errorf("made %+v", s)
	}
}

// TestEmbeddedSubtitles: which captions become tracks is changed as a whole, and not while the stream is live.
func TestEmbeddedSubtitles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{LatencyMode: live.Low})
	set := func(list ...assetopt.EmbeddedSubtitle) (live.Stream, error) {
		return w.Patch(w.ctx(), env, s.ID, live.PatchInput{EmbeddedSubtitles: &list}, w.now())
	}
	got, err := set(assetopt.EmbeddedSubtitle{}, assetopt.EmbeddedSubtitle{LanguageChannel: "cc3", LanguageCode: "es"})
	if err != nil || len(got.Settings.EmbeddedSubtitles) != 2 || got.Settings.EmbeddedSubtitles[1].Name != "Spanish" ||
		got.Settings.EmbeddedSubtitles[0].LanguageChannel != "cc1" {
		t.Errorf("set: %+v, %v", got.Settings.EmbeddedSubtitles, err)
	}
	if _, err = set(assetopt.EmbeddedSubtitle{}, assetopt.EmbeddedSubtitle{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a channel twice: %v", err)
	}
	if got, err = set(); err != nil || len(got.Settings.EmbeddedSubtitles) != 0 {
		t.Errorf("cleared: %+v, %v", got.Settings.EmbeddedSubtitles, err)
	}
	w.events("updated", "updated")
	s = w.on(live.Active)
	if _, err = set(assetopt.EmbeddedSubtitle{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("while live: %v", err)
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{
		Passthrough: "p", ReconnectSlateURL: "https://h/x",
		NewAsset: &assetopt.Options{
			EncodingTier: "smart", StaticRenditions: []assetopt.StaticRendition{{Resolution: "highest"}},
		},
	})
	patch := func(in live.PatchInput) (live.Stream, error) { return w.Patch(w.ctx(), env, s.ID, in, w.now()) }
	got, err := patch(live.PatchInput{
		LatencyMode: new(live.Low), SlateForStandard: new(true), ReconnectSlateURL: new(""), Passthrough: new(""),
		MaxContinuous: new(60),
		Meta:          &assetopt.MetaPatch{Meta: assetopt.Meta{Title: "t", CreatorID: "c"}},
		NewAsset: &live.NewAssetPatch{
			MasterAccess: new("temporary"), VideoQuality: new("premium"), MP4Support: new("none"),
			Meta: &assetopt.MetaPatch{Meta: assetopt.Meta{Title: "a", CreatorID: "d", ExternalID: "e"}},
		},
	})
	w.must(err)
	set := got.Settings
	if set.LatencyMode != live.Low || set.ReconnectWindow != 0 || !set.SlateForStandard ||
		set.ReconnectSlateURL != "" || set.Passthrough != "" || set.MaxContinuous != 60 ||
		set.Meta.Title != "t" || set.NewAsset.MasterAccess != "temporary" || set.NewAsset.VideoQuality != "premium" ||
		set.NewAsset.Meta.Title != "a" || len(set.NewAsset.StaticRenditions) != 1 {
		t.Errorf("patched %+v with %+v", set, set.NewAsset)
	}
	w.events("updated")
	if !same(got, w.find(s.ID)) {
		t.Errorf("patch gives %+v, the store has %+v", got, w.find(s.ID))
	}
	_, err = patch(live.PatchInput{ReconnectWindow: new(5.0)})
	w.must(err)
	got, err = patch(live.PatchInput{LatencyMode: new(live.Standard)})
	w.must(err)
	if got.Settings.ReconnectWindow != 5 {
		t.Errorf("a chosen window became %v", got.Settings.ReconnectWindow)
	}
	w.events("updated", "updated")
	got, err = patch(live.PatchInput{
		DefaultWindow: true, Meta: &assetopt.MetaPatch{ClearTitle: true},
		NewAsset: &live.NewAssetPatch{Meta: &assetopt.MetaPatch{ClearCreatorID: true, ClearExternalID: true}},
	})
	w.must(err)
	set = got.Settings
	if set.ReconnectWindow != live.DefaultWindow(live.Standard) || set.ReconnectChosen ||
		set.Meta != (assetopt.Meta{CreatorID: "c"}) || set.NewAsset.Meta != (assetopt.Meta{Title: "a"}) {
		t.Errorf("cleared: %+v with %+v", set, set.NewAsset)
	}
	got, err = patch(live.PatchInput{LatencyMode: new(live.Reduced)})
	w.must(err)
	if got.Settings.ReconnectWindow != live.DefaultWindow(live.Reduced) {
		t.Errorf("the default window became %v", got.Settings.ReconnectWindow)
	}
	_, err = patch(live.PatchInput{LatencyMode: new(live.Standard), ReconnectWindow: new(5.0)})
	w.must(err)
	w.events("updated", "updated", "updated")
	for _, tt := range []struct {
		in   live.PatchInput
		want string
	}{
		{live.PatchInput{LatencyMode: new(live.LatencyMode("x"))}, "latency_mode must be one of"},
		{live.PatchInput{ReconnectWindow: new(2000.0)}, "reconnect_window must be a number from 0 to 1800"},
		{live.PatchInput{MaxContinuous: new(0)}, "max_continuous_duration must be"},
		{live.PatchInput{Passthrough: new("\x00")}, "passthrough must not contain the character U+0000"},
		{
			live.PatchInput{NewAsset: &live.NewAssetPatch{MP4Support: new("standard")}},
			"new_asset_settings.mp4_support and new_asset_settings.static_renditions must not be used together",
		},
		{
			live.PatchInput{NewAsset: &live.NewAssetPatch{VideoQuality: new("basic")}},
			"new_asset_settings.video_quality must be one of: plus, premium",
		},
	} {
		_, err = patch(tt.in)
		wantMessages(t, err, tt.want)
	}
	w.events()
	got, err = patch(live.PatchInput{NewAsset: &live.NewAssetPatch{Clear: true}})
	w.must(err)
	if got.Settings.NewAsset != nil {
		t.Errorf("cleared settings of recordings are %+v", got.Settings.NewAsset)
	}
	got, err = patch(live.PatchInput{NewAsset: &live.NewAssetPatch{Clear: true}, DefaultQuality: "premium"})
	w.must(err)
	if o := got.Settings.NewAsset; o == nil || !reflect.DeepEqual(*o, assetopt.Options{VideoQuality: "premium"}) {
		t.Errorf("cleared in an environment with a quality they are %+v", o)
	}
	w.events("updated", "updated")
	on := w.on(live.Active)
	_, err = w.Patch(w.ctx(), env, on.ID, live.PatchInput{LatencyMode: new(live.Low)}, w.now())
	wantMessages(t, err, "latency_mode may be changed only while the live stream is idle")
	_, err = w.Patch(w.ctx(), env, on.ID, live.PatchInput{
		LatencyMode: new(live.Standard), ReconnectWindow: new(90.0),
	}, w.now())
	w.must(err) // the mode it has
	_, err = w.Patch(w.ctx(), env, on.ID, live.PatchInput{
		EmbeddedSubtitles: &[]assetopt.EmbeddedSubtitle{{}}, Passthrough: new("\x00"),
	}, w.now())
	wantMessages(t, err, "embedded_subtitles may be changed only while the live stream is idle",
		"passthrough must not contain the character U+0000")
	if len(w.notified) != 1 {
		t.Errorf("the owner was told of %v", w.notified)
	}
}
