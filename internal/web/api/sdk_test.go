package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const sdkFolder = "../../../test/sdk"

// TestOfficialSDK runs test/sdk/run.mjs, which calls the API through the official client library, against the real services.
// Without node, or without npm's registry at the first run, it is skipped, unless MILLRACE_TEST_REQUIRE is set.
func TestOfficialSDK(t *testing.T) {
	t.Parallel()
	if err := installSDK(t); err != nil {
		if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	secret, h := realServices(t, &memory{})
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "run.mjs", srv.URL, tokenID, secret)
	cmd.Dir = sdkFolder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	t.Logf("\n%s", out)
}

// installSDK puts the locked packages in place, once.
func installSDK(t *testing.T) error {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		return errors.New("node is not installed")
	}
	if _, err := os.Stat(filepath.Join(sdkFolder, "node_modules/@mux/mux-node/package.json")); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = sdkFolder
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.New("npm ci in test/sdk: " + err.Error() + ": " + string(out))
	}
	return nil
}

// realServices is the API over the real services with m as their stores, and an encoder and a worker behind /test/….
func realServices(t *testing.T, m *memory) (secret string, h http.Handler) {
	t.Helper()
	secret = "sdk-secret-with-enough-characters"
	lives, assets := live.New(live.Options{Store: liveMemory{m}}), asset.New(asset.Options{Store: assetMemory{m}})
	tokens := access.New(access.Options{Store: accessMemory{m}})
	if err := tokens.SeedToken(t.Context(), tokenID, secret, time.Now()); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", New(Options{Live: lives, Assets: assets, Access: tokens, Logger: quietLogger(io.Discard)}))
	mux.HandleFunc("POST /test/encoder/{what}", func(w http.ResponseWriter, r *http.Request) {
		done(w, encode(r.Context(), lives, assets, m, r.PathValue("what"), r.FormValue("key")))
	})
	mux.HandleFunc("POST /test/ready", func(w http.ResponseWriter, r *http.Request) {
		done(w, assets.Ready(r.Context(), id.Asset(r.FormValue("asset")), measured(), time.Now()))
	})
	return secret, mux
}

func done(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// measured is what a worker finds in a file.
func measured() asset.Growth {
	return asset.Growth{
		Facts: &asset.Facts{Duration: 10, Width: 1280, Height: 720, FrameRate: 30, Channels: 2, HasVideo: true, HasAudio: true},
		Tracks: []asset.Track{
			{Rendition: "v", Type: asset.VideoTrack, Duration: 10, MaxWidth: 1280, MaxHeight: 720, MaxFrameRate: 30},
			{Rendition: "a", Type: asset.AudioTrack, Duration: 10, MaxChannels: 2},
		},
	}
}

// encode does what the media side does for a broadcast.
func encode(ctx context.Context, lives *live.Service, assets *asset.Service, m *memory, what, key string) error {
	now := time.Now()
	if what == "connect" {
		st, err := lives.Connect(ctx, key, "rtmp", id.Asset(id.New()), "node", time.Minute, now)
		if err != nil {
			return err
		}
		r := asset.NewRecording{
			ID: st.ActiveAsset, Environment: st.Environment, LiveStream: st.ID, Origin: asset.FromLiveRTMP, Options: *st.Settings.NewAsset, Media: "m",
		}
		if _, err := assets.Record(ctx, r, now); err != nil {
			return err
		}
		return lives.Active(ctx, st.ID, st.Epoch, now)
	}
	st, err := liveMemory{m}.ByKey(ctx, key)
	if err != nil {
		return err
	}
	if st.EndWanted != live.EndComplete {
		return fault.New(fault.Conflict, "nobody asked for the end")
	}
	if _, err = lives.Disconnected(ctx, st.ID, st.Epoch, now); err != nil {
		return err
	}
	stretch := asset.Recording{StartedAt: st.StartedAt, Duration: 10, Type: "content"}
	if err = assets.EndLive(ctx, st.ActiveAsset, []asset.Recording{stretch}, now); err != nil {
		return err
	}
	_, err = lives.End(ctx, st.ID, st.Epoch, live.EndComplete, now)
	return err
}
