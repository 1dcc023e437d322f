package assetopt

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// parse reads options in their stored form; two names of the wire are the same.
func parse(t *testing.T, doc string) Options {
	t.Helper()
	var o Options
	d := json.NewDecoder(strings.NewReader(doc))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return o
}

const main = `{"url":"https://h/v.mp4"}`

func TestCheckForAsset(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, tt := range []struct {
		name, doc string
		want      []string
	}{
		{"one input", `{"inputs":[` + main + `]}`, nil},
		{"no inputs", `{}`, []string{"inputs is required: at least one input with a url"}},
		{"no url", `{"inputs":[{}]}`, []string{"inputs[0].url is required"}},
		{
			"no web URL", `{"inputs":[{"url":"ftp://h/x"}]}`,
			[]string{
				"inputs[0].url must be an absolute http or https URL of at most 8192 characters, or " +
					"svc://assets/{asset_id} or mux://assets/{asset_id} for a clip",
			},
		},
		{
			"everything",
			`{"inputs":[` + main + `],"playback_policies":["public"],"passthrough":"` + long(255) +
				`","meta":{"title":"` + long(512) + `","creator_id":"` + long(128) + `","external_id":"` + long(128) +
				`"},
			"mp4_support":"capped-1080p","video_quality":"basic","encoding_tier":"baseline","max_resolution_tier":"2160p","master_access":"temporary","normalize_audio":true,"test":true,"copy_overlays":false}`, nil,
		},
		{
			"long texts",
			`{"inputs":[` + main + `],"passthrough":"` + long(256) + `","meta":{"title":"` + long(513) +
				`","creator_id":"` + long(129) + `","external_id":"` + long(129) + `"}}`,
			[]string{
				"passthrough may have at most 255 characters", "meta.title may have at most 512 characters",
				"meta.creator_id may have at most 128 characters", "meta.external_id may have at most 128 characters",
			},
		},
		{
			"unknown values",
			`{"inputs":[` + main +
				`],"mp4_support":"x","video_quality":"x","encoding_tier":"x","max_resolution_tier":"720p","master_access":"x"}`,
			[]string{
				"max_resolution_tier must be one of: 1080p, 1440p, 2160p",
				"encoding_tier must be one of: smart, baseline, premium",
				"video_quality must be one of: basic, plus, premium",
				"mp4_support must be one of: none, standard, capped-1080p, audio-only, audio-only,capped-1080p",
				"master_access must be one of: none, temporary",
			},
		},
		{
			"resolution", `{"inputs":[` + main + `],"max_resolution_tier":"720p"}`,
			[]string{"max_resolution_tier must be one of: 1080p, 1440p, 2160p"},
		},
		{
			"tier and quality", `{"inputs":[` + main + `],"encoding_tier":"smart","video_quality":"basic"}`,
			[]string{"encoding_tier and video_quality contradict each other; use video_quality alone"},
		},
		{
			"drm is not basic",
			`{"inputs":[` + main +
				`],"encoding_tier":"baseline","advanced_playback_policies":[{"policy":"drm","drm_configuration_id":"d"}]}`,
			[]string{"video_quality must be plus or premium for a drm playback ID"},
		},
		{
			"mp4 and renditions",
			`{"inputs":[` + main + `],"mp4_support":"standard","static_renditions":[{"resolution":"highest"}]}`,
			[]string{"mp4_support and static_renditions must not be used together; set mp4_support to none"},
		},
		{
			"no mp4 and renditions",
			`{"inputs":[` + main +
				`],"mp4_support":"none","static_renditions":[{"resolution":"highest"},{"resolution":"audio-only","passthrough":"p"}]}`, nil,
		},
		{
			"sized renditions",
			`{"inputs":[` + main +
				`],"static_renditions":[{"resolution":"2160p"},{"resolution":"1440p"},{"resolution":"1080p"},{"resolution":"720p"},{"resolution":"540p"},{"resolution":"480p"},{"resolution":"360p"},{"resolution":"270p"},{"resolution":"audio-only"}]}`, nil,
		},
		{
			"renditions",
			`{"inputs":[` + main +
				`],"static_renditions":[{"resolution":"highest"},{"resolution":"1080p","passthrough":"` + long(256) +
				`"},{"resolution":"1080p"},{}]}`,
			[]string{
				"static_renditions[1].passthrough may have at most 255 characters",
				"static_renditions[2].resolution is asked for twice; each may be there once",
				"static_renditions[3].resolution must be one of: highest, audio-only, 2160p, 1440p, 1080p, 720p, " +
					"540p, 480p, 360p, 270p", "static_renditions may not mix highest with explicit resolutions",
			},
		},
		{
			"captions",
			`{"inputs":[{"url":"https://h/v.mp4","embedded_subtitles":[{},{"language_channel":"cc2","name":"A","language_code":"fr","passthrough":"p"}]}]}`, nil,
		},
		{
			"captions",
			`{"inputs":[{"url":"https://h/v.mp4","embedded_subtitles":[{"name":"A","language_channel":"cc5"},{"name":"A"},{}]},` + `{"url":"https://h/a.m4a","type":"audio","language_code":"fr","embedded_subtitles":[{}]}]}`,
			[]string{
				"inputs[0].embedded_subtitles[0].language_channel must be one of: cc1, cc2, cc3, cc4",
				"inputs[0].embedded_subtitles[1].name must be unique among the text tracks",
				"inputs[0].embedded_subtitles[2].language_channel is asked for twice; each may be there once, and it " +
					"is cc1 unless given",
				"inputs[1].embedded_subtitles may be set only on the first input",
			},
		},
		{
			"tracks",
			`{"inputs":[` + main +
				`,{"url":"https://h/a.srt","type":"text","text_type":"subtitles","language_code":"en","name":"English","closed_captions":true},{"url":"https://h/a.m4a","type":"audio","language_code":"fr","name":"English"}]}`, nil,
		},
		{
			"what tracks lack",
			`{"inputs":[` + main +
				`,{"type":"text"},{"type":"audio","text_type":"subtitles","closed_captions":true},{"url":"https://h/x"},{"type":"film","url":"https://h/x"}]}`,
			[]string{
				"inputs[1].url is required", "inputs[1].language_code is required for text and audio tracks",
				"inputs[1].text_type is required for text tracks; subtitles is the only value",
				"inputs[2].closed_captions may be set only when type is text",
				"inputs[2].text_type may be set only when type is text",
				"inputs[2].url is required", "inputs[2].language_code is required for text and audio tracks",
				"inputs[3].type is required: text for subtitles, audio for further sound; or overlay_settings, for " +
					"an image over the video", "inputs[4].type must be one of: video, audio, text",
				"inputs[4].type must be text or audio, or overlay_settings must be set",
			},
		},
		{
			"no type leads",
			`{"inputs":[` + main +
				`,{"url":"https://h/a.srt","text_type":"subtitles","language_code":"?","closed_captions":true}]}`,
			[]string{
				"inputs[1].type is required: text for subtitles, audio for further sound; or overlay_settings, for " +
					"an image over the video",
			},
		},
		{
			"track values",
			`{"inputs":[` + main +
				`,{"url":"svc://assets/a","type":"text","text_type":"captions","language_code":"english","passthrough":"` + long(256) + `"}]}`,
			[]string{
				"inputs[1].passthrough may have at most 255 characters",
				"inputs[1].language_code must be a BCP 47 language tag",
				"inputs[1].text_type must be one of: subtitles", "inputs[1].url must be an absolute http or https URL",
			},
		},
		{
			"names twice",
			`{"inputs":[` + main +
				`,{"url":"https://h/1","type":"text","text_type":"subtitles","language_code":"en","name":"A"},{"url":"https://h/2","type":"text","text_type":"subtitles","language_code":"de","name":"A"}]}`,
			[]string{"inputs[2].name must be unique among the text tracks"},
		},
		{
			"main named as a further track",
			`{"inputs":[{"url":"https://h/x","name":"A"},{"url":"https://h/1","type":"text","text_type":"subtitles","language_code":"en","name":"A"},{"url":"https://h/2","type":"audio","language_code":"de","name":"A"}]}`,
			[]string{"inputs[2].name must be unique among the audio tracks"},
		},
		{"labelled main", `{"inputs":[{"url":"https://h/x","name":"Main","language_code":"en","type":"video"}]}`, nil},
		{
			"main of text", `{"inputs":[{"url":"https://h/x","type":"text","overlay_settings":{}}]}`,
			[]string{
				"inputs[0].overlay_settings may be set only from the second input on; the first is the main file",
				"inputs[0].type must be video or audio; the first input is the main file",
			},
		},
		{
			"overlay",
			`{"inputs":[` + main +
				`,{"url":"https://h/x.png","overlay_settings":{"vertical_align":"middle","vertical_margin":"-10%","horizontal_align":"center","horizontal_margin":"12.5px","width":"100%","height":"100px","opacity":"90%"}}]}`, nil,
		},
		{
			"overlay values",
			`{"inputs":[` + main +
				`,{"type":"text","overlay_settings":{"vertical_align":"up","vertical_margin":"10","horizontal_align":"middle","horizontal_margin":"1em","width":"-1px","height":"x","opacity":"101%"}}]}`,
			[]string{
				"inputs[1].url is required: the image to lay over the video",
				"inputs[1].type must not be text together with overlay_settings",
				"inputs[1].overlay_settings.vertical_align must be one of: top, middle, bottom",
				"inputs[1].overlay_settings.horizontal_align must be one of: left, center, right",
				"inputs[1].overlay_settings.vertical_margin must be a percentage such as 10% or pixels such as 100px",
				"inputs[1].overlay_settings.horizontal_margin must be a percentage such as 10% or pixels such as 100px",
				"inputs[1].overlay_settings.width must be a percentage such as 10% or pixels such as 100px, more than 0", "inputs[1].overlay_settings.height must be a percentage such as 10% or pixels such as 100px, more than 0", "inputs[1].overlay_settings.opacity must be a percentage from 0% to 100%",
			},
		},
		{
			"overlay of no size",
			`{"inputs":[` + main +
				`,{"url":"https://h/x.png","overlay_settings":{"width":"0%","height":"0.00px"}},{"url":"https://h/x.png","overlay_settings":{"width":"0.01%","height":"10px","vertical_margin":"0%"}}]}`,
			[]string{
				"inputs[1].overlay_settings.width must be a percentage such as 10% or pixels such as 100px, more than 0", "inputs[1].overlay_settings.height must be a percentage such as 10% or pixels such as 100px, more than 0",
			},
		},
		{"a signed URL", `{"inputs":[{"url":"https://h/x?` + strings.Repeat("x", 8180) + `"}]}`, nil},
		{"clip", `{"inputs":[{"url":"mux://assets/abc","start_time":1,"end_time":1.5}]}`, nil},
		{"open clip", `{"inputs":[{"url":"svc://assets/abc"}]}`, nil},
		{
			"short clip", `{"inputs":[{"url":"svc://assets/abc","start_time":1,"end_time":1.4}]}`,
			[]string{"inputs[0].end_time must be at least 0.5 seconds after start_time"},
		},
		{
			"clip backwards", `{"inputs":[{"url":"svc://assets/abc","start_time":3,"end_time":2}]}`,
			[]string{"inputs[0].end_time must be at least 0.5 seconds after start_time"},
		},
		{
			"clip before the start", `{"inputs":[{"url":"svc://assets/abc","start_time":-1}]}`,
			[]string{"inputs[0].start_time must be a number from 0 to 86400"},
		},
		{
			"clip of nothing", `{"inputs":[{"url":"svc://assets/"}]}`,
			[]string{"inputs[0].url must name an asset: svc://assets/{asset_id} or mux://assets/{asset_id}"},
		},
		{
			"clip of a path", `{"inputs":[{"url":"mux://assets/../x"}]}`,
			[]string{"inputs[0].url must name an asset: svc://assets/{asset_id} or mux://assets/{asset_id}"},
		},
		{
			"times without a clip", `{"inputs":[{"url":"https://h/x","start_time":0}]}`,
			[]string{
				"inputs[0].start_time and end_time may be set only when url has the form svc://assets/{asset_id} or " +
					"mux://assets/{asset_id}",
			},
		},
		{
			"generated",
			`{"inputs":[{"url":"https://h/x","generated_subtitles":[{"language_code":"auto"},{"language_code":"bg","name":"B","passthrough":"p"},{}]}]}`, nil,
		},
		{
			"generated values",
			`{"inputs":[{"url":"https://h/x","generated_subtitles":[{"language_code":"ja","name":"A"},{"name":"A","transcription_vocabulary_ids":["v"]}]}]}`,
			[]string{
				"inputs[0].generated_subtitles[0].language_code must be one of: en,",
				"inputs[0].generated_subtitles[1].name must be unique among the text tracks",
				"inputs[0].generated_subtitles[1].transcription_vocabulary_ids may be set only for live streams",
			},
		},
		{
			"generated elsewhere",
			`{"inputs":[` + main +
				`,{"url":"https://h/a.m4a","type":"audio","language_code":"fr","generated_subtitles":[{}]}]}`,
			[]string{"inputs[1].generated_subtitles may be set only on the first input"},
		},
		{
			"too many inputs", `{"inputs":[` + strings.Repeat(main+",", 100) + main + `]}`,
			[]string{"inputs may have at most 100 entries"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.doc, "", ForAsset, tt.want)
		})
	}
}

func TestCheckForLive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, doc string
		want      []string
	}{
		{"nothing", `{}`, nil},
		{"overlay", `{"inputs":[{},{"url":"https://h/x.png","overlay_settings":{}}]}`, nil},
		{
			"main with a url", `{"inputs":[{"url":"https://h/x"}]}`,
			[]string{"n.inputs[0].url must not be set: the first input of a live stream is the encoder"},
		},
		{"tracks of recordings", `{"inputs":[{},{"url":"https://h/x.srt","type":"text","text_type":"subtitles",` +
			`"language_code":"de"},{"url":"https://h/x.m4a","type":"audio","language_code":"fr"}]}`, nil},
		{
			"neither overlay nor track",
			`{"inputs":[{},{"url":"https://h/x.srt"},{"url":"https://h/x.srt","type":"text"}]}`,
			[]string{
				"n.inputs[1].type is required", "n.inputs[2].language_code is required",
				"n.inputs[2].text_type is required",
			},
		},
		{"a clip as a track", `{"inputs":[{},{"url":"mux://assets/a","type":"audio","language_code":"fr"}]}`, []string{
			"n.inputs[1].url must be an absolute http or https URL",
		}},
		{"qualities", `{"video_quality":"plus","encoding_tier":"smart"}`, nil},
		{"basic", `{"video_quality":"basic"}`, []string{"n.video_quality must be one of: plus, premium"}},
		{"baseline", `{"encoding_tier":"baseline"}`, []string{"n.encoding_tier must be one of: smart, premium"}},
		{
			"captions", `{"inputs":[{"embedded_subtitles":[{}]}]}`,
			[]string{
				"n.inputs[0].embedded_subtitles must not be set: embedded_subtitles of the live stream itself says " +
					"which captions become text tracks",
			},
		},
		{"generated", `{"inputs":[{"generated_subtitles":[{"language_code":"en-GB"}]}]}`, nil},
		{
			"generated twice", `{"inputs":[{"generated_subtitles":[{},{}]}]}`,
			[]string{"n.inputs[0].generated_subtitles may have at most 1 entries"},
		},
		{
			"generated in Polish", `{"inputs":[{"generated_subtitles":[{"language_code":"pl"}]}]}`,
			[]string{"n.inputs[0].generated_subtitles[0].language_code must be one of: en, es, fr, de, pt, it"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.doc, "n", ForLive, tt.want)
		})
	}
}

// check wants these messages, each by its beginning.
func check(t *testing.T, doc, path string, use Use, want []string) {
	t.Helper()
	var l fault.List
	parse(t, doc).Check(&l, path, use)
	got := fault.Messages(l.Err())
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		ok = ok && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNoNUL puts U+0000 into every string there is: each is refused by its path.
func TestNoNUL(t *testing.T) {
	t.Parallel()
	full := func() Options {
		return Options{
			Inputs: []Input{
				{
					URL: "https://h/x", Type: "video", LanguageCode: "en", Name: "n", Passthrough: "p",
					GeneratedSubtitles: []GeneratedSubtitle{{Name: "g", LanguageCode: "en", Passthrough: "p"}},
					EmbeddedSubtitles: []EmbeddedSubtitle{
						{Name: "e", LanguageCode: "en", LanguageChannel: "cc1", Passthrough: "p"},
					},
				},
				{
					URL: "https://h/y", Type: "text", TextType: "subtitles", LanguageCode: "en", Name: "n",
					Passthrough: "p",
				},
				{
					URL: "https://h/z",
					Overlay: &Overlay{
						VerticalAlign: "top", VerticalMargin: "1px", HorizontalAlign: "left", HorizontalMargin: "1px",
						Width: "1px", Height: "1px", Opacity: "1%",
					},
				},
			},
			PlaybackPolicies: []playbackid.Policy{"public"}, Passthrough: "p",
			Meta:       Meta{Title: "t", CreatorID: "c", ExternalID: "e"},
			MP4Support: "none", StaticRenditions: []StaticRendition{{Resolution: "highest", Passthrough: "p"}},
			VideoQuality: "plus", EncodingTier: "smart",
			MaxResolution: "1080p", MasterAccess: "none",
		}
	}
	var l fault.List
	o := full()
	if o.Check(&l, "", ForAsset); l.Err() != nil {
		t.Fatal(l.Err())
	}
	n := poison(reflect.ValueOf(&o).Elem(), -1)
	for i := range n {
		o := full()
		poison(reflect.ValueOf(&o).Elem(), i)
		var l fault.List
		if o.Check(&l, "", ForAsset); l.Err() == nil {
			t.Errorf("U+0000 in string %d of %d is accepted: %+v", i, n, o)
		}
	}
	if n < 30 {
		t.Errorf("only %d strings were tried", n)
	}
}

// poison counts the non-empty strings of v and puts U+0000 into the one numbered which.
func poison(v reflect.Value, which int) int {
	n := 0
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if v.String() == "" {
				return
			}
			if n == which {
				v.SetString(v.String() + "\x00")
			}
			n++
		case reflect.Struct:
			for _, f := range v.Fields() {
				walk(f)
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		default:
		}
	}
	walk(v)
	return n
}

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	drm := []playbackid.Request{{Policy: playbackid.DRM}}
	for _, tt := range []struct {
		in            Options
		use           Use
		quality, tier string
	}{
		{Options{}, ForAsset, "basic", "baseline"},
		{Options{}, ForLive, "plus", "smart"},
		{Options{AdvancedPolicies: drm}, ForAsset, "plus", "smart"},
		{Options{EncodingTier: "baseline"}, ForAsset, "basic", "baseline"},
		{Options{EncodingTier: "smart"}, ForAsset, "plus", "smart"},
		{Options{VideoQuality: "premium"}, ForAsset, "premium", "premium"},
	} {
		got := tt.in.WithDefaults(tt.use)
		if got.VideoQuality != tt.quality || got.EncodingTier != tt.tier || got.MaxResolution != "1080p" ||
			got.MasterAccess != "none" || got.MP4Support != "none" {
			t.Errorf("%+v becomes %+v", tt.in, got)
		}
	}
	kept := Options{MaxResolution: "2160p", MasterAccess: "temporary", MP4Support: "standard"}.WithDefaults(ForAsset)
	if kept.MaxResolution != "2160p" || kept.MasterAccess != "temporary" || kept.MP4Support != "standard" {
		t.Errorf("overwrote %+v", kept)
	}
}

func TestClipSource(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"svc://assets/aB9": "aB9 true", "mux://assets/x": "x true", "mux://assets/a/b": " true",
		"mux://assets/": " true",
		"mux://asset/x": " false", "https://h/svc://assets/x": " false", "": " false",
		"mux://assets/" + strings.Repeat("x", 256): " true",
	} {
		got, ok := ClipSource(raw)
		if fmt.Sprint(got, " ", ok) != want {
			t.Errorf("%q gives %q, %v, want %s", raw, got, ok, want)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{
		"0%": true, "100%": true, "100.0%": true, "99.5%": true, "100.1%": false, "101%": false, "200%": false,
		"-1%": false, "50": false, "": false, "0100%": false,
	} {
		if percent(v) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	got := []string{
		GeneratedSubtitle{}.Named().Name, GeneratedSubtitle{LanguageCode: "de"}.Named().Name,
		GeneratedSubtitle{LanguageCode: "auto"}.Named().Name, GeneratedSubtitle{Name: "x"}.Named().LanguageCode,
	}
	if want := []string{"English", "German", "Detected language", "en"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// FuzzCheck says that no request makes the rules panic, and that a clip's source is an ID.
func FuzzCheck(f *testing.F) {
	f.Add(`{"inputs":[{"url":"svc://assets/abc","start_time":1,"end_time":2}]}`)
	f.Add(`{"inputs":[` + main + `,{"overlay_settings":{"opacity":"100%","width":"1px"}}]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		var o Options
		if json.Unmarshal([]byte(doc), &o) != nil {
			return
		}
		for _, use := range []Use{ForAsset, ForLive} {
			var l fault.List
			o.Check(&l, "", use)
		}
		for _, in := range o.Inputs {
			if source, _ := ClipSource(in.URL); strings.Trim(string(source),
				"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" {
				t.Errorf("source %q", source)
			}
		}
	})
}
