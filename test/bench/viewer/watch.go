package viewer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stream is one rendition that is being watched.
type Stream struct {
	lists, media *Client
	url          string // of the media playlist
	playlist     *Playlist
	seen         map[string]bool
}

// Seen is one new part, or segment where there are no parts.
type Seen struct {
	Part
	Listed  time.Time // the playlist with it was read
	Arrived time.Time // its last byte was read
	Body    []byte    // until the next request
}

// Tune waits until a stream is playable, asking every so often, and returns its renditions, the video first.
func Tune(ctx context.Context, addr, path string, every time.Duration) ([]*Stream, error) {
	c := NewClient(addr)
	c.Gzip = true
	defer c.Close()
	for {
		streams, err := tune(c, addr, path)
		if err == nil && len(streams) > 0 {
			return streams, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s to be playable: %w (last: %w)", path, context.Cause(ctx), err)
		case <-time.After(every):
		}
	}
}

// Watch reads one media playlist by its path.
func Watch(addr, url string) (*Stream, error) {
	s := &Stream{lists: NewClient(addr), media: NewClient(addr), url: url, seen: map[string]bool{}}
	s.lists.Gzip = true
	return s, s.load(url)
}

func tune(c *Client, addr, path string) ([]*Stream, error) {
	r, at, err := c.Get(path)
	if err != nil || r.Status != 200 {
		return nil, responseError(err, r)
	}
	var out []*Stream
	for _, uri := range ParseMultivariant(r.Body) {
		s := &Stream{lists: NewClient(addr), media: NewClient(addr), url: Resolve(at, uri), seen: map[string]bool{}}
		s.lists.Gzip = true
		s.lists.cookie, s.media.cookie = c.cookie, c.cookie
		if err := s.load(s.url); err != nil {
			return nil, err
		}
		if len(s.playlist.Segments)+len(s.playlist.Parts) == 0 {
			return nil, fmt.Errorf("%s lists nothing yet", s.url)
		}
		out = append(out, s)
	}
	return out, nil
}

func responseError(err error, r *Response) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("status %d", r.Status)
}

// Close ends the connections.
func (s *Stream) Close() { s.lists.Close(); s.media.Close() }

// Playlist is the newest one read; URL is where it stands.
func (s *Stream) Playlist() *Playlist { return s.playlist }

// URL is the path of the media playlist.
func (s *Stream) URL() string { return s.url }

func (s *Stream) load(url string) error {
	r, at, err := s.lists.Get(url)
	if err != nil || r.Status != 200 {
		return responseError(err, r)
	}
	if url == s.url {
		s.url = at
	}
	s.playlist = ParseMedia(r.Body)
	return nil
}

// Reload reads the playlist again.
func (s *Stream) Reload() error { return s.load(s.url) }

// newest lists the parts, or the segments where there are none.
func (s *Stream) newest() []Part {
	if s.playlist.PartTarget > 0 {
		return s.playlist.Parts
	}
	return s.playlist.Segments
}

// Skip marks what is listed now as seen.
func (s *Stream) Skip() {
	for _, p := range s.newest() {
		s.seen[p.URI] = true
	}
}

// Fetch reads one resource of the stream.
func (s *Stream) Fetch(uri string) ([]byte, error) {
	r, _, err := s.media.Get(Resolve(s.url, uri))
	if err != nil || r.Status != 200 {
		return nil, responseError(err, r)
	}
	return r.Body, nil
}

// Follow watches by blocking reloads, or by asking twenty times a second where the server has none, until ctx ends. It
// fetches every new part and shows it. Errors are counted, not fatal: a viewer tries again.
func (s *Stream) Follow(ctx context.Context, show func(Seen)) (failed int) {
	for ctx.Err() == nil {
		url := s.url
		if s.playlist.PartTarget > 0 {
			sep := "?"
			if strings.Contains(url, "?") {
				sep = "&"
			}
			url += sep + "_HLS_msn=" + strconv.FormatInt(s.playlist.NextMSN, 10) + "&_HLS_part=" +
				strconv.Itoa(s.playlist.NextPart)
		} else {
			pause(ctx, 50*time.Millisecond)
		}
		if err := s.load(url); err != nil {
			failed++
			pause(ctx, 50*time.Millisecond)
			if err := s.load(s.url); err != nil {
				continue
			}
		}
		listed := time.Now()
		for _, p := range s.newest() {
			if s.seen[p.URI] {
				continue
			}
			s.seen[p.URI] = true
			body, err := s.Fetch(p.URI)
			if err != nil {
				failed++
				continue
			}
			show(Seen{Part: p, Listed: listed, Arrived: time.Now(), Body: body})
		}
	}
	return failed
}

// FollowHints watches by asking for each preload hint, which the server holds until the part is there.
func (s *Stream) FollowHints(ctx context.Context, show func(Seen)) (failed int) {
	for ctx.Err() == nil {
		hint := s.playlist.Hint
		body, err := s.Fetch(hint)
		now := time.Now()
		if err != nil {
			failed++
		} else {
			show(Seen{Part: Part{URI: hint}, Listed: now, Arrived: now, Body: body})
		}
		if err := s.load(s.url); err != nil {
			failed++
		}
		if s.playlist.Hint == hint {
			pause(ctx, 5*time.Millisecond)
		}
	}
	return failed
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
