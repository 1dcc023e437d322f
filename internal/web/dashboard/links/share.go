// Package links makes the links that viewers are given: public addresses, and signed links. It must never know whether
// a playback ID is that of a live stream or of an asset. It starts no goroutines.
package links

import (
	"slices"
	"strings"

	"millrace/internal/control/access"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/web/iframe"
)

// Shared is a public playback ID, with what is given to viewers and to other sites.
type Shared struct {
	ID       id.Playback
	Watch    string // the address of the watch page
	Playlist string
	Embed    string // an iframe of the embed page, as oEmbed gives it; empty: no site may have one
}

// Share gives the public ones of playback IDs. The title is that of the player, shape the size of the picture; zero: it
// is not known.
func (mk *Maker) Share(e access.Environment, ids []playbackid.ID, title string, shape iframe.Size) []Shared {
	var out []Shared
	for _, p := range ids {
		if p.Policy != playbackid.Public {
			continue
		}
		name := string(p.ID)
		one := Shared{ID: p.ID, Watch: mk.PublicURL + "/watch/" + name, Playlist: mk.PublicURL + "/" + name + ".m3u8"}
		if e.FrameAncestors != access.FrameNone {
			one.Embed = iframe.Code(mk.PublicURL+"/embed/"+name, title, shape.Filling(iframe.Usual))
		}
		out = append(out, one)
	}
	return out
}

// Public is the first playback ID that everybody may use; empty: there is none.
func Public(ids []playbackid.ID) id.Playback {
	for _, p := range ids {
		if p.Policy == playbackid.Public {
			return p.ID
		}
	}
	return ""
}

// Named reports whether a text is one of the playback IDs.
func Named(ids []playbackid.ID, want string) bool {
	return slices.ContainsFunc(ids, func(p playbackid.ID) bool { return strings.EqualFold(string(p.ID), want) })
}
