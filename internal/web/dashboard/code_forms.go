package dashboard

import (
	"net/http"
	"net/url"

	"millrace/internal/control/access"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// Where forms are shown as code for what is filled in; nothing is made there.
const (
	newCodePath = livePath + "/code"
	addCodePath = assetsPath + "/code"
)

func (s *server) routeCode(mux *http.ServeMux) {
	mux.Handle("POST "+newCodePath, s.person("", writes, s.showNewCode))
	mux.Handle("POST "+livePath+"/{id}/edit/code", s.person("", writes, s.showEditCode))
	mux.Handle("POST "+livePath+"/{id}/targets/code", s.person("", writes, s.showTargetCode))
	mux.Handle("POST "+addCodePath, s.person("", writes, s.showAddCode))
	mux.Handle("POST "+assetItem+"/code", s.person("", writes, s.showNameCode))
	mux.Handle("POST "+assetItem+"/clips/code", s.person("", writes, s.showClipCode))
	mux.Handle("POST "+assetItem+"/tracks/code", s.person("", writes, s.showAddTrackCode))
	mux.Handle("POST "+assetItem+"/tracks/{track}/code", s.person("", writes, s.showTrackCode))
}

// liveAPI is where the API has a live stream.
func liveAPI(v id.LiveStream) string { return "/video/v1/live-streams/" + url.PathEscape(string(v)) }

func (s *server) showNewCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := readForm(r)
	f.input() // marks what can't be read
	s.renderNew(w, r, p, http.StatusOK, f, !isResumed(r))
}

// newPage is the form of a live stream, with its code.
type newPage struct {
	form

	Code code
}

func (s *server) renderNew(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, f form, open bool,
) {
	page := newPage{form: f}
	f.said = said{} // only of what can't be read
	page.Code = s.code("make", newCodePath, call{
		path: "/video/v1/live-streams", body: liveBody(f.input()), node: "video.liveStreams.create",
		goDo: "LiveStreamsApi.CreateLiveStream", goType: "mux.CreateLiveStreamRequest",
	})
	page.Code.Open = open
	if len(f.Bad) > 0 {
		page.Code.None = unreadable
	}
	s.render(w, r, p, status, "new", page)
}

func (s *server) showAddCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.renderAdd(w, r, p, http.StatusOK, readAdd(r), !isResumed(r))
}

// renderAdd shows the form of an asset, with its code.
func (s *server) renderAdd(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, f addForm, open bool,
) {
	f.Code = s.code("make", addCodePath, assetCall(f.options()))
	f.Code.Open = open
	s.render(w, r, p, status, "addasset", f)
}

func assetCall(o assetopt.Options) call {
	return call{
		path: "/video/v1/assets", body: optionsBody(o), node: "video.assets.create",
		goDo: "AssetsApi.CreateAsset", goType: "mux.CreateAssetRequest",
	}
}

func (s *server) showTargetCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	v, err := s.Live.Get(r.Context(), p.Environment.ID, id.LiveStream(r.PathValue("id")))
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.renderTarget(w, r, p, http.StatusOK, s.readTarget(r, v), !isResumed(r))
}

// renderTarget shows the form of a simulcast target, with its code, in which no key is.
func (s *server) renderTarget(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, f targetForm, open bool,
) {
	body := object{}.with("url", f.URL)
	if f.key != "" {
		body = body.with("stream_key", secret("STREAM_KEY"))
	}
	f.Code = s.code("make", f.Of.targets()+"/code", call{
		path: liveAPI(f.Of.ID) + "/simulcast-targets", of: []string{string(f.Of.ID)},
		body: body.with("passthrough", f.Passthrough), node: "video.liveStreams.createSimulcastTarget",
		goDo: "LiveStreamsApi.CreateLiveStreamSimulcastTarget", goType: "mux.CreateSimulcastTargetRequest",
	})
	f.Code.Open = open
	s.render(w, r, p, status, "target", f)
}

// liveBody is what the API would be sent for a live stream.
func liveBody(in live.CreateInput) object {
	o := object{}.with("meta", object{}.with("title", in.Meta.Title)).
		with("latency_mode", string(in.LatencyMode)).
		with("playback_policies", words(in.PlaybackPolicies))
	if in.NewAsset != nil {
		o = append(o, member{"new_asset_settings", optionsBody(*in.NewAsset)})
	}
	if in.ReconnectWindow != nil {
		o = o.with("reconnect_window", *in.ReconnectWindow)
	}
	o = o.with("use_slate_for_standard_latency", in.SlateForStandard).
		with("reconnect_slate_url", in.ReconnectSlateURL)
	if in.MaxContinuous != nil {
		o = o.with("max_continuous_duration", *in.MaxContinuous)
	}
	return o.with("audio_only", in.AudioOnly).with("test", in.Test).with("passthrough", in.Passthrough)
}

// optionsBody is what the API would be sent of an asset.
func optionsBody(o assetopt.Options) object {
	var inputs, files []object
	for _, in := range o.Inputs {
		x := object{{"url", in.URL}}
		if in.StartTime != nil {
			x = x.with("start_time", *in.StartTime)
		}
		if in.EndTime != nil {
			x = x.with("end_time", *in.EndTime)
		}
		inputs = append(inputs, x)
	}
	for _, f := range o.StaticRenditions {
		files = append(files, object{{"resolution", f.Resolution}})
	}
	return object{}.with("inputs", inputs).with("meta", object{}.with("title", o.Meta.Title)).
		with("playback_policies", words(o.PlaybackPolicies)).with("video_quality", o.VideoQuality).
		with("static_renditions", files).with("test", o.Test).with("passthrough", o.Passthrough)
}

func words(policies []playbackid.Policy) []string {
	var out []string
	for _, p := range policies {
		out = append(out, string(p))
	}
	return out
}
