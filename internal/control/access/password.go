package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// How long a password may be, in bytes.
const (
	MinPassword = 12
	MaxPassword = 256
)

// The cost of a password by argon2id (RFC 9106): 19 MiB and two passes, about 40 ms of one processor.
const (
	argonTime, argonMemory, argonThreads = 2, 19 << 10, 1
	argonSalt, argonKey                  = 16, 32
)

// hashPassword gives a hash in the PHC string format, which names its parameters.
func hashPassword(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails
	return phc(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey))
}

func phc(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, argonMemory, argonTime, argonThreads, b64.EncodeToString(salt), b64.EncodeToString(key))
}

// passwordMatches reports whether a password is that of a hash. One that was not made here never matches.
func passwordMatches(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 {
		return false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil || len(salt) != argonSalt {
		return false
	}
	got := phc(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey))
	return subtle.ConstantTimeCompare([]byte(got), []byte(hash)) == 1
}
