package dashboard

import (
	"net/http"
	"net/url"

	"millrace/internal/control/asset"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

func (s *server) showAddTrackCode(r *shell.Request) (shell.View, error) {
	return s.showWith(r, http.StatusOK, func(v *assetPage) {
		v.AddTrack = readAddTrack(r)
		v.AddTrack.Code = s.addTrackCode(v.Asset, v.AddTrack)
		v.AddTrack.Code.Open = !r.Resumed()
	})
}

// addTrackCode is the form that adds a track to an asset as code.
func (s *server) addTrackCode(to asset.Asset, f trackForm) shell.Code {
	return s.Code("track-form", video{Asset: to}.Address()+"/tracks/code#tracks", sdkcode.Request{
		Path: assetAPI(to.ID) + "/tracks", IDs: []string{string(to.ID)},
		Body: sdkcode.Object{}.With("url", f.URL).With("type", f.Type).With("language_code", f.Language).
			With("name", f.Name).With("closed_captions", f.Captions),
		Node: "video.assets.createTrack", Go: "AssetsApi.CreateAssetTrack", GoType: "mux.CreateTrackRequest",
	})
}

func (s *server) showTrackCode(r *shell.Request) (shell.View, error) {
	v, err := s.readTrack(r)
	if err != nil {
		return shell.View{}, err
	}
	both := r.Merge(trackFormer(v.Track))
	v.Form = readTrackForm(r)
	v.Form.Overtaken(both)
	return s.renderTrack(r, http.StatusOK, v, !r.Resumed())
}

// renderTrack shows the form that changes a track, with its code.
func (s *server) renderTrack(
	r *shell.Request, status int, v trackPage, open bool,
) (shell.View, error) {
	v.Form.Code = s.Code("change", v.Address()+"/code", sdkcode.Request{
		Method: http.MethodPatch, Path: assetAPI(v.Asset.ID) + "/tracks/" + url.PathEscape(string(v.ID)),
		IDs: []string{string(v.Asset.ID), string(v.ID)}, Body: trackBody(v.Form.changes(v.track)),
		Node: "video.assets.updateTrack",
	})
	v.Form.Code.Open = open
	return shell.ShowAs(status, "track", v), nil
}

// trackBody is what the API would be sent of changes that the form can make.
func trackBody(in asset.TrackPatch) (o sdkcode.Object) {
	if in.LanguageCode != nil {
		o = o.Set("language_code", *in.LanguageCode)
	}
	if in.Name != nil {
		o = o.Set("name", *in.Name)
	}
	if in.ClosedCaptions != nil {
		o = o.Set("closed_captions", *in.ClosedCaptions)
	}
	return o
}
