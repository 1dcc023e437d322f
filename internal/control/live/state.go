package live

// State is where a stream is in its life.
type State string

// The states.
const (
	Idle         State = "idle"
	Connected    State = "connected" // an encoder is admitted, nothing recorded yet
	Recording    State = "recording" // first frames accepted
	Active       State = "active"    // playable
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
	case Idle, Connected, Recording:
	}
	return StatusIdle
}
