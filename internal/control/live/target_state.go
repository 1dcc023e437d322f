package live

// TargetState is where a simulcast target is.
type TargetState string

// The states.
const (
	TargetIdle         TargetState = "idle"
	TargetStarting     TargetState = "starting"     // an encoder is connected, nothing has been forwarded yet
	TargetBroadcasting TargetState = "broadcasting" // the destination takes what is sent
	TargetErrored      TargetState = "errored"      // the link broke, or was refused; it is tried again
	// the destination can not take this stream: not tried again for this broadcast.
	TargetFatal TargetState = "fatal"
)

// TargetStatus is what the API shows of a target's state.
type TargetStatus string

// The statuses.
const (
	TargetStatusIdle         TargetStatus = "idle"
	TargetStatusStarting     TargetStatus = "starting"
	TargetStatusBroadcasting TargetStatus = "broadcasting"
	TargetStatusErrored      TargetStatus = "errored"
)

// Severity says of an errored target whether it may recover.
type Severity string

// The severities.
const (
	SeverityNone   Severity = ""
	SeverityNormal Severity = "normal"
	SeverityFatal  Severity = "fatal"
)

// Show is what the API shows of a state.
func (t TargetState) Show() (TargetStatus, Severity) {
	switch t {
	case TargetStarting:
		return TargetStatusStarting, SeverityNone
	case TargetBroadcasting:
		return TargetStatusBroadcasting, SeverityNone
	case TargetErrored:
		return TargetStatusErrored, SeverityNormal
	case TargetFatal:
		return TargetStatusErrored, SeverityFatal
	case TargetIdle:
	}
	return TargetStatusIdle, SeverityNone
}

// TargetFact is something that happened to a target or to the stream that it belongs to.
type TargetFact string

// The facts.
const (
	SourceConnected TargetFact = "source_connected" // an encoder of the live stream
	SourceLost      TargetFact = "source_lost"
	SourceEnded     TargetFact = "source_ended" // the broadcast
	LinkUp          TargetFact = "link_up"      // the destination took the first frame
	LinkDown        TargetFact = "link_down"
	// what the encoder sends can not be forwarded there, or there is no such host that may be connected to.
	LinkImpossible TargetFact = "link_impossible"
)

// A target that failed for good waits for the next broadcast, not for the next encoder.
var nextTarget = map[TargetState]map[TargetFact]TargetState{ //nolint:gochecknoglobals // a table
	TargetIdle: {SourceConnected: TargetStarting},
	TargetStarting: {
		LinkUp:         TargetBroadcasting,
		LinkDown:       TargetErrored,
		LinkImpossible: TargetFatal,
		SourceLost:     TargetIdle,
		SourceEnded:    TargetIdle,
	},
	TargetBroadcasting: {
		LinkDown:       TargetErrored,
		LinkImpossible: TargetFatal,
		SourceLost:     TargetIdle,
		SourceEnded:    TargetIdle,
	},
	TargetErrored: {
		LinkUp:         TargetBroadcasting,
		LinkImpossible: TargetFatal,
		SourceLost:     TargetIdle,
		SourceEnded:    TargetIdle,
	},
	TargetFatal: {SourceEnded: TargetIdle},
}

// NextTarget returns the state after f, and false where f means nothing here.
func NextTarget(s TargetState, f TargetFact) (TargetState, bool) {
	if s == "" { // stored before targets had states
		s = TargetIdle
	}
	to, ok := nextTarget[s][f]
	return to, ok
}
