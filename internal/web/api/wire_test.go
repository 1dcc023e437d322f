package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/control/vocabulary"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/web/respond"
)

func TestPicture(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts              asset.Facts
		ratio, tier, older string
	}{
		"nothing":  {asset.Facts{}, "", "", ""},
		"sound":    {asset.Facts{HasAudio: true}, "", "audio-only", "Audio only"},
		"360p":     {asset.Facts{HasVideo: true, Width: 640, Height: 360}, "16:9", "720p", "SD"},
		"720p":     {asset.Facts{HasVideo: true, Width: 1280, Height: 720}, "16:9", "720p", "HD"},
		"portrait": {asset.Facts{HasVideo: true, Width: 1080, Height: 1920}, "9:16", "1080p", "FHD"},
		"cinema":   {asset.Facts{HasVideo: true, Width: 1920, Height: 800}, "12:5", "1080p", "FHD"},
		"odd":      {asset.Facts{HasVideo: true, Width: 853, Height: 479}, "853:479", "720p", "SD"},
		"1440p":    {asset.Facts{HasVideo: true, Width: 2560, Height: 1440}, "16:9", "1440p", "UHD"},
		"2160p":    {asset.Facts{HasVideo: true, Width: 3840, Height: 2160}, "16:9", "2160p", "UHD"},
		"not offered": {
			asset.Facts{HasVideo: true, Width: 3840, Height: 2160, Offered: asset.Size{Width: 1920, Height: 1080}},
			"16:9", "1080p", "FHD",
		},
		"wide": {
			asset.Facts{HasVideo: true, Width: 3840, Height: 1600, Offered: asset.Size{Width: 2592, Height: 1080}},
			"12:5", "1080p", "FHD",
		},
		"impossible": {asset.Facts{HasVideo: true, Width: -1, Height: 5}, "", "", "SD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := aspectRatio(tt.facts); r != tt.ratio {
				t.Errorf("ratio %q, want %q", r, tt.ratio)
			}
			o := assetopt.Options{MaxResolution: "2160p"}
			if tt.facts.Offered != (asset.Size{}) {
				o.MaxResolution = ""
			}
			if r := resolutionTier(o, tt.facts); r != tt.tier {
				t.Errorf("tier %q, want %q", r, tt.tier)
			}
			if r := storedResolution(tt.facts); r != tt.older {
				t.Errorf("stored %q, want %q", r, tt.older)
			}
		})
	}
}

func TestQuality(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o          assetopt.Options
		live       bool
		name, tier string
	}{
		{assetopt.Options{}, false, "basic", "baseline"},
		{assetopt.Options{}, true, "plus", "smart"},
		{assetopt.Options{VideoQuality: "premium", EncodingTier: "smart"}, false, "premium", "premium"},
		{assetopt.Options{EncodingTier: "baseline"}, true, "basic", "baseline"},
	} {
		if name, tier := quality(tt.o, tt.live); name != tt.name || tier != tt.tier {
			t.Errorf("%+v: %s %s", tt, name, tier)
		}
	}
}

// TestWireTimes: six digits behind the second, and none for text, which has no length of its own.
func TestWireTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("", 3600))
	if got := wireRecording(asset.Recording{StartedAt: at}).StartedAt; got != "2026-01-02T02:04:05.123456Z" {
		t.Errorf("started_at %s", got)
	}
	for kind, want := range map[asset.TrackType]float64{asset.VideoTrack: 7, asset.AudioTrack: 7, asset.TextTrack: 0} {
		if got := wireTrack(asset.Track{Type: kind, Duration: 7}).Duration; got != want {
			t.Errorf("%s: duration %v", kind, got)
		}
	}
}

// TestNotANumber keeps measurements that JSON can not say from breaking a response.
func TestNotANumber(t *testing.T) {
	t.Parallel()
	a := fullAsset()
	a.Facts.Duration, a.Facts.FrameRate, a.Progress.Percent = math.NaN(), math.Inf(1), math.NaN()
	a.Tracks[0].Duration, a.Tracks[0].MaxFrameRate, a.Recordings[0].Duration = math.NaN(), math.Inf(-1), math.NaN()
	a.InputInfo[0].File.Tracks[0].Duration = math.NaN()
	for _, v := range []any{wireAsset(a), wireInputInfo(a.InputInfo[0])} {
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryFieldIsSent fills every field of a domain type and looks for a wire field that stayed empty.
func TestEveryFieldIsSent(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"LiveStream.ReducedLatency": "the other of two modes", "AssetOptions.EncodingTier": "not in the sample",
		"Upload.URL": "only while waiting", "Upload.TusURL": "likewise",
	}
	for _, v := range []any{
		wireLiveStream(fullStream()), uploads{}.show(fullUpload()), assetForm{now: time.Now}.asset(fullAsset()),
		*wireOptions(*fullStream().Settings.NewAsset),
	} {
		rv := reflect.ValueOf(v)
		for _, f := range reflect.VisibleFields(rv.Type()) {
			name := rv.Type().Name() + "." + f.Name
			if f.Anonymous || allowed[name] != "" {
				continue
			}
			if rv.FieldByIndex(f.Index).IsZero() {
				t.Errorf("%s is empty", name)
			}
		}
	}
}

func TestStatusOfEveryKind(t *testing.T) {
	t.Parallel()
	want := map[fault.Kind]int{
		fault.Internal: 500, fault.Invalid: 400, fault.NotFound: 404, fault.Conflict: 400, fault.Unauthorized: 401,
		fault.Denied: 403, fault.TooLarge: 413, fault.NotReady: 400, fault.Unavailable: 503,
	}
	for k, status := range want {
		if got := respond.API.Of(fault.New(k, "x")); got.Code != status || got.Type == "" {
			t.Errorf("kind %d: %v", k, got)
		}
	}
}

// TestLog checks that a request leaves one line without secrets, and a failure the cause.
func TestLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := (&notebook{}).options()
	o.Logger = quietLogger(&out)
	h := New(o)
	ask := func(method, path, body string) string {
		out.Reset()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.SetBasicAuth(tokenID, tokenValue)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if id := w.Header().Get(requestIDHeader); strings.Count(out.String(), id) != strings.Count(out.String(), "\n") {
			t.Errorf("a line without the request's ID: %s", out.String())
		}
		return out.String()
	}
	line := ask(http.MethodGet, "/video/v1/live-streams?stream_key=TOPSECRET&page=x", "")
	if strings.Count(line, "\n") != 1 || !strings.Contains(line, "status=400") ||
		!strings.Contains(line, "level=DEBUG") {
		t.Errorf("log: %s", line)
	}
	line += ask(http.MethodPost, "/video/v1/live-streams", `{"passthrough":"PRIVATE"}`) +
		ask(http.MethodGet, "/video/v1/live-streams/live1", "")
	for _, secret := range []string{"TOPSECRET", tokenValue, "PRIVATE", "pass1", "key1"} {
		if strings.Contains(line, secret) {
			t.Errorf("the log tells %s: %s", secret, line)
		}
	}
	if line = ask(http.MethodGet, "/video/v1/live-streams/broken", ""); !strings.Contains(line, "level=ERROR") ||
		!strings.Contains(line, "read row") {
		t.Errorf("a failure's log: %s", line)
	}
	if line = ask(http.MethodGet, "/video/v1/live-streams/panic", ""); !strings.Contains(line, "broken invariant") {
		t.Errorf("a panic's log: %s", line)
	}
	if line = ask(http.MethodGet, "/"+strings.Repeat("x", 5000), ""); len(line) > 700 {
		t.Errorf("a long line: %d", len(line))
	}
}

// TestShownWithoutDetails: what is listed although its row can't be read is shown with what there is.
func TestShownWithoutDetails(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]any{
		"asset": assetAt("https://video.example.com", asset.Asset{
			ID: "x", Status: asset.Ready,
			Tracks: []asset.Track{{ID: "y"}},
		}),
		"live": wireLiveStream(live.Stream{ID: "x", State: live.Idle}), "upload": wireUpload(upload.Upload{
			ID:     "x",
			Status: upload.Waiting,
		}, "https://video.example.com"),
		"webhook": wireWebhook(webhook.Webhook{ID: "x"}), "token": wireToken(access.Token{ID: "x"}),
		"signing key": wireSigningKey(signing.Key{ID: "x"}),
		"restriction": wireRestriction(restriction.Restriction{ID: "x"}),
		"vocabulary":  wireVocabulary(vocabulary.Vocabulary{ID: "x"}),
		"usage":       wireReport(usage.Report{Asset: asset.Asset{ID: "x"}}),
	} {
		text, err := json.Marshal(shown)
		if err != nil || !bytes.Contains(text, []byte(`"x"`)) || bytes.Contains(text, []byte(`"url"`)) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// TestTimeLeft: what is being made says how long that still takes, by the clock of the response, and nothing else does.
func TestTimeLeft(t *testing.T) {
	t.Parallel()
	a := fullAsset()
	pace := asset.Pace{{At: noon}, {At: noon.Add(time.Minute), Percent: 25}}
	for i := range a.Tracks {
		a.Tracks[i].Pace = pace
	}
	for i := range a.Static.Files {
		a.Static.Files[i].Pace = pace
	}
	now := noon.Add(90 * time.Second)
	form := assetForm{now: func() time.Time { return now }}
	got := form.asset(a)
	for _, tr := range got.Tracks {
		if want := map[string]float64{"t3": 150}[tr.ID]; tr.TimeLeft != want {
			t.Errorf("track %s: %v s, want %v", tr.ID, tr.TimeLeft, want)
		}
	}
	for _, f := range got.StaticRenditions.Files {
		if want := map[string]float64{"f1": 150}[f.ID]; f.TimeLeft != want {
			t.Errorf("file %s: %v s, want %v", f.ID, f.TimeLeft, want)
		}
	}
	if now = noon.Add(time.Hour); form.asset(a).Tracks[2].TimeLeft != 0 {
		t.Error("what stands still says how long it takes")
	}
}
