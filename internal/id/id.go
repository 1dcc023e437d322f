// Package id defines the IDs of resources: one type per resource, so that a live stream's ID cannot be passed as an
// asset's.
package id

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// The nouns' IDs: opaque, case-sensitive, [A-Za-z0-9], at most 255 characters.
type (
	// Environment identifies a tenant.
	Environment string
	// Token identifies an access token (UUID shaped, the user name of HTTP Basic).
	Token string
	// LiveStream identifies a live stream.
	LiveStream string
	// Asset identifies an asset.
	Asset string
	// Track identifies a track of an asset.
	Track string
	// StaticRendition identifies a file to download of an asset.
	StaticRendition string
	// SimulcastTarget identifies a destination of a live stream.
	SimulcastTarget string
	// Webhook identifies an endpoint that events are sent to.
	Webhook string
	// Playback is a playback ID.
	Playback string
	// SigningKey identifies a key that signs tokens of viewers (kid).
	SigningKey string
	// PlaybackRestriction identifies a rule about where and by which players something is watched.
	PlaybackRestriction string
	// TranscriptionVocabulary identifies a list of phrases for speech recognition.
	TranscriptionVocabulary string
	// DRMConfiguration identifies a DRM configuration.
	DRMConfiguration string
	// Upload identifies a direct upload.
	Upload string
	// Media identifies a set of stored bytes (an upload, the segments of one broadcast); assets refer to one or more.
	Media string
	// Node identifies one running process of the service.
	Node string
)

// Epoch numbers the broadcasts of one live stream, from 1; a fact from an older epoch is stale.
type Epoch int64

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// New returns a fresh random ID of 44 characters of [A-Za-z0-9] with 256 bits of randomness.
func New() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (it aborts the program instead)
	return string(digits(nil, b[:]))
}

// NewOrdered returns a fresh ID of 31 characters that begins with the time and ends with 128 bits of randomness. Those
// of a later millisecond compare greater as text, also where case doesn't count, so that rows of one time lie together
// in an index. What is kept secret has an ID by New.
func NewOrdered(at time.Time) string {
	const length, base = 9, 36 // digits and capitals, until the year 5188
	out := make([]byte, length, length+2*11)
	for ms, i := max(0, at.UnixMilli()), length-1; i >= 0; ms, i = ms/base, i-1 {
		out[i] = alphabet[ms%base]
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return string(digits(out, b[:]))
}

// digits appends 11 characters for each 8 bytes.
func digits(out, b []byte) []byte {
	for ; len(b) > 0; b = b[8:] {
		n := binary.BigEndian.Uint64(b)
		for range 11 { // 62 to the 11th is more than 2 to the 64th
			out = append(out, alphabet[n%uint64(len(alphabet))])
			n /= uint64(len(alphabet))
		}
	}
	return out
}

// NewUUID returns a random (version 4) UUID in its text form, RFC 9562 section 5.4.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return uuidText(b)
}

func uuidText(b [16]byte) string {
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// NewOrderedUUID returns a version 7 UUID, RFC 9562 section 5.7: those of a later millisecond compare greater as text.
func NewOrderedUUID(at time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	stamp(&b, at)
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return uuidText(b)
}

// FirstUUIDAt compares less than or equal to every version 7 UUID from a time on, and greater than those from before.
func FirstUUIDAt(at time.Time) string {
	var b [16]byte
	stamp(&b, at)
	return uuidText(b)
}

func stamp(b *[16]byte, at time.Time) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	copy(b[:6], ms[2:])
}
