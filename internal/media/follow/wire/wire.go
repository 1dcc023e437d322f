// Package wire is the protocol in which nodes follow each other's broadcasts: the requests of a follower, and the
// descriptions and errors with which the owner responds. What comes over the network is bounded and checked here. Pure:
// it must never know sockets, caches, or who watches. It starts no goroutine.
package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
)

// Prefix is that of every path; it has the version of what is said.
const Prefix = "/broadcasts/v1/"

// What is asked for: the last element of a path.
type What string

// What there is.
const (
	About        What = "about"        // which broadcast it is: Description
	Changes      What = "changes"      // waits for a change of what playlists show: Change
	Multivariant What = "multivariant" // hls.Multivariant
	Pictures     What = "pictures"     // []hls.Picture
	Playlist     What = "playlist"     // bytes, with Listed
	Chunk        What = "chunk"        // bytes, with Media
	Covers       What = "covers"       // bool
	Text         What = "text"         // []captions.Cue
	TextSpan     What = "textspan"     // Span
	Footage      What = "footage"      // bytes: a timeline's index, with Film
	FilmInit     What = "filminit"     // bytes: init segment of the video of Footage
	FilmSegment  What = "filmsegment"  // bytes: its segment
	FilmNewest   What = "filmnewest"   // bytes: the newest one that begins with a key frame, with Film
)

// Of says which broadcast is meant. Without Media and Asset it is the one that the live stream's viewers see.
type Of struct {
	Stream id.LiveStream
	Media  id.Media
	Asset  id.Asset
	// Edition is that of the edge that is followed; another one's revisions mean nothing beside it. Empty: any.
	Edition string
}

// Ask is a request about one broadcast. It can be compared: two that are equal have the same response.
type Ask struct {
	What       What         `json:"-"`
	Event      bool         `json:"event,omitempty"`
	Texts      string       `json:"texts,omitempty"` // of the watch, by TextsOf
	Rendition  string       `json:"rendition,omitempty"`
	Resource   hls.Resource `json:"resource,omitzero"`
	MSN        int64        `json:"msn,omitempty"`
	Part       int          `json:"part,omitempty"`
	Skip       bool         `json:"skip,omitempty"`
	Hold       bool         `json:"hold,omitempty"` // of texts
	Clip       Clip         `json:"clip,omitzero"`
	Compressed bool         `json:"compressed,omitempty"`
	Revision   uint64       `json:"revision,omitempty"`
}

// Clip is a playback.Clip. Times of day are RFC 3339; empty: not given.
type Clip struct {
	From  float64 `json:"from,omitempty"`
	To    float64 `json:"to,omitempty"`
	Begin string  `json:"begin,omitempty"`
	End   string  `json:"end,omitempty"`
}

// ClipOf is the other way round.
func ClipOf(c playback.Clip) Clip {
	day := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	return Clip{From: c.From, To: c.To, Begin: day(c.Begin), End: day(c.End)}
}

// Value is the clip.
func (c Clip) Value() (out playback.Clip, err error) {
	out.From, out.To = c.From, c.To
	for text, t := range map[string]*time.Time{c.Begin: &out.Begin, c.End: &out.End} {
		if text == "" {
			continue
		}
		if *t, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return out, fault.Wrap(fault.Invalid, err, "ask: a clip's time of day can't be read")
		}
	}
	return out, nil
}

// Bounds of what is read.
const (
	maxQuery = 32 << 10  // bytes of a request's query
	maxTexts = 256       // text renditions of a watch
	MaxError = 16 << 10  // bytes of an error
	MaxShort = 4 << 10   // bytes of a Description, Change, Span
	MaxLists = 1 << 20   // bytes of a multivariant playlist or of pictures
	MaxText  = 64 << 20  // bytes of a playlist, or of cues
	MaxFilm  = 128 << 20 // bytes of a timeline's index
)

// TextsOf writes how text renditions are offered.
func TextsOf(all []playback.TextName) string {
	if len(all) == 0 {
		return ""
	}
	data, err := json.Marshal(all) //nolint:musttag // Names reads it
	if err != nil {
		return "" // strings always marshal
	}
	return string(data)
}

// Names reads what TextsOf wrote.
func (a Ask) Names() (all []playback.TextName, err error) {
	if a.Texts == "" {
		return nil, nil
	}
	if err = json.Unmarshal([]byte(a.Texts), &all); err != nil || len(all) > maxTexts { //nolint:musttag // see TextsOf
		return nil, fault.Wrap(fault.Invalid, err, "ask: texts can't be read")
	}
	return all, nil
}

// Target is the path and query of a request.
func (a Ask) Target(of Of) string {
	data, err := json.Marshal(a) //nolint:musttag // Parse reads it
	if err != nil {
		data = nil // a clip of no number: the owner refuses it
	}
	q := url.Values{"stream": {string(of.Stream)}, "ask": {string(data)}}
	for name, value := range map[string]string{
		"media": string(of.Media), "asset": string(of.Asset), "edition": of.Edition,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return Prefix + string(a.What) + "?" + q.Encode()
}

// Parse reads a request.
func Parse(u *url.URL) (a Ask, of Of, err error) {
	what, ok := strings.CutPrefix(u.Path, Prefix)
	if !ok || len(u.RawQuery) > maxQuery {
		return a, of, fault.New(fault.Invalid, "the request can't be read")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return a, of, fault.Wrap(fault.Invalid, err, "the query can't be read")
	}
	of = Of{
		Stream: id.LiveStream(q.Get("stream")), Media: id.Media(q.Get("media")), Asset: id.Asset(q.Get("asset")),
		Edition: q.Get("edition"),
	}
	if err = json.Unmarshal([]byte(q.Get("ask")), &a); err != nil { //nolint:musttag // see Target
		return a, of, fault.Wrap(fault.Invalid, err, "ask: can't be read")
	}
	a.What = What(what)
	return a, of, nil
}

// Description says which broadcast a node has.
type Description struct {
	Media   id.Media
	Asset   id.Asset
	Title   string
	Began   time.Time
	Edition string
	Change
}

// Change is a state of a broadcast's edge.
type Change struct {
	Revision uint64   // see playback.At
	Ended    bool     // there will be no other
	Texts    bool     // text renditions are made
	Watched  id.Media // the broadcast that the live stream's viewers see now
}

// Span is from when to when a segment of text goes.
type Span struct{ From, To time.Duration }

// Names of the headers that go with bytes. Each is JSON.
const (
	ListedHeader = "Millrace-Listed"
	MediaHeader  = "Millrace-Media"
	FilmHeader   = "Millrace-Film"
)

// Listed goes with a playlist.
type Listed struct {
	MaxAge int
	At     playback.At
}

// Media goes with a segment, part or init segment; see delivered.Body.
type Media struct {
	Type   string         `json:",omitempty"`
	Text   bool           `json:",omitempty"`
	Length time.Duration  `json:",omitempty"`
	Pixels int            `json:",omitempty"`
	Init   delivered.Init `json:",omitzero"`
	Start  time.Time      `json:",omitzero"`
}

// Film goes with footage: whether there is a newest segment; and with that one: which init segment it has.
type Film struct {
	Live bool `json:",omitempty"`
	Init int  `json:",omitempty"`
}

// Decode reads JSON that another node has sent. What does not fit is an Internal error.
func Decode[T any](data []byte) (v T, err error) {
	if err = json.Unmarshal(data, &v); err != nil {
		return v, garbled(err)
	}
	return v, nil
}

// Header reads JSON from a header that another node has sent.
func Header[T any](h http.Header, name string) (T, error) { return Decode[T]([]byte(h.Get(name))) }

func garbled(err error) error {
	return fault.Wrap(fault.Internal, err, "the node that has the live stream gave a response that can't be read")
}

// Cues are the cues of a document.
func Cues(data []byte) (captions.Document, error) {
	all, err := Decode[[]captions.Cue](data)
	if err != nil || len(all) > captions.MaxCues {
		return captions.Document{}, garbled(err)
	}
	return captions.New(all), nil
}
