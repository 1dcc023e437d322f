package live

import (
	"time"

	"millrace/internal/id"
)

// HealthStatus says what of a stream can be measured.
type HealthStatus string

// The statuses.
const (
	HealthLive      HealthStatus = "live"      // an encoder sends
	HealthSilent    HealthStatus = "silent"    // one is connected and sends nothing
	HealthAway      HealthStatus = "away"      // none is; a broadcast waits for it
	HealthIdle      HealthStatus = "idle"      // nothing goes on
	HealthElsewhere HealthStatus = "elsewhere" // one is connected to another node, which alone knows its figures
)

// Health is how an encoder does, as the node that has it measures it: a record in memory, which ends with the process.
type Health struct {
	Stream  id.LiveStream
	Status  HealthStatus
	Encoder *Encoder  // the connected one, or the last one; nil: there was none since this node started
	Samples []Sample  // of the connected one, oldest first; at most MaxSamples
	Trouble []Trouble // what is wrong now
	// Unanswered, of HealthElsewhere: that node was asked, and does not respond.
	Unanswered bool
}

// MaxSamples is how many samples are kept: ten minutes.
const MaxSamples = 120

// Encoder is one publication.
type Encoder struct {
	Protocol, Remote, Name   string
	Since                    time.Time
	Until                    time.Time // zero while it is connected
	Cause                    string    // why it ended
	VideoFrames, AudioFrames int64     // up to the last sample
	Bytes                    int64     // of media
	Counts                   Counts    // since it connected
}

// Counts is what went wrong, in a sample or in a publication.
type Counts struct {
	FramesDropped, TimestampsRepaired, ClockJumps, Discontinuities, AudioHoles, FramesMissing int64
	// where the protocol counts them
	Packets, PacketsLost, PacketsRetransmitted, PacketsDropped int64
}

// Sample is a few seconds of what an encoder sends.
type Sample struct {
	At                time.Time // its end
	Span              time.Duration
	Video, Audio      Flow
	GOP               time.Duration // largest distance of key frames
	Pace              float64       // seconds of media a second
	VariableFrameRate bool
	RTT               time.Duration // of the link, where the protocol knows it
	Counts            Counts
}

// Flow is what came of one kind.
type Flow struct {
	Bitrate       float64 // bit/s
	Rate          float64 // frames a second
	Jitter, Drift time.Duration
}

// Trouble is a warning that stands.
type Trouble struct {
	Warning

	Since time.Time
}
