package signing

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	algorithm = "RS256"
	// MaxToken is how long a token may be, in bytes.
	MaxToken = 8 << 10
	// skew is how far the clock of who signs may be ahead of ours.
	skew = time.Minute
	// maxEpoch is the last second of the year 9999.
	maxEpoch = 253_402_300_799
)

// Token is a token whose signature and time are right. Whom and what it is for is still to be compared.
type Token struct {
	Key         id.SigningKey
	Environment id.Environment // that of the key
	Subject     string
	Audience    []string
	Restriction id.PlaybackRestriction // empty: none
	Expires     time.Time
	// Modifiers are the other claims, by the names and in the form of a query.
	Modifiers url.Values
}

// Codes of the errors that refuse a token.
const (
	CodeInvalid     = "token_invalid"   // not a token, changed, or not complete
	CodeMalformed   = "token_malformed" // its header or claims lack something, or have what is not known
	CodeExpired     = "token_expired"
	CodeNotYetValid = "token_not_yet_valid"
	CodeKeyUnknown  = "token_key_unknown" // its signing key is deleted, or of another environment
)

// For reports whether the token is for a use, such as v.
func (t Token) For(use string) bool { return slices.Contains(t.Audience, use) }

// Verify reads a token. An environment that is not empty is that which the key has to be of. What is wrong with a token
// is fault.Denied, with a code.
func (s *Service) Verify(ctx context.Context, text string, env id.Environment, now time.Time) (Token, error) {
	if len(text) > MaxToken {
		return Token{}, denied(CodeMalformed, "is longer than %d bytes", MaxToken)
	}
	if strings.ContainsAny(text, "\r\n") { // which the decoder of base64 passes over
		return Token{}, denied(CodeInvalid, "is not a JSON Web Token")
	}
	var key Key
	var keyErr error
	claims := jwt.MapClaims{}
	parsed, err := parser().ParseWithClaims(text, claims, func(t *jwt.Token) (any, error) {
		if key, keyErr = s.keyOf(ctx, t, claims, env, now); keyErr != nil {
			return nil, keyErr
		}
		return key.Public, nil
	})
	switch {
	case err == nil:
	case keyErr != nil:
		return Token{}, keyErr
	case parsed != nil && parsed.Header != nil && parsed.Header["alg"] != algorithm:
		return Token{}, denied(CodeMalformed, "the algorithm (alg) must be %s", algorithm)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Token{}, denied(CodeInvalid, "the signature does not fit")
	default:
		return Token{}, denied(CodeInvalid, "is not a JSON Web Token")
	}
	return read(claims, key, now)
}

// parser knows one algorithm only. Claims are judged here, which says what is wrong with them.
func parser() *jwt.Parser {
	return jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithJSONNumber(), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation())
}

// keyOf finds the key that a token names, in its header or among its claims.
func (s *Service) keyOf(
	ctx context.Context, t *jwt.Token, claims jwt.MapClaims, env id.Environment, now time.Time,
) (Key, error) {
	if _, critical := t.Header["crit"]; critical { // RFC 7515 section 4.1.11
		return Key{}, denied(CodeMalformed, "the header has extensions (crit) that are not known")
	}
	inHeader, _ := t.Header["kid"].(string)
	inClaims, _ := claims["kid"].(string)
	switch {
	case inHeader == "" && inClaims == "":
		return Key{}, denied(CodeMalformed, "has no signing key ID (kid)")
	case inHeader != "" && inClaims != "" && inHeader != inClaims:
		return Key{}, denied(CodeMalformed, "names two signing keys (kid)")
	case inHeader == "":
		inHeader = inClaims
	}
	return s.Known(ctx, env, id.SigningKey(inHeader), now)
}

// read judges the claims of a token whose signature is right.
func read(claims jwt.MapClaims, key Key, now time.Time) (Token, error) {
	t := Token{Key: key.ID, Environment: key.Environment, Modifiers: url.Values{}}
	var ok bool
	if t.Expires, ok = date(claims["exp"]); !ok {
		return Token{}, denied(CodeMalformed, "must have an expiry (exp) in seconds since 1970")
	}
	if !now.Before(t.Expires) {
		return Token{}, denied(CodeExpired, "has expired (exp)")
	}
	for _, name := range []string{"nbf", "iat"} {
		if claims[name] == nil {
			continue
		}
		from, known := date(claims[name])
		if !known {
			return Token{}, denied(CodeMalformed, "%s must be in seconds since 1970", name)
		}
		if from.After(now.Add(skew)) {
			return Token{}, denied(CodeNotYetValid, "is not valid yet (%s)", name)
		}
	}
	if t.Subject, ok = claims["sub"].(string); !ok || t.Subject == "" {
		return Token{}, denied(CodeMalformed, "must have a subject (sub)")
	}
	var err error
	if t.Audience, err = claims.GetAudience(); err != nil || len(t.Audience) == 0 {
		return Token{}, denied(CodeMalformed, "must have an audience (aud)")
	}
	if named, is := claims["playback_restriction_id"]; is {
		restriction, ok := named.(string)
		if !ok || restriction == "" || len(restriction) > field.MaxID {
			return Token{}, denied(CodeMalformed, "playback_restriction_id must be the ID of a playback restriction")
		}
		t.Restriction = id.PlaybackRestriction(restriction)
	}
	for name, v := range claims {
		if text, is := modifier(v); is && !slices.Contains(reserved(), name) {
			t.Modifiers.Set(name, text)
		}
	}
	return t, nil
}

// reserved are the claims that are no modifiers.
func reserved() []string {
	return []string{
		"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "kid", "typ", "token", "custom", "playback_restriction_id",
	}
}

// modifier is a claim in the form of a query: clients write numbers and truth values both as they are and as strings.
func modifier(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// date reads a NumericDate, RFC 7519 section 2.
func date(v any) (time.Time, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := n.Float64()
	if err != nil || seconds < 0 || seconds > maxEpoch {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

func denied(code, format string, args ...any) error {
	return fault.Coded(fault.Denied, code, "token: "+format, args...)
}

// Sign signs claims with a private key, as its owner does.
func Sign(k id.SigningKey, private *rsa.PrivateKey, claims map[string]any) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claims))
	t.Header["kid"] = string(k)
	return t.SignedString(private)
}
