package workertest

import (
	"millrace/internal/control/asset"
)

// AddTrackFrom asks for a track of an asset.
func (w *World) AddTrackFrom(a asset.Asset, typ asset.TrackType, url string) asset.Track {
	w.T.Helper()
	in := asset.TrackInput{URL: url, Type: typ, LanguageCode: "de"}
	tr, err := w.AddTrack(w.Ctx(), Env, a.ID, in, w.Now())
	w.Must(err)
	return tr
}

// FindTrack reads a track of an asset.
func (w *World) FindTrack(a asset.Asset, tr asset.Track) (asset.Track, bool) {
	w.T.Helper()
	for _, t := range w.Asset(a.ID).Tracks {
		if t.ID == tr.ID {
			return t, true
		}
	}
	return asset.Track{}, false
}
