package dashboard

import (
	"net/http"
	"net/url"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/web/sdkcode"
)

// Where forms are shown as code for what is filled in; nothing is made there.
const (
	newCodePath = livePath + "/code"
	addCodePath = assetsPath + "/code"
)

func (s *server) routeCode() {
	s.handle("POST "+newCodePath, "", writes, s.showNewCode)
	s.handle("POST "+livePath+"/{id}/edit/code", "", writes, s.showEditCode)
	s.handle("POST "+livePath+"/{id}/targets/code", "", writes, s.showTargetCode)
	s.handle("POST "+addCodePath, "", writes, s.showAddCode)
	s.handle("POST "+assetItem+"/code", "", writes, s.showNameCode)
	s.handle("POST "+assetItem+"/clips/code", "", writes, s.showClipCode)
	s.handle("POST "+assetItem+"/tracks/code", "", writes, s.showAddTrackCode)
	s.handle("POST "+assetItem+"/tracks/{track}/code", "", writes, s.showTrackCode)
}

// liveAPI is where the API has a live stream.
func liveAPI(v id.LiveStream) string { return "/video/v1/live-streams/" + url.PathEscape(string(v)) }

func (s *server) showNewCode(r *request) (view, error) {
	f := readForm(r)
	f.input() // marks what can't be read
	return s.renderNew(r, http.StatusOK, f, !r.Resumed())
}

// newPage is the form of a live stream, with its code.
type newPage struct {
	form

	Code code
}

func (s *server) renderNew(
	r *request, status int, f form, open bool,
) (view, error) {
	page := newPage{form: f}
	f.said = said{} // only of what can't be read
	page.Code = s.code("make", newCodePath, sdkcode.Request{
		Path: "/video/v1/live-streams", Body: liveBody(f.input()), Node: "video.liveStreams.create",
		Go: "LiveStreamsApi.CreateLiveStream", GoType: "mux.CreateLiveStreamRequest",
	})
	page.Code.Open = open
	if len(f.Bad) > 0 {
		page.Code.None = unreadable
	}
	return showAs(status, "new", page), nil
}

func (s *server) showAddCode(r *request) (view, error) {
	return s.renderAdd(r, http.StatusOK, readAdd(r), !r.Resumed())
}

// renderAdd shows the form of an asset, with its code.
func (s *server) renderAdd(
	r *request, status int, f addForm, open bool,
) (view, error) {
	f.Code = s.code("make", addCodePath, assetCall(f.options()))
	f.Code.Open = open
	return showAs(status, "addasset", f), nil
}

func assetCall(o assetopt.Options) sdkcode.Request {
	return sdkcode.Request{
		Path: "/video/v1/assets", Body: optionsBody(o), Node: "video.assets.create",
		Go: "AssetsApi.CreateAsset", GoType: "mux.CreateAssetRequest",
	}
}

func (s *server) showTargetCode(r *request) (view, error) {
	v, err := s.Live.Get(r.Context(), r.Person.Environment.ID, id.LiveStream(r.PathValue("id")))
	if err != nil {
		return view{}, err
	}
	return s.renderTarget(r, http.StatusOK, s.readTarget(r, v), !r.Resumed())
}

// renderTarget shows the form of a simulcast target, with its code, in which no key is.
func (s *server) renderTarget(
	r *request, status int, f targetForm, open bool,
) (view, error) {
	body := sdkcode.Object{}.With("url", f.URL)
	if f.key != "" {
		body = body.With("stream_key", sdkcode.Secret("STREAM_KEY"))
	}
	f.Code = s.code("make", f.Of.targets()+"/code", sdkcode.Request{
		Path: liveAPI(f.Of.ID) + "/simulcast-targets", IDs: []string{string(f.Of.ID)},
		Body: body.With("passthrough", f.Passthrough), Node: "video.liveStreams.createSimulcastTarget",
		Go: "LiveStreamsApi.CreateLiveStreamSimulcastTarget", GoType: "mux.CreateSimulcastTargetRequest",
	})
	f.Code.Open = open
	return showAs(status, "target", f), nil
}

// liveBody is what the API would be sent for a live stream.
func liveBody(in live.CreateInput) sdkcode.Object {
	o := sdkcode.Object{}.With("meta", sdkcode.Object{}.With("title", in.Meta.Title)).
		With("latency_mode", string(in.LatencyMode)).
		With("playback_policies", words(in.PlaybackPolicies))
	if in.NewAsset != nil {
		o = o.Set("new_asset_settings", optionsBody(*in.NewAsset))
	}
	if in.ReconnectWindow != nil {
		o = o.With("reconnect_window", *in.ReconnectWindow)
	}
	o = o.With("use_slate_for_standard_latency", in.SlateForStandard).
		With("reconnect_slate_url", in.ReconnectSlateURL)
	if in.MaxContinuous != nil {
		o = o.With("max_continuous_duration", *in.MaxContinuous)
	}
	return o.With("audio_only", in.AudioOnly).With("test", in.Test).With("passthrough", in.Passthrough)
}

// optionsBody is what the API would be sent of an asset.
func optionsBody(o assetopt.Options) sdkcode.Object {
	var inputs, files []sdkcode.Object
	for _, in := range o.Inputs {
		x := sdkcode.Object{}.Set("url", in.URL)
		if in.StartTime != nil {
			x = x.With("start_time", *in.StartTime)
		}
		if in.EndTime != nil {
			x = x.With("end_time", *in.EndTime)
		}
		inputs = append(inputs, x)
	}
	for _, f := range o.StaticRenditions {
		files = append(files, sdkcode.Object{}.Set("resolution", f.Resolution))
	}
	return sdkcode.Object{}.With("inputs", inputs).With("meta", sdkcode.Object{}.With("title", o.Meta.Title)).
		With("playback_policies", words(o.PlaybackPolicies)).With("video_quality", o.VideoQuality).
		With("static_renditions", files).With("test", o.Test).With("passthrough", o.Passthrough)
}

func words(policies []playbackid.Policy) []string {
	var out []string
	for _, p := range policies {
		out = append(out, string(p))
	}
	return out
}
