// Package slate keeps a recording going while its encoder does not: it stands between the sessions of a broadcast's
// publications and the packager, and writes what is missing. Audio that is missing while pictures go on becomes
// silence, and video that is missing while audio goes on becomes the last picture, held, whether slate is enabled or
// not. Where slate is enabled, and nothing has arrived for a while, a picture of its own with silence follows at the
// pace of real time until media is back; its first half second still shows the last picture. The while is half a second
// once the encoder's connection is gone. While the connection is open, late media can still arrive and continues
// without losing a picture; so slate waits for as long as players have something left to show, and at least half a
// second.
//
// A Writer is the only writer of its broadcast. Each stretch, of an encoder's media or of slate, has an output of its
// own, which continues where the last one ended, after a discontinuity, so that everything that players are promised
// about reconnects holds here too. The rest of the package makes the slate's content: drawn pictures, the operator's
// own image, silence.
//
// It must never know sockets, HLS, storage, who watches, or how pictures are encoded. It owns no goroutine: an
// encoder's frames arrive on their connection's, and the owner calls Tick from one of its own.
package slate

import (
	"time"

	"millrace/internal/media/frame"
)

// Output takes the frames of one stretch; a packager fits, with the session's words (see there). Its clock starts at 0
// with the stretch.
type Output interface {
	Configure(c frame.Config) error
	Discontinuity(reason string) error
	Rate(fps float64, constant bool) error
	Write(f frame.Frame) error
	// Cut has the next key frame begin a segment. slate: what comes stands in for the encoder.
	Cut(slate bool)
	Close(cause error) error
}

const (
	// patience is how long nothing may come before the slate is shown, unless the connection is open and players can
	// wait longer. For so long the last picture stands.
	patience = 500 * time.Millisecond
	// lateness is from when on a Tick is late because the whole process stood still, and so did those that take what
	// encoders have sent. They have as long again.
	lateness = 100 * time.Millisecond
	// alone is by how much one kind may go on without the other before that is filled in. It is a little less than what
	// the packager waits for, which is also what tells a track that is late from one that is away.
	alone = 900 * time.Millisecond
	// uneven is by how much more pictures may stay away at a variable rate, where they do so of themselves.
	uneven = time.Second
	// mostLate is how far behind the other a kind may be and still have its place left free, less than the packager
	// waits; little is not worth that.
	mostLate, little = 4 * time.Second, 300 * time.Millisecond
	// trailing is from when on sound behind the last picture is kept with it, while that stands.
	trailing = 100 * time.Millisecond
	// maxLead bounds how far the recording may be ahead of real time and still be waited for.
	maxLead = 2 * time.Second
	// looked is how long nothing is written for an encoder that is back while its session looks at its first frames.
	looked = 2 * time.Second
	// bearable is how late a key frame of what has piled up may be and be shown all the same: the next one may be far,
	// and until then there would be slate. The recording is ahead of real time by as much.
	bearable = time.Second
	// soundFirst is how long sound that comes back waits for a picture.
	soundFirst = 2 * time.Second
	// defaultRate is the slate's frame rate where the stream has none of its own, in frames per second; maxRate bounds
	// it.
	defaultRate, maxRate = 25, 60
	// kept is how many frames of sound are kept in front of a picture that is about to come back.
	kept = 128
)

// Options configures a Writer; all of it.
type Options struct {
	// Open begins a stretch of the recording that goes on where the last one ended. started is the time of its first
	// frame.
	Open func(slate bool, started time.Time) Output
	// Stands is told that what an encoder sent has ended: its last picture stands from started on, which is slate, too.
	Stands func(started time.Time)
	// Limit is how long a part of the recording's video may be.
	Limit func() time.Duration
	// Lasts is for how long, from when media came last, players can do without anything that follows.
	Lasts func() time.Duration
	// Sooner is told that a Tick may be due sooner than the last one has said. It must not block.
	Sooner func()
	// Held reports whether nothing may be written at the moment, as somebody else may have the recording. What comes
	// meanwhile is written when something may be again. nil: never.
	Held func() bool
	// Room takes so many bytes of memory for what comes meanwhile, or gives them back (below 0); false: there is no
	// room. Not called where Held is nil.
	Room func(bytes int64) bool
	// Now is the time. It never goes back.
	Now func() time.Time
	// Broken is told of an output that failed under the slate, once; the Writer writes no slate any more.
	Broken func(error)
}

// Still is the slate's picture, encoded for one shape of stream: a closed group of pictures that is shown over and
// over.
type Still struct {
	Config frame.Config
	FPS    float64
	// Samples are the group's pictures as ISO BMFF has them, the first one a key frame, in the order of both decoding
	// and presentation.
	Samples [][]byte
}

// Shape is what a Still has to fit.
type Shape struct {
	Codec         frame.Codec
	Width, Height int // pixels
	FPS           float64
}

// Shape is what the still was made for.
func (s *Still) shape() Shape { return Shape{s.Config.Codec, s.Config.Width, s.Config.Height, s.FPS} }
