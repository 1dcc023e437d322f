package permit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/web/express"
)

// Playback IDs of the service. All assets have segments of two seconds.
const (
	signedID  = "SignedPlaybackIdOfTheAttackedOne"
	otherID   = "SignedPlaybackIdOfSomeOtherAsset"
	foreignID = "SignedPlaybackIdInTheOtherTenant"
	publicID  = "PublicPlaybackIdOfTheSameProduct"
)

// secret is in everything that is worth an attack.
const secret = "what only those with a permit may see"

// film is what a playback ID leads to.
type film struct{ id string }

func (film) Media() string { return "m1" }

func (film) Began() time.Time { return time.Time{} }

// Description has a title, so that the playlist names the metadata.
func (film) Description() playback.Description { return playback.Description{Title: secret} }

func (film) Tiles(context.Context, playback.Clip) (*hls.Tiles, error) {
	sheet := hls.Tiled{URI: "../storyboard.jpg?asset_start_time=0&asset_end_time=20", Duration: 20 * time.Second}
	return &hls.Tiles{Width: 16, Height: 9, Columns: 2, Rows: 1, Images: []hls.Tiled{sheet}}, nil
}

func (film) Earlier(context.Context, string) (playback.Presentation, error) {
	return nil, fault.New(fault.NotFound, "there is no earlier broadcast")
}

func (film) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	m := &hls.Multivariant{Renditions: []hls.Rendition{
		{Type: "AUDIO", GroupID: "audio", Name: "sound", URI: "a.m3u8"},
		{Type: "SUBTITLES", GroupID: "text", Name: "text", URI: "t.m3u8"},
	}, Variants: []hls.Variant{
		{Bandwidth: 1, URI: "v.m3u8", Width: 640, Height: 360},
		{Bandwidth: 9, URI: "large.m3u8", Width: 1920, Height: 1080},
	}}
	for i := range m.Variants {
		v := &m.Variants[i]
		v.Codecs, v.Audio, v.Subtitles = []string{secret}, "audio", "text"
	}
	return m, nil
}

func (film) Playlist(_ context.Context, rendition string, _ playback.Reload, compressed bool) (playback.Text, error) {
	text := "#EXTM3U\n#" + secret + "\n" + strings.ReplaceAll(
		"#EXT-X-MAP:URI=\"*/init-0.mp4\"\n*/7.m4s\n#EXT-X-PART:DURATION=1,URI=\"*/8.0.m4s\"\n"+
			"#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"*/8.1.m4s\"\n#EXT-X-RENDITION-REPORT:URI=\"a.m3u8\",LAST-MSN=7\n",
		"*", rendition,
	)
	if rendition == "t" {
		text = "#EXTM3U\n#" + secret + "\nt/7.vtt\n"
	}
	if compressed {
		text = "compressed: " + text
	}
	return playback.Text{Data: []byte(text), MaxAge: 60}, nil
}

func (f film) Chunk(_ context.Context, _ string, r hls.Resource) (playback.Body, error) {
	return playback.Body{Data: fmt.Appendf(nil, "%s %s %d", secret, f.id, r.MSN)}, nil
}

func (film) Pictures(context.Context) ([]hls.Picture, error) {
	return []hls.Picture{
		{Rendition: "v", Short: 360, Offered: true},
		{Rendition: "large", Short: 1080, Offered: true},
		{Rendition: "unlisted", Short: 1440},
	}, nil
}

func (film) Covers(_ context.Context, _ string, r hls.Resource, c playback.Clip) (bool, error) {
	at := float64(2 * r.MSN)
	return r.Init >= 0 || (c.To == 0 || at < c.To) && at+2 > c.From, nil
}

func (film) Sidecar(context.Context, string) (playback.Body, error) {
	return playback.Body{Data: []byte("WEBVTT\n\n00:00.000 --> 00:02.000\n" + secret + "\n")}, nil
}

func (film) Image(_ context.Context, name, query, base string) (playback.Image, error) {
	return playback.Image{
		Body:   playback.Body{Data: []byte(secret + " " + name + "?" + query + " of " + base), Type: "image/jpeg"},
		MaxAge: 60,
	}, nil
}

func (film) File(_ context.Context, name string) (playback.File, error) {
	open := func(_ context.Context, off, n int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(secret[off : off+n])), nil
	}
	short := map[string]int{"low.mp4": 360, "high.mp4": 1080}[name]
	return playback.File{Size: int64(len(secret)), Type: "video/mp4", Tag: "f", Short: short, Open: open}, nil
}

// service is playback as the binary has it: its handler behind net/http alone, and behind express.
type service struct {
	node
	later atomic.Int64 // nanoseconds that the clock is ahead
	addrs map[string]string
}

func (s *service) now() time.Time { return time.Now().Add(time.Duration(s.later.Load())) }

func (*service) Master(context.Context, string, string, string) (playback.File, error) {
	return playback.File{}, fault.New(fault.NotFound, "there is none")
}

// Open implements playback.Source.
func (s *service) Open(ctx context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	o := playbackid.Object{Environment: "env", ID: playbackid.ID{Policy: playbackid.Signed}}
	switch r.PlaybackID {
	case signedID, otherID:
	case foreignID:
		o.Environment = "other"
	case publicID:
		o.ID.Policy = playbackid.Public
	default:
		return nil, playback.Permit{}, fault.New(fault.NotFound, "the playback ID does not exist")
	}
	o.ID.ID = id.Playback(r.PlaybackID)
	p, err := s.Admit(ctx, o, r, s.now())
	if err != nil {
		return nil, playback.Permit{}, err
	}
	return film{r.PlaybackID}, p, nil
}

func newService(t *testing.T, n node) *service {
	t.Helper()
	s := &service{node: n, addrs: map[string]string{}}
	h := playback.New(playback.Options{
		Source: s, Base: "https://stream.example", Logger: slog.New(slog.DiscardHandler),
	})
	plain, front := listen(t), listen(t)
	l := express.Listen(context.WithoutCancel(t.Context()), front, express.Options{
		Handler: h, Takes: playback.Owns, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	for name, ln := range map[string]net.Listener{"net/http": plain, "express": l} {
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
		done := make(chan error, 1)
		go func() { done <- server.Serve(ln) }()
		t.Cleanup(func() {
			if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			<-done
		})
		s.addrs[name] = ln.Addr().String()
	}
	return s
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// response is what came, as far as it matters.
type response struct {
	status int
	body   string
	cache  string // Cache-Control
	from   string // X-Cache
}

// send sends a request as it is, byte for byte.
func send(t *testing.T, addr, request string) response {
	t.Helper()
	var d net.Dialer
	nc, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }() // what matters was read
	if err = nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err = io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(nc), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	defer func() { _ = r.Body.Close() }() // it was read
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	return response{r.StatusCode, string(body), r.Header.Get("Cache-Control"), r.Header.Get("X-Cache")}
}

// ask is a request with header fields, each with its CRLF.
func ask(method, target, fields string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: stream.example\r\nConnection: close\r\n" + fields + "\r\n"
}
