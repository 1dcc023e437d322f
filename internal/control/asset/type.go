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
	FromUpload   Origin = "on_demand_direct_upload"
	FromClip     Origin = "on_demand_clip"
	FromLiveRTMP Origin = "live_rtmp"
	FromLiveSRT  Origin = "live_srt"
	FromLiveWHIP Origin = "live_whip"
)

// FromLive is the origin of a recording whose first encoder came over a protocol.
func FromLive(protocol string) Origin {
	switch protocol {
	case "srt":
		return FromLiveSRT
	case "whip":
		return FromLiveWHIP
	}
	return FromLiveRTMP
}

// Asset is something playable. Its JSON is the data of its events: what the API shows of it, not where its bytes are.
type Asset struct {
	ID          id.Asset         `json:"id"`
	Environment id.Environment   `json:"environment_id"`
	Status      Status           `json:"status"` // preparing, ready, errored
	Progress    Progress         `json:"progress"`
	Origin      Origin           `json:"origin"`
	LiveStream  id.LiveStream    `json:"live_stream_id,omitempty"`  // if recorded from one
	SourceAsset id.Asset         `json:"source_asset_id,omitempty"` // if a clip
	Upload      id.Upload        `json:"upload_id,omitempty"`       // if its file was uploaded
	IsLive      bool             `json:"is_live,omitempty"`         // the broadcast is going on
	Options     assetopt.Options `json:"options"`
	PlaybackIDs []playbackid.ID  `json:"playback_ids,omitempty"`
	Tracks      []Track          `json:"tracks,omitempty"`
	Facts       Facts            `json:"facts"`
	Errors      *Errors          `json:"errors,omitempty"`
	Recordings  []Recording      `json:"recordings,omitempty"` // live only: one per encoder connection (and per slate)
	// Limit is how many seconds of its broadcast a recording has; 0: all of them.
	Limit float64 `json:"-"`
	// ThumbnailTime is where the picture is that stands for the asset when nobody says which, in seconds; nil: not
	// chosen.
	ThumbnailTime *float64    `json:"thumbnail_time,omitempty"`
	InputInfo     []InputInfo `json:"-"`
	// NonStandard is why the first input could not be taken as it is; nil when it could.
	NonStandard *NonStandard `json:"non_standard_input_reasons,omitempty"`
	Static      Static       `json:"static_renditions,omitzero"`
	Master      *Master      `json:"master,omitempty"` // nil: nobody may have it
	Exempt      bool         `json:"-"`                // from the retention of its environment
	// Media is where its own bytes are (prefix media/{Media}/); Uses lists the media of others that its timeline refers
	// to (clips).
	Media id.Media   `json:"-"`
	Uses  []id.Media `json:"-"`
	// Index is the storage key of the finished timeline; empty while the timeline is still growing (its rows are in the
	// store).
	Index     string    `json:"-"`
	Entries   int64     `json:"-"` // how many entries its growing timeline has had
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Revision  int64     `json:"-"` // counts writes; the store compares-and-sets on it
}

// Quality is the video quality that the asset is made in: what was asked for, else plus for a live stream's and basic
// for others.
func (a *Asset) Quality() string {
	switch q := a.Options.Quality(); {
	case q != "":
		return q
	case a.LiveStream != "":
		return "plus"
	}
	return "basic"
}

// Loudness is what an asset's sound is brought to where `normalize_audio` asks for it, in LUFS (EBU R 128).
const Loudness = -24

// Progress is how far the work is. State: ingesting, transcoding, completed, live, errored. Percent 0–100; -1 for live
// and errored.
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
	// Offered is the largest picture that viewers get when that is smaller than what is stored, as max_resolution_tier
	// may want.
	Offered Size `json:"offered,omitzero"`
}

// Size is that of a picture, in pixels.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Top is the size of the largest picture that viewers get.
func (f Facts) Top() Size {
	if f.Offered != (Size{}) {
		return f.Offered
	}
	return Size{f.Width, f.Height}
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

// Track is a video, audio or text track of an asset. Its JSON is the data of its events.
type Track struct {
	ID             id.Track    `json:"id"`
	Asset          id.Asset    `json:"asset_id"`
	Type           TrackType   `json:"type"`
	Status         TrackStatus `json:"status"`                // preparing, ready, errored
	Primary        bool        `json:"primary,omitempty"`     // the main audio track; it can not be deleted
	TextType       string      `json:"text_type,omitempty"`   // subtitles
	TextSource     string      `json:"text_source,omitempty"` // uploaded, …
	LanguageCode   string      `json:"language_code,omitempty"`
	Name           string      `json:"name,omitempty"` // unique among the asset's tracks of its type
	ClosedCaptions bool        `json:"closed_captions,omitempty"`
	// Forced says of subtitles that they are for those who want none: of what is said in a language other than the
	// film's.
	Forced      bool   `json:"forced,omitempty"`
	Passthrough string `json:"passthrough,omitempty"`
	URL         string `json:"-"` // what it is made from; not shown, it may carry the caller's credentials
	// Speech is how it is made of sound; nil: it is not.
	Speech *Speech `json:"-"`
	// Progress is how much of a preparing track is made, in percent, where that is known.
	Progress float64 `json:"progress,omitempty"`
	Pace     Pace    `json:"pace,omitempty"` // of that
	// Confidence is how sure it is, from 0 to 1, that the language that was found is the right one; 0: nobody looked
	// for it, or the engine does not say.
	Confidence float64 `json:"auto_language_confidence,omitempty"`
	// Rendition is the timeline's rendition that carries it ("v", "a", or the track's own ID).
	Rendition string `json:"-"`
	// Channel is the caption channel that it is read from: cc1–cc4.
	Channel string `json:"-"`
	// Object is the storage key of its file: WebVTT for text, M4A for an alternate audio track.
	Object       string    `json:"-"`
	Duration     float64   `json:"duration,omitempty"` // seconds
	MaxWidth     int       `json:"max_width,omitempty"`
	MaxHeight    int       `json:"max_height,omitempty"`
	MaxFrameRate float64   `json:"max_frame_rate,omitempty"`
	MaxChannels  int       `json:"max_channels,omitempty"`
	Errors       *Errors   `json:"errors,omitempty"`
	CreatedAt    time.Time `json:"created_at"`
}

// Speech is how a text track is made by speech recognition.
type Speech struct {
	Language string `json:"language"` // as it was asked for: BCP 47, or auto
	// of vocabularies, as they were when it began; the most important first
	Phrases []string `json:"phrases,omitempty"`
	Of      id.Track `json:"track_id,omitempty"` // the audio track; empty: the main one
}

// NonStandard is what of an input file had to be encoded again, or is unusual: fields that are empty are as they should
// be.
type NonStandard struct {
	VideoCodec     string `json:"video_codec,omitempty"` // the codec there is, where that is not H.264
	AudioCodec     string `json:"audio_codec,omitempty"` // likewise, AAC
	GOP            string `json:"video_gop_size,omitempty"`
	Bitrate        string `json:"video_bitrate,omitempty"`
	FrameRate      string `json:"video_frame_rate,omitempty"`
	Resolution     string `json:"video_resolution,omitempty"`
	PixelAspect    string `json:"pixel_aspect_ratio,omitempty"`
	PixelFormat    string `json:"unsupported_pixel_format,omitempty"`
	VideoEditList  string `json:"video_edit_list,omitempty"`
	AudioEditList  string `json:"audio_edit_list,omitempty"`
	FileParameters string `json:"unexpected_media_file_parameters,omitempty"`
}

// InputInfo is what was found in one input file.
type InputInfo struct {
	Settings assetopt.Input `json:"settings"`
	File     InputFile      `json:"file"`
}

// InputFile is an input file, or what an encoder sends.
type InputFile struct {
	ContainerFormat string       `json:"container_format"`
	Tracks          []InputTrack `json:"tracks"`
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

// Warning is what is not as the asset's owner wanted, and does not keep it from getting ready.
type Warning struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// The types of warnings about a file.
const (
	InputTruncated   = "input_truncated"   // it ends before it says that it does
	InputDamaged     = "input_damaged"     // players' decoders refuse packets of it: they are encoded anew, or left out
	InputUndecodable = "input_undecodable" // a whole track of it can't be decoded
	InputSubtitles   = "input_subtitles"   // subtitles of it can't become a text track
)

// Warned is the data of a warning's event: little of the asset, as it was at that moment.
type Warned struct {
	ID          id.Asset       `json:"id"`
	Environment id.Environment `json:"environment_id"`
	Status      Status         `json:"status"`
	LiveStream  id.LiveStream  `json:"live_stream_id,omitempty"`
	SourceAsset id.Asset       `json:"source_asset_id,omitempty"`
	Upload      id.Upload      `json:"upload_id,omitempty"`
	Passthrough string         `json:"passthrough,omitempty"`
	CreatedAt   time.Time      `json:"created_at"`
	Warning     Warning        `json:"warning"`
}
