package dashboard

import (
	"cmp"
	"slices"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/web/iframe"
)

// shared is a public playback ID, with what is given to viewers and to other sites.
type shared struct {
	ID       id.Playback
	Watch    string // the address of the watch page
	Playlist string
	Embed    string // an iframe of the embed page, as oEmbed gives it; empty: no site may have one
}

// share gives the public ones of playback IDs. The title is that of the player, shape the size of the picture; zero: it
// is not known.
func (s *server) share(e access.Environment, ids []playbackid.ID, title string, shape iframe.Size) []shared {
	var out []shared
	for _, p := range ids {
		if p.Policy != playbackid.Public {
			continue
		}
		name := string(p.ID)
		one := shared{ID: p.ID, Watch: s.PublicURL + "/watch/" + name, Playlist: s.PublicURL + "/" + name + ".m3u8"}
		if e.FrameAncestors != access.FrameNone {
			one.Embed = iframe.Code(s.PublicURL+"/embed/"+name, title, shape.Filling(iframe.Usual))
		}
		out = append(out, one)
	}
	return out
}

// shareStream gives the public playback IDs of a live stream. Its picture is as large as that of its newest broadcast.
func (s *server) shareStream(e access.Environment, v stream, recordings []video) []shared {
	newest := v.ActiveAsset
	if n := len(v.RecentAssets); newest == "" && n > 0 {
		newest = v.RecentAssets[n-1]
	}
	var shape iframe.Size
	if i := slices.IndexFunc(recordings, func(a video) bool { return a.ID == newest }); i >= 0 {
		shape = iframe.Size{Width: recordings[i].Facts.Width, Height: recordings[i].Facts.Height}
	}
	return s.share(e, v.PlaybackIDs, cmp.Or(v.Settings.Meta.Title, "Live stream"), shape)
}

// shareAsset gives the public playback IDs of an asset; none of one that came to nothing.
func (s *server) shareAsset(e access.Environment, v video) []shared {
	if v.Status == asset.Errored {
		return nil
	}
	var shape iframe.Size
	if v.Status == asset.Ready || v.IsLive {
		shape = iframe.Size{Width: v.Facts.Width, Height: v.Facts.Height}
	}
	return s.share(e, v.PlaybackIDs, cmp.Or(v.Options.Meta.Title, "Video"), shape)
}
