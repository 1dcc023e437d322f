// Package recovery kills and drains the real server and looks for what was lost.
package recovery

import (
	"crypto/sha256"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/test/conform"
	"millrace/test/rig"
)

// TestCrash kills the server at random moments of a broadcast. Each segment that a player was offered must be there
// afterwards, with the same bytes, and the asset must end ready.
func TestCrash(t *testing.T) {
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		live := s.CreateLive(t, "low", rig.Object{"reconnect_window": 30})
		id, key := live.Text("id"), live.Text("stream_key")
		var assetID, assetPlayback string
		offered := map[string][32]byte{} // path of segment: its bytes
		for round := range 3 {
			e := s.Publish(t, key, rig.Clip{})
			s.AwaitPlayable(t, s.PlayURL(conform.PlaybackID(t, live)), 30*time.Second)
			now := s.AwaitLive(t, id, "active", 15*time.Second, func(o rig.Object) bool { return o.Text("status") == "active" && o.Text("active_asset_id") != "" })
			if round == 0 {
				assetID = now.Text("active_asset_id")
				assetPlayback = conform.PlaybackID(t, s.AwaitAsset(t, assetID, "playable", 20*time.Second, rig.Ready))
			} else if got := now.Text("active_asset_id"); got != assetID {
				t.Fatalf("asset %s after the crash, want %s: the encoder was back inside the window", got, assetID)
			}
			rig.Pause(2*time.Second + time.Duration(rand.IntN(4000))*time.Millisecond)
			remember(t, s, s.PlayURL(assetPlayback), offered)
			s.Kill(t)
			e.Kill()
			rig.Pause(300 * time.Millisecond)
			s.Run(t)
			still(t, s, s.PlayURL(assetPlayback), offered)
		}
		s.Complete(t, id)
		asset := s.AwaitAsset(t, assetID, "finished", 60*time.Second, rig.Finished)
		still(t, s, s.PlayURL(assetPlayback), offered)
		conform.Finished(t, s.PlayURL(assetPlayback), asset.Number("duration"))
	})
}

// TestCrashAlone kills the server while it streams; nobody comes back, so the next start finishes the asset.
func TestCrashAlone(t *testing.T) {
	s := rig.Start(t, rig.Options{})
	live := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
	e := s.Publish(t, live.Text("stream_key"), rig.Clip{})
	s.AwaitPlayable(t, s.PlayURL(conform.PlaybackID(t, live)), 30*time.Second)
	assetID := s.Live(t, live.Text("id")).Text("active_asset_id")
	rig.Pause(3 * time.Second)
	s.Kill(t)
	e.Kill()
	s.Run(t)
	asset := s.AwaitAsset(t, assetID, "finished", 60*time.Second, rig.Finished)
	conform.Finished(t, s.PlayURL(conform.PlaybackID(t, asset)), asset.Number("duration"))
	if now := s.Live(t, live.Text("id")); now.Text("status") != "idle" {
		t.Errorf("the stream is %s, want idle", now.Text("status"))
	}
}

// TestDrain stops the server in the middle of a broadcast, as a deployment does: nothing that came in may be lost.
func TestDrain(t *testing.T) {
	s := rig.Start(t, rig.Options{})
	live := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
	s.Publish(t, live.Text("stream_key"), rig.Clip{})
	s.AwaitPlayable(t, s.PlayURL(conform.PlaybackID(t, live)), 30*time.Second)
	assetID := s.Live(t, live.Text("id")).Text("active_asset_id")
	rig.Pause(3 * time.Second)
	s.Stop(t)
	s.Run(t)
	asset := s.AwaitAsset(t, assetID, "finished", 60*time.Second, rig.Finished)
	conform.Finished(t, s.PlayURL(conform.PlaybackID(t, asset)), asset.Number("duration"))
}

var playlistURI = regexp.MustCompile(`(?m)^[^#\n].*$|URI="([^"]+)"`)

// segments lists the whole segments of every media playlist of an asset, by address.
func segments(t *testing.T, s *rig.Server, url string) []string {
	t.Helper()
	code, _, text := s.Get(t, url)
	if code != 200 {
		t.Fatalf("%s: status %d", url, code)
	}
	var list []string
	for _, m := range playlistURI.FindAllStringSubmatch(string(text), -1) {
		uri := m[0]
		if m[1] != "" {
			uri = m[1]
		}
		playlist := join(url, uri)
		_, _, media := s.Get(t, playlist)
		for line := range strings.Lines(string(media)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, join(playlist, line))
			}
		}
	}
	return list
}

func join(base, ref string) string {
	if strings.HasPrefix(ref, "/") {
		return base[:strings.Index(base[8:], "/")+8] + ref
	}
	return base[:strings.LastIndex(base, "/")+1] + ref
}

func path(url string) string { return url[strings.Index(url[8:], "/")+8:] }

// remember fetches each listed segment once.
func remember(t *testing.T, s *rig.Server, url string, offered map[string][32]byte) {
	t.Helper()
	for _, u := range segments(t, s, url) {
		if _, known := offered[path(u)]; known {
			continue
		}
		code, _, b := s.Get(t, u)
		if code != 200 {
			t.Errorf("%s: listed, but status %d", u, code)
			continue
		}
		offered[path(u)] = sha256.Sum256(b)
	}
}

// still wants every segment that was offered to be listed and to have the same bytes. The ports may have changed.
func still(t *testing.T, s *rig.Server, url string, offered map[string][32]byte) {
	t.Helper()
	listed := map[string]string{}
	for _, u := range segments(t, s, url) {
		listed[path(u)] = u
	}
	for p, sum := range offered {
		u, ok := listed[p]
		if !ok {
			t.Errorf("%s was offered before the crash and is not listed any more", p)
			continue
		}
		if code, _, b := s.Get(t, u); code != 200 || sha256.Sum256(b) != sum {
			t.Errorf("%s: status %d, or other bytes than before the crash", u, code)
		}
	}
}
