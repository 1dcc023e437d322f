// Package assetopt contains the settings that an asset is created with: from the request, or from the live stream that
// records it. A leaf of the control plane: types and pure rules.
package assetopt

import "millrace/internal/control/playbackid"

// Options is the same object as `new_asset_settings` of a live stream and the body of asset creation.
// JSON names are the stored form; the wire form is web/api's business.
type Options struct {
	Inputs           []Input              `json:"inputs,omitempty"`
	PlaybackPolicies []playbackid.Policy  `json:"playback_policies,omitempty"`
	AdvancedPolicies []playbackid.Request `json:"advanced_playback_policies,omitempty"`
	Passthrough      string               `json:"passthrough,omitempty"`
	Meta             Meta                 `json:"meta,omitzero"`
	MP4Support       string               `json:"mp4_support,omitempty"`
	StaticRenditions []StaticRendition    `json:"static_renditions,omitempty"`
	VideoQuality     string               `json:"video_quality,omitempty"` // basic, plus, premium
	EncodingTier     string               `json:"encoding_tier,omitempty"` // deprecated: smart, baseline, premium
	MaxResolution    string               `json:"max_resolution_tier,omitempty"`
	MasterAccess     string               `json:"master_access,omitempty"` // none, temporary
	NormalizeAudio   bool                 `json:"normalize_audio,omitempty"`
	CopyOverlays     *bool                `json:"copy_overlays,omitempty"` // clips; nil: true
	GenerateShots    bool                 `json:"generate_shots,omitempty"`
	Test             bool                 `json:"test,omitempty"`
}

// Requests are the playback IDs that are asked for.
func (o Options) Requests() []playbackid.Request {
	return playbackid.Requests(o.PlaybackPolicies, o.AdvancedPolicies)
}

// Meta is structured metadata. Lengths are in code points.
type Meta struct {
	Title      string `json:"title,omitempty"`       // ≤ 512
	CreatorID  string `json:"creator_id,omitempty"`  // ≤ 128
	ExternalID string `json:"external_id,omitempty"` // ≤ 128
}

// MetaPatch changes metadata: it replaces all of it or, where a field is to be cleared, clears such fields alone.
type MetaPatch struct {
	Meta

	ClearTitle, ClearCreatorID, ClearExternalID bool
}

// Apply returns m as it is after the change.
func (mp MetaPatch) Apply(m Meta) Meta {
	if !mp.ClearTitle && !mp.ClearCreatorID && !mp.ClearExternalID {
		return mp.Meta
	}
	if mp.ClearTitle {
		m.Title = ""
	}
	if mp.ClearCreatorID {
		m.CreatorID = ""
	}
	if mp.ClearExternalID {
		m.ExternalID = ""
	}
	return m
}

// What a static rendition may ask for besides a height, and the values that mean nothing is wanted.
const (
	Highest   = "highest"
	AudioOnly = "audio-only"
	NoMP4     = "none"      // mp4_support
	NoMaster  = "none"      // master_access
	Temporary = "temporary" // master_access
)

// StaticRendition asks for one downloadable file.
type StaticRendition struct {
	Resolution  string `json:"resolution"`
	Passthrough string `json:"passthrough,omitempty"`
}

// Input is one input file, or a clip of an asset when URL has the form svc://assets/{id} or mux://assets/{id}.
type Input struct {
	URL                string              `json:"url,omitempty"`
	Type               string              `json:"type,omitempty"`      // video, audio, text
	TextType           string              `json:"text_type,omitempty"` // subtitles
	LanguageCode       string              `json:"language_code,omitempty"`
	Name               string              `json:"name,omitempty"`
	ClosedCaptions     bool                `json:"closed_captions,omitempty"`
	Passthrough        string              `json:"passthrough,omitempty"`
	StartTime          *float64            `json:"start_time,omitempty"` // seconds; clips only
	EndTime            *float64            `json:"end_time,omitempty"`
	Overlay            *Overlay            `json:"overlay_settings,omitempty"`
	GeneratedSubtitles []GeneratedSubtitle `json:"generated_subtitles,omitempty"`
	EmbeddedSubtitles  []EmbeddedSubtitle  `json:"embedded_subtitles,omitempty"`
}

// Overlay places an image over the video; lengths are "10%" or "100px", negative ones move it off screen.
type Overlay struct {
	VerticalAlign    string `json:"vertical_align,omitempty"` // top (default), middle, bottom
	VerticalMargin   string `json:"vertical_margin,omitempty"`
	HorizontalAlign  string `json:"horizontal_align,omitempty"` // left, center, right
	HorizontalMargin string `json:"horizontal_margin,omitempty"`
	Width            string `json:"width,omitempty"`
	Height           string `json:"height,omitempty"`
	Opacity          string `json:"opacity,omitempty"` // percent, default 100%
}

// GeneratedSubtitle asks for speech recognition.
type GeneratedSubtitle struct {
	Name          string   `json:"name,omitempty"`
	LanguageCode  string   `json:"language_code,omitempty"`
	Passthrough   string   `json:"passthrough,omitempty"`
	VocabularyIDs []string `json:"transcription_vocabulary_ids,omitempty"` // live only
}
