package access_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/storage/db/dbtest"
)

const password = "correct horse battery"

// door is a service of sessions on a database of its own.
type door struct {
	*access.Sessions

	tokens *access.Service
	now    time.Time
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	tokens := access.New(access.Options{Store: d.Access()})
	return &door{
		access.NewSessions(access.SessionOptions{Store: d.Sessions(), Access: tokens}), tokens,
		time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
	}
}

// set sets the password by a link.
func (d *door) set(t *testing.T, password string) (cookie string) {
	t.Helper()
	link, err := d.CreateLink(t.Context(), d.now)
	if err == nil {
		cookie, err = d.SetPassword(t.Context(), link, password, "192.0.2.1", d.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

func (d *door) try(t *testing.T, password, from string) error {
	t.Helper()
	_, err := d.SignIn(t.Context(), password, from, from, d.now)
	return err
}

func TestPasswordByLink(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	if has, err := d.HasPassword(t.Context()); has || err != nil {
		t.Errorf("a password at the start: %t, %v", has, err)
	}
	if err := d.try(t, password, "a"); !fault.Is(err, fault.NotReady) {
		t.Errorf("sign-in without a password: %v", err)
	}
	link, err := d.CreateLink(t.Context(), d.now)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		link, password string
		after          time.Duration
		want           fault.Kind
	}{
		"short":        {link, "eleven char", 0, fault.Invalid},
		"long":         {link, strings.Repeat("a", 257), 0, fault.Invalid},
		"unreadable":   {link, "\xff" + password, 0, fault.Invalid},
		"unknown link": {"x", password, 0, fault.NotFound},
		"old link":     {link, password, access.LinkLife, fault.NotFound},
	} {
		if _, err = d.SetPassword(t.Context(), tt.link, tt.password, "", d.now.Add(tt.after)); !fault.Is(err,
			tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	first := d.set(t, password)
	if _, err = d.SetPassword(t.Context(), link, password, "", d.now); !fault.Is(err, fault.NotFound) {
		t.Errorf("a link that was there before the password was set: %v", err)
	}
	p, err := d.Person(t.Context(), first, d.now)
	if err != nil || !p.Permits(access.SystemWrite) || p.Environment.ID == "" {
		t.Errorf("owner %+v, %v", p, err)
	}
	if err = d.try(t, password+"!", "a"); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a wrong password: %v", err)
	}
	second, err := d.SignIn(t.Context(), password, "a", "a", d.now)
	if err != nil || second == first {
		t.Errorf("sign-in %q, %v", second, err)
	}
	d.set(t, password+" again")
	for _, cookie := range []string{first, second, "", "x"} {
		if _, err = d.Person(t.Context(), cookie, d.now); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("a session of before the password was changed: %v", err)
		}
	}
	if err = d.try(t, password, "b"); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the old password: %v", err)
	}
}

// TestWrongPasswords: they are counted by address, and in all, and cost the right one nothing from elsewhere.
func TestWrongPasswords(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.set(t, password)
	for n := range 5 {
		if err := d.try(t, fmt.Sprint("wrong", n), "a"); !fault.Is(err, fault.Unauthorized) {
			t.Fatalf("try %d: %v", n, err)
		}
	}
	err := d.try(t, password, "a")
	if !fault.Is(err, fault.TooMany) || fault.RetryAfter(err) != time.Second {
		t.Errorf("after five wrong ones: %v", err)
	}
	if err = d.try(t, password, "b"); err != nil {
		t.Errorf("from another address: %v", err)
	}
	d.now = d.now.Add(time.Second)
	if err = d.try(t, "wrong", "a"); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a second later: %v", err)
	}
	if err = d.try(t, password, "a"); fault.RetryAfter(err) != 2*time.Second {
		t.Errorf("the wait does not grow: %v", err)
	}
	d.now = d.now.Add(2 * time.Second)
	if err = d.try(t, password, "a"); err != nil {
		t.Errorf("the right one after the wait: %v", err)
	}
}

// TestWrongPasswordsOfAll: many addresses together try no faster than once a second, when they have tried a hundred
// times.
func TestWrongPasswordsOfAll(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.set(t, password)
	long := strings.Repeat("a", access.MaxPassword+1) // no password is so long: it is not hashed
	tries := 0
	for ; tries < 1000; tries++ {
		if err := d.try(t, long, fmt.Sprint(tries)); fault.Is(err, fault.TooMany) {
			break
		}
	}
	if tries != 100 {
		t.Errorf("%d tries before a pause", tries)
	}
	d.now = d.now.Add(time.Second)
	if err := d.try(t, password, "c"); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

// TestGuessesAtOnce: of a hundred that come at once from one address five are checked, as of a hundred one by one, and
// a link sets the password while guesses of several addresses fill the line.
func TestGuessesAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.set(t, password)
	letHash := d.HoldHashing(t)
	refused, others := make(chan error, 100), make(chan error, 8)
	for n := range 100 {
		go func() {
			_, err := d.SignIn(t.Context(), fmt.Sprint("wrong", n), "a", "a", d.now)
			refused <- err
		}()
	}
	for range 95 {
		if err := <-refused; !fault.Is(err, fault.TooMany) || fault.RetryAfter(err) != time.Second {
			t.Fatalf("a guess beyond those that are being checked: %v", err)
		}
	}
	for n := range 3 { // the line has 8 of the password
		go func() {
			from := fmt.Sprint("b", n)
			_, err := d.SignIn(t.Context(), "wrong", from, from, d.now)
			others <- err
		}()
	}
	d.AwaitLine(t, 8)
	cookie := d.set(t, password+" new")
	if _, err := d.Person(t.Context(), cookie, d.now); err != nil {
		t.Errorf("a session by the link: %v", err)
	}
	letHash()
	for range 5 {
		if err := <-refused; !fault.Is(err, fault.Unauthorized) {
			t.Errorf("a guess that was checked: %v", err)
		}
	}
	for range 3 {
		if err := <-others; !fault.Is(err, fault.Unauthorized) {
			t.Errorf("a guess from elsewhere: %v", err)
		}
	}
	if err := d.try(t, password+" new", "a"); !fault.Is(err, fault.TooMany) {
		t.Errorf("after five wrong ones: %v", err)
	}
}

// TestReplaced: a cookie that a browser has another in place of is of no use.
func TestReplaced(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	before := d.set(t, password)
	after, err := d.SignIn(t.Context(), password, "a", "a", d.now)
	if err = errors.Join(err, d.Replaced(t.Context(), before)); err != nil {
		t.Fatal(err)
	}
	if _, err = d.Person(t.Context(), before, d.now); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the replaced session: %v", err)
	}
	if _, err = d.Person(t.Context(), after, d.now); err != nil {
		t.Errorf("the new session: %v", err)
	}
}

func TestSessionOfToken(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	with := func(in access.TokenInput) (access.Token, string, error) {
		token, secret, err := d.tokens.CreateToken(t.Context(), in, d.now)
		if err != nil {
			t.Fatal(err)
		}
		cookie, err := d.SignInByToken(t.Context(), access.Credentials{Token: token.ID, Secret: secret, From: "a"},
			"a", d.now)
		return token, cookie, err
	}
	reader, cookie, err := with(access.TokenInput{
		Name: "r", Permissions: []string{access.VideoRead}, ExpiresAt: d.now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Person(t.Context(), cookie, d.now)
	if err != nil || !p.Permits(access.VideoRead) || p.Permits(access.VideoWrite) || p.Token.Name != "r" {
		t.Errorf("person %+v, %v", p, err)
	}
	if _, err = d.Person(t.Context(), cookie, d.now.Add(time.Hour)); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("when the token has expired: %v", err)
	}
	if err = d.tokens.RevokeToken(t.Context(), reader.ID, d.now); err != nil {
		t.Fatal(err)
	}
	over, err := d.Person(t.Context(), cookie, d.now)
	if !fault.Is(err, fault.Unauthorized) || over.Session.Token != reader.ID || over.Permits(access.VideoRead) {
		t.Errorf("when the token is revoked: %+v, %v", over, err)
	}
	if _, _, err = with(access.TokenInput{Permissions: []string{access.DataRead}}); !fault.Is(err, fault.Denied) {
		t.Errorf("a token that may not read video: %v", err)
	}
	c := access.Credentials{Token: reader.ID, Secret: "wrong secret", From: "a"}
	if _, err = d.SignInByToken(t.Context(), c, "a", d.now); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a wrong secret: %v", err)
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		everywhere bool
		left       int
	}{"here": {false, 1}, "everywhere": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDoor(t)
			cookies := []string{d.set(t, password)}
			second, err := d.SignIn(t.Context(), password, "a", "a", d.now)
			p, bad := d.Person(t.Context(), second, d.now)
			if err = errors.Join(err, bad, d.SignOut(t.Context(), p.Session, tt.everywhere)); err != nil {
				t.Fatal(err)
			}
			left := 0
			for _, cookie := range append(cookies, second) {
				if _, err := d.Person(t.Context(), cookie, d.now); err == nil {
					left++
				}
			}
			if left != tt.left {
				t.Errorf("%d sessions are left", left)
			}
			if _, err := d.Person(t.Context(), cookies[0], d.now.Add(access.SessionLife)); !fault.Is(err,
				fault.Unauthorized) {
				t.Errorf("after two weeks: %v", err)
			}
		})
	}
}
