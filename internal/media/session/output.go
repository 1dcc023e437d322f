package session

import "millrace/internal/media/frame"

// Output takes repaired frames: what a packager fits. All calls of one publication come from one goroutine, in this
// order: Configure of each kind that is known, Rate if there is video, then frames; Close last and once. An error ends
// the publication.
//
// The clock of the frames starts at 0 with the publication (a stream's or asset's base is added where publications are
// joined). Frames of one kind come in DTS order; between the kinds the order is that of arrival, so audio may run ahead
// of video or behind it.
type Output interface {
	// Configure gives the parameters of a kind: before the first frame of that kind, and again when they change. The
	// second and later ones of a kind come directly after a Discontinuity, unless no frame at all has been written yet.
	// The first one of a kind may come late (audio that joins, a camera that sends video after its audio) and is then
	// no discontinuity.
	Configure(c frame.Config) error

	// Discontinuity says that what follows is not continuous with what came before (a jump of the encoder's clock, new
	// parameters). The clock goes on without a hole all the same. The next video frame is a key frame, and Write of it
	// follows at once unless the video is away (none for 2 s while sound goes on). Audio belongs to the new side when
	// its DTS is not before that key frame's.
	Discontinuity(reason string) error

	// Rate tells the frame rate of the video: once before its first frame and when it changes. constant means that
	// frames stand on a grid of 1/fps seconds and that a frame's Duration is predicted, so that parts can be cut
	// exactly; otherwise fps is the mean, and a Duration is what is sure: the frame lasts until the next one, whenever
	// that comes.
	Rate(fps float64, constant bool) error

	// Write takes a frame. Of each kind the DTS grows strictly and is never before the last DTS + Duration; it is later
	// than that when something was lost (at a constant rate a whole number of intervals; in audio any number of
	// samples), and at a variable rate in any case. A Duration may be up to 1 ms off the interval where a slow drift of
	// the encoder is followed. PTS is never before DTS. Times are absolute to the nanosecond: convert them to a track's
	// time scale by rounding DTS and DTS + Duration, never by summing rounded durations; then 90 kHz and sample-rate
	// ticks come out exact.
	Write(f frame.Frame) error

	// Close ends the publication. cause is why: one of the ingest errors, or what broke the connection.
	Close(cause error) error
}
