package api

import (
	"millrace/internal/control/asset"
)

// Track is a video, audio or text track of an asset as responses have it.
type Track struct {
	ID             string   `json:"id"`
	Type           string   `json:"type" enum:"video,audio,text"`
	Status         string   `json:"status,omitempty" enum:"preparing,ready,errored"`
	Duration       float64  `json:"duration,omitempty" doc:"Seconds; absent for text tracks."`
	MaxWidth       int      `json:"max_width,omitempty"`
	MaxHeight      int      `json:"max_height,omitempty"`
	MaxFrameRate   float64  `json:"max_frame_rate,omitempty" doc:"Frames per second; -1 when unknown."`
	MaxChannels    int      `json:"max_channels,omitempty"`
	Primary        bool     `json:"primary,omitempty" doc:"The main audio track, which can't be deleted."`
	TextType       string   `json:"text_type,omitempty" enum:"subtitles"`
	TextSource     string   `json:"text_source,omitempty" enum:"uploaded,embedded,generated_live,generated_live_final,generated_vod"`
	LanguageCode   string   `json:"language_code,omitempty" doc:"BCP 47."`
	Name           string   `json:"name,omitempty"`
	ClosedCaptions *bool    `json:"closed_captions,omitempty" doc:"Text tracks only."`
	Passthrough    string   `json:"passthrough,omitempty"`
	Confidence     float64  `json:"auto_language_confidence,omitempty" doc:"Confidence, from 0 to 1, that the detected language is right."`
	Progress       float64  `json:"progress,omitempty" doc:"Progress of a preparing track, in percent."`
	TimeLeft       float64  `json:"time_left,omitempty" doc:"Estimated seconds until it is ready; absent if unknown."`
	Error          *Problem `json:"error,omitempty"`
}

// TrackCreate asks for a text or audio track to be added.
type TrackCreate struct {
	URL            string `json:"url,omitempty" required:"true" doc:"An http or https URL. Text: SubRip or WebVTT. Audio: M4A, MP3, WAV and most other formats."`
	Type           string `json:"type,omitempty" required:"true" enum:"text,audio"`
	TextType       string `json:"text_type,omitempty" enum:"subtitles" doc:"Text tracks only. Default: subtitles."`
	LanguageCode   string `json:"language_code,omitempty" required:"true" doc:"BCP 47."`
	Name           string `json:"name,omitempty" doc:"Unique among the asset's tracks of this type. Default: the name of the language."`
	ClosedCaptions bool   `json:"closed_captions,omitempty" doc:"Subtitles for the deaf or hard of hearing; text tracks only."`
	Passthrough    string `json:"passthrough,omitempty" maxLength:"255"`
}

// TrackUpdate changes what is given.
type TrackUpdate struct {
	LanguageCode   *string          `json:"language_code,omitempty" doc:"BCP 47."`
	Name           *string          `json:"name,omitempty"`
	ClosedCaptions *bool            `json:"closed_captions,omitempty"`
	Passthrough    Optional[string] `json:"passthrough,omitzero" maxLength:"255" doc:"An empty string or null clears it."`
}

func wireTrack(t asset.Track) Track {
	out := Track{
		ID:           string(t.ID),
		Type:         string(t.Type),
		Status:       string(t.Status),
		Duration:     finite(t.Duration),
		MaxWidth:     t.MaxWidth,
		MaxHeight:    t.MaxHeight,
		MaxFrameRate: finite(t.MaxFrameRate),
		MaxChannels:  t.MaxChannels,
		Primary:      t.Primary,
		TextType:     t.TextType,
		TextSource:   t.TextSource,
		LanguageCode: t.LanguageCode,
		Name:         t.Name,
		Passthrough:  t.Passthrough,
		Confidence:   finite(t.Confidence),
		Progress:     finite(t.Progress),
		Error:        wireProblem(t.Errors),
	}
	if t.Type == asset.TextTrack {
		out.ClosedCaptions, out.Duration = &t.ClosedCaptions, 0
	}
	return out
}

func (t TrackCreate) input() asset.TrackInput {
	return asset.TrackInput{
		URL: t.URL, Type: asset.TrackType(t.Type), TextType: t.TextType, LanguageCode: t.LanguageCode, Name: t.Name,
		ClosedCaptions: t.ClosedCaptions, Passthrough: t.Passthrough,
	}
}

func (t TrackUpdate) input() asset.TrackPatch {
	return asset.TrackPatch{
		LanguageCode:   t.LanguageCode,
		Name:           t.Name,
		ClosedCaptions: t.ClosedCaptions,
		Passthrough:    t.Passthrough.Ptr(),
	}
}
