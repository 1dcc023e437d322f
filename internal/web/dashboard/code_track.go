package dashboard

import (
	"net/http"
	"net/url"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
)

func (s *server) showAddTrackCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.showWith(w, r, p, http.StatusOK, func(v *assetPage) {
		v.AddTrack = readAddTrack(r)
		v.AddTrack.Code = s.addTrackCode(v.Asset, v.AddTrack)
		v.AddTrack.Code.Open = !isResumed(r)
	})
}

// addTrackCode is the form that adds a track to an asset as code.
func (s *server) addTrackCode(to asset.Asset, f trackForm) code {
	return s.code("track-form", video{Asset: to}.Address()+"/tracks/code#tracks", call{
		path: assetAPI(to.ID) + "/tracks", of: []string{string(to.ID)},
		body: object{}.with("url", f.URL).with("type", f.Type).with("language_code", f.Language).
			with("name", f.Name).with("closed_captions", f.Captions),
		node: "video.assets.createTrack", goDo: "AssetsApi.CreateAssetTrack", goType: "mux.CreateTrackRequest",
	})
}

func (s *server) showTrackCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	v, err := s.readTrack(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	both := merge(r, trackFormer(v.Track))
	v.Form = readTrackForm(r)
	v.Form.overtaken(both)
	s.renderTrack(w, r, p, http.StatusOK, v, !isResumed(r))
}

// renderTrack shows the form that changes a track, with its code.
func (s *server) renderTrack(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, v trackPage, open bool,
) {
	v.Form.Code = s.code("change", v.Address()+"/code", call{
		method: http.MethodPatch, path: assetAPI(v.Asset.ID) + "/tracks/" + url.PathEscape(string(v.ID)),
		of: []string{string(v.Asset.ID), string(v.ID)}, body: trackBody(v.Form.changes(v.track)),
		node: "video.assets.updateTrack",
	})
	v.Form.Code.Open = open
	s.render(w, r, p, status, "track", v)
}

// trackBody is what the API would be sent of changes that the form can make.
func trackBody(in asset.TrackPatch) (o object) {
	if in.LanguageCode != nil {
		o = append(o, member{"language_code", *in.LanguageCode})
	}
	if in.Name != nil {
		o = append(o, member{"name", *in.Name})
	}
	if in.ClosedCaptions != nil {
		o = append(o, member{"closed_captions", *in.ClosedCaptions})
	}
	return o
}
