package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// nameForm is the form with what an asset is called.
type nameForm struct {
	Title, Passthrough string
	said
}

// trackForm is the form in which a track is added, or gets another name or language.
type trackForm struct {
	URL, Type, Name, Language string
	Captions                  bool
	said
}

// addPlaybackID adds one that everybody may use, or one for signed links.
func (s *server) addPlaybackID(w http.ResponseWriter, r *http.Request, p access.Person) {
	request := playbackid.Request{Policy: playbackid.Policy(r.PostFormValue("policy"))}
	_, err := s.Assets.AddPlaybackID(r.Context(), p.Environment.ID, assetOf(r), request, s.Now())
	s.done(w, r, p, err, "#share")
}

// addTrack adds text or sound by its URL.
func (s *server) addTrack(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := trackForm{
		URL: typed(r, "track_url"), Type: typed(r, "track_type"), Name: typed(r, "track_name"),
		Language: typed(r, "language_code"), Captions: ticked(r, "closed_captions"),
		said: said{fields: []fieldAt{
			{"url", "track_url"},
			{"type", "track_type"},
			{"language_code", "language_code"},
			{"name", "track_name"},
			{"closed_captions", "closed_captions"},
		}},
	}
	made, err := s.Assets.AddTrack(r.Context(), p.Environment.ID, assetOf(r), asset.TrackInput{
		URL: f.URL, Type: asset.TrackType(f.Type), LanguageCode: f.Language, Name: f.Name, ClosedCaptions: f.Captions,
	}, s.Now())
	if fault.Is(err, fault.Invalid) {
		f.complain(fault.Messages(err))
		s.showWrong(w, r, p, func(v *assetPage) { v.AddTrack = f })
		return
	}
	if err == nil {
		of := track{made, video{Asset: asset.Asset{ID: assetOf(r)}}}
		s.undoable(w, r, p, "The track is added.", of.Address()+"/delete", nil, trackFormer(made))
	}
	s.done(w, r, p, err, "#tracks")
}

// editAsset changes the name and the passthrough; the rest of the metadata stays.
func (s *server) editAsset(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := nameForm{
		Title: typed(r, "title"), Passthrough: typed(r, "passthrough"),
		said: said{fields: []fieldAt{{"meta.title", "title"}, {"passthrough", "passthrough"}}},
	}
	row, err := s.Assets.Get(r.Context(), p.Environment.ID, assetOf(r))
	if err == nil {
		err = stillSo(r, assetFormer(row))
	}
	var then asset.Asset
	if err == nil {
		meta := row.Options.Meta
		meta.Title = f.Title
		then, err = s.Assets.Patch(r.Context(), p.Environment.ID, row.ID,
			asset.PatchInput{Passthrough: &f.Passthrough, Meta: &assetopt.MetaPatch{Meta: meta}}, s.Now())
	}
	if fault.Is(err, fault.Invalid) {
		f.complain(fault.Messages(err))
		s.showWrong(w, r, p, func(v *assetPage) { v.Edit = f })
		return
	}
	if err == nil {
		s.undoable(w, r, p, "Saved.", video{Asset: row}.Address(), assetFormer(row), assetFormer(then))
	}
	s.done(w, r, p, err, "")
}

// done leads back to the page of the asset, or says what went wrong. at is where on the page.
func (s *server) done(w http.ResponseWriter, r *http.Request, p access.Person, err error, at string) {
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	http.Redirect(w, r, video{Asset: asset.Asset{ID: assetOf(r)}}.Address()+at, http.StatusSeeOther)
}

// showWrong shows the page of the asset with the form that put puts into it.
func (s *server) showWrong(w http.ResponseWriter, r *http.Request, p access.Person, put func(*assetPage)) {
	v, err := s.assetPage(r.Context(), p, assetOf(r))
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	put(&v)
	s.render(w, r, p, http.StatusBadRequest, "asset", v)
}
