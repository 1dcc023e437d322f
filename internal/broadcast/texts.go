package broadcast

import (
	"time"

	"millrace/internal/media/closedcaptions"
	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
)

// addTexts gives the edge the text renditions that are made while the broadcast is recorded: each is named by its
// track.
func (b *broadcast) addTexts() {
	for _, t := range b.asset.Tracks {
		if t.OfBroadcast() {
			b.edge.Texts().Add(t.Rendition, t.Channel != "")
		}
	}
}

// captions reads the closed captions of the pictures into the text tracks that are made of them; nil: there is none.
func (b *broadcast) captions() packager.Captions {
	renditions := map[string]string{}
	for _, t := range b.asset.Tracks {
		if t.OfBroadcast() && t.Channel != "" {
			renditions[t.Channel] = t.Rendition
		}
	}
	texts, told := b.edge.Texts(), false
	refused := func(rendition string) {
		if !told && texts.Full(rendition) {
			told = true
			b.mail.post(func() {
				b.warn(CaptionsLeftOut, "text tracks have gaps: the encoder sends too many captions")
			})
		}
	}
	if r := closedcaptions.New(timeline.Origin*time.Second, texts, renditions, refused); r != nil {
		return r
	}
	return nil
}

// CaptionsLeftOut is the type of the warning that captions in the pictures are missing in text tracks, as there are too
// many.
const CaptionsLeftOut = "closed_captions_incomplete"
