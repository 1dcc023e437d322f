package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"millrace/internal/leaktest"
)

// The test binary is its own stand-in: called with the arguments of serve it plays millrace, with those of ffmpeg it
// plays ffmpeg.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(fakeServe(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "dashboard" {
		fmt.Fprintln(os.Stdout, "http://fake/dashboard/link/secret", strings.Join(os.Args[3:], " "))
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "-hide_banner" {
		os.Exit(fakeFFmpeg(os.Args[2:]))
	}
	leaktest.Main(m)
}

func fakeFFmpeg(args []string) int {
	out := args[len(args)-1]
	switch {
	case out == "-filters":
		fmt.Fprintln(os.Stdout,
			" ... flite             |->A       Synthesize voice\n T.C drawtext          V->V       Draw text")
	case strings.HasPrefix(out, "rtmp://"):
		addr, key, _ := strings.Cut(strings.TrimPrefix(out, "rtmp://"), "/")
		if key != "app/secretkey" {
			fmt.Fprintln(os.Stdout, "wrong URL")
			return 1
		}
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
		if err != nil {
			return 1
		}
		_, _ = io.Copy(io.Discard, c) // the service says when it has streamed for long enough
	default:
		if err := os.WriteFile(out, []byte("sound"), 0o600); err != nil {
			return 1
		}
	}
	return 0
}

// fakeService plays as much of the API as the demo uses.
type fakeService struct {
	mu     sync.Mutex
	errs   bool // the asset ends errored
	asked  int
	looked int // at the asset
	tracks []map[string]any
	played chan struct{} // closed when the stream can be played
}

// takeStreams has encoders stream until the stream can be played, or for ever.
func (f *fakeService) takeStreams(rtmp net.Listener, forever bool) {
	for {
		c, err := rtmp.Accept()
		if err != nil {
			return
		}
		if <-f.played; !forever {
			_ = c.Close()
		}
	}
}

func option(args []string, name string) string {
	for _, a := range slices.Backward(args) {
		if v, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return v
		}
	}
	return ""
}

func fakeServe(args []string) int {
	dir := option(args, "data-dir")
	if strings.HasSuffix(dir, "broken") {
		fmt.Fprintln(os.Stderr, "millrace: the disk is full")
		return 1
	}
	if err := os.MkdirAll(dir, 0o700); err != nil || option(args, "log-format") != "json" ||
		!strings.HasSuffix(option(args, "fetch-allow"), "127.0.0.0/8") {
		return 1
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", option(args, "http-addr"))
	if err != nil {
		return 1
	}
	rtmp, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	f := &fakeService{errs: strings.HasSuffix(dir, "errored"), played: make(chan struct{})}
	go func() { _ = http.Serve(l, f.handler()) }()
	go f.takeStreams(rtmp, strings.HasSuffix(dir, "kept"))
	fmt.Fprintln(os.Stdout, `{"level":"WARN","msg":"something odd","error":"at night","message":"it rains"}`)
	const listening = `{"level":"INFO","msg":"listening","listener":%q,"address":%q}` + "\n"
	fmt.Fprintf(os.Stdout, listening, "rtmp", rtmp.Addr())
	fmt.Fprintf(os.Stdout, listening, "http", l.Addr())
	fmt.Fprint(os.Stdout, "\nDashboard: http://fake/dashboard/link/other\n\n")
	if strings.HasSuffix(dir, "dying") {
		fmt.Fprintln(os.Stderr, "panic: dying")
		return 2
	}
	<-ends
	if err := os.WriteFile(dir+".stopped", nil, 0o600); err != nil {
		return 1
	}
	return 0
}

func (f *fakeService) handler() http.Handler {
	mux := http.NewServeMux()
	respond := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(map[string]any{"data": v}) }
	ids := []map[string]string{{"id": "play"}}
	mux.HandleFunc("GET /system/v1/whoami", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, map[string]string{})
	})
	mux.HandleFunc("POST /video/v1/live-streams", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		respond(w, map[string]any{"id": "live", "stream_key": "secretkey", "playback_ids": ids})
	})
	mux.HandleFunc("GET /play.m3u8", func(w http.ResponseWriter, _ *http.Request) {
		switch f.asked++; f.asked {
		case 1:
			w.WriteHeader(http.StatusPreconditionFailed)
		case 2:
			close(f.played)
		}
	})
	mux.HandleFunc("GET /video/v1/live-streams/live", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, map[string]any{"recent_asset_ids": []string{"old", "asset"}})
	})
	mux.HandleFunc("GET /video/v1/assets/asset", func(w http.ResponseWriter, _ *http.Request) {
		status := "ready"
		f.looked++
		if f.errs {
			status = "errored"
		}
		respond(w, map[string]any{
			"id": "asset", "status": status, "is_live": f.looked < 3, "duration": 9.5, "playback_ids": ids,
			"tracks": f.tracks, "errors": map[string]any{"messages": []string{"no media came"}},
		})
	})
	mux.HandleFunc("POST /video/v1/assets/asset/tracks", f.addTrack)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		user, secret, _ := r.BasicAuth()
		if strings.Contains(r.URL.Path, "/v1/") &&
			(user != os.Getenv("MILLRACE_TOKEN_ID") || secret != os.Getenv("MILLRACE_TOKEN_SECRET") || secret == "") {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// addTrack fetches the file, as the service would.
func (f *fakeService) addTrack(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, in["url"].(string), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || len(text) == 0 {
		http.Error(w, "nothing there", http.StatusBadRequest)
		return
	}
	in["status"] = "ready"
	f.tracks = append(f.tracks, in)
	w.WriteHeader(http.StatusCreated)
}
