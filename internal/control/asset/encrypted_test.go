package asset_test

import (
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// TestEncryptedOnly: of an asset whose DRM configuration says so nothing can be made that is given in clear, in any
// order of requests.
func TestEncryptedOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	with := func(policies ...string) assetopt.Options { // DRM configurations, or policies
		o := assetopt.Options{VideoQuality: "plus", Inputs: []assetopt.Input{{URL: "https://h/v.mp4"}}}
		for _, p := range policies {
			r := playbackid.Request{Policy: playbackid.DRM, DRMConfigurationID: p}
			if len(p) > 1 {
				r = playbackid.Request{Policy: playbackid.Policy(p)}
			}
			o.AdvancedPolicies = append(o.AdvancedPolicies, r)
		}
		return o
	}
	create := func(o assetopt.Options) (asset.Asset, error) {
		return w.Create(w.ctx(), env, asset.CreateInput{Options: o}, w.now())
	}
	source, err := create(with("e"))
	w.must(err)
	w.must(w.Finish(w.ctx(), source.ID, finished(), w.now()))
	clip := func(policies ...string) assetopt.Options {
		o := with(policies...)
		o.Inputs[0].URL = "mux://assets/" + string(source.ID)
		return o
	}
	master := func(o assetopt.Options) assetopt.Options {
		o.MasterAccess = assetopt.Temporary
		return o
	}
	for name, tt := range map[string]struct {
		options assetopt.Options
		ok      bool
	}{
		"another configuration beside it": {with("d", "e"), true},
		"public beside it":                {with("e", "public"), false},
		"signed beside it":                {with("signed", "e"), false},
		"a master":                        {master(with("e")), false},
		"a master of what may be clear":   {master(with("d", "public")), true},
		"clip":                            {clip("e"), true},
		"clip, public":                    {clip("public"), false},
		"clip, public beside it":          {clip("e", "public"), false},
		"clip of another configuration":   {clip("d"), false},
		"clip that nobody plays yet":      {clip(), false},
		"clip with a master":              {master(clip("e")), false},
	} {
		if _, err = create(tt.options); (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}

	_, err = w.SetMasterAccess(w.ctx(), env, source.ID, assetopt.Temporary, w.now())
	w.wantKind(err, fault.Conflict)
	for _, p := range []playbackid.Policy{playbackid.Public, playbackid.Signed} {
		_, err = w.AddPlaybackID(w.ctx(), env, source.ID, playbackid.Request{Policy: p}, w.now())
		w.wantKind(err, fault.Conflict)
	}
	d := playbackid.Request{Policy: playbackid.DRM, DRMConfigurationID: "d"}
	e := playbackid.Request{Policy: playbackid.DRM, DRMConfigurationID: "e"}
	first := source.PlaybackIDs[0].ID
	w.wantKind(w.DeletePlaybackID(w.ctx(), env, source.ID, first, w.now()), fault.Conflict)
	_, err = w.AddPlaybackID(w.ctx(), env, source.ID, d, w.now())
	w.must(err)
	w.wantKind(w.DeletePlaybackID(w.ctx(), env, source.ID, first, w.now()), fault.Conflict)
	second, err := w.AddPlaybackID(w.ctx(), env, source.ID, e, w.now())
	w.must(err)
	w.must(w.DeletePlaybackID(w.ctx(), env, source.ID, first, w.now()))
	w.wantKind(w.DeletePlaybackID(w.ctx(), env, source.ID, second.ID, w.now()), fault.Conflict)

	open, err := create(with("d", "public"))
	w.must(err)
	_, err = w.AddPlaybackID(w.ctx(), env, open.ID, e, w.now())
	w.wantKind(err, fault.Conflict) // it is given in clear already
	w.must(w.Delete(w.ctx(), env, source.ID, w.now()))
}
