package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, ctx := d.Access(), t.Context()
		made := make([]access.Environment, 16)
		errs := together(16, func(i int) (err error) {
			made[i], err = store.EnsureDefault(ctx, access.Environment{
				ID: id.Environment(fmt.Sprint("e", i)), Name: "Default", Kind: "production", CreatedAt: at(i),
			})
			return err
		})
		must(t, errors.Join(errs...))
		for _, e := range made {
			if e != made[0] {
				t.Errorf("two default environments: %+v and %+v", e, made[0])
			}
		}
		env, err := store.Environment(ctx, made[0].ID)
		must(t, err)
		if env != made[0] {
			t.Errorf("environment %+v, want %+v", env, made[0])
		}
		must(t, store.SetVideoQuality(ctx, env.ID, "premium"))
		if got, failed := store.Environment(ctx, env.ID); failed != nil || got.VideoQuality != "premium" ||
			got.Name != env.Name {
			t.Errorf("environment %+v, %v", got, failed)
		}
		must(t, store.SetLiveRungs(ctx, env.ID, "always"))
		if got, failed := store.Environment(ctx, env.ID); failed != nil || got.VideoQuality != "premium" ||
			got.LiveRungs != "always" {
			t.Errorf("environment %+v, %v", got, failed)
		}
		must(t, errors.Join(store.SetVideoQuality(ctx, env.ID, ""), store.SetLiveRungs(ctx, env.ID, "")))
		token := access.Token{
			ID: "t1", Environment: env.ID, Name: "it's", Permissions: []string{"video:read", "video:write"},
			Hash:   []byte{0, 1, 255},
			Digest: []byte{2, 0}, CreatedAt: at(1), RevokedAt: at(2), ExpiresAt: at(3), LastUsedAt: at(4),
		}
		every(t, token)
		must(t, store.InsertToken(ctx, token, 10))
		wantKind(t, store.InsertToken(ctx, token, 10), fault.Conflict)
		got, err := store.Token(ctx, "t1")
		must(t, err)
		if !reflect.DeepEqual(got, token) {
			t.Errorf("token %+v, want %+v", got, token)
		}
		second := access.Token{
			ID: "t0", Environment: env.ID, Name: "n", Permissions: []string{}, Hash: []byte{9}, CreatedAt: at(5),
		}
		must(t, store.InsertToken(ctx, second, 10))
		all, err := store.Tokens(ctx)
		must(t, err)
		if len(all) != 2 || all[0].ID != "t1" || all[1].ID != "t0" || !all[1].RevokedAt.IsZero() {
			t.Errorf("tokens %+v, want the oldest first", all)
		}
		digests := map[id.Token][]byte{"t0": {7}, "t1": {8, 0}, "gone": {9}}
		must(t, store.SetTokenDigests(ctx, digests))
		for _, of := range all {
			if got, err = store.Token(ctx, of.ID); err != nil || !bytes.Equal(got.Digest, digests[of.ID]) {
				t.Errorf("token %+v, %v, want the digest %v", got, err, digests[of.ID])
			}
		}
		must(t, store.RevokeToken(ctx, "", "t0", at(7)))
		must(t, store.RevokeToken(ctx, "", "t0", at(9)))
		if got, err = store.Token(ctx, "t0"); err != nil || !got.RevokedAt.Equal(at(7)) {
			t.Errorf("revoked at %v (%v), want the first time", got.RevokedAt, err)
		}
		for what, err := range map[string]error{
			"token":              func() error { _, err := store.Token(ctx, "x"); return err }(),
			"impossible token":   func() error { _, err := store.Token(ctx, "t0\x00"); return err }(),
			"revoke":             store.RevokeToken(ctx, "", "x", at(1)),
			"environment":        func() error { _, err := store.Environment(ctx, "x"); return err }(),
			"playback ID":        func() error { _, err := store.PlaybackID(ctx, "x"); return err }(),
			"impossible playing": func() error { _, err := store.PlaybackID(ctx, "\xff"); return err }(),
		} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v, want not found", what, err)
			}
		}
		insertAssets(t, d, fullAsset("a"))
		insertStreams(t, d, fullStream("s"))
		for p, want := range map[id.Playback]playbackid.Object{
			"q1-a": {
				ID: playbackid.ID{ID: "q1-a", Policy: "drm", DRMConfigurationID: "d"}, Environment: "env",
				Kind: playbackid.OfAsset, ObjectID: "a-a",
			},
			"p2-s": {
				ID: playbackid.ID{ID: "p2-s", Policy: "public"}, Environment: "env", Kind: playbackid.OfLiveStream,
				ObjectID: "s-s",
			},
		} {
			got, err := store.PlaybackID(ctx, p)
			must(t, err)
			if got != want {
				t.Errorf("%s leads to %+v, want %+v", p, got, want)
			}
		}
	})
}
