// Package playback delivers media over HTTP: multivariant and media playlists, init segments, segments, parts, text. It
// asks a Source what a playback ID stands for, and knows nothing of databases, publishers or token formats. It starts
// no goroutine.
package playback

import (
	"context"
	"time"

	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
)

// Source resolves playback IDs; internal/presentation implements it. Errors are faults: NotFound (404), Denied (403),
// NotReady (412: players ask again), Unavailable (503).
type Source interface {
	// Open's Permit is valid beside an error too, where the request may know that there is something.
	Open(ctx context.Context, r Request) (Presentation, Permit, error)
	// Master is the original of an asset, which anybody gets who has its address. Denied: the address is wrong, or its
	// time is over.
	Master(ctx context.Context, asset, expires, signature string) (File, error)
}

// Renditions is what viewers may see of one broadcast or recording: a set of renditions with their playlists. Whatever
// is to be watched is one: a Broadcast's view, a recording, and either of them encrypted. The media never changes under
// a name once it was listed.
type Renditions interface {
	// Multivariant is the playlist of playlists; URIs are relative to {media}/ below the playback ID. NotReady: nothing
	// to play yet, or nothing of the clip in one of the playlists. Players ask again for this one, and give up over
	// those it leads to.
	Multivariant(ctx context.Context, c Clip) (*hls.Multivariant, error)
	// Pictures are all renditions of video that Playlist and Chunk give, also those that no playlist lists. NotReady:
	// there is nothing to play yet.
	Pictures(ctx context.Context) ([]hls.Picture, error)
	// Playlist is a rendition's media playlist, compressed with gzip if asked. It waits when r asks for what is not
	// there yet.
	Playlist(ctx context.Context, rendition string, r Reload, compressed bool) (Text, error)
	// Chunk is an initialization segment, a segment or a part. The caller closes the body's Reader.
	Chunk(ctx context.Context, rendition string, r hls.Resource) (Body, error)
	// Covers reports whether a segment or part has something of a clip. Initialization segments and what is not there
	// yet are covered.
	Covers(ctx context.Context, rendition string, r hls.Resource, c Clip) (bool, error)
}

// Presentation is something to watch: renditions with what belongs to them.
type Presentation interface {
	Renditions

	// Media names the recording in URLs, so that a live stream's next broadcast has other URLs.
	Media() string
	// Began is when the broadcast began that is watched; zero: it is none.
	Began() time.Time
	// Description is what its owner tells viewers of it.
	Description() Description
	// Sidecar is a whole text track as WebVTT.
	Sidecar(ctx context.Context, track string) (Body, error)
	// Image is a picture of what there is to watch, or the text that leads to pictures, by its name and query; base is
	// the address of the playback ID, without a slash at the end.
	Image(ctx context.Context, name, query, base string) (Image, error)
	// Tiles are a clip's images for trick play; URIs are relative to {media}/. NotFound: there are none.
	Tiles(ctx context.Context, c Clip) (*hls.Tiles, error)
	// File is a file to download by its name. NotReady: it is being made.
	File(ctx context.Context, name string) (File, error)
	// Earlier is what was watched under an earlier media's name, for as long as it is kept: a live stream's changes
	// with each broadcast. NotFound: there is none.
	Earlier(ctx context.Context, media string) (Presentation, error)
}

// Observer is a ResponseWriter that wants to know what is played.
type Observer interface {
	// Playing is called once for each request that leads to something, before its response; live: to a broadcast, and
	// not to a recording.
	Playing(live bool)
}

// Image is a response that may change.
type Image struct {
	Body
	MaxAge int // seconds it may be cached
}

// Reload is what a playlist request asks for beyond the playlist, RFC 8216bis section 6.2.5.
type Reload struct {
	MSN  int64 // _HLS_msn; -1: not given
	Part int   // _HLS_part; -1: not given
	Skip bool  // _HLS_skip=YES or v2
	Clip Clip
	// TextHoldBack: PART-HOLD-BACK is that of the text renditions, section 4.4.3.8.
	TextHoldBack bool
}

// Text is a playlist.
type Text struct {
	Data   []byte
	MaxAge int // seconds it may be cached
	At     At  // of a broadcast: how far it goes
}

// At is how far a playlist of a broadcast goes.
type At struct {
	// Revision counts the changes of what any of its playlists shows, this one's among them.
	Revision uint64
	Next     int64  // media sequence number of the first segment that is not whole
	Parts    int    // of that one that are listed
	Before   int    // parts that the segment before it has or had
	Ended    bool   // nothing is added any more
	Hint     string // URI of the part that comes next; empty: the playlist says none
}

// Reached reports whether the playlist is a response to a request: it lists the segment or part that is asked for, or
// says that there is no more. A part behind the last one of a segment stands for the first one of the next.
func (a At) Reached(r Reload) bool {
	switch {
	case a.Ended || r.MSN < a.Next-1:
		return true
	case r.MSN == a.Next-1:
		return r.Part < a.Before || a.Parts > 0
	}
	return r.MSN == a.Next && r.Part >= 0 && r.Part < a.Parts
}

// Body is media: Data, or Size bytes from Reader.
type Body = delivered.Body
