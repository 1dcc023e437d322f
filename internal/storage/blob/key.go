package blob

import (
	"strings"

	"millrace/internal/fault"
)

// Bounds of a key: S3 allows 1024 bytes with the bucket's own prefix, filesystems 255 in a name.
const (
	maxKeyBytes  = 512
	maxNameBytes = 200
)

// CheckKey says why key is not one: names of letters, digits and "-_.~=+@,", joined by single slashes; no name begins
// with a dot; 512 bytes at most, 200 per name. That is what every filesystem and S3 server stores without escaping.
func CheckKey(key string) error {
	if key == "" {
		return fault.New(fault.Invalid, "object key is empty")
	}
	if err := checkPrefix(key); err != nil {
		return err
	}
	if strings.HasSuffix(key, "/") {
		return fault.New(fault.Invalid, "object key ends in a slash")
	}
	return nil
}

// checkPrefix checks what the first bytes of some key can look like: the last name may be unfinished or empty.
func checkPrefix(prefix string) error {
	if len(prefix) > maxKeyBytes {
		return fault.New(fault.Invalid, "object key has %d bytes, at most %d are allowed", len(prefix), maxKeyBytes)
	}
	names := strings.Split(prefix, "/")
	for i, name := range names {
		last := i == len(names)-1
		switch {
		case name == "" && !last:
			return fault.New(fault.Invalid,
				"object key %q has an empty name: no leading and no double slash is allowed", prefix)
		case strings.HasPrefix(name, "."):
			return fault.New(fault.Invalid, "object key %q has a name that begins with a dot", prefix)
		case len(name) > maxNameBytes:
			return fault.New(fault.Invalid, "object key has a name of %d bytes, at most %d are allowed", len(name),
				maxNameBytes)
		case strings.ContainsFunc(name, notInKey):
			return fault.New(fault.Invalid, "object key %q has a character other than letters, digits and -_.~=+@,",
				prefix)
		}
	}
	return nil
}

func notInKey(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_.~=+@,", r)
}
