package asset

// Status is where an asset is in its life; it only moves forward.
type Status string

// The statuses.
const (
	Preparing Status = "preparing"
	Ready     Status = "ready"
	Errored   Status = "errored"
)

// TrackStatus is where a track is in its life; it only moves forward.
type TrackStatus string

// The track's statuses.
const (
	TrackPreparing TrackStatus = "preparing"
	TrackReady     TrackStatus = "ready"
	TrackErrored   TrackStatus = "errored"
)

// Fact is something that happened to an asset or to one of its tracks.
type Fact string

// The facts.
const (
	BecamePlayable Fact = "became_playable"
	WorkFailed     Fact = "work_failed"
)

var (
	next = map[Status]map[Fact]Status{
		Preparing: {BecamePlayable: Ready, WorkFailed: Errored},
	}
	nextTrack = map[TrackStatus]map[Fact]TrackStatus{
		TrackPreparing: {BecamePlayable: TrackReady, WorkFailed: TrackErrored},
	}
)

// Next returns the status after f, and false where f means nothing here.
func Next(s Status, f Fact) (Status, bool) {
	to, ok := next[s][f]
	return to, ok
}

// NextTrack is Next for a track.
func NextTrack(s TrackStatus, f Fact) (TrackStatus, bool) {
	to, ok := nextTrack[s][f]
	return to, ok
}
