package access

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	"millrace/internal/id"
)

// Secrets that we make have 256 bits of randomness; one that was seeded may be a person's, hence the iterations.
// They cost about 5 ms, once per token and cache time. Nobody guesses one of ours, so that it is compared by its
// digest, which costs nothing: else many who guess would keep those out who have the right one.
const (
	iterations = 20_000
	saltLength = 16
	hashLength = saltLength + sha256.Size
)

// digestOf is SHA-256 of a secret.
func digestOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// madeHere reports whether a token's secret, which is right, has the form of those that CreateToken makes: id.New's, of
// a token with a UUID.
func madeHere(t id.Token, secret string) bool {
	return len(t) == len(id.NewUUID()) && len(secret) >= madeLength && strings.Trim(secret, madeAlphabet) == ""
}

// madeLength is how long a secret of id.New is at least: fewer than one in 10^12 are shorter.
const (
	madeLength   = 37
	madeAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// hashSecret returns salt and PBKDF2-HMAC-SHA-256 of the secret (RFC 8018).
func hashSecret(secret string) ([]byte, error) {
	salt := make([]byte, saltLength, hashLength)
	_, _ = rand.Read(salt) // never fails
	return derive(salt, secret)
}

func derive(salt []byte, secret string) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, secret, salt, iterations, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("hash token secret: %w", err)
	}
	return append(salt[:saltLength:saltLength], key...), nil
}

// matches reports whether a secret is the right one, in time that does not depend on it. A hash of another length
// (none) never matches and takes as long.
func matches(hash []byte, secret string) (bool, error) {
	known := len(hash) == hashLength
	if !known {
		hash = make([]byte, hashLength)
	}
	got, err := derive(hash[:saltLength], secret)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, hash) == 1 && known, nil
}
