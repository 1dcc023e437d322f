package db_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/drm"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/storage/db/dbtest"
)

// TestContentKeys: two nodes at once agree on the keys, others' configurations are nobody's, and what is stored can't
// be read in the database.
func TestContentKeys(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		now := time.Now()
		env, err := access.New(access.Options{Store: d.Access()}).Default(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		made, err := drm.New(drm.Options{Store: d.DRM()}).Create(t.Context(), env.ID, "ours", drm.Settings{
			Scheme: drm.CBCS, ClearKey: true, KeysByClass: true, EncryptAudio: true,
		}, now)
		if err != nil {
			t.Fatal(err)
		}
		asset := drm.Resource{Kind: playbackid.OfAsset, ID: "asset1"}
		var all [8]drm.Content
		var g sync.WaitGroup
		for i := range all {
			g.Go(func() {
				s := drm.New(drm.Options{Store: d.DRM()})
				c, failed := s.Content(t.Context(), env.ID, asset, made.ID, now)
				if all[i] = c; failed != nil {
					t.Error(failed)
				}
			})
		}
		g.Wait()
		for _, c := range all {
			for _, class := range []drm.Class{drm.SD, drm.HD, drm.UHD1, drm.Audio} {
				a, _ := c.Key(class, 0)
				if b, ok := all[0].Key(class, 0); !ok || a != b {
					t.Fatalf("nodes do not agree on the key of %s", class)
				}
			}
		}
		s := drm.New(drm.Options{Store: d.DRM()})
		other, err := s.Content(t.Context(), env.ID, drm.Resource{Kind: playbackid.OfAsset, ID: "asset2"}, made.ID, now)
		if err != nil || other.Keys[0] == all[0].Keys[0] {
			t.Errorf("another asset: %v", err)
		}
		if _, err = s.Content(t.Context(), "another environment", asset, made.ID, now); !fault.Is(err, fault.NotFound) {
			t.Errorf("of another environment: %v", err)
		}
		if err = s.Delete(t.Context(), "another environment", made.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("deleted by another environment: %v", err)
		}
		if path, file := strings.CutPrefix(url, "sqlite://"); file {
			for _, p := range []string{path, path + "-wal"} {
				data, failed := os.ReadFile(p)
				if failed != nil {
					t.Fatal(failed)
				}
				for _, k := range all[0].Keys {
					if bytes.Contains(data, k.Value[:]) || bytes.Contains(data, []byte(`"keys"`)) {
						t.Error("a content key is stored in clear")
					}
				}
			}
		}
		// the keys go with what they are for
		stream := live.Stream{ID: "asset2", Environment: env.ID, StreamKey: "k", State: live.Idle}
		if err = d.LiveStreams().Insert(t.Context(), live.Change{Stream: stream}); err != nil {
			t.Fatal(err)
		}
		if err = d.LiveStreams().Delete(t.Context(), live.Change{From: live.Idle, Stream: stream}); err != nil {
			t.Fatal(err)
		}
		if _, err = d.DRM().Keys(t.Context(), drm.Resource{
			Kind: playbackid.OfAsset, ID: "asset2",
		}, made.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("keys of what is deleted: %v", err)
		}
		if err = s.Delete(t.Context(), env.ID, made.ID); err != nil {
			t.Error(err)
		}
		if _, err = drm.New(drm.Options{Store: d.DRM()}).Content(t.Context(), env.ID, asset, made.ID,
			now); !fault.Is(err, fault.NotFound) {
			t.Errorf("of a deleted configuration: %v", err)
		}
	})
}
