// Package asset is the asset with its tracks and its recorded timeline: types, states, rules and service.
// It must never know live streams' rows, media formats, SQL, HTTP or the clock (`now` is an argument).
package asset

import (
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// Origin is where an asset's media comes from; the API's ingest_type.
type Origin string

// The origins.
const (
	FromURL      Origin = "on_demand_url"
	FromClip     Origin = "on_demand_clip"
	FromLiveRTMP Origin = "live_rtmp"
)

// Asset is something playable.
type Asset struct {
	ID          id.Asset
	Environment id.Environment
	Status      Status // preparing, ready, errored
	Progress    Progress
	Origin      Origin
	LiveStream  id.LiveStream // if recorded from one
	SourceAsset id.Asset      // if a clip
	IsLive      bool          // the broadcast is going on
	Options     assetopt.Options
	PlaybackIDs []playbackid.ID
	Tracks      []Track
	Facts       Facts
	Errors      *Errors
	Recordings  []Recording // live only: one per encoder connection (and per slate)
	InputInfo   []InputInfo
	// Media is where its own bytes are (prefix media/{Media}/); Uses lists the media of others that its timeline refers to (clips).
	Media id.Media
	Uses  []id.Media
	// Index is the storage key of the finished timeline; empty while the timeline is still growing (its rows are in the store).
	Index     string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Progress is how far the work is. State: ingesting, transcoding, completed, live, errored. Percent 0–100; -1 for live and errored.
type Progress struct {
	State   string  `json:"state"`
	Percent float64 `json:"progress"`
}

// Facts is what was measured of the media.
type Facts struct {
	Duration  float64 `json:"duration,omitempty"` // seconds
	Width     int     `json:"width,omitempty"`    // pixels as shown, rotation applied
	Height    int     `json:"height,omitempty"`
	FrameRate float64 `json:"frame_rate,omitempty"` // highest; -1 when unknown
	Channels  int     `json:"channels,omitempty"`
	HasVideo  bool    `json:"has_video,omitempty"`
	HasAudio  bool    `json:"has_audio,omitempty"`
}

// Errors is why an asset or a track is errored.
type Errors struct {
	Type     string   `json:"type"` // invalid_input, …
	Messages []string `json:"messages"`
}

// Recording is one stretch of a broadcast.
type Recording struct {
	StartedAt time.Time `json:"started_at"`
	Duration  float64   `json:"duration"` // seconds
	Type      string    `json:"type"`     // content, slate
}

// TrackType is the kind of a track.
type TrackType string

// The types.
const (
	VideoTrack TrackType = "video"
	AudioTrack TrackType = "audio"
	TextTrack  TrackType = "text"
)

// Track is a video, audio or text track of an asset.
type Track struct {
	ID             id.Track
	Asset          id.Asset
	Type           TrackType
	Status         TrackStatus // preparing, ready, errored
	Primary        bool        // the main audio track; it can not be deleted
	TextType       string      // subtitles
	TextSource     string      // uploaded, …
	LanguageCode   string      // BCP 47
	Name           string
	ClosedCaptions bool
	Passthrough    string
	URL            string // what it is made from; not shown
	// Rendition is the timeline's rendition that carries it ("v", "a", or the track's own ID).
	Rendition string
	// Object is the storage key of its file: WebVTT for text, M4A for an alternate audio track.
	Object       string
	Duration     float64
	MaxWidth     int
	MaxHeight    int
	MaxFrameRate float64
	MaxChannels  int
	Errors       *Errors
	CreatedAt    time.Time
}

// InputInfo is what was found in one input file.
type InputInfo struct {
	Settings assetopt.Input `json:"settings"`
	File     struct {
		ContainerFormat string       `json:"container_format"`
		Tracks          []InputTrack `json:"tracks"`
	} `json:"file"`
}

// InputTrack is one track of an input file.
type InputTrack struct {
	Type       string  `json:"type"`
	Duration   float64 `json:"duration,omitempty"`
	Encoding   string  `json:"encoding,omitempty"`
	Width      int     `json:"width,omitempty"`
	Height     int     `json:"height,omitempty"`
	FrameRate  float64 `json:"frame_rate,omitempty"`
	SampleRate int     `json:"sample_rate,omitempty"`
	SampleSize int     `json:"sample_size,omitempty"`
	Channels   int     `json:"channels,omitempty"`
}

// TimelineEntry is one entry of a growing timeline, in the media plane's own encoding, which this plane does not read.
type TimelineEntry struct {
	Sequence int64 // from 0, without holes
	Data     []byte
}
