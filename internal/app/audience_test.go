package app

import (
	"errors"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/audience"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
)

// TestHandles: a token counts what is its environment's, and nothing else.
func TestHandles(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	n := &node{
		access:  access.New(access.Options{Store: d.Access()}),
		assets:  assets{Service: asset.New(asset.Options{Store: d.Assets()})},
		streams: live.New(live.Options{Store: d.LiveStreams()}),
	}
	film, err := n.assets.Create(t.Context(), "env", asset.CreateInput{Options: assetopt.Options{
		PlaybackPolicies: []playbackid.Policy{playbackid.Public, playbackid.Signed},
		Inputs:           []assetopt.Input{{URL: "https://example.com/a.mp4"}},
	}}, time.Now())
	talk, failed := n.streams.Create(t.Context(), "env", live.CreateInput{
		PlaybackPolicies: []playbackid.Policy{playbackid.Public},
	}, time.Now())
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	of := func(all []playbackid.ID) (out []id.Playback) {
		for _, p := range all {
			out = append(out, p.ID)
		}
		return out
	}
	for _, tt := range []struct {
		kind audience.Kind
		id   string
		want []id.Playback
	}{
		{audience.OfAsset, string(film.ID), of(film.PlaybackIDs)},
		{audience.OfLiveStream, string(talk.ID), of(talk.PlaybackIDs)},
		{audience.OfPlaybackID, string(film.PlaybackIDs[1].ID), of(film.PlaybackIDs[1:])},
	} {
		got, err := handles{n}.PlaybackIDs(t.Context(), audience.Grant{Environment: "env", Kind: tt.kind, ID: tt.id})
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.kind, got, err, tt.want)
		}
		if got, err = (handles{n}).PlaybackIDs(t.Context(), audience.Grant{
			Environment: "other", Kind: tt.kind, ID: tt.id,
		}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s of another environment: %v, %v", tt.kind, got, err)
		}
	}
}
