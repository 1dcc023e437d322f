package playback

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Use is what a request is for, of the things that are permitted apart.
type Use int

// The uses.
const (
	ToWatch Use = iota // playlists, media, texts, files
	ToThumbnail
	ToAnimated
	ToStoryboard
)

// Request is what decides whether something may be sent.
type Request struct {
	PlaybackID string
	Use        Use
	Tokens     []string // values of the query's token
	Path       string   // the segment of the path behind the playback ID that a permit has given; empty: none
	Referrers  []string // of the field Referer
	UserAgents []string
}

// Permit is what a viewer may have. The zero value is that of a public playback ID.
type Permit struct {
	Signed bool
	// Path is the segment of the path, behind the playback ID, below which the rest can be had without the token.
	Path string
	// Query holds in place of the modifiers of the request, which anybody may write.
	Query string
	// Until is how long caches may keep what is sent. Zero: not at all.
	Until time.Time
	// Shared reports whether caches may give what is sent to anyone who asks for the same URL.
	Shared bool
}

// pathPrefix is how the segment of a permit begins: as that of nothing else behind a playback ID.
const pathPrefix = "signed-"

// logged is the path of a request as the log may have it: without the segment of a permit, which lets in who reads it.
func logged(r *http.Request) string {
	before, permit, found := strings.Cut(r.URL.Path, "/"+pathPrefix)
	if !found {
		return r.URL.Path
	}
	_, name, _ := strings.Cut(permit, "/")
	return before + "/" + pathPrefix + "…/" + name
}

// maxTokens is how many tokens are looked at, to say that there is more than one.
const maxTokens = 2

// tokensOf are the values of token in a query.
func tokensOf(query string) (found []string) {
	if !strings.Contains(query, "token") {
		return nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name != "token" {
			if plain, err := url.QueryUnescape(name); err != nil || plain != "token" {
				continue
			}
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		if found = append(found, value); len(found) == maxTokens {
			break
		}
	}
	return found
}

// Modifiers that what is behind a multivariant playlist, and behind the text of a storyboard, depends on.
var (
	carriedToWatch = append([]string{"max_resolution", "min_resolution"}, passedNames...)                     //nolint:gochecknoglobals // constants
	carriedToTiles = []string{"asset_start_time", "asset_end_time", "program_start_time", "program_end_time"} //nolint:gochecknoglobals // constants
)

// Carried are the modifiers of a token, in the form of a query, that hold for what is behind its multivariant playlist
// or storyboard too.
func Carried(modifiers url.Values, u Use) string {
	names := carriedToWatch
	if u == ToStoryboard {
		names = carriedToTiles
	}
	out := url.Values{}
	for name, v := range modifiers {
		if slices.Contains(names, name) {
			out[name] = v
		}
	}
	return out.Encode()
}

// query is what modifiers are read from.
func (p Permit) query(r *http.Request) string {
	if p.Signed {
		return p.Query
	}
	return r.URL.RawQuery
}

// viewing is a presentation as one request may have it.
type viewing struct {
	Presentation

	id     string // playback ID
	permit Permit
	below  bool // the request came by the path of a permit
}

// base is what URLs of a presentation begin with, relative to the multivariant playlist.
func (vw viewing) base() string {
	if vw.permit.Path == "" {
		return vw.id
	}
	return vw.id + "/" + vw.permit.Path
}

// imageQuery is what the parameters of an image are read from. Official players write format and program_… beside a
// token; below a signed path the pictures of a storyboard are asked for by their times, within what the token allows.
func (vw viewing) imageQuery(r *http.Request) string {
	if !vw.permit.Signed {
		return r.URL.RawQuery
	}
	asked := r.URL.Query()
	out, err := url.ParseQuery(vw.permit.Query)
	if err != nil { // it was encoded by the service
		return ""
	}
	for _, name := range []string{"format", "program_time", "program_start_time", "program_end_time"} {
		if v := asked.Get(name); v != "" && !out.Has(name) {
			out.Set(name, v)
		}
	}
	if vw.below {
		narrow(out, asked)
	}
	return out.Encode()
}

// narrow makes a stretch of the asset the part of it that is asked for.
func narrow(out, asked url.Values) {
	number := func(v url.Values, name string) (float64, bool) {
		n, err := strconv.ParseFloat(v.Get(name), 64)
		return n, err == nil
	}
	for _, name := range []string{"asset_start_time", "program_start_time"} {
		if from, ok := number(asked, name); ok {
			if least, bounded := number(out, name); !bounded || from > least {
				out.Set(name, asked.Get(name))
			}
		}
	}
	for _, name := range []string{"asset_end_time", "program_end_time"} {
		if to, ok := number(asked, name); ok {
			if most, bounded := number(out, name); !bounded || to < most {
				out.Set(name, asked.Get(name))
			}
		}
	}
}

// cacheControl is for what may be kept for so many seconds. What was sent for a token is for nobody else, and that for
// a path ends with it.
func (p Permit) cacheControl(seconds int) string {
	scope := "public"
	if p.Signed {
		if p.Until.IsZero() {
			return "private, no-store"
		}
		if !p.Shared {
			scope = "private"
		}
	}
	var scratch [64]byte
	b := strconv.AppendInt(append(append(scratch[:0], scope...), ", max-age="...), int64(p.lifetime(seconds)), 10)
	if seconds == forever {
		b = append(b, ", immutable"...)
	}
	return string(b)
}

// lifetime bounds how long something may be kept, in seconds.
func (p Permit) lifetime(seconds int) int {
	if p.Until.IsZero() {
		return seconds
	}
	return max(min(seconds, int(time.Until(p.Until)/time.Second)), 0)
}
