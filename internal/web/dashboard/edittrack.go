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

	Typed map[string]string
	Bad   map[string]string
	Top   []string
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
	v.Typed = map[string]string{"name": v.Name, "language_code": v.LanguageCode}
	if v.ClosedCaptions {
		v.Typed["closed_captions"] = "1"
	}
	s.render(w, r, p, http.StatusOK, "track", v)
}

func (s *server) editTrack(w http.ResponseWriter, r *http.Request, p access.Person) {
	v, err := s.readTrack(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	v.Typed = typed(r, "name", "language_code", "closed_captions")
	name, language, captions := v.Typed["name"], v.Typed["language_code"], v.Typed["closed_captions"] != ""
	patch := asset.TrackPatch{Name: &name}
	if language != v.LanguageCode { // a main track may have none, which nobody may choose
		patch.LanguageCode = &language
	}
	if v.Text() {
		patch.ClosedCaptions = &captions
	}
	_, err = s.Assets.PatchTrack(r.Context(), p.Environment.ID, v.Asset.ID, v.ID, patch, s.Now())
	if fault.Is(err, fault.Invalid) {
		v.Bad, v.Top = beside(fault.Messages(err), []fieldAt{
			{"name", "name"}, {"language_code", "language_code"}, {"closed_captions", "closed_captions"},
		})
		s.render(w, r, p, http.StatusBadRequest, "track", v)
		return
	}
	s.done(w, r, p, err, "#tracks", nil)
}
