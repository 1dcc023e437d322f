package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestStreamEndsWithItsToken: who follows events is sent none any more soon after the token was revoked or has expired,
// whether events come or not.
func TestStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		d, tokens, home, h := followed(t, url)
		streams := live.New(live.Options{Store: d.LiveStreams()})
		change := func() {
			if _, failed := streams.Create(t.Context(), home.ID, live.CreateInput{}, time.Now()); failed != nil {
				t.Fatal(failed)
			}
		}
		const hour = time.Hour
		revoked, stays := tokenOf(t, tokens, home, time.Time{}), tokenOf(t, tokens, home, time.Time{})
		expires := tokenOf(t, tokens, home, time.Now().Add(hour))
		first, second, third := openStream(t, h, revoked), openStream(t, h, expires), openStream(t, h, stays)
		time.Sleep(hour - time.Minute)
		change()
		synctest.Wait()
		if err := tokens.RevokeToken(t.Context(), revoked.ID, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * eventPause)
		change()
		time.Sleep(hour)
		change()
		synctest.Wait()
		if !first.over() || !second.over() || third.over() {
			t.Errorf("ended: revoked %t, expired %t, valid %t", first.over(), second.over(), third.over())
		}
		third.leave()
		<-third.ended
		for name, got := range map[string][2]int{
			"revoked": {first.events(), 1}, "expired": {second.events(), 2}, "valid": {third.events(), 3},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: %d events, want %d", name, got[0], got[1])
			}
		}
	})
}

// TestHeartbeat: a stream without events says every 5 seconds that it is there.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		_, tokens, home, h := followed(t, url)
		k := tokenOf(t, tokens, home, time.Time{})
		for after, beats := range map[time.Duration]int{4 * time.Second: 0, 6 * time.Second: 1, time.Minute + 1: 12} {
			s := openStream(t, h, k)
			time.Sleep(after)
			s.leave()
			<-s.ended // before, what it has written is its own
			if got := s.w.Body.String(); got != ": hello\n\n"+strings.Repeat(": still here\n\n", beats) {
				t.Errorf("after %v: %q", after, got)
			}
		}
	})
}

// followed is an API whose events are those of a database, opened in the bubble of the test.
func followed(t *testing.T, url string) (*db.DB, *access.Service, access.Environment, http.Handler) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	tokens := access.New(access.Options{Store: d.Access()})
	home, err := tokens.Default(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	o := (&notebook{}).options()
	o.Events, o.Callers.Access, o.Now = d, tokens, time.Now
	return d, tokens, home, New(o)
}

// secretToken is a token with its secret.
type secretToken struct {
	access.Token

	secret string
}

func tokenOf(t *testing.T, s *access.Service, env access.Environment, expires time.Time) secretToken {
	t.Helper()
	k, secret, err := s.CreateToken(t.Context(), access.TokenInput{
		Environment: env.ID, Name: "t", Permissions: []string{systemRead}, ExpiresAt: expires,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return secretToken{k, secret}
}

// openStream follows events in a goroutine of its own.
func openStream(t *testing.T, h http.Handler, k secretToken) *openedStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &openedStream{w: httptest.NewRecorder(), leave: cancel, ended: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, followPath, nil)
	r.SetBasicAuth(string(k.ID), k.secret)
	go func() { defer close(s.ended); h.ServeHTTP(s.w, r) }()
	synctest.Wait()
	return s
}

type openedStream struct {
	w     *httptest.ResponseRecorder
	leave context.CancelFunc
	ended chan struct{}
}

func (o *openedStream) over() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// events counts those that were sent; the stream must have ended.
func (o *openedStream) events() int { return strings.Count(o.w.Body.String(), "\ndata: ") }
