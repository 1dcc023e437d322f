package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// signer signs tokens as people at a shell do.
type signer struct{ key, file string }

func newSigner(t *testing.T, s *rig.Server) signer {
	t.Helper()
	code, o := s.Do(t, http.MethodPost, "/system/v1/signing-keys", nil)
	if code != http.StatusCreated {
		t.Fatalf("create signing key: %d %v", code, o)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(o.Text("data.private_key")), 0o600); err != nil {
		t.Fatal(err)
	}
	return signer{o.Text("data.id"), file}
}

func (s signer) token(t *testing.T, playbackID string, more ...string) string {
	t.Helper()
	args := append([]string{
		"token", "sign", "--key-id", s.key, "--private-key-file", s.file, "--playback-id", playbackID,
	}, more...)
	out, err := exec.CommandContext(t.Context(), rig.Binary(t), args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// holiday is the metadata of something with a title, which playlists name.
func holiday() rig.Object { return rig.Object{"title": "A holiday"} }

// TestSigned: a signed live stream and its recording play through their signed paths, for whom they should and for
// nobody else, in Chromium and in a native client too.
func TestSigned(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p, Args: []string{"--log-level", "debug"}})
		keys := newSigner(t, s)
		signed := []string{"signed"}
		l := s.CreateLive(t, "low", rig.Object{
			"playback_policies": signed, "meta": holiday(),
			"new_asset_settings": rig.Object{"playback_policies": signed, "meta": holiday()},
		})
		id := l.Text("playback_ids.0.id")
		token, early := keys.token(t, id), keys.token(t, id, "--expiry", "1s")
		b := browser.Start(t)
		url := s.PlayURL(id) + "?token=" + token
		encoder := s.Publish(t, l.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, NoB: true})
		s.AwaitPlayable(t, url, patience)
		page := b.Open(t, s.WatchURL(id)+"?token="+token)
		if x := page.Plays(t, 2, patience); !x.Live || x.AudioBytes == 0 {
			t.Errorf("live: %+v", x)
		}
		page.Close(t)
		follow := hlscheck.Options{URL: url, Follow: 5 * time.Second, LowLatency: true, MaxSegments: 3}
		check(t, "live", follow, "session-data")
		native(t, "live", url)
		l = s.AwaitLive(t, l.Text("id"), "active", patience, func(o rig.Object) bool {
			return o.Text("active_asset_id") != ""
		})
		rewound(t, s, b, keys, l.Text("active_asset_id"), token)
		notWatched(t, b, s.WatchURL(id), keys.token(t, "AnotherPlaybackIDThatIsNotThere"), early)
		encoder.Stop() // not before all was looked at, however long that took
		s.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
		s.Complete(t, l.Text("id"))
		a := s.AwaitAsset(t, l.Text("active_asset_id"), "finished", patience, rig.Finished)
		recorded := a.Text("playback_ids.0.id")
		own, short := keys.token(t, recorded), keys.token(t, recorded, "--expiry", "1s")
		whole := hlscheck.Options{URL: s.PlayURL(recorded) + "?token=" + own, Decoder: rig.FFmpeg(t)}
		check(t, "recording", whole, "session-data")
		native(t, "recording", s.PlayURL(recorded)+"?token="+own)
		watched(t, b, s.WatchURL(recorded), own, token, short)
		refusedTo(t, s, keys, recorded, own, token)
		page = b.Open(t, s.WatchURL(recorded)+"?token="+own)
		x := page.Until(t, "lose its key", patience, func(x browser.Probe) bool { return x.State == "error" })
		if x.Frames > 0 || !strings.Contains(x.Sentence, "withdrawn") {
			t.Errorf("after the key was deleted: %+v", x)
		}
		page.Close(t)
		s.Stop(t)
		unlogged(t, s, token, early, own, short)
	})
}

// unlogged looks for tokens and signed paths in what a server has logged since it was started.
func unlogged(t *testing.T, s *rig.Server, tokens ...string) {
	t.Helper()
	log := s.Log()
	if !strings.Contains(log, `"api request"`) {
		t.Error("the log has no requests")
	}
	for _, secret := range append(tokens, "/signed-v.", "/signed-s.", "?token=") {
		if _, behind, found := strings.Cut(log, secret); found {
			t.Errorf("the log has %s in front of %.300s", secret, behind)
		}
	}
}

// TestSignedModes: live streams of the other latency modes play below their signed paths, in every size; and a
// restriction holds for them, whose change everyone feels at once who watches by this node.
func TestSignedModes(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		keys := newSigner(t, s)
		for _, mode := range []string{"reduced", "standard"} {
			t.Run(mode, func(t *testing.T) {
				rig.Parallel(t)
				l := s.CreateLive(t, mode, rig.Object{"playback_policies": []string{"signed"}})
				id := l.Text("playback_ids.0.id")
				url := s.PlayURL(id) + "?token=" + keys.token(t, id)
				s.Publish(t, l.Text("stream_key"), rig.Clip{Size: "640x360", Kbit: 500, GOP: 1, NoB: true})
				s.AwaitPlayable(t, url, patience)
				for _, address := range sizes(t, url) {
					_, name, below := strings.Cut(address, "/signed-v.")
					_, name, _ = strings.Cut(name, "/")
					if code, _, body := s.Get(t, s.HTTP+"/"+id+"/"+name); code != http.StatusForbidden || !below {
						t.Errorf("%s without its path: %d %.200s", address, code, body)
					}
				}
				follow := hlscheck.Options{URL: url, Follow: 4 * time.Second, MaxSegments: 3}
				check(t, mode, follow, "reload-grows", "tfdt", "immutable-bytes")
				restrictedTo(t, s, keys, id)
			})
		}
	})
}

// sizes waits until a live stream has two renditions of video, and gives the playlist and the newest segment of each.
func sizes(t *testing.T, url string) (addresses []string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); rig.Pause(200 * time.Millisecond) {
		addresses = nil
		for _, m := range mediaPlaylists(t, url) {
			if n := len(m.entries); !m.audio && n > 0 && !m.entries[n-1].init {
				addresses = append(addresses, m.url, m.entries[n-1].url)
			}
		}
		if len(addresses) >= 4 {
			for _, address := range addresses {
				get(t, address)
			}
			return addresses
		}
	}
	t.Fatalf("no rendition below the source: %v", addresses)
	return nil
}

// restrictedTo lets pages of one site play, then no others, then those of another site.
func restrictedTo(t *testing.T, s *rig.Server, keys signer, id string) {
	t.Helper()
	site := func(domain string, open bool) rig.Object {
		return rig.Object{"allowed_domains": []string{domain}, "allow_no_referrer": open}
	}
	do := func(want int, method, path string, body rig.Object) rig.Object {
		t.Helper()
		code, o := s.Do(t, method, "/video/v1/playback-restrictions"+path, body)
		if code != want {
			t.Fatalf("%s %s: %d %v", method, path, code, o)
		}
		return o
	}
	rule := do(http.StatusCreated, http.MethodPost, "", rig.Object{
		"referrer":   site("*.example.com", true),
		"user_agent": rig.Object{"allow_no_user_agent": true, "allow_high_risk_user_agent": true},
	}).Text("data.id")
	master := s.PlayURL(id) + "?token=" + keys.token(t, id, "--param", "playback_restriction_id="+rule)
	addresses := append(sizes(t, master), master)
	expect := func(when, referrer string, want int) {
		t.Helper()
		for _, address := range addresses {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Referer", referrer)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%s, from %q: %s: %d, want %d", when, referrer, address, res.StatusCode, want)
			}
		}
	}
	const ours, theirs = "https://www.example.com/live", "https://www.example.net/"
	expect("open", "", http.StatusOK)
	expect("open", theirs, http.StatusForbidden)
	do(http.StatusOK, http.MethodPut, "/"+rule+"/referrer", site("*.example.com", false))
	expect("on pages alone", "", http.StatusForbidden)
	expect("on pages alone", ours, http.StatusOK)
	do(http.StatusOK, http.MethodPut, "/"+rule+"/referrer", site("*.example.net", false))
	expect("on pages of another site", ours, http.StatusForbidden)
	expect("on pages of another site", theirs, http.StatusOK)
}

// watched plays an asset in hls.js with its own token, and not with another's, an expired one or none.
func watched(t *testing.T, b *browser.Browser, url, own, anothers, expired string) {
	t.Helper()
	page := b.Open(t, url+"?token="+own)
	if x := page.Plays(t, 2, patience); x.Live || x.AudioBytes == 0 || x.Frames == 0 {
		t.Errorf("recording: %+v", x)
	}
	page.Close(t)
	notWatched(t, b, url, anothers, expired)
}

// rewound plays what there is of a broadcast by the playback ID of its asset, which has another token than the live
// stream.
func rewound(t *testing.T, s *rig.Server, b *browser.Browser, keys signer, asset, anothers string) {
	t.Helper()
	id := s.AwaitAsset(t, asset, "there", patience, func(o rig.Object) bool {
		return o.Text("playback_ids.0.id") != ""
	}).Text("playback_ids.0.id")
	own := "?token=" + keys.token(t, id)
	check(t, "asset of what is live", hlscheck.Options{
		URL: s.PlayURL(id) + own, Follow: 2 * time.Second, MaxSegments: 3,
	})
	if code, _, body := s.Get(t, s.PlayURL(id)+"?token="+anothers); code != http.StatusForbidden {
		t.Errorf("asset of what is live, by the token of the live stream: %d %s", code, body)
	}
	page := b.Open(t, s.WatchURL(id)+own)
	if x := page.Plays(t, 2, patience); !x.Live || x.AudioBytes == 0 {
		t.Errorf("asset of what is live: %+v", x)
	}
	page.Close(t)
}

// notWatched opens the watch page without a token, with another's and with an expired one.
func notWatched(t *testing.T, b *browser.Browser, url, anothers, expired string) {
	t.Helper()
	for what, query := range map[string]string{
		"no token": "", "another's": "?token=" + anothers, "expired": "?token=" + expired,
	} {
		page := b.Open(t, url+query)
		x := page.Until(t, "is refused", patience, func(x browser.Probe) bool { return x.State == "error" })
		if x.Frames > 0 || x.AudioBytes > 0 {
			t.Errorf("%s: %+v", what, x)
		}
		page.Close(t)
	}
}

// refusedTo asks for an asset as those who may not.
func refusedTo(t *testing.T, s *rig.Server, keys signer, id, own, anothers string) {
	t.Helper()
	at := s.HTTP + "/" + id
	for what, url := range map[string]string{
		"no token": at + ".m3u8", "another's": at + ".m3u8?token=" + anothers,
		"two":                     at + ".m3u8?token=" + own + "&token=" + own,
		"video's for a thumbnail": at + "/thumbnail.jpg?token=" + own, "no token for the title": at + "/metadata.json",
		"thumbnail's for the title": at + "/metadata.json?token=" + keys.token(t, id, "--type", "thumbnail"),
		"tampered":                  at + ".m3u8?token=" + own[:len(own)-8] + "AAAAAAAA",
		"made-up path":              at + "/signed-v.1.2.3.4.5.6/media/v.m3u8",
	} {
		if code, head, body := s.Get(t, url); code != http.StatusForbidden || head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, Cache-Control %q: %s", what, code, head.Get("Cache-Control"), body)
		}
	}
	code, head, _ := s.Get(t,
		at+"/thumbnail.jpg?token="+keys.token(t, id, "--type", "thumbnail", "--param", "width=160"))
	if code != http.StatusOK || head.Get("Cache-Control") != "private, no-store" {
		t.Errorf("thumbnail: %d %s", code, head.Get("Cache-Control"))
	}
	_, _, board := s.Get(t, at+"/storyboard.vtt?format=webp&token="+keys.token(t, id, "--type", "storyboard"))
	_, picture, _ := strings.Cut(string(board), s.HTTP)
	picture, _, _ = strings.Cut(picture, "#")
	if code, _, _ = s.Get(t, s.HTTP+picture); code != http.StatusOK || !strings.Contains(picture, "/signed-s.") {
		t.Errorf("picture of the storyboard at %q: %d", picture, code)
	}
	_, _, list := s.Get(t, at+".m3u8?token="+own)
	var playlist string
	for line := range strings.Lines(string(list)) {
		if !strings.HasPrefix(line, "#") {
			playlist = s.HTTP + "/" + strings.TrimSpace(line)
		}
	}
	if code, head, _ = s.Get(t, playlist); code != http.StatusOK ||
		!strings.HasPrefix(head.Get("Cache-Control"), "public, max-age=") {
		t.Errorf("%s: %d %s", playlist, code, head.Get("Cache-Control"))
	}
	if code, o := s.Do(t, http.MethodDelete, "/system/v1/signing-keys/"+keys.key, nil); code != http.StatusNoContent {
		t.Errorf("delete signing key: %d %v", code, o)
	}
	for _, url := range []string{playlist, at + ".m3u8?token=" + own} {
		if code, _, body := s.Get(t, url); code != http.StatusForbidden {
			t.Errorf("after the key was deleted: %s: %d %s", url, code, body)
		}
	}
}
