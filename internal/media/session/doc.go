// Package session repairs the timeline of one publication: it takes frames as an encoder stamped them and writes frames
// whose clock starts at 0 and only grows, with audio and video in the relation in which they came, at most 40 ms off.
//
// A frame passes three places. continuity finds jumps of the encoder's clock (more than 1 s forwards or 0.5 s
// backwards, on all tracks; of one track when the other shows that it is alone) and closes them, so that a jump becomes
// a discontinuity and never a longer recording; holes that one track has while the other goes on, and holes up to 1 s,
// stay holes. Session finds the origin (the first key frame, or the first sound when no video comes) and tells the
// output about tracks and discontinuities. videoTrack puts pictures on the grid of their frame rate if they have one;
// audioTrack counts samples. Both follow the encoder's clock when it is off for good, and neither adds anything up that
// could drift.
//
// It must never know protocols, HLS, files, databases or who watches. It owns no goroutine: every call comes from the
// goroutine of the publication's connection, and only Stats may be called from another one.
package session
