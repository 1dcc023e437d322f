package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/web/follow"
	"millrace/internal/web/static"
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
			time.Sleep(untilNext(heartbeat))
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
	s := &server{Options: Options{Sessions: sessions, Now: time.Now}, followers: newFollowers()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, livePath+"/follow", http.NoBody)
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
	f.session.at = f.session.at.Add(-heartbeat)
	w.Body.Reset()
	if err = f.beat(); !errors.Is(err, errOver) || w.Body.String() != "event: over\ndata: signed out\n\n" {
		t.Errorf("signed out: %q, %v", w.Body, err)
	}
}

// streams has live streams, and counts how often they are read.
type streams struct {
	live.API

	all   []live.Stream
	reads int
}

func (s *streams) Some(_ context.Context, _ id.Environment, of []id.LiveStream) (found []live.Stream, err error) {
	s.reads++
	for _, v := range s.all {
		if slices.Contains(of, v.ID) {
			found = append(found, v)
		}
	}
	if len(of) > live.MaxSome {
		err = errors.New("too many")
	}
	return found, err
}

// TestChanged: rows that have changed are read and rendered once for all pages, and again when they have changed since.
func TestChanged(t *testing.T) {
	t.Parallel()
	api := &streams{}
	since := map[id.LiveStream]int64{"gone": 7}
	for n := range 150 {
		v := live.Stream{ID: id.LiveStream(fmt.Sprint("s", n))}
		api.all = append(api.all, v)
		since[v.ID] = int64(n)
	}
	s := &server{Options: Options{Services: Services{Live: api}, Now: time.Now}, views: newViews(static.Assets{})}
	c := s.streamRows()
	reads := func(env id.Environment, now int64, want int) map[id.LiveStream]cachedRow[live.Stream] {
		t.Helper()
		api.reads = 0
		rows, err := c.changed(t.Context(), env, since, now)
		if err != nil || len(rows) != len(since) || api.reads != want {
			t.Errorf("%d rows, read %d times, want %d; %v", len(rows), api.reads, want, err)
		}
		return rows
	}
	rows := reads("env", 200, 2)
	if r := rows["s149"]; r.of.ID != "s149" || !strings.Contains(r.html, "row-s149") {
		t.Errorf("row %+v", r)
	}
	if rows["gone"].html != "" {
		t.Errorf("what is deleted has %q", rows["gone"].html)
	}
	for range 100 {
		reads("env", 201, 0)
	}
	since["s1"] = 201
	reads("env", 201, 1)
	reads("env", 201, 0)
	reads("other", 201, 2)
	for n := range 5 {
		reads(id.Environment(fmt.Sprint(n)), 201, 2)
		if len(c.rows) > maxRows {
			t.Fatalf("%d rows are kept", len(c.rows))
		}
	}
}
