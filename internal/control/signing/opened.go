package signing

import (
	"strings"
	"sync/atomic"
	"time"

	"millrace/internal/id"
)

// opened keeps paths whose MAC was right, because a viewer asks for hundreds of things below one and all viewers of a
// recording may share it. A path is found only if it is the same in every byte, for the same playback ID. The zero
// value is ready.
type opened struct {
	slots [1024]atomic.Pointer[openedPath]
}

type openedPath struct {
	playback id.Playback
	text     string
	secret   int64 // number of the turn that it was signed in
	path     Path
}

// slot is where a path is kept, by the last characters of its MAC.
func (o *opened) slot(text string) *atomic.Pointer[openedPath] {
	var n uint32
	for i := max(len(text)-4, 0); i < len(text); i++ {
		n = n*31 + uint32(text[i])
	}
	return &o.slots[n%uint32(len(o.slots))]
}

func (o *opened) find(playback id.Playback, text string, now time.Time) (Path, bool) {
	p := o.slot(text).Load()
	if p == nil || !samePath(p.text, text) || p.playback != playback || !usable(p.secret, now) ||
		!now.Before(p.path.Until) {
		return Path{}, false
	}
	return p.path, true
}

// macLength is how many characters of a path, its last ones, are its MAC.
const macLength = (macSize*8 + 5) / 6

// samePath reports whether two paths are the same. How long that takes does not say how much of a MAC was guessed: who
// makes a path up can choose which one it is compared with.
func samePath(a, b string) bool {
	head := len(a) - macLength
	if len(a) != len(b) || head < 0 || a[:head] != b[:head] {
		return false
	}
	var differs byte
	for i := head; i < len(a); i++ {
		differs |= a[i] ^ b[i]
	}
	return differs == 0
}

func (o *opened) keep(playback id.Playback, text string, secret int64, p Path) {
	text = strings.Clone(text) // it is part of a request
	fields := strings.Split(text, ".")
	p.Use, p.Key, p.Restriction = strings.TrimPrefix(fields[0], PathPrefix), id.SigningKey(fields[3]),
		id.PlaybackRestriction(fields[4])
	o.slot(text).Store(&openedPath{id.Playback(strings.Clone(string(playback))), text, secret, p})
}
