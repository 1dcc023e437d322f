package ondemand

// A pause is what screen recordings and pictures at a variable rate are full of: for seconds no picture is shown. An
// encoder that reorders pictures has those behind the pause decoded in front of it, and the sample that is decoded last
// before it seems to be shown for as long: players that add up its time of presentation and its duration take the
// segment to end seconds later than it does. So pictures that wait for much longer than others are decoded just before
// they are shown.

const (
	// reorder is how many pictures at most are decoded before one that is shown sooner (H.264, max_num_reorder_frames).
	reorder = 16
	// eager is by how much longer than usual a picture has to wait, in seconds, to be decoded later.
	eager = 0.5
	// longestDelay is the most, in seconds, between decoding and showing that is called usual: with a picture in
	// several seconds it is more.
	longestDelay = 1.0
	// late is by how many seconds the first picture, or sound, may come after the beginning. A picture that comes later
	// is shown from the beginning on, and in front of such sound there is silence.
	late = 0.1
)

// latest is the last moment at which picture i of n can be decoded so that it and all behind it are shown in time.
func latest(i, n int, pts func(int) int64) int64 {
	at := pts(i)
	for j := i + 1; j < min(n, i+reorder+1); j++ {
		at = min(at, pts(j)-int64(j-i))
	}
	return at
}

// usual is how long pictures wait between decoding and showing, given how long the first one does; in ticks of a time
// scale.
func usual(delay int64, timescale uint32) int64 {
	return min(delay, int64(longestDelay*float64(timescale)))
}

// postponed is when a picture is decoded that could be at `nominal`, and must be at `latest`.
func postponed(nominal, latest, usual int64, timescale uint32) int64 {
	if latest-nominal > usual+int64(eager*float64(timescale)) {
		return latest - usual
	}
	return nominal
}
