package streams

import (
	"net/http"
	"net/url"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/assets"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

const newCodePath = shell.LivePath + "/code"

// liveAPI is where the API has a live stream.
func liveAPI(v id.LiveStream) string { return "/video/v1/live-streams/" + url.PathEscape(string(v)) }

func (s *room) showNewCode(r *shell.Request) (shell.View, error) {
	f := readForm(r)
	f.input() // marks what can't be read
	return s.renderNew(r, http.StatusOK, f, !r.Resumed())
}

// newPage is the form of a live stream, with its code.
type newPage struct {
	form

	Code shell.Code
}

func (s *room) renderNew(
	r *shell.Request, status int, f form, open bool,
) (shell.View, error) {
	page := newPage{form: f}
	f.FormErrors = shell.FormErrors{} // only of what can't be read
	page.Code = s.Code("make", newCodePath, sdkcode.Request{
		Path: "/video/v1/live-streams", Body: liveBody(f.input()), Node: "video.liveStreams.create",
		Go: "LiveStreamsApi.CreateLiveStream", GoType: "mux.CreateLiveStreamRequest",
	})
	page.Code.Open = open
	if len(f.Bad) > 0 {
		page.Code.None = shell.Unreadable
	}
	return shell.ShowAs(status, "new", page), nil
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
