package browser_test

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"millrace/internal/control/playbackid"
	"millrace/internal/control/signing"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/permit"
	"millrace/internal/storage/db/dbtest"
	"millrace/test/browser"
)

// guarded is a stream whose playback ID is signed.
type guarded struct {
	*stream
	guard *permit.Guard
}

const signedID = "streamPlaybackID"

// Open implements playback.Source.
func (g guarded) Open(ctx context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	o := playbackid.Object{ID: playbackid.ID{ID: signedID, Policy: playbackid.Signed}, Environment: "env"}
	p, err := g.guard.Admit(ctx, o, r, time.Now())
	return g.stream, p, err
}

// TestSignedPlayers: hls.js, Shaka, mux-player and video.js play a low-latency stream by its token, video.js whole
// segments of it, the others parts; and nothing without, with an old or another's one. How a native client plays is
// tested with the binary.
func TestSignedPlayers(t *testing.T) {
	c, err := clips()
	made(t, err)
	keys := signing.New(signing.Options{Store: dbtest.Open(t, dbtest.SQLite(t)).Signing()})
	k, private, err := keys.Create(t.Context(), "env", time.Now())
	made(t, err)
	text, err := base64.StdEncoding.DecodeString(private)
	made(t, err)
	key, err := jwt.ParseRSAPrivateKeyFromPEM(text)
	made(t, err)
	token := func(of id.Playback, left time.Duration) string {
		signed, err := signing.Sign(k.ID, key, map[string]any{"sub": of, "aud": "v", "exp": time.Now().Add(left).Unix()})
		made(t, err)
		return "?token=" + signed
	}
	source := guarded{newStream(t, c[0], 20*time.Second, 0), permit.New(permit.Options{Signing: keys})}
	server := func(query string) string {
		mux := playersMux(strings.ReplaceAll(playersPage, ".m3u8'", ".m3u8"+query+"'"))
		mux.Handle("/", playback.New(playback.Options{Source: source, Logger: slog.New(slog.DiscardHandler)}))
		s := httptest.NewServer(mux)
		t.Cleanup(s.Close)
		return s.URL
	}
	b := browser.Start(t)
	const page = "/players?players=hls,shaka,mux,videojs"
	p := b.Open(t, server(token(signedID, time.Hour))+page)
	await(t, p, "play 4 s", func(x player) bool { return x.Played >= 4 && x.AudioBytes > 0 })
	p.Close(t)
	for what, query := range map[string]string{"no token": "", "expired": token(signedID, -time.Second), "another's": token("another", time.Hour)} {
		p := b.Open(t, server(query)+page)
		for _, x := range await(t, p, what+": refused", func(x player) bool { return len(x.Errors) > 0 }) {
			if x.Played > 0 || x.Frames > 0 {
				t.Errorf("%s: %+v", what, x)
			}
		}
		p.Close(t)
	}
}
