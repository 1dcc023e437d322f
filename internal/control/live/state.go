package live

// State is where a stream is in its life.
type State string

// The states.
const (
	Idle         State = "idle"
	Connected    State = "connected" // an encoder is admitted, nothing recorded yet
	Recording    State = "recording" // first frames accepted
	Active       State = "active"    // playable
	Waiting      State = "waiting"   // the encoder left before there was anything to play; it may come back
	Reconnecting State = "reconnecting"
	Disabled     State = "disabled"
)

// Status is what the API shows of a state.
func (s State) Status() Status {
	switch s {
	case Active, Reconnecting:
		return StatusActive
	case Disabled:
		return StatusDisabled
	case Idle, Connected, Recording, Waiting:
	}
	return StatusIdle
}

// HasEncoder reports whether an encoder is connected.
func (s State) HasEncoder() bool { return s == Connected || s == Recording || s == Active }

// Records reports whether what an encoder sends is being recorded.
func (s State) Records() bool { return s == Recording || s == Active }

// StatesOf lists the states that the API shows as s.
func StatesOf(s Status) []State {
	var out []State
	for _, st := range []State{Idle, Connected, Recording, Active, Waiting, Reconnecting, Disabled} {
		if st.Status() == s {
			out = append(out, st)
		}
	}
	return out
}

// Fact is something that happened; facts come from the media plane, from a timer or from the API.
type Fact string

// The facts.
const (
	PublisherConnected Fact = "publisher_connected"
	FirstFrames        Fact = "first_frames"
	Playable           Fact = "playable"
	PublisherLost      Fact = "publisher_lost"
	BroadcastEnded     Fact = "broadcast_ended" // the window has passed, or an EndReason
	DisabledByOwner    Fact = "disabled_by_owner"
	EnabledByOwner     Fact = "enabled_by_owner"
)

// A stream that is disabled (and perhaps enabled again) while a broadcast runs still has that broadcast until it ends:
// hence BroadcastEnded in Disabled and Idle.
var next = map[State]map[Fact]State{
	Idle: {PublisherConnected: Connected, DisabledByOwner: Disabled, BroadcastEnded: Idle},
	Connected: {
		FirstFrames:     Recording,
		Playable:        Active,
		PublisherLost:   Waiting,
		BroadcastEnded:  Idle,
		DisabledByOwner: Disabled,
	},
	Recording:    {Playable: Active, PublisherLost: Waiting, BroadcastEnded: Idle, DisabledByOwner: Disabled},
	Active:       {PublisherLost: Reconnecting, BroadcastEnded: Idle, DisabledByOwner: Disabled},
	Waiting:      {PublisherConnected: Connected, BroadcastEnded: Idle, DisabledByOwner: Disabled},
	Reconnecting: {PublisherConnected: Active, BroadcastEnded: Idle, DisabledByOwner: Disabled},
	Disabled:     {EnabledByOwner: Idle, BroadcastEnded: Disabled},
}

// Next returns the state after f, and false where f means nothing here.
func Next(s State, f Fact) (State, bool) {
	to, ok := next[s][f]
	return to, ok
}
