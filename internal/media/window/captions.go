package window

import "millrace/internal/media/frame"

// closedCaptions is what is known of a picture's closed captions.
type closedCaptions struct {
	carried bool // there is a channel for them
	text    bool // they say something
	whole   bool // they said something when a segment became whole
}

// Captions says that a rendition's pictures carry closed captions, from the open segment on; text: they say something,
// and are not only padding.
func (e *Edge) Captions(rendition string, text bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if e.ended || l == nil {
		return
	}
	l.captions.carried, l.captions.text = true, l.captions.text || text
}

// noCaptions reports whether playlists tell that a rendition has no closed captions. Shaka 5.2.12 looks for some where
// that is not told, in three segments if the first ones have none, and gives up when it comes to the open one, which
// has no URI. So a channel that has carried nothing but padding counts as none until that many segments are whole.
// Called with the lock.
func (e *Edge) noCaptions(l *liveRendition) bool {
	const probed = 3
	if l.Kind == frame.Video && e.texts.apart() {
		return true // they are renditions of their own
	}
	if l.Kind != frame.Video || e.inherited || l.captions.whole {
		return false
	}
	whole := 0
	for i := range l.segs {
		if s := &l.segs[i]; s.done && !s.gap {
			if whole++; whole == probed {
				return !l.captions.carried
			}
		}
	}
	return true
}
