package assets

import (
	"net/http"
	"net/url"
	"slices"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// trackPage is the page on which a track gets another name or language.
type trackPage struct {
	TrackView

	Form trackForm
}

// Text reports whether it is text, which alone may be captions.
func (t TrackView) Text() bool { return t.Type == asset.TextTrack }

// Editable reports whether it has a name that may be changed.
func (t TrackView) Editable() bool { return t.Type != asset.VideoTrack }

func (trs *tracks) readTrack(r *shell.Request) (trackPage, error) {
	row, err := trs.load(r)
	if err != nil {
		return trackPage{}, err
	}
	i := slices.IndexFunc(row.Tracks, func(t asset.Track) bool { return t.ID == id.Track(r.PathValue("track")) })
	if i < 0 || row.Tracks[i].Type == asset.VideoTrack {
		return trackPage{}, fault.New(fault.NotFound, "the asset has no such track to edit")
	}
	return trackPage{TrackView: TrackView{row.Tracks[i], Video{row, trs.Now()}}}, nil
}

func (trs *tracks) showTrack(_ *shell.Request, v trackPage) (shell.View, error) {
	v.Form = trackForm{Name: v.Name, Language: v.LanguageCode, Captions: v.ClosedCaptions}
	return trs.renderTrack(http.StatusOK, v, false), nil
}

func readTrackForm(r *shell.Request) trackForm {
	return trackForm{
		Name: r.Text("name"), Language: r.Text("language_code"), Captions: r.Ticked("closed_captions"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("name", "name", "Name"),
			shell.At("language_code", "language_code", "Language"),
			shell.At("closed_captions", "closed_captions", "For the deaf and hard of hearing"),
		}},
	}
}

// changes is what of the track is to be another. An empty name is that of the language, and goes with a new one.
func (t trackForm) changes(now TrackView) (in asset.TrackPatch) {
	if !shell.Unchanged(t.Language, now.LanguageCode) { // a main track may have none, which nobody may choose
		in.LanguageCode = &t.Language
	}
	if !shell.Unchanged(t.Name, now.Name) || t.Name == "" && in.LanguageCode != nil {
		in.Name = &t.Name
	}
	if now.Text() && t.Captions != now.ClosedCaptions {
		in.ClosedCaptions = &t.Captions
	}
	return in
}

func (trs *tracks) editTrack(r *shell.Request, v trackPage) (shell.View, error) {
	err := r.StillSo(trackFormer(v.Track))
	if err != nil {
		return shell.View{}, err
	}
	both := r.Merge(trackFormer(v.Track))
	f := readTrackForm(r)
	in := f.changes(v.TrackView)
	if f.Overtaken(both) {
		f.AddErr(in.Check(v.Track, v.Asset.Asset.Tracks))
		v.Form = f
		return trs.renderTrack(http.StatusConflict, v, false), nil
	}
	then := v.Track
	if in != (asset.TrackPatch{}) { // else no event has to tell of it
		then, err = trs.Assets.PatchTrack(r.Context(), r.Person.Environment.ID, v.Asset.ID, v.ID, in, trs.Now())
	}
	if err == nil {
		r.Undoable("Saved.", v.Address(), trackFormer(v.Track), trackFormer(then))
		return trs.done(r, nil, "#tracks")
	}
	status, err := f.TakeErr(err)
	if err != nil {
		return shell.View{}, err
	}
	v.Form = f
	return trs.renderTrack(status, v, false), nil
}

// Former is likewise for a track.
func (t TrackView) Former() string { return trackFormer(t.Track).Encode() }

func trackFormer(t asset.Track) url.Values {
	v := url.Values{"name": {t.Name}, "language_code": {t.LanguageCode}}
	if t.ClosedCaptions {
		v.Set("closed_captions", "1")
	}
	return v
}

func (trs *tracks) showTrackCode(r *shell.Request, v trackPage) (shell.View, error) {
	both := r.Merge(trackFormer(v.Track))
	v.Form = readTrackForm(r)
	v.Form.Overtaken(both)
	return trs.renderTrack(http.StatusOK, v, !r.Resumed()), nil
}

// renderTrack shows the form that changes a track, with its code.
func (trs *tracks) renderTrack(
	status int, v trackPage, open bool,
) shell.View {
	v.Form.Code = trs.Code("change", v.Address()+"/code", sdkcode.Request{
		Method: http.MethodPatch, Path: assetAPI(v.Asset.ID) + "/tracks/" + url.PathEscape(string(v.ID)),
		IDs: []string{string(v.Asset.ID), string(v.ID)}, Body: trackBody(v.Form.changes(v.TrackView)),
		Node: "video.assets.updateTrack",
	})
	v.Form.Code.Open = open
	return shell.ShowAs(status, "track", v)
}

// trackBody is what the API would be sent of changes that the form can make.
func trackBody(in asset.TrackPatch) (o sdkcode.Object) {
	o = sdkcode.Given(o, "language_code", in.LanguageCode)
	o = sdkcode.Given(o, "name", in.Name)
	o = sdkcode.Given(o, "closed_captions", in.ClosedCaptions)
	return o
}

func (rm *room) showAddTrackCode(r *shell.Request) (shell.View, error) {
	return rm.showWith(r, http.StatusOK, func(v *assetPage) {
		v.AddTrack = readAddTrack(r)
		v.AddTrack.Code = rm.addTrackCode(v.Asset, v.AddTrack)
		v.AddTrack.Code.Open = !r.Resumed()
	})
}

// addTrackCode is the form that adds a track to an asset as code.
func (rm *room) addTrackCode(to asset.Asset, f trackForm) shell.Code {
	return rm.Code("track-form", Video{Asset: to}.Address()+"/tracks/code#tracks", sdkcode.Request{
		Path: assetAPI(to.ID) + "/tracks", IDs: []string{string(to.ID)},
		Body: sdkcode.Object{}.With("url", f.URL).With("type", f.Type).With("language_code", f.Language).
			With("name", f.Name).With("closed_captions", f.Captions),
		Node: "video.assets.createTrack", Go: "AssetsApi.CreateAssetTrack", GoType: "mux.CreateTrackRequest",
	})
}
