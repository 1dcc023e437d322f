package playback

import (
	"context"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/timeline"
)

// Broadcast is a broadcast that goes on, or has just ended, as this node can show it. Who implements it holds its edge
// (media/edgeview), or follows the edge of another node.
type Broadcast interface {
	About() About
	// HasTexts reports whether text renditions are made while it goes on.
	HasTexts() bool
	// View is the broadcast as it is watched.
	View(w Watch) Live
}

// About says which broadcast it is.
type About struct {
	Media id.Media
	Asset id.Asset  // that it is recorded as
	Title string    // of the live stream, when the broadcast began
	Began time.Time // as every node knows it
}

// Watch is how a broadcast is watched.
type Watch struct {
	Event   bool              // all of it (EVENT); else the last half minute
	Texts   []TextName        // the text renditions that are offered; those that are not made are left out
	Objects delivered.Objects // what is stored
}

// TextName is how a text rendition is offered.
type TextName struct {
	Rendition, Name, Language string
	Characteristics           string // see hls.Rendition
	// Added: its cues are a file that was added while the broadcast goes on; its segments are those of the broadcast.
	Added bool
}

// Live is what viewers may see of what is live, with what text tracks and images are made of. Errors are faults.
type Live interface {
	Renditions

	// Text is the cues of a text rendition, as far as it is made.
	Text(ctx context.Context, rendition string) (captions.Document, error)
	// TextSpan is from when to when a segment goes of a text rendition that was added; from the asset's second 0 on.
	TextSpan(ctx context.Context, rendition string, r hls.Resource) (from, to time.Duration, err error)
	// Footage is what images are taken from. NotFound: there is no video.
	Footage(ctx context.Context) (Footage, error)
}

// Footage is the video of what is live, for images.
type Footage struct {
	Timeline *timeline.Timeline // of what can be watched now
	Source   delivered.Source   // its video
	// Newest is the newest segment that begins with a key frame, with the number of its init segment; nil: the
	// broadcast has ended.
	Newest func(ctx context.Context) (init int, segment []byte, err error)
}

// Inactive is the error of a live stream that nothing is sent to.
func Inactive() error {
	return fault.New(fault.NotReady, "the live stream is not active: connect an encoder, then ask again")
}
