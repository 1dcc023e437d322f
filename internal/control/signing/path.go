package signing

import (
	"context"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Path is what a token was exchanged for: what is behind a playback ID, without the token, for as long as the token
// would be good. The text of one is a segment of the path of a URL:
//
//	signed-{use}.{secret}.{expiry}.{key}.{restriction}.{modifiers}.{mac}
//
// with the number of the secret and the expiry (seconds since 1970) in decimal digits, the modifiers in base64url and
// the MAC, the first 16 bytes of HMAC-SHA-256 (RFC 2104) over the playback ID and everything in front of it, in
// base64url too.
type Path struct {
	Use         string // the audience of the token: v or s
	Key         id.SigningKey
	Restriction id.PlaybackRestriction // empty: none
	Modifiers   string                 // in the form of a query
	Until       time.Time
}

const (
	// PathPrefix is how the text of a Path begins.
	PathPrefix = "signed-"
	// maxPath is how long a text may be, in bytes.
	maxPath = 2048
	// maxModifiers is how long the modifiers of a path may be, in bytes.
	maxModifiers = 512
	macSize      = 16
	pathFields   = 7
)

// SignPath returns the text of a path. Its end is that of the token, a little earlier so that viewers whose tokens end
// at nearly the same time have the same path, and at most as late as the secret is good.
func (s *Service) SignPath(
	ctx context.Context, playback id.Playback, p Path, now time.Time,
) (text string, until time.Time, err error) {
	if len(p.Modifiers) > maxModifiers {
		return "", time.Time{}, fault.New(fault.Invalid, "the modifiers of the token are longer than %d bytes",
			maxModifiers)
	}
	n := period(now)
	secret, err := s.secret(ctx, n, now)
	if err != nil {
		return "", time.Time{}, err
	}
	until = rounded(now, p.Until)
	if end := periodEnd(n + 1); until.After(end) {
		until = end
	}
	head := PathPrefix + p.Use + "." + strconv.FormatInt(n, 10) + "." + strconv.FormatInt(until.Unix(), 10) + "." +
		string(p.Key) + "." +
		string(p.Restriction) + "." + base64.RawURLEncoding.EncodeToString([]byte(p.Modifiers)) + "."
	return secret.seal(playback, head), until, nil
}

// rounded is an expiry, at most a tenth of the time that is left earlier.
func rounded(now, expires time.Time) time.Time {
	left, step := expires.Sub(now), time.Second
	for _, s := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, time.Hour} {
		if left >= 10*s {
			step = s
		}
	}
	return expires.Truncate(step)
}

// OpenPath reads the text of a path of a playback ID. A wrong or expired one is fault.Denied.
func (s *Service) OpenPath(ctx context.Context, playback id.Playback, text string, now time.Time) (Path, error) {
	if p, ok := s.opened.find(playback, text, now); ok {
		return p, nil
	}
	p, n, err := s.openPath(ctx, playback, text, now)
	if err == nil {
		s.opened.keep(playback, text, n, p)
	}
	return p, err
}

// usable reports whether a turn's secret is: two are, and the next one for clocks that are ahead.
func usable(n int64, now time.Time) bool { return n >= period(now)-1 && n <= period(now.Add(skew)) }

// openPath returns a path, and the turn that it was signed in.
func (s *Service) openPath(
	ctx context.Context, playback id.Playback, text string, now time.Time,
) (p Path, n int64, err error) {
	var fields [pathFields]string
	rest, ok := strings.CutPrefix(text, PathPrefix)
	if !ok || len(text) > maxPath {
		return Path{}, 0, errPath()
	}
	for i := range fields[:pathFields-1] {
		if fields[i], rest, ok = strings.Cut(rest, "."); !ok {
			return Path{}, 0, errPath()
		}
	}
	head := text[:len(text)-len(rest)]
	if n, err = strconv.ParseInt(fields[1], 10, 64); err != nil || !usable(n, now) {
		return Path{}, 0, errPath()
	}
	secret, err := s.secret(ctx, n, now)
	if fault.Is(err, fault.NotFound) {
		return Path{}, 0, errPath()
	}
	if err != nil {
		return Path{}, 0, err
	}
	if !secret.fits(playback, head, rest) {
		return Path{}, 0, errPath()
	}
	until, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return Path{}, 0, errPath()
	}
	p = Path{
		Use:         fields[0],
		Key:         id.SigningKey(fields[3]),
		Restriction: id.PlaybackRestriction(fields[4]),
		Until:       time.Unix(until, 0),
	}
	if !now.Before(p.Until) {
		return Path{}, 0, fault.New(fault.Denied,
			"the signed path has expired: ask for the playlist again with a token")
	}
	if fields[5] != "" {
		modifiers, err := base64.RawURLEncoding.DecodeString(fields[5])
		if err != nil {
			return Path{}, 0, errPath()
		}
		p.Modifiers = string(modifiers)
	}
	return p, n, nil
}

func errPath() error {
	return fault.New(fault.Denied, "the signed path is not one of this playback ID")
}

// seal completes the text of a path.
func (s *secret) seal(playback id.Playback, head string) string {
	m := s.take()
	defer s.give(m)
	return head + base64.RawURLEncoding.EncodeToString(m.of(playback, head))
}

// fits reports whether a MAC is that of a head, in time that does not depend on it.
func (s *secret) fits(playback id.Playback, head, mac string) bool {
	if len(mac) != base64.RawURLEncoding.EncodedLen(macSize) || len(playback) > field.MaxID {
		return false
	}
	m := s.take()
	defer s.give(m)
	m.text = append(m.text[:0], mac...)
	n, err := base64.RawURLEncoding.Strict().Decode(m.given[:], m.text)
	return err == nil && n == macSize && subtle.ConstantTimeCompare(m.of(playback, head), m.given[:macSize]) == 1
}

// of is the MAC of a head.
func (m *maker) of(playback id.Playback, head string) []byte {
	m.text = append(append(append(m.text[:0], playback...), '/'), head...)
	m.hash.Reset()
	_, _ = m.hash.Write(m.text) // a hash takes everything
	m.sum = m.hash.Sum(m.sum[:0])
	return m.sum[:macSize]
}

func (s *secret) take() *maker {
	if m, ok := s.makers.Get().(*maker); ok {
		return m
	}
	return &maker{hash: hmac.New(newHash, s.key)}
}

func (s *secret) give(m *maker) { s.makers.Put(m) }
