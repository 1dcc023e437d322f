package download

import "context"

// Want is what a file is to hold.
type Want struct {
	Sound    bool // no picture
	Short    int  // the most pixels of the picture's shorter side; 0: as many as viewers get
	Original bool // everything as it came in, whoever can play it
}

// Footage is what a file is made of.
type Footage struct {
	Zero          float64 // media time, in seconds, at which the presentation begins
	Lanes         []Lane
	Width, Height int       // of the picture, in pixels
	Spans         []float64 // borders of the segments, in seconds of the presentation: one more than there are segments
	// Anew says that the sound, which is the last lane, has to be encoded: it is of several pieces, has holes, or is of a codec that phones
	// don't have in an MP4.
	Anew                 bool
	SampleRate, Channels int // of the sound
	// Fill makes a segment of the picture that nobody has watched yet; nil where there is nothing to encode.
	Fill func(ctx context.Context, msn int64) error
	// Spare is where the segments are stored that Fill makes, when nobody will ever watch them; empty: they are a rung of the ladder.
	Spare string
}
