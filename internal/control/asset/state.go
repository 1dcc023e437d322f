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

// FileStatus is where a file to download is in its life; it only moves forward.
type FileStatus string

// The statuses of files. All files that mp4_support asks for may be disabled together.
const (
	FilePreparing FileStatus = "preparing"
	FileReady     FileStatus = "ready"
	FileSkipped   FileStatus = "skipped"
	FileErrored   FileStatus = "errored"
	FilesDisabled FileStatus = "disabled"
)

// Fact is something that happened to an asset, to one of its tracks or to one of its files.
type Fact string

// The facts.
const (
	BecamePlayable Fact = "became_playable"
	WorkFailed     Fact = "work_failed"
	NothingToMake  Fact = "nothing_to_make" // files only
)

var (
	next = map[Status]map[Fact]Status{
		Preparing: {BecamePlayable: Ready, WorkFailed: Errored},
	}
	nextTrack = map[TrackStatus]map[Fact]TrackStatus{
		TrackPreparing: {BecamePlayable: TrackReady, WorkFailed: TrackErrored},
	}
	nextFile = map[FileStatus]map[Fact]FileStatus{
		FilePreparing: {BecamePlayable: FileReady, WorkFailed: FileErrored, NothingToMake: FileSkipped},
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

// NextFile is Next for a file to download, the master among them.
func NextFile(s FileStatus, f Fact) (FileStatus, bool) {
	to, ok := nextFile[s][f]
	return to, ok
}
