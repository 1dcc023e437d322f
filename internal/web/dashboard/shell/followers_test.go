package shell

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/web/follow"
)

// TestSessionIsSharedByItsPages: between two heartbeats it is looked once whose session it is, however many pages it
// has; who can't look does not keep others from it.
func TestSessionIsSharedByItsPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, p := newFollowers(), access.Person{Session: access.Session{Hash: "a"}}
		enter := func() *session {
			of, _ := f.Enter(p.Session.Hash)
			return of
		}
		of := enter()
		looks := 0
		var fails error
		who := func() error {
			_, err := of.who(t.Context(), func() (access.Person, error) { looks++; return p, fails })
			return err
		}
		for n := range 3 {
			time.Sleep(untilNext(Heartbeat))
			if fails = errors.New("away"); !errors.Is(who(), fails) {
				t.Error("an error is kept back")
			}
			fails = nil
			for range 25 {
				if enter() != of {
					t.Fatal("a page of the same session has another one")
				}
				if err := who(); err != nil {
					t.Fatal(err)
				}
				f.Leave(p.Session.Hash)
			}
			if looks != 2*(n+1) {
				t.Errorf("looked %d times in %d heartbeats", looks, n+1)
			}
		}
		if f.Leave(p.Session.Hash); f.Taken() != 0 || enter() == of {
			t.Error("a session without pages is kept")
		}
		_ = of.lock.Lock(t.Context()) // another page looks
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := of.who(gone, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone: %v", err)
		}
	})
}

// TestUntilNext: pages that wait wake together.
func TestUntilNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			if got := time.Now().Add(untilNext(2 * time.Second)); !got.Equal(got.Truncate(2 * time.Second)) {
				t.Errorf("the next look is at %s", got)
			}
		}
	})
}

// TestBeat: an open page is told that it is kept up to date until its person is signed out.
func TestBeat(t *testing.T) {
	t.Parallel()
	store := dbtest.Open(t, dbtest.SQLite(t))
	tokens := access.New(access.Options{Store: store.Access()})
	sessions := access.NewSessions(access.SessionOptions{Store: store.Sessions(), Access: tokens})
	now := time.Now()
	link, err := sessions.CreateLink(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := sessions.SetPassword(t.Context(), link, "correct horse battery", "", now)
	if err != nil {
		t.Fatal(err)
	}
	s := &Shell{Options: Options{Sessions: sessions, Now: time.Now}, followers: newFollowers()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, LivePath+"/follow", http.NoBody)
	r.AddCookie(&http.Cookie{Name: s.cookieName(r), Value: cookie})
	p, err := s.who(r)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	of, _ := s.followers.Enter(p.Session.Hash)
	f := follower{s: s, r: r, stream: follow.Open(w), session: of, person: p}
	if err = f.beat(); err != nil || w.Body.String() != ": still here\n\n" {
		t.Errorf("%q, %v", w.Body, err)
	}
	if err = sessions.SignOut(t.Context(), p.Session, true); err != nil {
		t.Fatal(err)
	}
	f.session.at = f.session.at.Add(-Heartbeat)
	w.Body.Reset()
	if err = f.beat(); !errors.Is(err, errOver) || w.Body.String() != "event: over\ndata: signed out\n\n" {
		t.Errorf("signed out: %q, %v", w.Body, err)
	}
}
