package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// SessionLife is how long somebody stays signed in to the dashboard.
	SessionLife = 14 * 24 * time.Hour
	// LinkLife is how long a link that sets the password can be used.
	LinkLife = time.Hour

	// byPassword stands for the password where wrong secrets are counted.
	byPassword id.Token = "password"
	// freeOfAll is how many wrong passwords all addresses together may send at once; later it is one a second.
	freeOfAll = 100
)

// Session is somebody who is signed in to the dashboard: the owner of the installation, by the password, who works in
// the default environment, or the holder of an access token, who works in its environment and may do what it permits.
type Session struct {
	Hash        string // SHA-256 of the cookie, in hexadecimal digits; the cookie is not stored
	Environment id.Environment
	Token       id.Token // empty: the owner
	Address     string   // IP address that it was begun from; empty: unknown
	CreatedAt   time.Time
	ExpiresAt   time.Time
}

// Person is who a request to the dashboard comes from.
type Person struct {
	Session     Session
	Token       Token // zero: the owner
	Environment Environment
}

// Permits reports whether the person has a permission. The owner has all of them.
func (p Person) Permits(permission string) bool {
	return p.Session.Token == "" || p.Token.Permits(permission)
}

// SessionStore is implemented by storage/db; one call is one transaction. Hashes are hexadecimal digits of SHA-256.
type SessionStore interface {
	// Password is the hash of the owner's password; fault.NotFound: none is set.
	Password(ctx context.Context) (string, error)
	// SetPassword uses a link up, which fault.NotFound says is not there or too old. All links and all sessions of the
	// owner end, and the given one begins.
	SetPassword(ctx context.Context, link, password string, s Session) error
	InsertLink(ctx context.Context, link string, now, until time.Time) error
	// Link is fault.NotFound when there is no such link, or it is too old.
	Link(ctx context.Context, link string, now time.Time) error
	// InsertSession removes sessions that are over. One of the owner's is fault.Conflict when the password has another
	// hash by now.
	InsertSession(ctx context.Context, s Session, password string) error
	// Session is fault.NotFound when it is over.
	Session(ctx context.Context, hash string, now time.Time) (Session, error)
	DeleteSession(ctx context.Context, hash string) error
	// DeleteSessions ends all sessions of a token, or, for an empty one, of the owner.
	DeleteSessions(ctx context.Context, t id.Token) error
	// NoteShown writes the entry of the audit log that ctx carries: a secret of a resource was shown.
	NoteShown(ctx context.Context, e id.Environment, noun, key string) error
}

// SessionOptions configures Sessions.
type SessionOptions struct {
	Store  SessionStore
	Access *Service // whose tokens sign in too
}

// Sessions signs people in to the dashboard. It owns no goroutine; all its methods may be called at the same time.
type Sessions struct {
	store    SessionStore
	access   *Service
	hashing  *line // of guesses
	links    *line // of passwords that are set by a link: no guess is in front of them
	failures *failures
	wrong    *rate.Limiter // wrong passwords of all addresses
}

// NewSessions makes a service; nothing starts.
func NewSessions(o SessionOptions) *Sessions {
	return &Sessions{
		store: o.Store, access: o.Access, failures: newFailures(),
		hashing: newLine(maxPasswords, maxPasswords), links: newLine(maxPasswords, maxPasswords),
		wrong: rate.NewLimiter(1, freeOfAll),
	}
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// HasPassword reports whether the owner has set one.
func (s *Sessions) HasPassword(ctx context.Context) (bool, error) {
	_, err := s.store.Password(ctx)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// CreateLink makes the secret of a link that sets the password, once, within LinkLife.
func (s *Sessions) CreateLink(ctx context.Context, now time.Time) (string, error) {
	link := id.New()
	return link, s.store.InsertLink(ctx, hashOf(link), now, now.Add(LinkLife))
}

func linkGone() error {
	return fault.New(fault.NotFound,
		"this link was used already, or is older than an hour; millrace dashboard link makes a new one")
}

// CheckLink is nil while a link can be used.
func (s *Sessions) CheckLink(ctx context.Context, link string, now time.Time) error {
	err := s.store.Link(ctx, hashOf(link), now)
	if fault.Is(err, fault.NotFound) {
		return linkGone()
	}
	return err
}

// SetPassword sets the owner's password by a link, ends the owner's sessions and begins one, whose cookie it returns.
// Messages of fault.Invalid are about the password.
func (s *Sessions) SetPassword(ctx context.Context, link, password, from string, now time.Time) (string, error) {
	if err := checkPassword(password); err != nil {
		return "", err
	}
	if err := s.CheckLink(ctx, link, now); err != nil { // before the work of a hash
		return "", err
	}
	leave, err := s.links.enter(ctx, byPassword)
	if err != nil {
		return "", err
	}
	hash := hashPassword(password)
	leave()
	cookie, session, err := s.session(ctx, Session{Address: from}, now)
	if err != nil {
		return "", err
	}
	err = s.store.SetPassword(ctx, hashOf(link), hash, session)
	if fault.Is(err, fault.NotFound) { // somebody else was faster
		err = linkGone()
	}
	return cookie, err
}

func checkPassword(password string) error {
	switch {
	case len(password) < MinPassword:
		return fault.New(fault.Invalid, "The password needs %d characters or more.", MinPassword)
	case len(password) > MaxPassword:
		return fault.New(fault.Invalid, "The password may have at most %d bytes.", MaxPassword)
	case !utf8.ValidString(password) || strings.ContainsRune(password, 0):
		return fault.New(fault.Invalid, "The password has characters that can't be read. Use others.")
	}
	return nil
}

// session fills in what each session has, and gives its cookie.
func (s *Sessions) session(ctx context.Context, v Session, now time.Time) (cookie string, _ Session, err error) {
	if v.Environment == "" {
		env, err := s.access.Named(ctx, "", now)
		if err != nil {
			return "", v, err
		}
		v.Environment = env.ID
	}
	cookie = id.New()
	v.Hash, v.CreatedAt, v.ExpiresAt = hashOf(cookie), now, now.Add(SessionLife)
	return cookie, v, nil
}

// SignIn begins a session of the owner and returns its cookie. fault.Unauthorized: the password is wrong;
// fault.NotReady: none is set; fault.TooMany: too many were wrong, with the time after which to try again. Wrong ones
// are counted for network, the network of the address from, and for all together.
func (s *Sessions) SignIn(ctx context.Context, password, network, from string, now time.Time) (string, error) {
	c := Credentials{Token: byPassword, From: network}
	done, wait := s.failures.try(c, now)
	if wait > 0 {
		return "", fault.Later(wait, "Too many wrong passwords. Try again in %d seconds.", int(wait.Seconds())+1)
	}
	defer done()
	counted := s.wrong.ReserveN(now, 1) // before it is checked: many come at once
	if counted.DelayFrom(now) > 0 {
		counted.CancelAt(now)
		return "", fault.Later(time.Second,
			"Too many wrong passwords come from everywhere. Try again in a second, or use a new link.")
	}
	cookie, err := s.signIn(ctx, c, password, from, now)
	if !fault.Is(err, fault.Unauthorized) {
		counted.CancelAt(now)
	}
	return cookie, err
}

// signIn checks a password and begins a session.
func (s *Sessions) signIn(
	ctx context.Context, c Credentials, password, from string, now time.Time,
) (cookie string, err error) {
	hash, err := s.store.Password(ctx)
	if fault.Is(err, fault.NotFound) {
		return "", fault.New(fault.NotReady, "No password is set yet.")
	}
	if err != nil {
		return "", err
	}
	right, err := s.check(ctx, hash, password)
	if err != nil {
		return "", err
	}
	if !right {
		s.failures.failed(c, now)
		return "", fault.New(fault.Unauthorized, "This password is not right.")
	}
	s.failures.passed(c)
	cookie, session, err := s.session(ctx, Session{Address: from}, now)
	if err != nil {
		return "", err
	}
	return cookie, s.store.InsertSession(ctx, session, hash)
}

// check hashes a password once it is its turn.
func (s *Sessions) check(ctx context.Context, hash, password string) (bool, error) {
	if len(password) > MaxPassword {
		return false, nil
	}
	leave, err := s.hashing.enter(ctx, byPassword)
	if err != nil {
		return false, err
	}
	defer leave()
	return passwordMatches(hash, password), nil
}

// SignInByToken begins a session of an access token's holder, as SignIn does. A token that may not read video is
// fault.Denied.
func (s *Sessions) SignInByToken(ctx context.Context, c Credentials, from string, now time.Time) (string, error) {
	who, err := s.access.Authenticate(ctx, c, now)
	if err != nil {
		return "", err
	}
	if !who.Token.Permits(VideoRead) {
		return "", fault.New(fault.Denied, "This access token may not read videos (%s), so there is nothing to see.",
			VideoRead)
	}
	v := Session{Environment: who.Environment.ID, Token: who.Token.ID, Address: from}
	cookie, session, err := s.session(ctx, v, now)
	if err != nil {
		return "", err
	}
	return cookie, s.store.InsertSession(ctx, session, "")
}

// Person is whose cookie it is; fault.Unauthorized when the session is over, or its access token revoked or expired:
// then the session is there all the same.
func (s *Sessions) Person(ctx context.Context, cookie string, now time.Time) (Person, error) {
	session, err := s.store.Session(ctx, hashOf(cookie), now)
	if fault.Is(err, fault.NotFound) {
		return Person{}, unauthorized()
	}
	if err != nil {
		return Person{}, err
	}
	p := Person{Session: session}
	if session.Token != "" {
		p.Token, err = s.access.TokenOf(ctx, session.Environment, session.Token)
		if fault.Is(err, fault.NotFound) || err == nil && !p.Token.validAt(now) {
			return Person{Session: session}, unauthorized()
		}
		if err != nil {
			return Person{}, err
		}
	}
	p.Environment, err = s.access.store.Environment(ctx, session.Environment)
	return p, err
}

// Replaced ends the session of a cookie that a browser has another one in place of.
func (s *Sessions) Replaced(ctx context.Context, cookie string) error {
	return s.store.DeleteSession(ctx, hashOf(cookie))
}

// SignOut ends a session, or all of the same person.
func (s *Sessions) SignOut(ctx context.Context, v Session, everywhere bool) error {
	if everywhere {
		return s.store.DeleteSessions(ctx, v.Token)
	}
	return s.store.DeleteSession(ctx, v.Hash)
}

// NoteShown has the audit log say that a secret of a resource was shown, as the entry in ctx has it.
func (s *Sessions) NoteShown(ctx context.Context, e id.Environment, noun, key string) error {
	return s.store.NoteShown(ctx, e, noun, key)
}
