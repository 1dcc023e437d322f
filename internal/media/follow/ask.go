package follow

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/follow/wire"
)

// response is what an owner has said. Its bytes are shared, and never change.
type response struct {
	data   []byte
	listed wire.Listed // of a playlist
	media  wire.Media  // of media
	film   wire.Film   // of footage
}

// patience is how long a request may take, whatever is waited for: three target durations are never longer.
const patience = 45 * time.Second

// ask sends one request to a node, and takes at most so many bytes. Errors are faults: those of the owner keep their
// kind.
func (f *Follower) ask(ctx context.Context, to Node, of wire.Of, a wire.Ask, most int64) (response, error) {
	if a.What != wire.Changes { // which has a place of its own
		if !f.enter(to.ID) {
			return response{}, fault.New(fault.TooMany,
				"too much is asked of the node that has the live stream: ask again in a moment")
		}
		defer f.leave(to.ID)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent())
	defer cancel()
	target, err := url.Parse(a.Target(of))
	if err != nil {
		return response{}, fault.Wrap(fault.Invalid, err, "the request can't be written")
	}
	r := &http.Request{Method: http.MethodGet, URL: target, Header: http.Header{}}
	res, err := f.opt.Peer.Do(ctx, to, r.WithContext(ctx))
	if err != nil {
		return response{}, silent(ctx, err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if res.StatusCode != http.StatusOK {
		data, failed := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
		if failed != nil {
			return response{}, silent(ctx, failed)
		}
		return response{}, wire.Failed(res.StatusCode, data)
	}
	out, err := headers(a.What, res.Header)
	if err != nil {
		return response{}, err
	}
	if res.ContentLength < 0 || res.ContentLength > most {
		return response{}, fault.New(fault.Internal,
			"the node that has the live stream sends %d bytes of %s, of at most %d", res.ContentLength, a.What, most)
	}
	if !f.read(res.ContentLength) {
		return response{}, fault.New(fault.TooMany, "too much is read of other nodes at a time: ask again in a moment")
	}
	defer f.read(-res.ContentLength)
	out.data = make([]byte, res.ContentLength)
	if _, err = io.ReadFull(res.Body, out.data); err != nil {
		return response{}, silent(ctx, err)
	}
	if n, err := res.Body.Read(make([]byte, 1)); n > 0 || err != nil && err != io.EOF {
		return response{}, fault.Wrap(fault.Internal, err, "the node that has the live stream sends more than it says")
	}
	return out, nil
}

// headers reads what goes with bytes.
func headers(what wire.What, h http.Header) (out response, err error) {
	switch what { //nolint:exhaustive // others have none
	case wire.Playlist:
		out.listed, err = wire.Header[wire.Listed](h, wire.ListedHeader)
	case wire.Chunk:
		out.media, err = wire.Header[wire.Media](h, wire.MediaHeader)
	case wire.Footage, wire.FilmInit, wire.FilmSegment, wire.FilmNewest:
		out.film, err = wire.Header[wire.Film](h, wire.FilmHeader)
	}
	return out, err
}

// silent is the error of a node that could not be asked.
func silent(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); fault.Is(cause, fault.Unavailable) {
		return cause
	}
	return fault.Wrap(fault.Unavailable, err,
		"the node that has the live stream does not respond: ask again in a moment")
}

// enter takes one of the places for requests to a node.
func (f *Follower) enter(n id.Node) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked[n] >= mostAsked {
		return false
	}
	f.asked[n]++
	return true
}

// read takes room for bytes that are being read, or gives it back. One response finds room, however large it is.
func (f *Follower) read(n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 && f.coming > 0 && f.coming+n > f.opt.Bytes {
		return false
	}
	f.coming += n
	return true
}

func (f *Follower) leave(n id.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked[n]--; f.asked[n] == 0 {
		delete(f.asked, n)
	}
}

// most is how many bytes there may be of something.
func most(what wire.What) int64 {
	switch what {
	case wire.About, wire.Changes, wire.Covers, wire.TextSpan:
		return wire.MaxShort
	case wire.Multivariant, wire.Pictures:
		return wire.MaxLists
	case wire.Playlist, wire.Text:
		return wire.MaxText
	case wire.Footage:
		return wire.MaxFilm
	case wire.Chunk, wire.FilmInit, wire.FilmSegment, wire.FilmNewest:
	}
	return delivered.MaxSize
}
