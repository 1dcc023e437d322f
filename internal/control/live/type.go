// Package live is the live stream: its type, states, rules and service. It must never know assets' rows, media, SQL,
// HTTP or the clock (`now` is an argument).
package live

import (
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// LatencyMode is how far players stay behind the encoder.
type LatencyMode string

// The modes.
const (
	Standard LatencyMode = "standard"
	Reduced  LatencyMode = "reduced"
	Low      LatencyMode = "low"
)

// Status is what the API shows; it follows from State.
type Status string

// The statuses.
const (
	StatusIdle     Status = "idle"
	StatusActive   Status = "active"
	StatusDisabled Status = "disabled"
)

// Settings is what the owner chose.
type Settings struct {
	LatencyMode     LatencyMode `json:"latency_mode"`
	ReconnectWindow float64     `json:"reconnect_window"` // seconds, 0–1800
	// false: it is the latency mode's default
	ReconnectChosen    bool                         `json:"reconnect_window_chosen,omitempty"`
	SlateForStandard   bool                         `json:"use_slate_for_standard_latency,omitempty"`
	ReconnectSlateURL  string                       `json:"reconnect_slate_url,omitempty"`
	MaxContinuous      int                          `json:"max_continuous_duration"` // seconds, 60–43200
	Passthrough        string                       `json:"passthrough,omitempty"`
	Meta               assetopt.Meta                `json:"meta,omitzero"`
	AudioOnly          bool                         `json:"audio_only,omitempty"`
	Test               bool                         `json:"test,omitempty"`
	NewAsset           *assetopt.Options            `json:"new_asset_settings,omitempty"`
	EmbeddedSubtitles  []assetopt.EmbeddedSubtitle  `json:"embedded_subtitles,omitempty"`
	GeneratedSubtitles []assetopt.GeneratedSubtitle `json:"generated_subtitles,omitempty"`
	SimulcastTargets   []SimulcastTarget            `json:"simulcast_targets,omitempty"`
}

// SimulcastTarget is a destination the stream is forwarded to. It is stored with the stream, and its state moves
// together with the stream's: no change of the one without the other's.
type SimulcastTarget struct {
	ID          id.SimulcastTarget `json:"id"`
	State       TargetState        `json:"state,omitempty"`
	URL         string             `json:"url"`                  // may hold a secret
	StreamKey   string             `json:"stream_key,omitempty"` // secret; rtmp and rtmps alone
	Passthrough string             `json:"passthrough,omitempty"`
}

// Stream is a live stream. Its JSON is the data of its events: what the API shows, not the clockwork.
type Stream struct {
	ID            id.LiveStream   `json:"id"`
	Environment   id.Environment  `json:"environment_id"`
	StreamKey     string          `json:"stream_key"`     // secret
	SRTPassphrase string          `json:"srt_passphrase"` // secret
	State         State           `json:"state"`
	Settings      Settings        `json:"settings"`
	PlaybackIDs   []playbackid.ID `json:"playback_ids,omitempty"`
	// of the current or last broadcast; 0 before the first
	Epoch        id.Epoch   `json:"epoch"`
	ActiveAsset  id.Asset   `json:"active_asset_id,omitempty"`  // empty outside a broadcast
	RecentAssets []id.Asset `json:"recent_asset_ids,omitempty"` // newest last, at most 100
	// of the current publication: rtmp; empty while no encoder is connected
	Protocol  string    `json:"protocol,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	Owner `json:"-"` // who leads the broadcast; outside one, who led the last, and may serve its end still

	// The broadcast's clockwork; zero outside a broadcast.
	StartedAt      time.Time `json:"-"` // first connect of the broadcast
	DisconnectedAt time.Time `json:"-"` // since when the encoder is away; zero while connected
	ActiveAt       time.Time `json:"-"` // since when it can be played
	Orphaned       bool      `json:"-"` // the encoder that is away was lost with its node, or let go of by it
	Generation     int64     `json:"-"` // counts who has begun to write the broadcast: the first is 0
	Reserved       int64     `json:"-"` // media sequence numbers below this one may have been published
	// the owner has had no media from the connected encoder for a while: another may take its place
	Silent    bool      `json:"-"`
	EndWanted EndReason `json:"-"` // set by the API while a broadcast runs; the owner ends it and clears this

	// deleted while a broadcast ran: gone for the API, kept until the broadcast has ended
	DeletedAt time.Time `json:"-"`
	Revision  int64     `json:"-"` // counts writes; the store compares-and-sets on it
}

// Warning is what is not as its owner wanted, and does not stop the stream.
type Warning struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// CustomSlateUnavailable is the type of the warning that the slate image of the owner can't be used.
const CustomSlateUnavailable = "custom_slate_unavailable"

// OverlayUnavailable is the type of the warning that an image of `new_asset_settings.inputs` can't be used.
const OverlayUnavailable = "overlay_unavailable"

// Warned is the data of a warning's event: little of the stream, as it was at that moment.
type Warned struct {
	ID          id.LiveStream  `json:"id"`
	Environment id.Environment `json:"environment_id"`
	State       State          `json:"state"`
	ActiveAsset id.Asset       `json:"active_asset_id,omitempty"`
	Passthrough string         `json:"passthrough,omitempty"`
	CreatedAt   time.Time      `json:"created_at"`
	Warning     Warning        `json:"warning"`
}

// Status is what the API shows.
func (s Stream) Status() Status { return s.State.Status() }

// EndReason says why a broadcast ends.
type EndReason string

// The reasons.
const (
	EndNone        EndReason = ""
	EndWindow      EndReason = "reconnect_window" // the encoder stayed away
	EndComplete    EndReason = "complete"         // PUT …/complete
	EndDisable     EndReason = "disable"
	EndDelete      EndReason = "delete"
	EndMaxDuration EndReason = "max_continuous_duration"
	EndTest        EndReason = "test"  // a test stream was active for as long as it may; it is disabled
	EndCrash       EndReason = "crash" // found at start, its window has passed
)

// KeepsLink reports whether the encoder's connection outlives the broadcast: one whose owner has ended the broadcast
// would come back if it was cut off, and begin the next one by itself. After the longest time it may.
func (e EndReason) KeepsLink() bool { return e == EndComplete }
