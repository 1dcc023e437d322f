package browser_test

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/permit"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/web/header"
	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/rig"
)

// guarded is a stream of a playback ID of some policy.
type guarded struct {
	*stream

	policy playbackid.Policy
	guard  *permit.Guard
}

const signedID = "streamPlaybackID"

// Open implements playback.Source.
func (g guarded) Open(ctx context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	o := playbackid.Object{ID: playbackid.ID{ID: signedID, Policy: g.policy}, Environment: "env"}
	p, err := g.guard.Admit(ctx, o, r, time.Now())
	return g.stream, p, err
}

func (g guarded) handler() http.Handler {
	return playback.New(playback.Options{Source: g, Logger: slog.New(slog.DiscardHandler)})
}

// signer has the private half of a signing key of the environment.
type signer struct {
	keys    *signing.Service
	key     id.SigningKey
	private *rsa.PrivateKey
}

func newSigner(t *testing.T, store signing.Store) signer {
	t.Helper()
	keys := signing.New(signing.Options{Store: store})
	k, private, err := keys.Create(t.Context(), "env", time.Now())
	made(t, err)
	text, err := base64.StdEncoding.DecodeString(private)
	made(t, err)
	key, err := jwt.ParseRSAPrivateKeyFromPEM(text)
	made(t, err)
	return signer{keys, k.ID, key}
}

// token signs one to watch, with claims beside, or in place of, the usual ones.
func (s signer) token(t *testing.T, of id.Playback, left time.Duration, more ...map[string]any) string {
	t.Helper()
	claims := map[string]any{"sub": of, "aud": "v", "exp": time.Now().Add(left).Unix()}
	for _, m := range more {
		maps.Copy(claims, m)
	}
	signed, err := signing.Sign(s.key, s.private, claims)
	made(t, err)
	return signed
}

// nothingRefused wants all that a page's players have asked for to have been sent, what playlists name beside media
// too: Shaka gives up over any of it, and mux-player logs it.
func nothingRefused(t *testing.T, p *browser.Page, what string) {
	t.Helper()
	if failed := p.Log(t).Failed; len(failed) > 0 {
		t.Errorf("%s: refused: %q", what, failed)
	}
}

// TestSignedPlayers: hls.js, Shaka, mux-player and video.js play a low-latency stream with a title by its token,
// video.js whole segments of it, the others parts, and the stream that is over; and nothing without a token, with an
// old or another's one, or once the key is deleted. How a native client plays is tested with the binary.
func TestSignedPlayers(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	s := newSigner(t, dbtest.Open(t, dbtest.SQLite(t)).Signing())
	guard := permit.New(permit.Options{Signing: s.keys})
	over := newStream(t, c[0], 20*time.Second, 0)
	over.end()
	over.edge.Close()
	streams := map[string]*stream{"live": newStream(t, c[0], 20*time.Second, 0), "on demand": over}
	server := func(s *stream, query string) string {
		mux := playersMux(strings.ReplaceAll(playersPage, ".m3u8'", ".m3u8"+query+"'"))
		mux.Handle("/", guarded{s, playbackid.Signed, guard}.handler())
		h := httptest.NewServer(mux)
		t.Cleanup(h.Close)
		return h.URL
	}
	b := browser.Start(t)
	const page = "/players?players=hls,shaka,mux,videojs"
	own := "?token=" + s.token(t, signedID, time.Hour)
	refused := func(what, query string) {
		t.Helper()
		for kind, stream := range streams {
			p := b.Open(t, server(stream, query)+page)
			all := await(t, p, kind+", "+what+": refused", func(x player) bool { return len(x.Errors) > 0 })
			for _, x := range all {
				if x.Played > 0 || x.Frames > 0 {
					t.Errorf("%s, %s: %+v", kind, what, x)
				}
			}
			p.Close(t)
		}
	}
	for kind, stream := range streams {
		p := b.Open(t, server(stream, own)+page)
		await(t, p, kind+": play 4 s", func(x player) bool { return x.Played >= 4 && x.AudioBytes > 0 })
		nothingRefused(t, p, kind)
		p.Close(t)
	}
	refused("no token", "")
	refused("expired", "?token="+s.token(t, signedID, -time.Second))
	refused("another's", "?token="+s.token(t, "another", time.Hour))
	made(t, s.keys.Delete(t.Context(), "env", s.key))
	refused("the key was deleted", own)
}

// TestWatchSigned: the watch page plays a stream by the token in its address, and says why it may not, for each reason
// that a viewer can do something about, also to somebody who is watching.
func TestWatchSigned(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	store := dbtest.Open(t, dbtest.SQLite(t))
	s, withdrawn := newSigner(t, store.Signing()), newSigner(t, store.Signing())
	made(t, withdrawn.keys.Delete(t.Context(), "env", withdrawn.key))
	restrictions := restriction.New(restriction.Options{Store: store.Restrictions()})
	guard := permit.New(permit.Options{Signing: s.keys, Restrictions: restrictions})
	live := newStream(t, c[0], 20*time.Second, 0)
	site := func(policy playbackid.Policy) string {
		mux := http.NewServeMux()
		mux.Handle("/watch/", header.Closed(watch.Handler(watch.Options{})))
		mux.Handle("/", guarded{live, policy, guard}.handler())
		h := httptest.NewServer(mux)
		t.Cleanup(h.Close)
		return h.URL + "/watch/" + signedID
	}
	signed, public := site(playbackid.Signed), site(playbackid.Public)
	b := browser.Start(t)
	own := s.token(t, signedID, time.Hour)
	watching := b.Open(t, signed+"?token="+own)
	watching.Plays(t, 1, patience)
	says := func(p *browser.Page, why, want string) browser.Probe {
		t.Helper()
		v := p.Until(t, why, patience, func(v browser.Probe) bool { return v.State == "error" })
		if !strings.Contains(v.Sentence, want) {
			t.Errorf("%s: %q, want %q", why, v.Sentence, want)
		}
		for _, line := range p.Log(t).Console {
			if strings.Contains(line, "Content Security Policy") {
				t.Errorf("%s: %s", why, line)
			}
		}
		p.Close(t)
		return v
	}
	with := func(claim string, v any) string { return s.token(t, signedID, time.Hour, map[string]any{claim: v}) }
	restricted := func(referrer restriction.Referrer, agent restriction.UserAgent) string {
		r, problem := restrictions.Create(t.Context(), "env", referrer, agent, time.Now())
		made(t, problem)
		return with("playback_restriction_id", r.ID)
	}
	onPages := restricted(restriction.Referrer{}, restriction.UserAgent{AllowHighRisk: true})
	inPlayers := restricted(restriction.Referrer{AllowNoReferrer: true}, restriction.UserAgent{}) // no HeadlessChrome
	for why, tt := range map[string]struct{ page, token, says string }{
		"no token":              {signed, "", "This video is private"},
		"expired":               {signed, s.token(t, signedID, -time.Second), "This link has expired"},
		"not yet valid":         {signed, with("nbf", time.Now().Add(time.Hour).Unix()), "This link is not valid yet"},
		"another's":             {signed, s.token(t, "another", time.Hour), "This link is for another video"},
		"for a picture":         {signed, with("aud", "t"), "This link is not for watching"},
		"deleted key":           {signed, withdrawn.token(t, signedID, time.Hour), "This link was withdrawn"},
		"changed":               {signed, own[:len(own)-8] + "AAAAAAAA", "This link was changed"},
		"cut off":               {signed, own[:20], "This link was changed"},
		"no expiry":             {signed, with("exp", nil), "This link is not valid."},
		"referrer":              {signed, onPages, "on certain websites only"},
		"user agent":            {signed, inPlayers, "may not be played by this browser"},
		"unknown restriction":   {signed, with("playback_restriction_id", "gone"), "rules that it was made with"},
		"token of public media": {public, own, "This video is public, and this link has a token"},
	} {
		page := tt.page
		if tt.token != "" {
			page += "?token=" + tt.token
		}
		if v := says(b.Open(t, page), why, tt.says); v.Frames > 0 {
			t.Errorf("%s: %d frames", why, v.Frames)
		}
	}
	watching.Plays(t, 1, patience)
	made(t, s.keys.Delete(t.Context(), "env", s.key))
	says(watching, "the key was deleted", "This link was withdrawn")
}
