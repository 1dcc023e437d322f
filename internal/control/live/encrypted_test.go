package live_test

import (
	"testing"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// TestEncryptedOnly: what a live stream and its recordings are played by is encrypted, all of it, where a DRM
// configuration of either says so.
func TestEncryptedOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public, d, e := playbackid.Request{Policy: playbackid.Public},
		playbackid.Request{Policy: playbackid.DRM, DRMConfigurationID: "d"},
		playbackid.Request{Policy: playbackid.DRM, DRMConfigurationID: "e"}
	recorded := func(all ...playbackid.Request) *assetopt.Options {
		return &assetopt.Options{AdvancedPolicies: all}
	}
	master := recorded(e)
	master.MasterAccess = assetopt.Temporary
	for name, tt := range map[string]struct {
		live       []playbackid.Request
		recordings *assetopt.Options
		ok         bool
	}{
		"both":                         {[]playbackid.Request{e}, recorded(e), true},
		"both, another beside it":      {[]playbackid.Request{e, d}, recorded(d, e), true},
		"recordings alone":             {[]playbackid.Request{d}, recorded(e), true},
		"recordings of another":        {[]playbackid.Request{e}, recorded(d), false},
		"recordings that nobody plays": {[]playbackid.Request{e}, nil, false},
		"live in clear":                {[]playbackid.Request{public}, recorded(e), false},
		"recorded in clear":            {[]playbackid.Request{e}, recorded(e, public), false},
		"with a master":                {[]playbackid.Request{e}, master, false},
		"what may be clear":            {[]playbackid.Request{d, public}, recorded(public, d), true},
	} {
		_, err := w.Create(w.ctx(), env, live.CreateInput{AdvancedPolicies: tt.live, NewAsset: tt.recordings}, w.now())
		if (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}

	in := live.CreateInput{AdvancedPolicies: []playbackid.Request{e}, NewAsset: recorded(e)}
	s, err := w.Create(w.ctx(), env, in, w.now())
	w.must(err)
	_, err = w.AddPlaybackID(w.ctx(), env, s.ID, public, w.now())
	w.wantKind(err, fault.Conflict)
	w.wantKind(w.DeletePlaybackID(w.ctx(), env, s.ID, s.PlaybackIDs[0].ID, w.now()), fault.Conflict)
	_, err = w.Patch(w.ctx(), env, s.ID, live.PatchInput{NewAsset: &live.NewAssetPatch{Clear: true}}, w.now())
	w.wantKind(err, fault.Conflict)
	open, err := w.Create(w.ctx(), env, live.CreateInput{NewAsset: recorded(public)}, w.now())
	w.must(err)
	_, err = w.AddPlaybackID(w.ctx(), env, open.ID, e, w.now())
	w.wantKind(err, fault.Conflict)
}
