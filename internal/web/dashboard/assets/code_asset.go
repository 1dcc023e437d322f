package assets

import (
	"millrace/internal/control/assetopt"
	"net/http"
	"net/url"

	"millrace/internal/control/asset"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// assetAPI is where the API has an asset.
func assetAPI(a id.Asset) string { return "/video/v1/assets/" + url.PathEscape(string(a)) }

func (s *room) showClipCode(r *shell.Request) (shell.View, error) {
	return s.showWith(r, http.StatusOK, func(v *assetPage) {
		v.Clip = readClip(r)
		v.Clip.options(v.Asset) // marks what can't be read
		v.Clip.Code = s.clipCode(v.Asset, v.Clip)
		v.Clip.Code.Open = !r.Resumed()
	})
}

// clipCode is the form of a clip as code.
func (s *room) clipCode(from asset.Asset, f clipForm) shell.Code {
	f.FormErrors = shell.FormErrors{}
	c := s.Code("clip-form", Video{Asset: from}.Address()+"/clips/code#clip", assetCall(f.options(from)))
	if len(f.Bad) > 0 {
		c.None = shell.Unreadable
	}
	return c
}

func (s *room) showNameCode(r *shell.Request) (shell.View, error) {
	return s.showWith(r, http.StatusOK, func(v *assetPage) {
		both := r.Merge(assetFormer(v.Asset))
		v.Edit = readName(r)
		v.Edit.Overtaken(both)
		v.Edit.Code = s.nameCode(v.Asset, v.Edit)
		v.Edit.Code.Open = !r.Resumed()
	})
}

// nameCode is the form with what an asset is called as code.
func (s *room) nameCode(a asset.Asset, f nameForm) shell.Code {
	in := f.changes(a.Options)
	var body sdkcode.Object
	if in.Meta != nil {
		body = body.Set("meta", MetaBody(in.Meta.Meta))
	}
	body = sdkcode.Given(body, "passthrough", in.Passthrough)
	return s.Code("name-form", Video{Asset: a}.Address()+"/code#edit", sdkcode.Request{
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
