// Package session repairs the timeline of one publication: it takes frames as an encoder stamped them and writes frames whose
// clock starts at 0 and only grows, with audio and video in the relation in which they came.
//
// It must never know protocols, HLS, files, databases or who watches. It owns no goroutine: every call comes from the
// goroutine of the publication's connection, and only Stats may be called from another one.
package session
