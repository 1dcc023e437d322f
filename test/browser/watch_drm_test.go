package browser_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
	"millrace/internal/permit"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/web/header"
	"millrace/internal/web/licence"
	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/rig"
)

// protectedSite is the watch page, playback and the built-in licence server over one stream, whose keys change soon.
type protectedSite struct {
	url     string
	token   func(aud string, of id.Playback, left time.Duration) string
	changes time.Time
	view    protection.View
	leaked  atomic.Pointer[string] // a Referer with a token
}

func newProtectedSite(t *testing.T, s *stream, changesIn time.Duration) *protectedSite {
	t.Helper()
	store := dbtest.Open(t, dbtest.SQLite(t))
	keys := newSigner(t, store.Signing())
	site := &protectedSite{token: func(aud string, of id.Playback, left time.Duration) string {
		return keys.token(t, of, left, map[string]any{"aud": aud})
	}}
	configurations := drm.New(drm.Options{Store: store.DRM()})
	c, err := configurations.Create(t.Context(), "env", "tests", drm.Settings{
		Scheme: drm.CBCS, EncryptAudio: true, ClearKey: true, Rotation: drm.MinRotation,
	}, time.Now())
	made(t, err)
	o := playbackid.Object{
		ID:   playbackid.ID{ID: signedID, Policy: playbackid.DRM, DRMConfigurationID: string(c.ID)},
		Kind: playbackid.OfLiveStream, ObjectID: "stream", Environment: "env",
	}
	first := time.Now().Add(changesIn - drm.MinRotation) // the first keys were made then; the next follow by themselves
	keysAt := func(now time.Time) drm.Content {
		service := drm.New(drm.Options{Store: store.DRM()})
		all, problem := service.Content(t.Context(), "env", drm.ResourceOf(o), c.ID, now)
		made(t, problem)
		return all
	}
	keysAt(first)
	rotated := keysAt(first.Add(drm.MinRotation - 30*time.Second))
	if len(rotated.Periods) != 2 {
		t.Fatalf("periods %v, want 2", rotated.Periods)
	}
	site.changes = rotated.Periods[1].From
	content, err := permit.Keys{Source: configurations}.Content(t.Context(), o, time.Now())
	made(t, err)
	guard := permit.New(permit.Options{Signing: keys.keys})
	site.view = protection.View{Presentation: s, Content: content, Store: protection.NewStore(64 << 20)}
	mux := http.NewServeMux()
	mux.Handle("/watch/", header.Closed(watch.Handler(watch.Options{})))
	mux.Handle(licence.Path, header.Closed(licence.Handler(licence.Options{
		Resolve: func(context.Context, id.Playback) (playbackid.Object, error) { return o, nil },
		Admit: func(ctx context.Context, o playbackid.Object, r licence.Request, now time.Time) (url.Values, error) {
			asked := playback.Request{Tokens: r.Tokens, Referrers: r.Referrers, UserAgents: r.UserAgents}
			tok, err := guard.Licence(ctx, o, asked, now)
			return tok.Modifiers, err
		},
		DRM: configurations, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})))
	source := encrypted{s, o, site.view, guard}
	mux.Handle("/", playback.New(playback.Options{Source: source, Logger: slog.New(slog.DiscardHandler)}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from := r.Referer(); strings.Contains(from, "token") {
			site.leaked.Store(&from)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	site.url = server.URL
	return site
}

// page is the address of the watch page with tokens; an empty one is left out.
func (p *protectedSite) page(play, licence string) string {
	query := url.Values{}
	if play != "" {
		query.Set("token", play)
	}
	if licence != "" {
		query.Set("drm-token", licence)
	}
	return p.url + "/watch/" + signedID + "?" + query.Encode()
}

// TestWatchDRM: the watch page plays what is encrypted with the tokens of its address, live and over a change of the
// keys, with licences of the built-in server; and says what is wrong where a token is missing, expired or another's.
func TestWatchDRM(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	site := newProtectedSite(t, newStream(t, c[0], 20*time.Second, 0), 8*time.Second)
	play, licence := site.token("v", signedID, time.Hour), site.token("d", signedID, time.Hour)
	p := b.Open(t, site.page(play, licence))
	v := p.Plays(t, 1, patience)
	if late := v.PlayingDate - site.changes.UnixMilli(); late > -1000 { // a slow machine has only begun then
		p.Seek(t, v.Time-float64(late)/1000-2)
	}
	p.Until(t, "play over the change of keys", patience, func(v browser.Probe) bool {
		return v.State == "playing" && v.PlayingDate > site.changes.Add(3*time.Second).UnixMilli()
	})
	if v = p.Plays(t, 1, patience); v.AudioBytes == 0 || v.Width == 0 || v.Restarts > 0 || !v.Live {
		t.Errorf("plays wrongly: %+v", v)
	}
	licences := 0
	log := p.Log(t)
	for _, r := range log.Requests {
		path, query, _ := strings.Cut(strings.TrimPrefix(r, site.url), "?")
		switch {
		case strings.HasPrefix(path, "/license/"):
			licences++
			if path != "/license/clearkey/"+signedID || query != "token="+url.QueryEscape(licence) {
				t.Errorf("asked for a licence at %s", r)
			}
		case strings.HasPrefix(path, "/watch/") && !strings.HasPrefix(path, "/watch/assets/"):
		case strings.Contains(query, licence):
			t.Errorf("the licence token went to %s", path)
		}
	}
	if licences == 0 {
		t.Error("no licence was asked for")
	}
	list, err := site.view.Playlist(t.Context(), "v", playback.Reload{MSN: -1, Part: -1}, false)
	made(t, err)
	used := map[string]bool{}
	keyLine := regexp.MustCompile(`URI="([^"]+)",[^\n]*KEYFORMAT="org\.w3\.clearkey"`)
	for _, m := range keyLine.FindAllSubmatch(list.Data, -1) {
		used[string(m[1])] = true
	}
	if len(used) != 2 {
		t.Errorf("the video has the keys %v, want 2", used)
	}
	for _, line := range log.Console {
		if strings.Contains(line, "Content Security Policy") || strings.Contains(line, "token") {
			t.Errorf("console: %s", line)
		}
	}
	p.StaysHome(t, site.url)
	p.Close(t)
	const refused = "The licence token of this link is not valid, or no longer"
	for name, tt := range map[string]struct{ play, licence, says string }{
		"no token at all":             {"", "", "This video is private"},
		"no token to play":            {"", licence, "This video is private"},
		"expired to play":             {site.token("v", signedID, -time.Hour), licence, "This link has expired"},
		"no token for the licence":    {play, "", "the link has no token for its licence"},
		"expired for the licence":     {play, site.token("d", signedID, -time.Hour), refused},
		"another's for the licence":   {play, site.token("d", "another", time.Hour), refused},
		"one to play for the licence": {play, play, refused},
	} {
		p := b.Open(t, site.page(tt.play, tt.licence))
		v := p.Until(t, name, patience, func(v browser.Probe) bool { return v.State == "error" })
		if !strings.Contains(v.Sentence, tt.says) || v.Frames > 0 {
			t.Errorf("%s: %q after %d frames, want %q", name, v.Sentence, v.Frames, tt.says)
		}
		p.Close(t)
	}
	if from := site.leaked.Load(); from != nil {
		t.Errorf("a token in a Referer: %s", *from)
	}
}
