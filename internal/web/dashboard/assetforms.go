package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// addPlaybackID adds one that everybody may use, or one for signed links.
func (s *server) addPlaybackID(w http.ResponseWriter, r *http.Request, p access.Person) {
	request := playbackid.Request{Policy: playbackid.Policy(r.PostFormValue("policy"))}
	_, err := s.Assets.AddPlaybackID(r.Context(), p.Environment.ID, assetOf(r), request, s.Now())
	s.done(w, r, p, err, "#share", nil)
}

// addTrack adds text or sound by its URL.
func (s *server) addTrack(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := typed(r, "track_url", "track_type", "language_code", "track_name", "closed_captions")
	in := asset.TrackInput{
		URL: f["track_url"], Type: asset.TrackType(f["track_type"]), LanguageCode: f["language_code"],
		Name: f["track_name"], ClosedCaptions: f["closed_captions"] != "",
	}
	_, err := s.Assets.AddTrack(r.Context(), p.Environment.ID, assetOf(r), in, s.Now())
	s.done(w, r, p, err, "#tracks", &typedForm{name: "tracks", typed: f, fields: []fieldAt{
		{"url", "track_url"},
		{"type", "track_type"},
		{"language_code", "language_code"},
		{"name", "track_name"},
		{"closed_captions", "closed_captions"},
	}})
}

// edit changes the name and the passthrough; the rest of the metadata stays.
func (s *server) edit(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := typed(r, "title", "passthrough")
	row, err := s.Assets.Get(r.Context(), p.Environment.ID, assetOf(r))
	if err == nil {
		text, meta := f["passthrough"], row.Options.Meta
		meta.Title = f["title"]
		_, err = s.Assets.Patch(r.Context(), p.Environment.ID, row.ID,
			asset.PatchInput{Passthrough: &text, Meta: &assetopt.MetaPatch{Meta: meta}}, s.Now())
	}
	s.done(w, r, p, err, "", &typedForm{name: "edit", typed: f, fields: []fieldAt{
		{"meta.title", "title"}, {"passthrough", "passthrough"},
	}})
}

// typedForm is what was typed into a form of an asset's page.
type typedForm struct {
	name   string
	typed  map[string]string
	fields []fieldAt
	bad    map[string]string // what is wrong with the fields
	top    []string          // and with none of them
}

// done leads back to the page, or shows it with what is wrong beside the fields of the form. at is where on the page.
func (s *server) done(w http.ResponseWriter, r *http.Request, p access.Person, err error, at string, f *typedForm) {
	if err == nil {
		http.Redirect(w, r, video{Asset: asset.Asset{ID: assetOf(r)}}.Address()+at, http.StatusSeeOther)
		return
	}
	if f == nil || !fault.Is(err, fault.Invalid) {
		s.fail(w, r, p, err)
		return
	}
	f.bad, f.top = beside(fault.Messages(err), f.fields)
	s.wrong(w, r, p, f)
}

// wrong shows the page with what is wrong beside the fields of a form.
func (s *server) wrong(w http.ResponseWriter, r *http.Request, p access.Person, f *typedForm) {
	v, err := s.assetPage(r.Context(), p, assetOf(r))
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	v.Open, v.Typed, v.Bad, v.Top = f.name, f.typed, f.bad, f.top
	s.render(w, r, p, http.StatusBadRequest, "asset", v)
}
