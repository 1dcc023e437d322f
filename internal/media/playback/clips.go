package playback

import (
	"net/http"
	"runtime"
	"sync/atomic"

	"millrace/internal/clientaddr"
	"millrace/internal/media/turns"
)

// clips makes playlists of clips, which are in memory for one viewer alone, a few at a time.
type clips struct {
	line *turns.Line
	size *atomic.Int64 // bytes of the last one, which the next one is taken to have
}

// mostClips is how many requests may wait until one is made for them.
const mostClips = 1024

func newClips() clips {
	line := turns.Options{What: "playlists", Places: runtime.GOMAXPROCS(0), Waiting: mostClips}
	return clips{line: turns.New(line), size: &atomic.Int64{}}
}

// asked is a media playlist as modifiers ask for it, counted as unsent until release is called.
func (h *Handler) asked(
	r *http.Request, p viewing, rendition string, reload Reload, mod modifiers, compressed bool,
) (t Text, release func(), err error) {
	if mod.clip != (Clip{}) {
		return h.clip(r, p, rendition, reload, mod, compressed)
	}
	return h.modified(r, p, rendition, reload, mod, compressed)
}

func (h *Handler) modified(
	r *http.Request, p viewing, rendition string, reload Reload, mod modifiers, compressed bool,
) (t Text, release func(), err error) {
	if t, err = p.Playlist(r.Context(), rendition, reload, false); err != nil {
		return t, nil, err
	}
	t.Data = h.made.text(t.Data, mod, compressed)
	release, err = h.holdData(r, t.Data)
	return t, release, err
}

// clip is modified for a clip. Its bytes are counted before it is made: those that find no room are not made at all.
func (h *Handler) clip(
	r *http.Request, p viewing, rendition string, reload Reload, mod modifiers, compressed bool,
) (t Text, release func(), err error) {
	if reload.MSN >= 0 { // what it waits for comes without a place in the line
		whole := Reload{MSN: reload.MSN, Part: reload.Part, TextHoldBack: reload.TextHoldBack}
		if _, err = p.Playlist(r.Context(), rendition, whole, false); err != nil {
			return t, nil, err
		}
	}
	address := clientaddr.Network(h.opt.Clients.Of(r))
	reserved, err := h.opt.Unsent.Hold(r.Context(), address, h.clips.size.Load())
	if err != nil {
		return t, nil, err
	}
	turn, err := h.clips.line.Enter(r.Context(), address, 0, 0)
	reserved()
	if err != nil {
		return t, nil, err
	}
	defer turn.Leave()
	reserved, err = h.opt.Unsent.Hold(r.Context(), address, h.clips.size.Load()) // others were made meanwhile
	if err != nil {
		return t, nil, err
	}
	reserved()
	t, release, err = h.modified(r, p, rendition, reload, mod, compressed)
	if err == nil {
		h.clips.size.Store(int64(len(t.Data)))
	}
	return t, release, err
}
