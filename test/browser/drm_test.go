package browser_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/control/signing"
	"millrace/internal/id"
	"millrace/internal/media/container/cenc"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
	"millrace/internal/permit"
	"millrace/internal/storage/db/dbtest"
	"millrace/test/browser"
	"millrace/test/rig"
)

// encrypted is a stream whose playback ID has the policy drm.
type encrypted struct {
	*stream

	object playbackid.Object
	view   protection.View
	guard  *permit.Guard
}

// Open implements playback.Source.
func (e encrypted) Open(ctx context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	p, err := e.guard.Admit(ctx, e.object, r, time.Now())
	return e.view, p, err
}

// emePage is the players' page with ClearKey, the one key system that Chromium has of its own.
func emePage(playback, licence string) string {
	return strings.NewReplacer(
		".m3u8'", ".m3u8"+playback+"'",
		"const settings = {}", "const settings = { emeEnabled: true, drmSystems: { 'org.w3.clearkey': { licenseUrl: "+
			"location.origin + '/licence"+licence+"' } } }",
		"new shaka.Player();",
		"new shaka.Player();\ns.configure({ drm: { servers: { 'com.widevine.alpha': location.origin + '/licence"+
			licence+
			"' }, keySystemsMapping: { 'com.widevine.alpha': 'org.w3.clearkey' } } });",
	).Replace(playersPage)
}

// TestDRMPlayers: hls.js, Shaka and mux-player play what is encrypted and has a title with a token for playback and one
// for the licence, while it is live with low latency and when it is over, with sound that is clear and with sound that
// has a key of its own. Without either they show nothing.
func TestDRMPlayers(t *testing.T) {
	rig.Paced(t, rig.Long)
	c, err := clips()
	made(t, err)
	keys := newSigner(t, dbtest.Open(t, dbtest.SQLite(t)).Signing())
	token := func(aud string, of id.Playback, left time.Duration) string {
		return "?token=" + keys.token(t, of, left, map[string]any{"aud": aud})
	}
	video := cenc.Key{ID: [16]byte{1, 2, 3}, Value: [16]byte{4, 5}, IV: [16]byte{6, 7}}
	sound := cenc.Key{ID: [16]byte{8, 9, 3}, Value: [16]byte{10, 5}, IV: [16]byte{11, 7}}
	server := func(s *stream, scheme cenc.Scheme, soundToo bool, play, licence string) string {
		content := protection.Content{
			Name: "stream", Scheme: scheme, Keys: []cenc.Key{video}, Systems: []protection.System{{ID: clearKeySystem}},
			KeyOf: func(m cenc.Media, _ int) (cenc.Key, bool) {
				if m.Video {
					return video, true
				}
				return sound, soundToo
			},
		}
		if soundToo {
			content.Keys = append(content.Keys, sound)
		}
		mux := playersMux(emePage(play, licence))
		mux.HandleFunc("POST /licence", func(w http.ResponseWriter, r *http.Request) {
			giveLicence(t, w, r, keys.keys, content.Keys)
		})
		view := protection.View{Presentation: s, Content: content, Store: protection.NewStore(64 << 20)}
		object := playbackid.Object{ID: playbackid.ID{ID: signedID, Policy: playbackid.DRM}, Environment: "env"}
		source := encrypted{s, object, view, permit.New(permit.Options{Signing: keys.keys})}
		mux.Handle("/", playback.New(playback.Options{Source: source, Logger: slog.New(slog.DiscardHandler)}))
		h := httptest.NewServer(mux)
		t.Cleanup(h.Close)
		return h.URL
	}
	b := browser.Start(t)
	play, licence := token("v", signedID, time.Hour), token("d", signedID, time.Hour)
	live := newStream(t, c[0], 20*time.Second, 0)
	over := newStream(t, c[0], 20*time.Second, 0)
	over.end()
	over.edge.Close()
	for name, url := range map[string]string{
		"cbcs, live":                           server(live, cenc.CBCS, false, play, licence),
		"cenc, live":                           server(live, cenc.CTR, false, play, licence),
		"cbcs, on demand, sound encrypted":     server(over, cenc.CBCS, true, play, licence),
		"cenc, on demand, sound encrypted too": server(over, cenc.CTR, true, play, licence),
	} {
		p := b.Open(t, url+"/players")
		for _, x := range await(t, p, name, func(x player) bool {
			return x.Played >= 4 && x.Frames > 90 && x.AudioBytes > 0
		}) {
			t.Logf("%s: %+v", name, x)
		}
		nothingRefused(t, p, name)
		p.Close(t)
	}
	for name, url := range map[string]string{
		"no token":               server(over, cenc.CBCS, false, "", licence),
		"expired":                server(over, cenc.CBCS, false, token("v", signedID, -time.Second), licence),
		"a licence's to play":    server(over, cenc.CBCS, false, licence, licence),
		"no token for a licence": server(over, cenc.CBCS, false, play, ""),
		"expired for a licence":  server(over, cenc.CBCS, false, play, token("d", signedID, -time.Second)),
		"another's licence":      server(over, cenc.CBCS, false, play, token("d", "another", time.Hour)),
	} {
		p := b.Open(t, url+"/players")
		for _, x := range await(t, p, name+": refused", func(x player) bool { return len(x.Errors) > 0 }) {
			if x.Played > 1 || x.Frames > 0 { // clear sound may begin
				t.Errorf("%s: %+v", name, x)
			}
		}
		p.Close(t)
	}
}

var clearKeySystem = [16]byte{
	0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d, 0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b,
}

// giveLicence is a ClearKey licence server, Encrypted Media Extensions section 9.1: it gives all keys to who has a
// token for that.
func giveLicence(t *testing.T, w http.ResponseWriter, r *http.Request, keys *signing.Service, content []cenc.Key) {
	tok, err := keys.Verify(r.Context(), r.URL.Query().Get("token"), "env", time.Now())
	if err != nil || tok.Subject != signedID || !tok.For("d") {
		http.Error(w, "no licence", http.StatusForbidden)
		return
	}
	type jwk struct {
		Type string `json:"kty"`
		ID   string `json:"kid"`
		Key  string `json:"k"`
	}
	var set struct {
		Keys []jwk  `json:"keys"`
		Type string `json:"type"`
	}
	set.Type = "temporary"
	for _, k := range content {
		set.Keys = append(set.Keys, jwk{
			"oct", base64.RawURLEncoding.EncodeToString(k.ID[:]), base64.RawURLEncoding.EncodeToString(k.Value[:]),
		})
	}
	data, err := json.Marshal(set)
	made(t, err)
	_, _ = io.Copy(w, bytes.NewReader(data))
}
