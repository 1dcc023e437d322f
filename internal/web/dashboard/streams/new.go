package streams

import (
	"math"
	"net/http"
	"net/url"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/assets"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// form is the page on which a live stream is made, or its settings are changed: what was typed, and what is wrong with
// it, by the API's names of the fields.
type form struct {
	Title, Latency, Policy, Recordings, Window, SlateURL, Hours, Quality, Passthrough string
	Slate, Download, AudioOnly, Test                                                  bool

	Of *stream // whose settings are changed; nil: a new one is made
	shell.FormErrors
}

// streamFields are where messages about a live stream stand.
var streamFields = []shell.Field{ //nolint:gochecknoglobals // a table
	shell.At("meta.title", "title", "Name"),
	shell.At("latency_mode", "latency_mode", "Latency"),
	shell.At("playback_policies", "policy", "Who may watch"),
	shell.At("new_asset_settings.playback_policies", "recordings", "Who may watch its recordings"),
	shell.At("reconnect_window", "reconnect_window", "Wait for a disconnected encoder"),
	shell.At("reconnect_slate_url", "reconnect_slate_url", "Slate image"),
	shell.At("max_continuous_duration", "hours", "Longest broadcast"),
	shell.At("new_asset_settings.video_quality", "video_quality", "Video quality"),
	shell.At("new_asset_settings.static_renditions", "download", "MP4 file of each recording"),
	shell.At("passthrough", "passthrough", "Passthrough"),
}

// The choices of who may watch. What is neither is nobody.
const (
	same = "same" // recordings: as the live stream
)

func (rm *room) showNew(_ *shell.Request) (shell.View, error) {
	f := form{Latency: string(live.Low), Policy: string(playbackid.Public), Recordings: same}
	return rm.renderNew(http.StatusOK, f, false), nil
}

func (rm *room) create(r *shell.Request) (shell.View, error) {
	f := readForm(r)
	in := f.input()
	in.DefaultQuality = r.Person.Environment.VideoQuality
	status := http.StatusBadRequest
	if len(f.Bad) == 0 {
		made, err := rm.Live.Create(r.Context(), r.Person.Environment.ID, in, rm.Now())
		if err == nil {
			return shell.Redirect(stream{Stream: made}.Address()), nil
		}
		if status, err = f.TakeErr(err); err != nil {
			return shell.View{}, err
		}
	} else {
		f.AddErr(in.Check())
	}
	return rm.renderNew(status, f, false), nil
}

func readForm(r *shell.Request) form {
	return form{
		Title: r.Text("title"), Latency: r.Text("latency_mode"), Policy: r.Text("policy"),
		Recordings: r.Text("recordings"), Window: r.Text("reconnect_window"),
		SlateURL: r.Text("reconnect_slate_url"), Hours: r.Text("hours"), Quality: r.Text("video_quality"),
		Passthrough: r.Text("passthrough"), Slate: r.Ticked("slate"), Download: r.Ticked("download"),
		AudioOnly: r.Ticked("audio_only"), Test: r.Ticked("test"),
		FormErrors: shell.FormErrors{Fields: streamFields},
	}
}

// input is what the API would be asked. What is no number is said at once; the rest is the service's business.
func (f *form) input() live.CreateInput {
	in := live.CreateInput{
		Meta: assetopt.Meta{Title: f.Title}, LatencyMode: live.LatencyMode(f.Latency),
		PlaybackPolicies: assets.Policies(f.Policy),
		SlateForStandard: f.Slate, ReconnectSlateURL: f.SlateURL, Passthrough: f.Passthrough, AudioOnly: f.AudioOnly,
		Test: f.Test,
	}
	if n, ok := f.window(); ok {
		in.ReconnectWindow = &n
	}
	if sec, ok := f.longest(); ok {
		in.MaxContinuous = &sec
	}
	recordings := f.Recordings
	if recordings == same {
		recordings = f.Policy
	}
	in.NewAsset = &assetopt.Options{PlaybackPolicies: assets.Policies(recordings), VideoQuality: f.Quality}
	if f.Download {
		in.NewAsset.StaticRenditions = []assetopt.StaticRendition{{Resolution: assetopt.Highest}}
	}
	return in
}

// window is the reconnect window in seconds, longest the longest broadcast; false: none was typed.
func (f *form) window() (float64, bool) {
	return f.Number("reconnect_window", f.Window, "a number of seconds")
}

func (f *form) longest() (sec int, ok bool) {
	n, ok := f.Number("hours", f.Hours, "a number of hours")
	return int(math.Round(min(max(n, -1), 1e6) * 3600)), ok
}

const newCodePath = shell.LivePath + "/code"

// liveAPI is where the API has a live stream.
func liveAPI(v id.LiveStream) string { return "/video/v1/live-streams/" + url.PathEscape(string(v)) }

func (rm *room) showNewCode(r *shell.Request) (shell.View, error) {
	f := readForm(r)
	f.input() // marks what can't be read
	return rm.renderNew(http.StatusOK, f, !r.Resumed()), nil
}

// newPage is the form of a live stream, with its code.
type newPage struct {
	form

	Code shell.Code
}

func (rm *room) renderNew(
	status int, f form, open bool,
) shell.View {
	page := newPage{form: f}
	f.FormErrors = shell.FormErrors{} // only of what can't be read
	page.Code = rm.Code("make", newCodePath, sdkcode.Request{
		Path: "/video/v1/live-streams", Body: liveBody(f.input()), Node: "video.liveStreams.create",
		Go: "LiveStreamsApi.CreateLiveStream", GoType: "mux.CreateLiveStreamRequest",
	})
	page.Code.Open = open
	if len(f.Bad) > 0 {
		page.Code.None = shell.Unreadable
	}
	return shell.ShowAs(status, "new", page)
}

// liveBody is what the API would be sent for a live stream.
func liveBody(in live.CreateInput) sdkcode.Object {
	o := sdkcode.Object{}.With("meta", sdkcode.Object{}.With("title", in.Meta.Title)).
		With("latency_mode", string(in.LatencyMode)).
		With("playback_policies", assets.Words(in.PlaybackPolicies))
	if in.NewAsset != nil {
		o = o.Set("new_asset_settings", assets.OptionsBody(*in.NewAsset))
	}
	o = sdkcode.Given(o, "reconnect_window", in.ReconnectWindow)
	o = o.With("use_slate_for_standard_latency", in.SlateForStandard).
		With("reconnect_slate_url", in.ReconnectSlateURL)
	o = sdkcode.Given(o, "max_continuous_duration", in.MaxContinuous)
	return o.With("audio_only", in.AudioOnly).With("test", in.Test).With("passthrough", in.Passthrough)
}
