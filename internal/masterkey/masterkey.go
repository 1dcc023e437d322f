// Package masterkey implements the key under which an installation's secrets are encrypted. The master key encrypts one
// data key, which is kept in the database; the data key encrypts the secrets. So a new master key does not change what
// is already encrypted. It must never know where keys or secrets are kept.
package masterkey

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

// Size is that of keys, in bytes.
const Size = 32

// Key is a master key.
type Key [Size]byte

// Generate makes a random key.
func Generate() (k Key) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Parse reads a key as Text writes it, or in hexadecimal digits. Space around it is passed over.
func Parse(text []byte) (k Key, err error) {
	text = bytes.TrimSpace(text)
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if len(text) == hex.EncodedLen(Size) {
		raw, err = hex.DecodeString(string(text))
	}
	if err != nil || len(raw) != Size {
		// without the cause, which may repeat it
		return k, fmt.Errorf("a master key is %d bytes, in base64 or hexadecimal digits", Size)
	}
	return Key(raw), nil
}

// Text is the key in base64.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k[:]) }

// String keeps the key out of logs.
func (k Key) String() string { return "master key " + k.Fingerprint() }

// Fingerprint tells keys apart and says nothing else about them: 16 hexadecimal digits.
func (k Key) Fingerprint() string {
	const shown = 8
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte("millrace master key fingerprint"))
	return hex.EncodeToString(mac.Sum(nil)[:shown])
}

const (
	dataKey = "data key" // what a wrapped data key is bound to
	// version is the first byte of everything that is encrypted: AES-256-GCM with a random nonce of 96 bits in front.
	version = 1
)

// Wrap encrypts the data key of a vault.
func (k Key) Wrap(v *Vault) []byte { return seal(aead(k[:]), v.key[:], dataKey) }

// Unwrap decrypts a data key.
func (k Key) Unwrap(wrapped []byte) (*Vault, error) {
	raw, err := open(aead(k[:]), wrapped, dataKey)
	if err != nil || len(raw) != Size {
		return nil, errors.New("the data key can't be decrypted with this master key")
	}
	return newVault(raw), nil
}

// Vault encrypts secrets with the data key. All its methods may be called at the same time.
type Vault struct {
	key  [Size]byte
	aead cipher.AEAD
	hash [Size]byte
}

// NewVault makes one with a random data key.
func NewVault() *Vault {
	k := Generate()
	return newVault(k[:])
}

func newVault(raw []byte) *Vault {
	v := &Vault{key: [Size]byte(raw), aead: aead(derive(raw, "secrets"))}
	copy(v.hash[:], derive(raw, "look-up"))
	return v
}

// derive is the key for one use, HKDF (RFC 5869).
func derive(raw []byte, use string) []byte {
	out, err := hkdf.Key(sha256.New, raw, nil, "millrace "+use, Size)
	if err != nil {
		panic("derive key: " + err.Error()) // of constants only
	}
	return out
}

// aead is AES-256-GCM (NIST SP 800-38D) that puts a random nonce of 96 bits in front of what it encrypts.
func aead(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("make cipher: " + err.Error()) // the size is a constant
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("make AEAD: " + err.Error())
	}
	return a
}

// Seal encrypts a secret for one place, such as "live_streams/" and an ID: it can't be opened for any other.
func (v *Vault) Seal(secret []byte, place string) []byte { return seal(v.aead, secret, place) }

// Open decrypts what was sealed for a place.
func (v *Vault) Open(sealed []byte, place string) ([]byte, error) {
	raw, err := open(v.aead, sealed, place)
	if err != nil {
		return nil, fmt.Errorf("decrypt secret of %s: %w", place, err)
	}
	return raw, nil
}

// Hash is what a secret is looked up by: HMAC-SHA-256, in hexadecimal digits. Without the key nobody can try secrets
// against it.
func (v *Vault) Hash(secret, use string) string {
	mac := hmac.New(sha256.New, v.hash[:])
	mac.Write([]byte(use + "\x00" + secret))
	return hex.EncodeToString(mac.Sum(nil))
}

// Key is a key for one use outside the vault. It is the same for all processes that have the same data key, whatever
// master key that is encrypted under.
func (v *Vault) Key(use string) [Size]byte { return [Size]byte(derive(v.key[:], "key: "+use)) }

func seal(a cipher.AEAD, secret []byte, place string) []byte {
	out := make([]byte, 1, 1+len(secret)+a.Overhead())
	out[0] = version
	return a.Seal(out, nil, secret, []byte(place)) //nolint:gosec // the AEAD makes the nonce
}

func open(a cipher.AEAD, sealed []byte, place string) ([]byte, error) {
	if len(sealed) < 1 || sealed[0] != version {
		return nil, errors.New("it was encrypted in a way that is not known here")
	}
	raw, err := a.Open(nil, nil, sealed[1:], []byte(place))
	if err != nil {
		return nil, errors.New("it does not fit the key or its place")
	}
	return raw, nil
}

// Of is how a database is given a key that is there already: see db.Options.
func Of(k Key) func(known string) (Key, error) {
	return func(string) (Key, error) { return k, nil }
}
