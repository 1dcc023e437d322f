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
	Code               code
	said
}

func readName(r *http.Request) nameForm {
	return nameForm{
		Title: typed(r, "title"), Passthrough: typed(r, "passthrough"),
		said: said{fields: []fieldAt{
			{"meta.title", "title", "Name"}, {"passthrough", "passthrough", "Passthrough"},
		}},
	}
}

// changes is what is to be another; the rest of the metadata stays.
func (f nameForm) changes(now assetopt.Options) (in asset.PatchInput) {
	if !kept(f.Title, now.Meta.Title) {
		in.Meta = &assetopt.MetaPatch{Meta: now.Meta}
		in.Meta.Title = f.Title
	}
	if !kept(f.Passthrough, now.Passthrough) {
		in.Passthrough = &f.Passthrough
	}
	return in
}

// trackForm is the form in which a track is added, or gets another name or language.
type trackForm struct {
	URL, Type, Name, Language string
	Captions                  bool
	Code                      code
	said
}

func readAddTrack(r *http.Request) trackForm {
	return trackForm{
		URL: typed(r, "track_url"), Type: typed(r, "track_type"), Name: typed(r, "track_name"),
		Language: typed(r, "language_code"), Captions: ticked(r, "closed_captions"),
		said: said{fields: []fieldAt{
			{"type", "track_type", "Kind"},
			{"url", "track_url", "Address of the file"},
			{"language_code", "language_code", "Language"},
			{"name", "track_name", "Name"},
			{"closed_captions", "closed_captions", "For the deaf and hard of hearing"},
		}},
	}
}

// addPlaybackID adds one that everybody may use, or one for signed links.
func (s *server) addPlaybackID(w http.ResponseWriter, r *http.Request, p access.Person) {
	request := playbackid.Request{Policy: playbackid.Policy(r.PostFormValue("policy"))}
	_, err := s.Assets.AddPlaybackID(r.Context(), p.Environment.ID, assetOf(r), request, s.Now())
	s.done(w, r, p, err, "#share")
}

// addTrack adds text or sound by its URL.
func (s *server) addTrack(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := readAddTrack(r)
	made, err := s.Assets.AddTrack(r.Context(), p.Environment.ID, assetOf(r), asset.TrackInput{
		URL: f.URL, Type: asset.TrackType(f.Type), LanguageCode: f.Language, Name: f.Name, ClosedCaptions: f.Captions,
	}, s.Now())
	if fault.Is(err, fault.Invalid) {
		f.complain(fault.ByField(err))
		s.showWith(w, r, p, http.StatusBadRequest, func(v *assetPage) {
			v.AddTrack = f
			v.AddTrack.Code = s.addTrackCode(v.Asset, f)
		})
		return
	}
	if err == nil {
		of := track{made, video{Asset: asset.Asset{ID: assetOf(r)}}}
		s.undoable(w, r, p, "The track is added.", of.Address()+"/delete", nil, trackFormer(made))
	}
	s.done(w, r, p, err, "#tracks")
}

// editAsset changes the name and the passthrough.
func (s *server) editAsset(w http.ResponseWriter, r *http.Request, p access.Person) {
	row, err := s.Assets.Get(r.Context(), p.Environment.ID, assetOf(r))
	if err == nil {
		err = stillSo(r, assetFormer(row))
	}
	both := merge(r, assetFormer(row))
	f := readName(r)
	in := f.changes(row.Options)
	if err == nil && f.overtaken(both) {
		f.also(in.Check())
		s.showName(w, r, p, http.StatusConflict, f)
		return
	}
	then := row
	if err == nil && in != (asset.PatchInput{}) { // else no event has to tell of it
		then, err = s.Assets.Patch(r.Context(), p.Environment.ID, row.ID, in, s.Now())
	}
	if fault.Is(err, fault.Invalid) {
		f.complain(fault.ByField(err))
		s.showName(w, r, p, http.StatusBadRequest, f)
		return
	}
	if err == nil {
		s.undoable(w, r, p, "Saved.", video{Asset: row}.Address(), assetFormer(row), assetFormer(then))
	}
	s.done(w, r, p, err, "")
}

// showName shows the form with what an asset is called, with what is wrong with it.
func (s *server) showName(w http.ResponseWriter, r *http.Request, p access.Person, status int, f nameForm) {
	s.showWith(w, r, p, status, func(v *assetPage) {
		v.Edit = f
		v.Edit.Code = s.nameCode(v.Asset, f)
	})
}

// done leads back to the page of the asset, or says what went wrong. at is where on the page.
func (s *server) done(w http.ResponseWriter, r *http.Request, p access.Person, err error, at string) {
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	http.Redirect(w, r, video{Asset: asset.Asset{ID: assetOf(r)}}.Address()+at, http.StatusSeeOther)
}

// showWith shows the page of the asset with the form that put puts into it.
func (s *server) showWith(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, put func(*assetPage),
) {
	v, err := s.assetPage(r.Context(), p, assetOf(r))
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	put(&v)
	s.render(w, r, p, status, "asset", v)
}
