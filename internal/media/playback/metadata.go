package playback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Description is what a player may show of what there is to watch.
type Description struct {
	Title    string
	Duration time.Duration // 0: it is not over yet
}

// metadataName is the document that a player reads. Playlists name it, so that it belongs to who may watch.
const metadataName = "metadata.json"

// chapter is an entry of JSON chapters as Apple defines them ("Providing JavaScript Object Notation (JSON) chapters").
// One without titles is no chapter that players show; the first one's metadata are those of the whole.
type chapter struct {
	Start    float64   `json:"start-time"`
	Duration float64   `json:"duration,omitempty"`
	Metadata []keyword `json:"metadata"`
}

type keyword struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// metadata sends what is known of a presentation.
func (h *Handler) metadata(w http.ResponseWriter, r *http.Request, p viewing) error {
	what := p.Description()
	whole := chapter{Duration: what.Duration.Seconds(), Metadata: []keyword{}}
	if what.Title != "" {
		whole.Metadata = append(whole.Metadata, keyword{"title", what.Title})
	}
	data, err := json.Marshal([]chapter{whole})
	if err != nil {
		return fmt.Errorf("write metadata: %w", err)
	}
	return h.body(w, r, Body{Data: data}, "application/json", p.permit.cacheControl(60))
}

// chapters is where the metadata of a presentation are, relative to its multivariant playlist; empty when there are
// none.
func chapters(p viewing, base string) string {
	if p.Description().Title != "" {
		return base + "/" + metadataName
	}
	return ""
}
