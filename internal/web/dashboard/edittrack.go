package dashboard

import (
	"net/http"
	"slices"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// trackPage is the page on which a track gets another name or language.
type trackPage struct {
	track

	Form trackForm
}

// Text reports whether it is text, which alone may be captions.
func (t track) Text() bool { return t.Type == asset.TextTrack }

// Editable reports whether it has a name that may be changed.
func (t track) Editable() bool { return t.Type != asset.VideoTrack }

func (s *server) readTrack(r *http.Request, p access.Person) (trackPage, error) {
	row, err := s.Assets.Get(r.Context(), p.Environment.ID, assetOf(r))
	if err != nil {
		return trackPage{}, err
	}
	i := slices.IndexFunc(row.Tracks, func(t asset.Track) bool { return t.ID == id.Track(r.PathValue("track")) })
	if i < 0 || row.Tracks[i].Type == asset.VideoTrack {
		return trackPage{}, fault.New(fault.NotFound, "the asset has no such track to edit")
	}
	return trackPage{track: track{row.Tracks[i], video{row, s.Now()}}}, nil
}

func (s *server) showTrack(w http.ResponseWriter, r *http.Request, p access.Person) {
	v, err := s.readTrack(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	v.Form = trackForm{Name: v.Name, Language: v.LanguageCode, Captions: v.ClosedCaptions}
	s.renderTrack(w, r, p, http.StatusOK, v, false)
}

func readTrackForm(r *http.Request) trackForm {
	return trackForm{
		Name: typed(r, "name"), Language: typed(r, "language_code"), Captions: ticked(r, "closed_captions"),
		said: said{fields: []fieldAt{
			{"name", "name", "Name"},
			{"language_code", "language_code", "Language"},
			{"closed_captions", "closed_captions", "For the deaf and hard of hearing"},
		}},
	}
}

// changes is what of the track is to be another. An empty name is that of the language, and goes with a new one.
func (f trackForm) changes(now track) (in asset.TrackPatch) {
	if !kept(f.Language, now.LanguageCode) { // a main track may have none, which nobody may choose
		in.LanguageCode = &f.Language
	}
	if !kept(f.Name, now.Name) || f.Name == "" && in.LanguageCode != nil {
		in.Name = &f.Name
	}
	if now.Text() && f.Captions != now.ClosedCaptions {
		in.ClosedCaptions = &f.Captions
	}
	return in
}

func (s *server) editTrack(w http.ResponseWriter, r *http.Request, p access.Person) {
	v, err := s.readTrack(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	if err = stillSo(r, trackFormer(v.Track)); err != nil {
		s.fail(w, r, p, err)
		return
	}
	both := merge(r, trackFormer(v.Track))
	f := readTrackForm(r)
	in := f.changes(v.track)
	if f.overtaken(both) {
		f.also(in.Check(v.Track, v.Asset.Asset.Tracks))
		v.Form = f
		s.renderTrack(w, r, p, http.StatusConflict, v, false)
		return
	}
	then := v.Track
	if in != (asset.TrackPatch{}) { // else no event has to tell of it
		then, err = s.Assets.PatchTrack(r.Context(), p.Environment.ID, v.Asset.ID, v.ID, in, s.Now())
	}
	if status, known := f.refused(err); known {
		v.Form = f
		s.renderTrack(w, r, p, status, v, false)
		return
	}
	if err == nil {
		s.undoable(w, r, p, "Saved.", v.Address(), trackFormer(v.Track), trackFormer(then))
	}
	s.done(w, r, p, err, "#tracks")
}
