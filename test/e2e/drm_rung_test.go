package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestDRMLiveRung: a rendition below the source of a live stream is encrypted, in its segments and in its parts. ffmpeg
// decodes none of its pictures without the licence's key, and with it the same, bit by bit, as those of the rendition
// in the clear.
func TestDRMLiveRung(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		d := newDRMRig(t, s, p)
		create := rig.Object{"latency_mode": "low", "advanced_playback_policies": d.policies()}
		code, o := s.Do(t, http.MethodPost, "/video/v1/live-streams", create)
		if code != http.StatusCreated {
			t.Fatalf("create: %d %v", code, o)
		}
		id, public := o.Text("data.playback_ids.0.id"), o.Text("data.playback_ids.1.id")
		s.Publish(t, o.Text("data.stream_key"), rig.Clip{Size: "640x360", Kbit: 500, GOP: 1, NoB: true})
		address := s.PlayURL(id) + query(d.keys.token(t, id))
		s.AwaitPlayable(t, address, patience)
		keys := d.licence(t, id)
		m := rungOf(t, address)
		keyID, inits, segments := keyIDOf(t, m.text), []string{}, []string{}
		if keyID == "" {
			t.Fatalf("the rung is not encrypted:\n%s", m.text)
		}
		for _, e := range m.entries {
			if e.init {
				inits = append(inits, e.url)
			} else {
				segments = append(segments, e.url)
			}
		}
		for what, media := range map[string][]string{"segments": segments[len(segments)-2:], "parts": partURLs(t, m)} {
			urls, plain := append(slices.Clone(inits), media...), []string{}
			for _, u := range urls {
				_, behind, _ := strings.Cut(u, "/signed-")
				_, name, ok := strings.Cut(behind, "/")
				if !ok {
					t.Fatalf("%s is not below a signed path", u)
				}
				plain = append(plain, s.HTTP+"/"+public+"/"+name)
			}
			encrypted, unencrypted := drmMedia{keyID: keyID, data: download(t, urls)},
				drmMedia{data: download(t, plain)}
			want, got := unencrypted.frames(t, nil), encrypted.frames(t, keys)
			if len(want) < 10 || !slices.Equal(got, want) {
				t.Errorf("%s: %d frames are decrypted, %d are in the clear, or others", what, len(got), len(want))
			}
			encrypted.keyID = ""
			seen := func(sum string) bool { return slices.Contains(want, sum) }
			if slices.ContainsFunc(encrypted.frames(t, nil), seen) {
				t.Errorf("%s: a picture is to be seen without the key", what)
			}
		}
	})
}

// rungOf is the playlist of the rendition below the source, once it lists three whole segments and parts.
func rungOf(t *testing.T, address string) mediaPlaylist {
	t.Helper()
	var list []mediaPlaylist
	for end := time.Now().Add(patience); time.Now().Before(end); rig.Pause(200 * time.Millisecond) {
		list = mediaPlaylists(t, address)
		for _, m := range list {
			if m.audio || strings.Contains(m.url, "/v.m3u8") {
				continue
			}
			whole := slices.DeleteFunc(slices.Clone(m.entries), func(e entry) bool { return e.init })
			if len(whole) >= 3 && len(partURLs(t, m)) > 0 {
				return m
			}
		}
	}
	t.Fatalf("no rendition below the source with segments and parts: %+v", list)
	return mediaPlaylist{}
}

// download joins what is under some URLs.
func download(t *testing.T, urls []string) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, u := range urls {
		all.Write(get(t, u))
	}
	return all.Bytes()
}
