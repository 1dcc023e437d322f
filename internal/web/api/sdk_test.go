package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/drm"
	"millrace/internal/control/live"
	nodes "millrace/internal/control/node"
	"millrace/internal/control/restriction"
	"millrace/internal/control/retention"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/control/vocabulary"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/programtest"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const (
	sdkFolder   = "../../../test/sdk"
	goSDKFolder = "../../../tools/sdk"
)

// storedNodes are the nodes of a database.
type storedNodes struct {
	nodes.Store
	nodes.Drains
}

// TestOfficialSDK runs test/sdk/run.mjs, which calls the API through the official client library, against the real
// services. Without node, or without npm's registry at the first run, it is skipped, unless MILLRACE_TEST_REQUIRE is
// set.
func TestOfficialSDK(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	dbtest.Each(t, func(t *testing.T, url string) { runSDK(t, url, "node", "run.mjs") })
}

// TestOfficialGoSDK does the same with the Go client library and the program in tools/sdk, a module of its own.
func TestOfficialGoSDK(t *testing.T) {
	t.Parallel()
	program := goProgram(t, ".")
	dbtest.Each(t, func(t *testing.T, url string) { runSDK(t, url, program) })
}

// goProgram builds a program of tools/sdk.
func goProgram(t *testing.T, folder string) string {
	t.Helper()
	programtest.Inputs(t, filepath.Join(goSDKFolder, folder))
	program := filepath.Join(t.TempDir(), "sdk")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-C", goSDKFolder, "-o", program, folder)
	if out, err := build.CombinedOutput(); err != nil {
		if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
			t.Fatalf("go build in tools/sdk: %v:\n%s", err, out)
		}
		t.Skipf("go build in tools/sdk: %v:\n%s", err, out)
	}
	return program
}

// runSDK has a program call the API over a database. It is given where the API is, and a token.
func runSDK(t *testing.T, url, program string, args ...string) {
	t.Helper()
	srv := httptest.NewServer(openServices(t, url))
	t.Cleanup(srv.Close)
	runProgram(t, srv.URL, program, args...)
}

// runProgram has a program call the API at a URL.
func runProgram(t *testing.T, base, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, base, tokenID, tokenValue)...)
	cmd.Dir = sdkFolder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	t.Logf("\n%s", out)
}

// assetsAndWork are assets as the API changes them, and as workers do.
type assetsAndWork struct {
	*asset.Service
	*asset.Work
}

func newAssets(o asset.Options) assetsAndWork { return assetsAndWork{asset.New(o), asset.NewWork(o)} }

// deployment is the API over the real services on a real database, and an encoder and a worker behind /test/….
type deployment struct {
	*http.ServeMux
	streams    live.Store
	lives      *live.Service
	broadcasts live.Broadcasts
	assets     assetsAndWork
}

func openServices(t *testing.T, url string) deployment {
	t.Helper()
	d := dbtest.Open(t, url)
	encrypted := drm.New(drm.Options{Store: d.DRM()})
	r := deployment{
		http.NewServeMux(), d.LiveStreams(), live.New(live.Options{Store: d.LiveStreams(), DRM: encrypted.Named}),
		live.NewBroadcasts(d.LiveStreams()), newAssets(asset.Options{Store: d.Assets(), DRM: encrypted.Named}),
	}
	tokens := access.New(access.Options{Store: d.Access()})
	if _, err := tokens.SeedToken(t.Context(), tokenID, tokenValue, time.Now()); err != nil {
		t.Fatal(err)
	}
	keys := signing.New(signing.Options{Store: d.Signing()})
	r.Handle("/", New(Options{
		Vocabularies: vocabulary.New(d.Vocabularies()),
		Installation: Installation{
			Nodes: storedNodes{d.Nodes(), db.Drains(d)}, Retention: retention.New(db.Retention(d)),
		},
		Viewers: Viewers{
			Signing: keys, Restrictions: restriction.New(restriction.Options{Store: d.Restrictions()}), DRM: encrypted,
		},
		Received: func(context.Context, upload.Upload) (int64, error) { return 0, nil },
		Live:     r.lives, Assets: r.assets, Callers: Callers{Access: tokens, Audit: d}, Usage: usage.New(d.Usage()),
		Uploads:  upload.New(upload.Options{Store: d.Uploads(), DRM: encrypted.Named}),
		Webhooks: webhook.New(d, EventTypes()), Events: d,
		EventForm: EventForm{
			Environment: d.Access().Environment, LiveStream: r.streams.Find, Asset: d.Assets().Find,
			Upload: d.Uploads().Find,
		}, Logger: quietLogger(io.Discard),
	}))
	r.HandleFunc("POST /test/encoder/{what}", func(w http.ResponseWriter, req *http.Request) {
		done(w, r.encode(req.Context(), req.PathValue("what"), req.FormValue("key")))
	})
	r.HandleFunc("POST /test/drm", func(w http.ResponseWriter, req *http.Request) { // as at a shell
		env, err := tokens.Default(req.Context(), time.Now())
		if err == nil {
			_, err = encrypted.Create(req.Context(), env.ID, "test", drm.Settings{Scheme: drm.CBCS, ClearKey: true},
				time.Now())
		}
		done(w, err)
	})
	r.HandleFunc("POST /test/verify", func(w http.ResponseWriter, req *http.Request) {
		_, err := keys.Verify(req.Context(), req.FormValue("token"), "", time.Now())
		done(w, err)
	})
	r.HandleFunc("POST /test/delivered", func(w http.ResponseWriter, req *http.Request) {
		done(w, r.deliver(req.Context(), usage.New(d.Usage()), req))
	})
	r.HandleFunc("POST /test/ready", func(w http.ResponseWriter, req *http.Request) {
		done(w, r.assets.Ready(req.Context(), id.Asset(req.FormValue("asset")), measured(), time.Now()))
	})
	return r
}

// deliver does what viewers do who are sent so many seconds of an asset, at a time in Unix seconds.
func (d deployment) deliver(ctx context.Context, book *usage.Service, req *http.Request) error {
	a, err := d.assets.Find(ctx, id.Asset(req.FormValue("asset")))
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(req.FormValue("seconds"), 64)
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(req.FormValue("at"), 10, 64)
	if err != nil {
		return err
	}
	return book.Add(ctx, []usage.Delivered{
		{Asset: a.ID, Environment: a.Environment, LiveStream: a.LiveStream, Seconds: usage.Seconds{Tier720: seconds}},
	}, time.Unix(at, 0))
}

// ask sends one request with the token that may do everything.
func (d deployment) ask(t *testing.T, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.SetBasicAuth(tokenID, tokenValue)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w
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
		Facts: &asset.Facts{
			Duration: 10, Width: 1280, Height: 720, FrameRate: 30, Channels: 2, HasVideo: true, HasAudio: true,
		},
		Tracks: []asset.Track{
			{Rendition: "v", Type: asset.VideoTrack, Duration: 10, MaxWidth: 1280, MaxHeight: 720, MaxFrameRate: 30},
			{Rendition: "a", Type: asset.AudioTrack, Duration: 10, MaxChannels: 2},
		},
	}
}

// encode does what the media side does for a broadcast.
func (d deployment) encode(ctx context.Context, what, key string) error {
	now := time.Now()
	if what == "connect" {
		st, err := d.broadcasts.Connect(ctx, live.Connection{
			StreamKey: key, Protocol: "rtmp", NewAsset: id.Asset(id.New()), Owner: live.Owner{Node: "node", Run: "run"},
		}, now)
		if err != nil {
			return err
		}
		made := asset.NewRecording{
			ID: st.ActiveAsset, Environment: st.Environment, LiveStream: st.ID, Origin: asset.FromLiveRTMP,
			Options: *st.Settings.NewAsset, Media: id.Media(id.New()),
		}
		if _, err := d.assets.Record(ctx, made, now); err != nil {
			return err
		}
		return d.broadcasts.Active(ctx, st.ID, st.Writer(), now)
	}
	st, err := d.streams.ByKey(ctx, key)
	if err != nil {
		return err
	}
	if st.EndWanted != live.EndComplete {
		return fault.New(fault.Conflict, "nobody asked for the end")
	}
	if _, err = d.broadcasts.Disconnected(ctx, st.ID, st.Writer(), now); err != nil {
		return err
	}
	stretch := asset.Recording{StartedAt: st.StartedAt, Duration: 10, Type: "content"}
	if err = d.assets.EndLive(ctx, st.ActiveAsset, asset.Writer{}, []asset.Recording{stretch}, now); err != nil {
		return err
	}
	_, err = d.broadcasts.End(ctx, st.ID, st.Writer(), live.EndComplete, now)
	return err
}
