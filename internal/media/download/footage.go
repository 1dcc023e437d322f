package download

import "context"

// Want is what a file is to hold.
type Want struct {
	Sound    bool // no picture
	Short    int  // the most pixels of the picture's shorter side; 0: as many as viewers get
	Original bool // everything as it came in, whether or not players can play it
	// Spare is where segments go that have to be encoded for this file alone, as the beginning of a storage key that
	// ends in a slash.
	Spare string
}

// Footage is what a file is made of.
type Footage struct {
	Zero          float64 // media time, in seconds, at which the presentation begins
	Renditions    []Rendition
	Width, Height int       // of the picture, in pixels
	Spans         []float64 // borders of the segments, in seconds of the presentation: one more than there are segments
	// EncodeAudio says that the sound, which is the last rendition, has to be encoded: it is of several pieces, has
	// holes, or is of a codec that phones don't have in an MP4.
	EncodeAudio          bool
	SampleRate, Channels int // of the sound
	// Fill makes a segment of the picture that nobody has watched yet, and reports whether there was anything to do;
	// nil where nothing is to be encoded.
	Fill func(ctx context.Context, msn int64) (made bool, err error)
}
