package express_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/openfile"
	"millrace/internal/web/express"
)

const playbackID = "AbCdEfGhIjKlMnOpQrStUvWxYz0123"

// recording is a Source and its only Presentation, with media in memory ("v"), in a file ("f") and in a stretch of one
// ("s").
type recording struct{ file string }

func (rec recording) Open(_ context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	switch {
	case slices.Contains(r.Tokens, "bad"):
		return nil, playback.Permit{}, fault.New(fault.Denied, "no")
	case r.PlaybackID != playbackID:
		return nil, playback.Permit{}, fault.New(fault.NotReady, "soon")
	case r.Path != "": // until long after anything may be kept: max-age is the same whenever it is computed
		return rec, playback.Permit{Signed: true, Path: r.Path, Until: time.Now().AddDate(10, 0, 0), Shared: true}, nil
	case len(r.Tokens) > 0:
		return rec, playback.Permit{Signed: true, Path: "signed-x.1"}, nil
	}
	return rec, playback.Permit{}, nil
}

func (recording) Master(context.Context, string, string, string) (playback.File, error) {
	return playback.File{}, fault.New(fault.NotFound, "there is none")
}

func (recording) Description() playback.Description { return playback.Description{} }

func (recording) Tiles(context.Context, playback.Clip) (*hls.Tiles, error) {
	return nil, fault.New(fault.NotFound, "there are none")
}

func (recording) File(context.Context, string) (playback.File, error) {
	return playback.File{}, fault.New(fault.NotFound, "there is none")
}

func (recording) Earlier(context.Context, string) (playback.Presentation, error) {
	return nil, fault.New(fault.NotFound, "there is no earlier broadcast")
}

func (recording) Media() string { return "m1" }

func (recording) Began() time.Time { return time.Time{} }
func (recording) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	return &hls.Multivariant{Variants: []hls.Variant{{Bandwidth: 1, Codecs: []string{"avc1"}, URI: "v.m3u8"}}}, nil
}

func (recording) Playlist(_ context.Context, _ string, r playback.Reload, compressed bool) (playback.Text, error) {
	return playback.Text{
		Data: bytes.Repeat(fmt.Appendf(nil, "#%d %d %v %v\n", r.MSN, r.Part, r.Skip, compressed), 2000), MaxAge: 1,
	}, nil
}

func (recording) Pictures(context.Context) ([]hls.Picture, error) { return nil, nil }

func (recording) Covers(context.Context, string, hls.Resource, playback.Clip) (bool, error) {
	return true, nil
}

func (rec recording) Chunk(_ context.Context, rendition string, _ hls.Resource) (playback.Body, error) {
	if rendition == "v" {
		return playback.Body{Data: bytes.Repeat([]byte("part"), 20000)}, nil
	}
	f, err := os.Open(rec.file)
	if err != nil {
		return playback.Body{}, err
	}
	if rendition == "f" {
		return playback.Body{Reader: f, Size: 500000}, nil
	}
	shared := openfile.New(f)
	defer func() { _ = shared.Close() }() // the reader holds it
	const off, n = 1234, 85000
	section, _ := shared.Section(off, n)
	return playback.Body{Reader: section, Size: n}, nil
}

func (recording) Sidecar(context.Context, string) (playback.Body, error) {
	return playback.Body{Data: []byte("WEBVTT\n"), Type: "text/vtt"}, nil
}

func (recording) Image(_ context.Context, name, query, base string) (playback.Image, error) {
	return playback.Image{Body: playback.Body{Data: []byte(name + query + base), Type: "image/jpeg"}, MaxAge: 60}, nil
}

// TestPlayersGetTheSame of everything that the playback handler returns, whichever way.
func TestPlayersGetTheSame(t *testing.T) {
	t.Parallel()
	eachWay(t, testPlayersGetTheSame)
}

func testPlayersGetTheSame(t *testing.T, w way) { //nolint:thelper // it is the test
	file := filepath.Join(t.TempDir(), "segment")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789"), 50000), 0o600); err != nil {
		t.Fatal(err)
	}
	h := playback.New(playback.Options{Source: recording{file}, Logger: slog.New(slog.DiscardHandler)})
	s := w.serve(t, h, express.Options{Takes: playback.Owns})
	lines := []string{
		"/" + playbackID + ".m3u8?token=eyJh.b-c_d.e",
		"/" + playbackID + "/signed-v.688.1795411200.K1..bG93.MAC_-1/m1/v.m3u8?_HLS_msn=5",
		"/" + playbackID + "/signed-v.688.1795411200.K1...MAC_-1/m1/v/7.3.m4s",
		"/" + playbackID + "/signed-v.1/high.mp4",
		"/" + playbackID, "/" + playbackID + ".m3u8", "/" + playbackID + "/m1/v.m3u8",
		"/" + playbackID + "/m1/v.m3u8?_HLS_msn=5&_HLS_part=2&_HLS_skip=YES",
		"/" + playbackID + "/m1/v.m3u8?_HLS_part=2", "/" + playbackID + "/m1/v/7.3.m4s",
		"/" + playbackID + "/m1/f/7.m4s", "/" + playbackID + "/m1/s/7.m4s", "/" + playbackID + "/m1/v/init-0.mp4",
		"/" + playbackID + "/text/t.vtt", "/" + playbackID + "/thumbnail.jpg?time=1",
		"/" + playbackID + ".m3u8?token=bad", "/" + playbackID + "/m9/v.m3u8", "/" + playbackID + "/m1/v/x",
		"/" + strings.ToLower(playbackID),
	}
	fields := []string{
		"", "Range: bytes=3-9\r\n", "Range: bytes=-5\r\n", "Range: bytes=100-\r\n", "Range: bytes=0-0\r\n",
		"Range: bytes=84999-\r\n", "Range: bytes=-84999\r\n", "Range: bytes=9999999-\r\n", "Range: bytes=1-2,4-5\r\n",
		"Range: bytes=1-2\r\nIf-Range: \"x\"\r\n",
		"If-None-Match: \"x\"\r\n", "If-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT\r\n",
		"Accept-Encoding: gzip, deflate, br\r\n", "Accept-Encoding: gzip;q=0\r\n",
		"Origin: https://player.example\r\nReferer: https://player.example/\r\nSec-Fetch-Mode: cors\r\n",
	}
	var all strings.Builder
	n := int64(0)
	for _, line := range lines {
		for _, f := range fields {
			for _, method := range []string{"GET", "HEAD"} {
				fmt.Fprintf(&all, "%s %s HTTP/1.1\r\nHost: stream.example\r\nUser-Agent: player\r\n%s\r\n", method,
					line, f)
				n++
			}
		}
	}
	fast, plain := w.converse(t, s.fast, all.String()), w.converse(t, s.plain, all.String())
	if int64(len(plain)) != n || s.taken.Load() != n {
		t.Fatalf("%d responses of %d, %d here", len(plain), n, s.taken.Load())
	}
	for i := range plain {
		if !same(fast[i:i+1], plain[i:i+1]) {
			t.Errorf("response %d: %.900s, net/http says\n%.900s", i, text(fast[i:i+1]), text(plain[i:i+1]))
		}
	}
	for _, odd := range []string{
		"OPTIONS " + lines[2] +
			" HTTP/1.1\r\nHost: x\r\nOrigin: https://player.example\r\nAccess-Control-Request-Method: " +
			"GET\r\nAccess-Control-Request-Headers: range\r\n\r\n",
		"POST " + lines[2] + " HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"GET " + lines[2] + " HTTP/1.0\r\n\r\n", "GET /short HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if fast, plain := w.converse(t, s.fast, odd), w.converse(t, s.plain, odd); !same(fast, plain) ||
			len(plain) != 1 {
			t.Errorf("%q: %.900s, net/http says\n%.900s", odd, text(fast), text(plain))
		}
	}
	if s.taken.Load() != n {
		t.Errorf("odd requests were served here")
	}
}

// TestAllocations of a playlist that is asked for again and again.
func TestAllocations(t *testing.T) { //nolint:paralleltest // counts everybody's allocations
	for _, w := range []way{inClear, overTLS} { //nolint:paralleltest // the same
		t.Run(w.name, func(t *testing.T) { testAllocations(t, w) })
	}
}

func testAllocations(t *testing.T, w way) { //nolint:thelper // it is the test
	s := w.serve(t, playback.New(playback.Options{
		Source: recording{}, Logger: slog.New(slog.DiscardHandler),
	}), express.Options{Takes: playback.Owns})
	nc := w.dial(t, s.fast)
	ask := []byte("GET /" + playbackID + "/text/t.vtt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
	response := make([]byte, 4096)
	once := func() {
		if _, err := nc.Write(ask); err != nil {
			t.Fatal(err)
		}
		got := 0
		for !bytes.HasSuffix(response[:got], []byte("WEBVTT\n")) {
			n, err := nc.Read(response[got:])
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			got += n
		}
	}
	most := 8.0
	if w.secure { // the buffers of records, which the race detector has pools lose
		most = 12
	}
	if n := testing.AllocsPerRun(200, once); n > most {
		t.Errorf("%v allocations for a response, of which the handler makes 6", n)
	}
}
