package playback

import (
	"sync"

	"millrace/internal/media/hls"
)

// maxMade is how many bytes of playlists that were made for modifiers are kept.
const maxMade = 8 << 20

// made are playlists that viewers' modifiers have made of others: those who ask for the same get the same bytes, which
// are in memory once.
type made struct {
	mu    sync.Mutex
	texts map[madeOf][]byte
	order []madeOf
	bytes int
}

// madeOf says what a text was made of, and how. The text that begins at a place in memory stays there for as long as it
// is named here.
type madeOf struct {
	begins                      *byte
	size                        int
	plain, dateless, compressed bool
	passed                      string
}

// text is a playlist as it was asked for.
func (md *made) text(playlist []byte, m modifiers, compressed bool) []byte {
	if len(playlist) == 0 {
		return playlist
	}
	key := madeOf{&playlist[0], len(playlist), m.plain, m.dateless, compressed, m.passed}
	md.mu.Lock()
	had, ok := md.texts[key]
	md.mu.Unlock()
	if ok {
		return had
	}
	out := m.text(playlist)
	if compressed {
		out = hls.Gzip(out)
	} else if len(out) == 0 || &out[0] == &playlist[0] { // nothing was to be made
		return out
	}
	md.mu.Lock()
	defer md.mu.Unlock()
	if had, ok = md.texts[key]; ok { // somebody else was faster
		return had
	}
	md.keep(key, out)
	return out
}

// keep adds a text, and forgets the oldest ones.
func (md *made) keep(key madeOf, text []byte) {
	if md.texts == nil {
		md.texts = map[madeOf][]byte{}
	}
	md.texts[key] = text
	md.order = append(md.order, key)
	for md.bytes += key.size + len(text); md.bytes > maxMade; {
		oldest := md.order[0]
		md.bytes -= oldest.size + len(md.texts[oldest])
		delete(md.texts, oldest)
		md.order = md.order[1:]
	}
}
