package assets

import (
	"net/http"
	"net/url"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/web/dashboard/shell"
)

// nameForm is the form with what an asset is called.
type nameForm struct {
	Title, Passthrough string
	Code               shell.Code
	shell.FormErrors
}

func readName(r *shell.Request) nameForm {
	return nameForm{
		Title: r.Text("title"), Passthrough: r.Text("passthrough"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("meta.title", "title", "Name"), shell.At("passthrough", "passthrough", "Passthrough"),
		}},
	}
}

// changes is what is to be another; the rest of the metadata stays.
func (f nameForm) changes(now assetopt.Options) (in asset.PatchInput) {
	if !shell.Unchanged(f.Title, now.Meta.Title) {
		in.Meta = &assetopt.MetaPatch{Meta: now.Meta}
		in.Meta.Title = f.Title
	}
	if !shell.Unchanged(f.Passthrough, now.Passthrough) {
		in.Passthrough = &f.Passthrough
	}
	return in
}

// trackForm is the form in which a track is added, or gets another name or language.
type trackForm struct {
	URL, Type, Name, Language string
	Captions                  bool
	Code                      shell.Code
	shell.FormErrors
}

func readAddTrack(r *shell.Request) trackForm {
	return trackForm{
		URL: r.Text("track_url"), Type: r.Text("track_type"), Name: r.Text("track_name"),
		Language: r.Text("language_code"), Captions: r.Ticked("closed_captions"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("type", "track_type", "Kind"),
			shell.At("url", "track_url", "Address of the file"),
			shell.At("language_code", "language_code", "Language"),
			shell.At("name", "track_name", "Name"),
			shell.At("closed_captions", "closed_captions", "For the deaf and hard of hearing"),
		}},
	}
}

// addPlaybackID adds one that everybody may use, or one for signed links.
func (s *room) addPlaybackID(r *shell.Request) (shell.View, error) {
	request := playbackid.Request{Policy: playbackid.Policy(r.PostFormValue("policy"))}
	_, err := s.Assets.AddPlaybackID(r.Context(), r.Person.Environment.ID, assetOf(r), request, s.Now())
	return s.done(r, err, "#share")
}

// addTrack adds text or sound by its URL.
func (s *room) addTrack(r *shell.Request) (shell.View, error) {
	f := readAddTrack(r)
	made, err := s.Assets.AddTrack(r.Context(), r.Person.Environment.ID, assetOf(r), asset.TrackInput{
		URL: f.URL, Type: asset.TrackType(f.Type), LanguageCode: f.Language, Name: f.Name, ClosedCaptions: f.Captions,
	}, s.Now())
	if fault.Is(err, fault.Invalid) {
		f.AddMessages(fault.ByField(err))
		return s.showWith(r, http.StatusBadRequest, func(v *assetPage) {
			v.AddTrack = f
			v.AddTrack.Code = s.addTrackCode(v.Asset, f)
		})
	}
	if err == nil {
		of := track{made, Video{Asset: asset.Asset{ID: assetOf(r)}}}
		r.Undoable("The track is added.", of.Address()+"/delete", nil, trackFormer(made))
	}
	return s.done(r, err, "#tracks")
}

// editAsset changes the name and the passthrough.
func (s *room) editAsset(r *shell.Request) (shell.View, error) {
	row, err := s.load(r)
	if err == nil {
		err = r.StillSo(assetFormer(row))
	}
	both := r.Merge(assetFormer(row))
	f := readName(r)
	in := f.changes(row.Options)
	if err == nil && f.Overtaken(both) {
		f.AddErr(in.Check())
		return s.showName(r, http.StatusConflict, f)
	}
	then := row
	if err == nil && in != (asset.PatchInput{}) { // else no event has to tell of it
		then, err = s.Assets.Patch(r.Context(), r.Person.Environment.ID, row.ID, in, s.Now())
	}
	if fault.Is(err, fault.Invalid) {
		f.AddMessages(fault.ByField(err))
		return s.showName(r, http.StatusBadRequest, f)
	}
	if err == nil {
		r.Undoable("Saved.", Video{Asset: row}.Address(), assetFormer(row), assetFormer(then))
	}
	return s.done(r, err, "")
}

// showName shows the form with what an asset is called, with what is wrong with it.
func (s *room) showName(r *shell.Request, status int, f nameForm) (shell.View, error) {
	return s.showWith(r, status, func(v *assetPage) {
		v.Edit = f
		v.Edit.Code = s.nameCode(v.Asset, f)
	})
}

// done leads back to the page of the asset, or says what went wrong. at is where on the page.
func (s *room) done(r *shell.Request, err error, at string) (shell.View, error) {
	return shell.Redirect(Video{Asset: asset.Asset{ID: assetOf(r)}}.Address() + at), err
}

// showWith shows the page of the asset with the form that put puts into it.
func (s *room) showWith(
	r *shell.Request, status int, put func(*assetPage),
) (shell.View, error) {
	v, err := s.assetPage(r.Context(), r.Person, assetOf(r))
	if err != nil {
		return shell.View{}, err
	}
	put(&v)
	return shell.ShowAs(status, "asset", v), nil
}

// Former is likewise for the name of an asset.
func (v Video) Former() string { return assetFormer(v.Asset).Encode() }

func assetFormer(a asset.Asset) url.Values {
	return url.Values{"title": {a.Options.Meta.Title}, "passthrough": {a.Options.Passthrough}}
}
