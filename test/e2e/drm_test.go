package e2e

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// drmRig is a server with a DRM configuration that has the built-in licence server, and a page of another origin that
// plays.
type drmRig struct {
	s             *rig.Server
	keys          signer
	configuration string
	page          string
	b             *browser.Browser
}

// TestDRM: what has the policy drm plays in Chromium with licences of the built-in server, live and on demand, for who
// has a token for each. Its segments, parts, rungs and clips decode to the clear pictures with the licence's keys, and
// to none of them without.
func TestDRM(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		d := newDRMRig(t, s, p)
		d.b = browser.Start(t)
		d.page = emePage(t, s, d.b)
		live, parts, keys := d.live(t)
		film := d.film(t, live)
		d.clips(t, film)
		d.recording(t, live, parts, keys)
		noSecrets(t, s, slices.Collect(maps.Values(d.licence(t, film.Text("playback_ids.0.id"))))...)
	})
}

// newDRMRig has the scheme cbcs on the one pair; on the other cenc, with keys by class and encrypted sound.
func newDRMRig(t *testing.T, s *rig.Server, p rig.Pair) *drmRig {
	t.Helper()
	create := []string{"drm-configuration", "create", "--name", "tests", "--clear-key"}
	if p == rig.Scaled {
		create = append(create, "--scheme", "cenc", "--encrypt-audio", "--keys-by-class")
	}
	return &drmRig{s: s, keys: newSigner(t, s), configuration: s.Command(t, create...)}
}

// policies lead to what is encrypted and, to compare it with, to the same in the clear.
func (d *drmRig) policies() []rig.Object {
	return []rig.Object{{"policy": "drm", "drm_configuration_id": d.configuration}, {"policy": "public"}}
}

// live plays a low-latency stream; parts are an init segment and parts of its pictures as they are sent, keys those of
// its licence.
func (d *drmRig) live(t *testing.T) (stream rig.Object, parts drmMedia, keys map[string]string) {
	t.Helper()
	code, o := d.s.Do(t, http.MethodPost, "/video/v1/live-streams", rig.Object{
		"latency_mode": "low", "meta": holiday(), "advanced_playback_policies": d.policies()[:1],
		"new_asset_settings": rig.Object{"meta": holiday(), "advanced_playback_policies": d.policies()},
	})
	if code != http.StatusCreated {
		t.Fatalf("create: %d %v", code, o)
	}
	stream, _ = o["data"].(map[string]any)
	id := stream.Text("playback_ids.0.id")
	encoder := d.s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, NoB: true})
	address := d.s.PlayURL(id) + "?token=" + d.keys.token(t, id)
	d.s.AwaitPlayable(t, address, patience)
	good, expired := d.tokens(t, id), d.tokens(t, id, "--expiry", "1s")
	d.plays(t, "live", id, good[0], good[1])
	d.refused(t, "live", id, good, expired, d.tokens(t, "AnotherPlaybackIDThatIsNotThere"))
	parts, keys = partsOf(t, address), d.licence(t, id)
	follow := hlscheck.Options{URL: address, Follow: 3 * time.Second, LowLatency: true, MaxSegments: 3}
	check(t, "live", follow, "session-data")
	stream = d.s.AwaitLive(t, stream.Text("id"), "active", patience, func(o rig.Object) bool {
		return o.Text("active_asset_id") != ""
	})
	encoder.Stop() // not before all was looked at, however long that took
	d.s.AwaitLive(t, stream.Text("id"), "without encoder", patience, away)
	d.s.Complete(t, stream.Text("id"))
	return stream, parts, keys
}

// recording compares a broadcast's parts, as viewers got them, and its recording with the recording in the clear.
func (d *drmRig) recording(t *testing.T, stream rig.Object, parts drmMedia, keys map[string]string) {
	t.Helper()
	a := d.s.AwaitAsset(t, stream.Text("active_asset_id"), "finished", patience, rig.Finished)
	plain := d.same(t, a)
	got := parts.frames(t, keys)
	if len(got) < 10 || !slices.Contains(plain, got[0]) || !slices.Contains(plain, got[len(got)-1]) {
		t.Errorf("%d frames of parts are not those of the recording", len(got))
	}
}

// film plays an asset made of a file, for who may and for nobody else.
func (d *drmRig) film(t *testing.T, another rig.Object) rig.Object {
	t.Helper()
	file := rig.File(t, "a.mp4", rig.Clip{Size: "640x480", Kbit: 500, GOP: 2, Seconds: 8})
	a := d.asset(t, rig.Object{"url": rig.Files(t, map[string]string{"a.mp4": file}) + "/a.mp4"})
	id, anothers := a.Text("playback_ids.0.id"), another.Text("playback_ids.0.id")
	licence := func(of string, more ...string) string {
		return d.keys.token(t, of, append([]string{"--type", "drm_license"}, more...)...)
	}
	play, own, expired := d.keys.token(t, id), licence(id), licence(id, "--expiry", "1s")
	old := d.keys.token(t, id, "--expiry", "1s")
	d.plays(t, "on demand", id, play, own)
	d.same(t, a)
	for what, tokens := range map[string][2]string{
		"no token":                 {"", own},
		"expired":                  {old, own},
		"another's":                {d.keys.token(t, anothers), own},
		"a licence's":              {own, own},
		"no token for a licence":   {play, ""},
		"expired for a licence":    {play, expired},
		"another's licence":        {play, licence(anothers)},
		"playback's for a licence": {play, play},
	} {
		playlist, _, body := d.s.Get(t, d.s.PlayURL(id)+query(tokens[0]))
		granted, text := d.ask(t, id, tokens[1], `{"kids":["AAAAAAAAAAAAAAAAAAAAAA"],"type":"temporary"}`)
		want := [2]int{http.StatusOK, http.StatusForbidden}
		if tokens[1] == own {
			want = [2]int{http.StatusForbidden, http.StatusBadRequest} // the licence server knows no such key
		}
		if [2]int{playlist, granted} != want {
			t.Errorf("%s: playlist %d %s, licence %d %s", what, playlist, body, granted, text)
		}
	}
	d.refused(t, "on demand", id, [2]string{play, own}, [2]string{old, expired}, d.tokens(t, anothers))
	at := d.s.HTTP + "/" + id
	if code, _, body := d.s.Get(t, at+"/highest.mp4?token="+play); code != http.StatusForbidden {
		t.Errorf("a file to download: %d %s", code, body)
	}
	if code, _, body := d.s.Get(t,
		at+"/thumbnail.jpg?token="+d.keys.token(t, id, "--type", "thumbnail")); code != http.StatusOK {
		t.Errorf("thumbnail: %d %.200s", code, body)
	}
	return a
}

// clips plays a part of an asset: one that is an asset of its own, and one that a token allows.
func (d *drmRig) clips(t *testing.T, film rig.Object) {
	t.Helper()
	d.same(t, d.asset(t, rig.Object{"url": "mux://assets/" + film.Text("id"), "start_time": 1.5, "end_time": 5.5}))
	id := film.Text("playback_ids.0.id")
	token := d.keys.token(t, id, "--param", "asset_start_time=4")
	for _, m := range mediaPlaylists(t, d.s.PlayURL(id)+query(token)) {
		encrypted := mediaOf(t, m)
		if got := encrypted.frames(t, d.licence(t, id)); len(got) == 0 || len(encrypted.segments) != 2 {
			t.Errorf("%d frames of a clip in %s", len(got), m.text)
		}
	}
}

func (d *drmRig) asset(t *testing.T, input rig.Object) rig.Object {
	t.Helper()
	code, o := d.s.Do(t, http.MethodPost, "/video/v1/assets", rig.Object{
		"inputs": []rig.Object{input}, "meta": holiday(), "advanced_playback_policies": d.policies(),
	})
	if code != http.StatusCreated {
		t.Fatalf("create: %d %v", code, o)
	}
	return d.s.AwaitAsset(t, o.Text("data.id"), "ready", patience, rig.Ready)
}

// same compares every rendition of an asset, encrypted, with the same in the clear, and returns the sums of the clear
// pictures.
func (d *drmRig) same(t *testing.T, a rig.Object) (pictures []string) {
	t.Helper()
	id := a.Text("playback_ids.0.id")
	keys := d.licence(t, id)
	encrypted := mediaPlaylists(t, d.s.PlayURL(id)+query(d.keys.token(t, id)))
	plain := mediaPlaylists(t, d.s.PlayURL(a.Text("playback_ids.1.id")))
	if len(encrypted) != len(plain) {
		t.Fatalf("%d renditions are encrypted, of %d", len(encrypted), len(plain))
	}
	for i, m := range encrypted {
		media := mediaOf(t, m)
		want, got := mediaOf(t, plain[i]).frames(t, nil), media.frames(t, keys)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d frames are decrypted, %d are in the clear, or others", m.url, len(got), len(want))
		}
		if media.keyID == "" {
			if !m.audio {
				t.Errorf("%s is not encrypted:\n%s", m.url, m.text)
			}
			continue
		}
		media.keyID = ""
		for _, sum := range media.frames(t, nil) {
			if sum != silence && slices.Contains(want, sum) { // noise may decode to silence, and the hum has pauses
				t.Errorf("%s: a frame is to be seen without its key", m.url)
				break
			}
		}
		if !m.audio {
			pictures = append(pictures, want...)
		}
	}
	return pictures
}

// silence is the sum of an AAC frame of silence: 1024 samples of two channels in 16 bits.
var silence = fmt.Sprintf("%x", md5.Sum(make([]byte, 1024*2*2)))

// drmMedia is what a player gets of a rendition.
type drmMedia struct {
	keyID    string // in hexadecimal digits; empty: it is clear
	data     []byte
	segments []string // URLs
}

// clearKeyLine is the line of a playlist that has the key ID for ClearKey.
var clearKeyLine = regexp.MustCompile(
	`#EXT-X-KEY:METHOD=SAMPLE-AES(?:-CTR)?,URI="data:text/plain;base64,([^"]+)",KEYFORMAT="org.w3.clearkey"`)

func keyIDOf(t *testing.T, playlist string) string {
	t.Helper()
	found := clearKeyLine.FindStringSubmatch(playlist)
	if found == nil {
		return ""
	}
	id, err := base64.StdEncoding.DecodeString(found[1])
	if err != nil || len(id) != 16 {
		t.Fatalf("key ID %q: %v", found[1], err)
	}
	return hex.EncodeToString(id)
}

// mediaOf fetches an init segment and all segments.
func mediaOf(t *testing.T, m mediaPlaylist) drmMedia {
	t.Helper()
	out := drmMedia{keyID: keyIDOf(t, m.text)}
	for _, e := range m.entries {
		out.data = append(out.data, get(t, e.url)...)
		if !e.init {
			out.segments = append(out.segments, e.url)
		}
	}
	return out
}

var partLine = regexp.MustCompile(`#EXT-X-PART:[^\n]*`)

// partsOf fetches the parts that a live stream has, from the first that begins with a key frame.
func partsOf(t *testing.T, address string) drmMedia {
	t.Helper()
	for _, m := range mediaPlaylists(t, address) {
		if m.audio {
			continue
		}
		out := drmMedia{keyID: keyIDOf(t, m.text)}
		for _, e := range m.entries {
			if e.init {
				out.data = append(out.data, get(t, e.url)...)
				break
			}
		}
		for _, part := range partURLs(t, m) {
			out.data, out.segments = append(out.data, get(t, part)...), append(out.segments, part)
		}
		if len(out.segments) == 0 {
			t.Errorf("no parts in\n%s", m.text)
		}
		return out
	}
	t.Fatal("there is no rendition of pictures")
	return drmMedia{}
}

// partURLs are those of the parts in a playlist, from the first that begins with a key frame.
func partURLs(t *testing.T, m mediaPlaylist) (all []string) {
	t.Helper()
	for _, line := range partLine.FindAllString(m.text, -1) {
		if len(all) > 0 || strings.Contains(line, "INDEPENDENT=YES") {
			all = append(all, join(t, m.url, uriAttribute.FindStringSubmatch(line)[1]))
		}
	}
	return all
}

// frames are the sums of the frames that ffmpeg decodes. It reads a pipe: of a file it takes the wrong fragment's
// subsamples.
func (d drmMedia) frames(t *testing.T, keys map[string]string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{"-v", "error", "-threads", "1"}
	if d.keyID != "" {
		key, ok := keys[d.keyID]
		if !ok {
			t.Errorf("the licence has no key %s", d.keyID)
			return nil
		}
		args = append(args, "-decryption_key", key)
	}
	decoder := exec.CommandContext(ctx, rig.FFmpeg(t), append(args, "-i", "pipe:0", "-f", "framemd5", "-")...)
	decoder.Stdin = bytes.NewReader(d.data)
	out, err := decoder.Output()
	if err != nil && d.keyID != "" {
		t.Errorf("decode: %v", err)
	}
	return frameSums(string(out))
}

func query(token string) string {
	if token == "" {
		return ""
	}
	return "?token=" + token
}

// ask sends the licence server a request.
func (d *drmRig) ask(t *testing.T, id, token, challenge string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.s.HTTP+"/license/clearkey/"+id+query(token),
		strings.NewReader(challenge))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var body bytes.Buffer
	if _, err = body.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body.Bytes()
}

// licence gets the keys of a playback ID, by their IDs, in hexadecimal digits.
func (d *drmRig) licence(t *testing.T, id string) map[string]string {
	t.Helper()
	_, _, master := d.s.Get(t, d.s.PlayURL(id)+query(d.keys.token(t, id)))
	keyID, err := hex.DecodeString(keyIDOf(t, strings.ReplaceAll(string(master), "#EXT-X-SESSION-KEY", "#EXT-X-KEY")))
	if err != nil || len(keyID) != 16 {
		t.Fatalf("no key ID in\n%s", master)
	}
	challenge := fmt.Sprintf(`{"kids":[%q],"type":"temporary"}`, base64.RawURLEncoding.EncodeToString(keyID))
	code, body := d.ask(t, id, d.keys.token(t, id, "--type", "drm_license"), challenge)
	var set struct {
		Keys []struct {
			ID    string `json:"kid"`
			Value string `json:"k"`
		} `json:"keys"`
	}
	if err = json.Unmarshal(body, &set); err != nil || code != http.StatusOK || len(set.Keys) == 0 {
		t.Fatalf("licence: %d %s", code, body)
	}
	keys := map[string]string{}
	for _, k := range set.Keys {
		name, errName := base64.RawURLEncoding.DecodeString(k.ID)
		value, errValue := base64.RawURLEncoding.DecodeString(k.Value)
		if errName != nil || errValue != nil || len(value) != 16 {
			t.Fatalf("licence: %s", body)
		}
		keys[hex.EncodeToString(name)] = hex.EncodeToString(value)
	}
	return keys
}
