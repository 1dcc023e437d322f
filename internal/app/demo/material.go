package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	hostText = "Good morning, and welcome to the demonstration of Millrace. What you see is a test picture, " +
		"and what you hear was made by a machine. It travels to the server over R T M P, and from there to your " +
		"browser in a moment."
	commentaryText = "This is the second audio track. It was added to the recording afterwards, by its address, and " +
		"you chose it in the player."
)

// speak writes text as speech into dir and gives the file's name, or nothing when this machine cannot speak.
func speak(ctx context.Context, t tool, dir, name, text, voice string) string {
	if !t.can("flite") {
		return ""
	}
	file := filepath.Join(dir, name)
	cmd := exec.Command(t.path, soundArgs(voiceGraph(text, voice), file)...) //nolint:gosec,noctx // ffmpeg; runProcess stops it
	if runProcess(ctx, "ffmpeg", cmd) != nil {
		return "" // the murmur does as well
	}
	return file
}

// subtitles is an SRT file with a cue every four seconds.
func subtitles(length time.Duration) string {
	const every, shown = 4 * time.Second, 3500 * time.Millisecond
	var b strings.Builder
	for i, at := 1, time.Duration(0); at < length; i, at = i+1, at+every {
		fmt.Fprintf(&b, "%d\n%s --> %s\nSubtitle %d, at second %d\n<i>of the recording</i>\n\n", i, srtTime(at),
			srtTime(min(at+shown, length)), i, int(at.Seconds()))
	}
	return b.String()
}

func srtTime(d time.Duration) string {
	ms := d.Milliseconds()
	return fmt.Sprintf("%02d:%02d:%02d,%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, ms%1000)
}

// fileServer serves files of a folder to this machine only, as some web server elsewhere would.
type fileServer struct {
	server *http.Server
	base   string
	done   chan struct{}
}

// serveFiles serves the named files of dir.
func serveFiles(ctx context.Context, dir string, names ...string) (*fileServer, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for files: %w", err)
	}
	mux, secret := http.NewServeMux(), strings.ToLower(rand.Text())
	for _, name := range names {
		mux.HandleFunc("GET /"+secret+"/"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, filepath.Join(dir, name))
		})
	}
	s := &fileServer{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		base:   "http://" + l.Addr().String() + "/" + secret + "/",
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l) // ends with Close
	}()
	return s, nil
}

func (f *fileServer) close() {
	_ = f.server.Close() // nobody is to be waited for
	<-f.done
}

// prepareTracks writes subtitles.srt and commentary.m4a into dir.
func prepareTracks(ctx context.Context, t tool, dir string, length time.Duration) error {
	if err := os.WriteFile(filepath.Join(dir, "subtitles.srt"), []byte(subtitles(length)), 0o600); err != nil {
		return fmt.Errorf("write subtitles: %w", err)
	}
	speech := speak(ctx, t, dir, "commentary.wav", commentaryText, "slt")
	cmd := exec.Command(t.path, trackArgs(speech, filepath.Join(dir, "commentary.m4a"), length)...) //nolint:gosec,noctx // ffmpeg; runProcess stops it
	if err := runProcess(ctx, "ffmpeg", cmd); err != nil {
		return fmt.Errorf("make audio track: %w", err)
	}
	return nil
}

// errEnded is the cause when the service ends while the demo needs it.
var errEnded = errors.New("the service has ended")
