package streams

import (
	"net/http"

	"millrace/internal/control/live"
	"millrace/internal/web/dashboard/assets"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// editPage is the form of a live stream's settings, with its code.
type editPage struct {
	form

	Code shell.Code
}

func (s *room) showEditCode(r *shell.Request, v live.Stream) (shell.View, error) {
	both := r.Merge(former(v.Settings))
	f := readForm(r)
	f.Overtaken(both)
	f.changes(v.Settings) // marks what can't be read
	return s.renderEdit(r, http.StatusOK, f, v, !r.Resumed())
}

func (s *room) renderEdit(
	r *shell.Request, status int, f form, v live.Stream, open bool,
) (shell.View, error) {
	f.Of = new(s.stream(v))
	page := editPage{form: f}
	f.FormErrors = shell.FormErrors{} // only of what can't be read
	page.Code = s.Code("change", f.Of.Address()+"/edit/code", sdkcode.Request{
		Method: http.MethodPatch, Path: liveAPI(v.ID), IDs: []string{string(v.ID)},
		Body: patchBody(f.changes(v.Settings)), Node: "video.liveStreams.update",
		Go: "LiveStreamsApi.UpdateLiveStream", GoType: "mux.UpdateLiveStreamRequest",
	})
	page.Code.Open = open
	if len(f.Bad) > 0 {
		page.Code.None = shell.Unreadable
	}
	return shell.ShowAs(status, "edit", page), nil
}

// patchBody is what the API would be sent of changes that the form can make. null stands for the default.
func patchBody(in live.PatchInput) (o sdkcode.Object) {
	if in.Meta != nil {
		o = o.Set("meta", assets.MetaBody(in.Meta.Meta))
	}
	if in.LatencyMode != nil {
		o = o.Set("latency_mode", string(*in.LatencyMode))
	}
	if in.NewAsset != nil {
		o = o.Set("new_asset_settings", sdkcode.Object{}.Set("video_quality", *in.NewAsset.VideoQuality))
	}
	switch {
	case in.DefaultWindow:
		o = o.Set("reconnect_window", nil)
	case in.ReconnectWindow != nil:
		o = o.Set("reconnect_window", *in.ReconnectWindow)
	}
	o = sdkcode.Given(o, "use_slate_for_standard_latency", in.SlateForStandard)
	o = sdkcode.Given(o, "reconnect_slate_url", in.ReconnectSlateURL)
	o = sdkcode.Given(o, "max_continuous_duration", in.MaxContinuous)
	o = sdkcode.Given(o, "passthrough", in.Passthrough)
	return o
}
