package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// crashes is how often the server is killed in one test.
const crashes = 4

// dice gives the random moments of a test; MILLRACE_TEST_SEED repeats a run.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("MILLRACE_TEST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("read MILLRACE_TEST_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("MILLRACE_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestCrash kills the server at random moments of a broadcast whose encoder comes back, of one whose encoder does not,
// and of one that has only just begun. Whatever a player was shown as a whole segment is there afterwards, with the
// same bytes; each asset ends.
func TestCrash(t *testing.T) {
	rig.Parallel(t)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		random := dice(t)
		s := rig.Start(t, rig.Options{Pair: p})
		var rtmp atomic.Value
		rtmp.Store(s.RTMP)
		l := s.CreateLive(t, "low", rig.Object{"reconnect_window": 300})
		stop := rig.KeepPublishing(t, func() string { return rtmp.Load().(string) + "/app/" + l.Text("stream_key") },
			small())
		alone := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
		lonely := s.Publish(t, alone.Text("stream_key"), small())
		asset := playing(t, s, l)
		aloneAsset := playing(t, s, alone)

		seen := &sightings{kept: map[string]sighting{}}
		seen.several(t, s, asset, aloneAsset)
		for round := range crashes {
			s.AwaitPlayable(t, s.PlayURL(l.Text("playback_ids.0.id")), patience)
			if now := s.Live(t, l.Text("id")).Text("active_asset_id"); now != asset.Text("id") {
				t.Fatalf("round %d: asset %s, want %s: the encoder is back inside the window", round, now,
					asset.Text("id"))
			}
			begun := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
			brief := s.Publish(t, begun.Text("stream_key"), small())
			ctx, cancel := context.WithCancel(t.Context())
			var watchers sync.WaitGroup
			watchers.Go(func() { seen.watch(ctx, s.PlayURL(asset.Text("playback_ids.0.id"))) })
			watchers.Go(func() { seen.watch(ctx, s.PlayURL(aloneAsset.Text("playback_ids.0.id"))) })
			rig.Pause(time.Duration(random.IntN(4000)) * time.Millisecond)
			s.Kill(t)
			cancel()
			watchers.Wait()
			brief.Kill()
			lonely.Kill()
			s.Run(t)
			rtmp.Store(s.RTMP)
			seen.still(t, s, fmt.Sprintf("crash %d", round+1))
		}
		// A recording ends with what its encoder sent last: without the encoder, what is listed of the slate behind
		// that would go.
		health(t, s, l, "the encoder is back", func(h rig.Object) bool { return h.Text("status") == "live" })
		stop()
		s.Complete(t, l.Text("id"))
		for _, id := range []string{asset.Text("id"), aloneAsset.Text("id")} {
			a := s.AwaitAsset(t, id, "finished", patience, rig.Finished)
			check(t, "after the crashes",
				hlscheck.Options{URL: s.PlayURL(a.Text("playback_ids.0.id")), Decoder: rig.FFmpeg(t)}, "tfdt",
				"decodes", "align-start")
		}
		seen.still(t, s, "the end")
		awaitIdle(t, s)
		noSecrets(t, s, l.Text("stream_key"))
	})
}

// playing waits until the stream's recording can be played, and gives the asset.
func playing(t *testing.T, s *rig.Server, stream rig.Object) rig.Object {
	t.Helper()
	s.AwaitPlayable(t, s.PlayURL(stream.Text("playback_ids.0.id")), patience)
	l := s.AwaitLive(t, stream.Text("id"), "active", patience, func(o rig.Object) bool {
		return o.Text("status") == "active"
	})
	return s.AwaitAsset(t, l.Text("active_asset_id"), "playable", patience, rig.Ready)
}

// awaitIdle waits until no asset, track or stream is in the middle of something.
func awaitIdle(t *testing.T, s *rig.Server) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		var open []rig.Object
		preparing := func(o rig.Object) bool { return o.Text("status") == "preparing" }
		for path, over := range map[string]func(rig.Object) bool{
			"/video/v1/assets?limit=100": func(o rig.Object) bool {
				return !preparing(o) && !o.Flag("is_live") && !slices.ContainsFunc(o.List("tracks"), preparing)
			},
			"/video/v1/live-streams?limit=100": func(o rig.Object) bool {
				return o.Text("status") == "idle" && o.Text("active_asset_id") == ""
			},
		} {
			_, list := s.Do(t, "GET", path, nil)
			for _, o := range list.List("data") {
				if !over(o) {
					open = append(open, o)
				}
			}
		}
		if len(open) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still not over after %v: %v", patience, open)
		}
		rig.Pause(100 * time.Millisecond)
	}
}

// sighting is a segment that a playlist has listed whole.
type sighting struct {
	playlist string // path of the media playlist
	line     string // its EXTINF
	sum      [sha256.Size]byte
	fetched  bool // else the server was killed before its bytes were read
}

// sightings are what players saw, by the segment's path.
type sightings struct {
	mu   sync.Mutex
	kept map[string]sighting
}

// several reads the playlists of assets that are being recorded until there are enough segments for a crash to lose
// some.
func (s *sightings) several(t *testing.T, server *rig.Server, assets ...rig.Object) {
	t.Helper()
	for end := time.Now().Add(patience); len(s.kept) < 2*crashes; rig.Pause(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("only %d segments are listed within %v", len(s.kept), patience)
		}
		for _, a := range assets {
			for _, m := range mediaPlaylists(t, server.PlayURL(a.Text("playback_ids.0.id"))) {
				s.read(t.Context(), m.url, m.text)
			}
		}
	}
}

// watch reads the media playlists of an asset over and over and fetches what is new, until ctx or the server ends.
func (s *sightings) watch(ctx context.Context, address string) {
	for ctx.Err() == nil {
		code, master, err := try(ctx, address)
		if err != nil || code != http.StatusOK {
			return
		}
		for _, uri := range references(string(master)) {
			playlist, err := resolve(address, uri)
			if err != nil {
				return
			}
			code, text, err := try(ctx, playlist)
			if err != nil || code != http.StatusOK {
				return
			}
			s.read(ctx, playlist, string(text))
		}
	}
}

// read notes every segment of a playlist, and then their bytes.
func (s *sightings) read(ctx context.Context, playlist, text string) {
	var fresh []string
	s.mu.Lock()
	length, gap := "", false // what is a gap has no bytes, as the playlist says
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#EXTINF:") {
			length = line
		}
		gap = gap || line == "#EXT-X-GAP"
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		u, err := resolve(playlist, line)
		if err != nil || gap {
			gap = false
			continue
		}
		if _, known := s.kept[path(u)]; !known {
			s.kept[path(u)] = sighting{playlist: path(playlist), line: length}
			fresh = append(fresh, u)
		}
	}
	s.mu.Unlock()
	for _, u := range fresh {
		if code, b, err := try(ctx, u); err == nil && code == http.StatusOK {
			s.mu.Lock()
			k := s.kept[path(u)]
			k.sum, k.fetched = sha256.Sum256(b), true
			s.kept[path(u)] = k
			s.mu.Unlock()
		}
	}
}

// still wants everything that was seen to be listed as it was and to have the same bytes. The server's ports may have
// changed.
func (s *sightings) still(t *testing.T, server *rig.Server, when string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]map[string]string{} // playlist, segment: EXTINF
	for p, k := range s.kept {
		listed := now[k.playlist]
		if listed == nil {
			listed = map[string]string{}
			now[k.playlist] = listed
			length := ""
			for line := range strings.Lines(string(get(t, server.HTTP+k.playlist))) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "#EXTINF:") {
					length = line
				}
				if line != "" && !strings.HasPrefix(line, "#") {
					listed[path(join(t, server.HTTP+k.playlist, line))] = length
				}
			}
		}
		switch length, ok := listed[p]; {
		case !ok:
			t.Errorf("%s: %s was listed and is not any more", when, p)
			continue
		case length != k.line:
			t.Errorf("%s: %s was listed with %s and is with %s", when, p, k.line, length)
		}
		code, b, err := try(t.Context(), server.HTTP+p)
		if err != nil || code != http.StatusOK || k.fetched && sha256.Sum256(b) != k.sum {
			t.Errorf("%s: %s: status %d (%v), or other bytes than before", when, p, code, err)
		}
	}
}

// errHeld ends a response that was held back.
var errHeld = errors.New("held")

// slowFile serves one file, but holds back the second half of each response until it is released.
type slowFile struct {
	content []byte
	asked   chan struct{} // one for each request
	release chan struct{} // closed
}

func newSlowFile(content []byte) *slowFile {
	return &slowFile{content: content, asked: make(chan struct{}, 100), release: make(chan struct{})}
}

// ServeHTTP implements http.Handler.
func (s *slowFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked <- struct{}{}
	http.ServeContent(w, r, r.URL.Path, time.Unix(1700000000, 0), &slowReader{h: s, r: r})
}

// slowReader is the content as far as it may be read.
type slowReader struct {
	h  *slowFile
	r  *http.Request
	at int64
}

// Seek implements io.Seeker.
func (s *slowReader) Seek(offset int64, whence int) (int64, error) {
	s.at = offset + [...]int64{0, s.at, int64(len(s.h.content))}[whence]
	return s.at, nil
}

// Read implements io.Reader.
func (s *slowReader) Read(p []byte) (int, error) {
	half := int64(len(s.h.content) / 2)
	limit := int64(len(s.h.content))
	if s.at < half {
		limit = half
	} else {
		select {
		case <-s.h.release:
		case <-s.r.Context().Done():
			return 0, errHeld
		}
	}
	n := copy(p, s.h.content[s.at:limit])
	s.at += int64(n)
	return n, nil
}
