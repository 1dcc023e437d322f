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
