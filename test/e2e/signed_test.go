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
	args := append([]string{"token", "sign", "--key-id", s.key, "--private-key-file", s.file, "--playback-id", playbackID}, more...)
	out, err := exec.CommandContext(t.Context(), rig.Binary(t), args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestSigned: a signed live stream and its recording play through their signed paths, for whom they should and for
// nobody else, in Chromium and in a native client too.
func TestSigned(t *testing.T) {
	t.Parallel()
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		t.Parallel()
		s := rig.Start(t, rig.Options{Pair: p})
		keys := newSigner(t, s)
		signed := []string{"signed"}
		l := s.CreateLive(t, "low", rig.Object{"playback_policies": signed, "new_asset_settings": rig.Object{"playback_policies": signed}})
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
		check(t, "live", hlscheck.Options{URL: url, Follow: 5 * time.Second, LowLatency: true, MaxSegments: 3})
		native(t, "live", url)
		l = s.AwaitLive(t, l.Text("id"), "active", patience, func(o rig.Object) bool { return o.Text("active_asset_id") != "" })
		rewound(t, s, b, keys, l.Text("active_asset_id"), token)
		notWatched(t, b, s.WatchURL(id), keys.token(t, "AnotherPlaybackIDThatIsNotThere"), early)
		encoder.Stop() // not before all was looked at, however long that took
		s.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
		s.Complete(t, l.Text("id"))
		a := s.AwaitAsset(t, l.Text("active_asset_id"), "finished", patience, rig.Finished)
		recorded := a.Text("playback_ids.0.id")
		own, short := keys.token(t, recorded), keys.token(t, recorded, "--expiry", "1s")
		check(t, "recording", hlscheck.Options{URL: s.PlayURL(recorded) + "?token=" + own, Decoder: rig.FFmpeg(t)})
		native(t, "recording", s.PlayURL(recorded)+"?token="+own)
		watched(t, b, s.WatchURL(recorded), own, token, short)
		refusedTo(t, s, keys, recorded, own, token)
	})
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

// rewound plays what there is of a broadcast by the playback ID of its asset, which has another token than the live stream.
func rewound(t *testing.T, s *rig.Server, b *browser.Browser, keys signer, asset, anothers string) {
	t.Helper()
	id := s.AwaitAsset(t, asset, "there", patience, func(o rig.Object) bool { return o.Text("playback_ids.0.id") != "" }).Text("playback_ids.0.id")
	own := "?token=" + keys.token(t, id)
	check(t, "asset of what is live", hlscheck.Options{URL: s.PlayURL(id) + own, Follow: 2 * time.Second, MaxSegments: 3})
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
	for what, query := range map[string]string{"no token": "", "another's": "?token=" + anothers, "expired": "?token=" + expired} {
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
		"no token": at + ".m3u8", "another's": at + ".m3u8?token=" + anothers, "two": at + ".m3u8?token=" + own + "&token=" + own,
		"video's for a thumbnail": at + "/thumbnail.jpg?token=" + own, "tampered": at + ".m3u8?token=" + own[:len(own)-8] + "AAAAAAAA",
		"made-up path": at + "/signed-v.1.2.3.4.5.6/media/v.m3u8",
	} {
		if code, head, body := s.Get(t, url); code != http.StatusForbidden || head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, Cache-Control %q: %s", what, code, head.Get("Cache-Control"), body)
		}
	}
	code, head, _ := s.Get(t, at+"/thumbnail.jpg?token="+keys.token(t, id, "--type", "thumbnail", "--param", "width=160"))
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
	if code, head, _ = s.Get(t, playlist); code != http.StatusOK || !strings.HasPrefix(head.Get("Cache-Control"), "public, max-age=") {
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
