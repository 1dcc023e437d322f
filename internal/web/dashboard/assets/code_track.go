package assets

import (
	"net/http"

	"millrace/internal/control/asset"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

func (s *room) showAddTrackCode(r *shell.Request) (shell.View, error) {
	return s.showWith(r, http.StatusOK, func(v *assetPage) {
		v.AddTrack = readAddTrack(r)
		v.AddTrack.Code = s.addTrackCode(v.Asset, v.AddTrack)
		v.AddTrack.Code.Open = !r.Resumed()
	})
}

// addTrackCode is the form that adds a track to an asset as code.
func (s *room) addTrackCode(to asset.Asset, f trackForm) shell.Code {
	return s.Code("track-form", Video{Asset: to}.Address()+"/tracks/code#tracks", sdkcode.Request{
		Path: assetAPI(to.ID) + "/tracks", IDs: []string{string(to.ID)},
		Body: sdkcode.Object{}.With("url", f.URL).With("type", f.Type).With("language_code", f.Language).
			With("name", f.Name).With("closed_captions", f.Captions),
		Node: "video.assets.createTrack", Go: "AssetsApi.CreateAssetTrack", GoType: "mux.CreateTrackRequest",
	})
}
