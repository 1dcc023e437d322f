package timeline

import (
	"slices"
	"time"

	"millrace/internal/media/captions"
)

// Cue is a text that a live text rendition shows. It never changes once it is published.
type Cue struct {
	Number   int64  `json:"n"` // from 1, in the order of publication
	Start    int64  `json:"s"` // milliseconds from the asset's second 0 on
	End      int64  `json:"e"`
	Settings string `json:"p,omitempty"` // WebVTT cue settings
	Text     string `json:"t"`           // WebVTT cue text
}

// Caption is the cue as files and segments show it.
func (c *Cue) Caption() captions.Cue {
	return captions.Cue{
		Start: time.Duration(c.Start) * time.Millisecond, End: time.Duration(c.End) * time.Millisecond,
		Settings: c.Settings, Text: c.Text,
	}
}

// Text is what was published in a live text rendition.
type Text struct {
	Rendition string `json:"rendition"`
	Cues      []Cue  `json:"cues"`
}

// Text finds what was published in a text rendition; nil: nothing was.
func (t *Timeline) Text(rendition string) *Text {
	i := slices.IndexFunc(t.Texts, func(x Text) bool { return x.Rendition == rendition })
	if i < 0 {
		return nil
	}
	return &t.Texts[i]
}

// addText adds cues; those that are there already, as after a crash, are left out.
func (t *Timeline) addText(in Text) {
	x := t.Text(in.Rendition)
	if x == nil {
		if in.Rendition == "" || len(t.Texts) >= maxRenditions {
			return
		}
		t.Texts = append(t.Texts, Text{Rendition: in.Rendition})
		x = &t.Texts[len(t.Texts)-1]
	}
	for _, c := range in.Cues {
		if n := len(x.Cues); n == 0 || c.Number > x.Cues[n-1].Number {
			x.Cues = append(x.Cues, c)
		}
	}
}
