package assets

import (
	"net/http"
	"net/url"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
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
func (n nameForm) changes(now assetopt.Options) (in asset.PatchInput) {
	if !shell.Unchanged(n.Title, now.Meta.Title) {
		in.Meta = &assetopt.MetaPatch{Meta: now.Meta}
		in.Meta.Title = n.Title
	}
	if !shell.Unchanged(n.Passthrough, now.Passthrough) {
		in.Passthrough = &n.Passthrough
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
func (rm *room) addPlaybackID(r *shell.Request) (shell.View, error) {
	request := playbackid.Request{Policy: playbackid.Policy(r.PostFormValue("policy"))}
	_, err := rm.Assets.AddPlaybackID(r.Context(), r.Person.Environment.ID, assetOf(r), request, rm.Now())
	return rm.done(r, err, "#share")
}

// addTrack adds text or sound by its URL.
func (rm *room) addTrack(r *shell.Request) (shell.View, error) {
	f := readAddTrack(r)
	made, err := rm.Assets.AddTrack(r.Context(), r.Person.Environment.ID, assetOf(r), asset.TrackInput{
		URL: f.URL, Type: asset.TrackType(f.Type), LanguageCode: f.Language, Name: f.Name, ClosedCaptions: f.Captions,
	}, rm.Now())
	if fault.Is(err, fault.Invalid) {
		f.AddMessages(fault.ByField(err))
		return rm.showWith(r, http.StatusBadRequest, func(v *assetPage) {
			v.AddTrack = f
			v.AddTrack.Code = rm.addTrackCode(v.Asset, f)
		})
	}
	if err == nil {
		of := TrackView{made, Video{Asset: asset.Asset{ID: assetOf(r)}}}
		r.Undoable("The track is added.", of.Address()+"/delete", nil, trackFormer(made))
	}
	return rm.done(r, err, "#tracks")
}

// editAsset changes the name and the passthrough.
func (rm *room) editAsset(r *shell.Request) (shell.View, error) {
	row, err := rm.load(r)
	if err == nil {
		err = r.StillSo(assetFormer(row))
	}
	both := r.Merge(assetFormer(row))
	f := readName(r)
	in := f.changes(row.Options)
	if err == nil && f.Overtaken(both) {
		f.AddErr(in.Check())
		return rm.showName(r, http.StatusConflict, f)
	}
	then := row
	if err == nil && in != (asset.PatchInput{}) { // else no event has to tell of it
		then, err = rm.Assets.Patch(r.Context(), r.Person.Environment.ID, row.ID, in, rm.Now())
	}
	if fault.Is(err, fault.Invalid) {
		f.AddMessages(fault.ByField(err))
		return rm.showName(r, http.StatusBadRequest, f)
	}
	if err == nil {
		r.Undoable("Saved.", Video{Asset: row}.Address(), assetFormer(row), assetFormer(then))
	}
	return rm.done(r, err, "")
}

// showName shows the form with what an asset is called, with what is wrong with it.
func (rm *room) showName(r *shell.Request, status int, f nameForm) (shell.View, error) {
	return rm.showWith(r, status, func(v *assetPage) {
		v.Edit = f
		v.Edit.Code = rm.nameCode(v.Asset, f)
	})
}

// done leads back to the page of the asset, or says what went wrong. at is where on the page.
func (rm *room) done(r *shell.Request, err error, at string) (shell.View, error) {
	return shell.Redirect(Video{Asset: asset.Asset{ID: assetOf(r)}}.Address() + at), err
}

// showWith shows the page of the asset with the form that put puts into it.
func (rm *room) showWith(
	r *shell.Request, status int, put func(*assetPage),
) (shell.View, error) {
	v, err := rm.assetPage(r.Context(), r.Person, assetOf(r))
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

// assetAPI is where the API has an asset.
func assetAPI(a id.Asset) string { return "/video/v1/assets/" + url.PathEscape(string(a)) }

func (rm *room) showClipCode(r *shell.Request) (shell.View, error) {
	return rm.showWith(r, http.StatusOK, func(v *assetPage) {
		v.Clip = readClip(r)
		v.Clip.options(v.Asset) // marks what can't be read
		v.Clip.Code = rm.clipCode(v.Asset, v.Clip)
		v.Clip.Code.Open = !r.Resumed()
	})
}

// clipCode is the form of a clip as code.
func (rm *room) clipCode(from asset.Asset, f clipForm) shell.Code {
	f.FormErrors = shell.FormErrors{}
	c := rm.Code("clip-form", Video{Asset: from}.Address()+"/clips/code#clip", assetCall(f.options(from)))
	if len(f.Bad) > 0 {
		c.None = shell.Unreadable
	}
	return c
}

func (rm *room) showNameCode(r *shell.Request) (shell.View, error) {
	return rm.showWith(r, http.StatusOK, func(v *assetPage) {
		both := r.Merge(assetFormer(v.Asset))
		v.Edit = readName(r)
		v.Edit.Overtaken(both)
		v.Edit.Code = rm.nameCode(v.Asset, v.Edit)
		v.Edit.Code.Open = !r.Resumed()
	})
}

// nameCode is the form with what an asset is called as code.
func (rm *room) nameCode(a asset.Asset, f nameForm) shell.Code {
	in := f.changes(a.Options)
	var body sdkcode.Object
	if in.Meta != nil {
		body = body.Set("meta", MetaBody(in.Meta.Meta))
	}
	body = sdkcode.Given(body, "passthrough", in.Passthrough)
	return rm.Code("name-form", Video{Asset: a}.Address()+"/code#edit", sdkcode.Request{
		Method: http.MethodPatch, Path: assetAPI(a.ID), IDs: []string{string(a.ID)}, Body: body,
		Node: "video.assets.update", Go: "AssetsApi.UpdateAsset", GoType: "mux.UpdateAssetRequest",
	})
}

// MetaBody is metadata that replaces what there is; nil: none, for an empty object changes nothing.
func MetaBody(m assetopt.Meta) any {
	if m == (assetopt.Meta{}) {
		return nil
	}
	return sdkcode.Object{}.With("title", m.Title).With("creator_id", m.CreatorID).With("external_id", m.ExternalID)
}

// clipForm is the form in which a stretch of an asset is chosen.
type clipForm struct {
	Start, End, Title string
	Code              shell.Code
	shell.FormErrors
}

func readClip(r *shell.Request) clipForm {
	return clipForm{
		Start: r.Text("start_time"), End: r.Text("end_time"), Title: r.Text("clip_title"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("inputs[0].start_time", "start_time", "In"),
			shell.At("inputs[0].end_time", "end_time", "Out"),
			shell.At("meta.title", "clip_title", "Name"),
		}},
	}
}

// options are what the API would be asked. What is no time is said at once.
func (c *clipForm) options(from asset.Asset) assetopt.Options {
	return assetopt.Options{
		Inputs: []assetopt.Input{{
			URL: clipURL(from.ID), StartTime: c.Time("start_time", c.Start), EndTime: c.Time("end_time", c.End),
		}},
		PlaybackPolicies: plain(from.PlaybackIDs), Meta: assetopt.Meta{Title: c.Title},
	}
}

// clip makes an asset of a stretch of this one, and leads to its page.
func (rm *room) clip(r *shell.Request, from asset.Asset) (shell.View, error) {
	f := readClip(r)
	in := asset.CreateInput{Options: f.options(from), DefaultQuality: r.Person.Environment.VideoQuality}
	if len(f.Bad) == 0 {
		made, err := rm.Assets.Create(r.Context(), r.Person.Environment.ID, in, rm.Now())
		if err == nil {
			return shell.Redirect(Video{Asset: made}.Address()), nil
		}
		if !fault.Is(err, fault.Invalid) {
			return shell.View{}, err
		}
		f.AddMessages(fault.ByField(err))
	} else {
		f.AddErr(in.Check(&from))
	}
	f.Code = rm.clipCode(from, f)
	return rm.showWith(r, http.StatusBadRequest, func(v *assetPage) { v.Clip = f })
}

// clipURL names an asset as the input of another one.
func clipURL(a id.Asset) string { return "mux://assets/" + string(a) }

// plain are the policies of playback IDs that a clip may have too without more being said: one of each.
func plain(ids []playbackid.ID) []playbackid.Policy {
	var out []playbackid.Policy
	for _, policy := range []playbackid.Policy{playbackid.Public, playbackid.Signed} {
		for _, p := range ids {
			if p.Policy == policy {
				out = append(out, policy)
				break
			}
		}
	}
	return out
}
