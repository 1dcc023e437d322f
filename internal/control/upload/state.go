package upload

// Status is where an upload is in its life; it only moves forward.
type Status string

// The statuses.
const (
	Waiting      Status = "waiting"       // for the file, or the rest of it
	AssetCreated Status = "asset_created" // the file is there
	Errored      Status = "errored"       // no asset could be made of the file
	Cancelled    Status = "cancelled"
	TimedOut     Status = "timed_out"
)

// Fact is something that happened to an upload.
type Fact string

// The facts.
const (
	FileCame    Fact = "file_came"
	TimePassed  Fact = "time_passed"
	OwnerQuit   Fact = "owner_quit"
	AssetFailed Fact = "asset_failed"
)

var next = map[Status]map[Fact]Status{
	Waiting:      {FileCame: AssetCreated, TimePassed: TimedOut, OwnerQuit: Cancelled, AssetFailed: Errored},
	AssetCreated: {AssetFailed: Errored},
}

// Next returns the status after f, and false where f means nothing here.
func Next(s Status, f Fact) (Status, bool) {
	to, ok := next[s][f]
	return to, ok
}
