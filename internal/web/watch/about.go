package watch

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"millrace/internal/fault"
)

// State is what there is to see behind a playback ID.
type State string

// The states. All but Video are of a live stream.
const (
	Video     State = "video"     // an asset
	Idle      State = "idle"      // no broadcast has been yet
	OnAir     State = "live"      // a broadcast goes on, with or without its encoder
	Finishing State = "finishing" // the last broadcast has ended, its recording is not complete yet
	Ended     State = "ended"     // the last broadcast has ended; where there is no recording now, none will come
)

// About is what the page says beside the picture.
type About struct {
	Title     string `json:"title,omitempty"` // of the live stream or asset, as its owner wrote it; empty: none
	State     State  `json:"state"`
	Recording string `json:"recording,omitempty"` // a public playback ID of the last broadcast's recording

	// Public says that everybody may watch, and that there is, or may come, something to see.
	Public bool `json:"-"`
	// Width and Height are those of the picture, in pixels as shown; 0: there is none, or none is known.
	Width  int `json:"-"`
	Height int `json:"-"`
}

// Viewer is who asks, as the page's player will ask: without a referrer, also from within a frame.
type Viewer struct {
	PlaybackID string
	Tokens     []string // values of the query's token
	UserAgents []string
}

// Describe says what a viewer may know of a playback ID. fault.NotFound: there is none; fault.Denied, fault.Invalid:
// the viewer may not watch it, and learns nothing.
type Describe func(ctx context.Context, v Viewer) (About, error)

// about asks for what the viewer may know.
func (h *handler) about(r *http.Request, playbackID string, tokens []string) (About, error) {
	if h.Describe == nil {
		return About{}, fault.New(fault.NotFound, "nothing is known of any playback ID")
	}
	return h.Describe(r.Context(), Viewer{
		PlaybackID: playbackID, Tokens: tokens, UserAgents: r.Header["User-Agent"],
	})
}

// serveAbout responds with an About as JSON: the page asks for it after the end of a broadcast.
func (h *handler) serveAbout(w http.ResponseWriter, r *http.Request, playbackID string) {
	if !validID(playbackID) {
		http.NotFound(w, r)
		return
	}
	about, err := h.about(r, playbackID, r.URL.Query()["token"])
	if err != nil {
		status := http.StatusServiceUnavailable
		switch {
		case fault.Is(err, fault.NotFound):
			status = http.StatusNotFound
		case fault.Is(err, fault.Denied), fault.Is(err, fault.Invalid):
			status = http.StatusForbidden
		}
		http.Error(w, http.StatusText(status), status)
		return
	}
	body, err := json.Marshal(about)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	send(w, r, "application/json", body)
}

// send responds with what is made for one viewer.
func send(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	head := w.Header()
	head.Set("Content-Type", contentType)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Referrer-Policy", "no-referrer") // a token may be in the address
	head.Set("Cache-Control", "private, no-cache")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // who has gone needs no response
	}
}
