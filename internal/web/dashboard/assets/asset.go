package assets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/links"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/iframe"
)

const (
	assetItem = shell.AssetsPath + "/{asset}"
	maxEvents = 20 // that the page of an asset shows
)

func (rm *room) routeAsset() {
	tracks, losses := &tracks{rm}, &losses{rm}
	rm.Links.Add(assetItem, rm.linkedAsset)
	rm.Handle("POST "+addCodePath, "", shell.Writes, rm.showAddCode)
	rm.Handle("POST "+assetItem+"/code", "", shell.Writes, rm.showNameCode)
	rm.Handle("POST "+assetItem+"/clips/code", "", shell.Writes, rm.showClipCode)
	rm.Handle("POST "+assetItem+"/tracks/code", "", shell.Writes, rm.showAddTrackCode)
	rm.Handle("POST "+assetItem+"/tracks/{track}/code", "", shell.Writes,
		shell.With(tracks.readTrack, tracks.showTrackCode))
	rm.Handle("GET "+assetItem, "", shell.Reads, rm.showAsset)
	rm.Handle("GET "+assetItem+"/follow", "", shell.Reads, rm.followAsset)
	rm.Handle("POST "+assetItem+"/playback-ids", "create-asset-playback-id", shell.Writes, rm.addPlaybackID)
	rm.Handle("POST "+assetItem, "update-asset", shell.Writes, rm.editAsset)
	rm.Handle("POST "+assetItem+"/clips", "create-asset", shell.Writes, shell.With(rm.load, rm.clip))
	rm.Handle("POST "+assetItem+"/tracks", "create-asset-track", shell.Writes, rm.addTrack)
	rm.Handle("GET "+assetItem+"/tracks/{track}", "", shell.Writes, shell.With(tracks.readTrack, tracks.showTrack))
	rm.Handle("POST "+assetItem+"/tracks/{track}", "update-asset-track", shell.Writes,
		shell.With(tracks.readTrack, tracks.editTrack))
	for path, l := range lossesByPath {
		rm.Handle("GET "+assetItem+path, "", shell.Writes, losses.askLoss(path))
		rm.Handle("POST "+assetItem+path, l.operation, shell.Writes, losses.lose(path))
	}
}

// assetPage is the page of an asset.
type assetPage struct {
	Video

	Follow string // the address of the events that change the page
	Shown  []playback
	Shared []links.Shared
	Events []event.Event

	Clip     clipForm
	AddTrack trackForm
	Edit     nameForm
}

// Moving reports whether work goes on whose progress no events tell.
func (a assetPage) Moving() bool {
	return a.Working() || slices.ContainsFunc(a.Asset.Tracks, func(t asset.Track) bool {
		return t.Status == asset.TrackPreparing
	}) || slices.ContainsFunc(a.Static.Files, func(f asset.StaticRendition) bool {
		return f.Status == asset.FilePreparing
	})
}

// Picture is its size and frame rate; empty: there is none, or nobody knows.
func (v Video) Picture() string {
	f := v.Facts
	if f.Width <= 0 || f.Height <= 0 {
		return ""
	}
	out := fmt.Sprintf("%d × %d", f.Width, f.Height)
	if f.FrameRate > 0 {
		out += ", " + strconv.FormatFloat(float64(int(f.FrameRate*100+.5))/100, 'f', -1, 64) + " fps"
	}
	return out
}

// Quality is its video quality.
func (v Video) Quality() string { return v.Asset.Quality() }

// Plays reports whether there is something to play, and everybody may.
func (v Video) Plays() bool { return v.Status == asset.Ready && v.Public() != "" }

// TrackView is one of an asset's as its page shows it.
type TrackView struct {
	asset.Track

	Asset Video
}

// Tracks are those of the asset, the picture first, then sound, then text.
func (v Video) Tracks() []TrackView {
	out := shell.Each(v.Asset.Tracks, func(t asset.Track) TrackView { return TrackView{t, v} })
	order := map[asset.TrackType]int{asset.VideoTrack: 0, asset.AudioTrack: 1, asset.TextTrack: 2}
	slices.SortStableFunc(out, func(a, b TrackView) int { return cmp.Compare(order[a.Type], order[b.Type]) })
	return out
}

// Offered is how many tracks players can have.
func (v Video) Offered() (n int) {
	for _, t := range v.Asset.Tracks {
		if t.Status == asset.TrackReady {
			n++
		}
	}
	return n
}

// Title is its name, or what it is.
func (t TrackView) Title() string {
	if n := shell.PlainName(t.Name); n != "" {
		return n
	}
	return t.Kind()
}

// Kind is what it is.
func (t TrackView) Kind() string {
	switch {
	case t.Type == asset.VideoTrack:
		return "Picture"
	case t.Type == asset.AudioTrack && t.Primary:
		return "Sound, main"
	case t.Type == asset.AudioTrack:
		return "Sound"
	case t.ClosedCaptions:
		return "Text, captions"
	}
	return "Text, subtitles"
}

// Ready reports whether players can have it.
func (t TrackView) Ready() bool { return t.Status == asset.TrackReady }

// Failed reports whether it could not be made.
func (t TrackView) Failed() bool { return t.Status == asset.TrackErrored }

// Percent is how far it is made; empty: nobody knows.
func (t TrackView) Percent() string { return percent(t.Progress) }

// Left is how long it still takes; empty: nobody knows.
func (t TrackView) Left() string { return left(t.Pace.Left(t.Asset.Now)) }

// Why says what went wrong.
func (t TrackView) Why() string { return why(t.Errors) }

// Deletable reports whether it may be deleted.
func (t TrackView) Deletable() bool { return t.Type != asset.VideoTrack && !t.Primary }

// Address is where it is deleted and renamed.
func (t TrackView) Address() string { return t.Asset.Address() + "/tracks/" + string(t.ID) }

// FileView is one to download.
type FileView struct {
	asset.StaticRendition

	Address string // empty: there is none
	Now     time.Time
}

// Files are those to download, as far as there are any.
func (v Video) Files() []FileView {
	var out []FileView
	for _, f := range v.Static.Files {
		x := FileView{StaticRendition: f, Now: v.Now}
		if p := v.Public(); p != "" && f.Status == asset.FileReady {
			x.Address = "/" + string(p) + "/" + f.Name
		}
		out = append(out, x)
	}
	return out
}

// Ready reports whether it can be downloaded.
func (f FileView) Ready() bool { return f.Status == asset.FileReady }

// Failed reports whether it could not be made.
func (f FileView) Failed() bool { return f.Status == asset.FileErrored }

// Skipped reports whether the asset has nothing to make it of.
func (f FileView) Skipped() bool { return f.Status == asset.FileSkipped }

// Why says what went wrong.
func (f FileView) Why() string { return why(f.Errors) }

// Percent is how much of it is encoded; empty: nobody knows.
func (f FileView) Percent() string { return percent(f.Progress) }

// Left is how long it still takes; empty: nobody knows.
func (f FileView) Left() string { return left(f.Pace.Left(f.Now)) }

// Big is its size; empty: nobody knows.
func (f FileView) Big() string {
	if f.Size <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f MB", float64(f.Size)/1e6)
}

// playback is one of an asset's playback IDs as its page shows it.
type playback struct {
	playbackid.ID

	Asset Video
}

// Who is who may watch by it.
func (p playback) Who() string {
	switch p.Policy {
	case playbackid.Public:
		return "Everyone with the link"
	case playbackid.Signed:
		return "Only with signed links"
	case playbackid.DRM:
	}
	return "Only with a licence (DRM)"
}

// Address is where it is deleted.
func (p playback) Address() string { return p.Asset.Address() + "/playback-ids/" + string(p.ID.ID) }

func (rm *room) showAsset(r *shell.Request) (shell.View, error) {
	v, err := rm.assetPage(r.Context(), r.Person, assetOf(r))
	return shell.Show("asset", v), err
}

func assetOf(r *shell.Request) id.Asset { return id.Asset(r.PathValue("asset")) }

// assetPage reads all that the page shows.
func (rm *room) assetPage(ctx context.Context, p access.Person, a id.Asset) (assetPage, error) {
	row, err := rm.Assets.Get(ctx, p.Environment.ID, a)
	if err != nil {
		return assetPage{}, err
	}
	v := assetPage{Video: Video{row, rm.Now()}}
	v.Edit = nameForm{Title: row.Options.Meta.Title, Passthrough: row.Options.Passthrough}
	v.AddTrack.Type = string(asset.TextTrack)
	v.Clip.Code, v.AddTrack.Code = rm.clipCode(row, v.Clip), rm.addTrackCode(row, v.AddTrack)
	v.Edit.Code = rm.nameCode(row, v.Edit)
	v.Shared = rm.shareAsset(p.Environment, v.Video)
	v.Follow = v.Address() + "/follow"
	v.Shown = shell.Each(v.PlaybackIDs, func(one playbackid.ID) playback { return playback{one, v.Video} })
	v.Events, err = rm.Events.ListEvents(ctx, event.Query{
		Environment: p.Environment.ID, Object: string(a), NewestFirst: true, Limit: maxEvents,
	})
	return v, err
}

// Guarded is this playback ID, if it plays only with tokens.
func (p playback) Guarded() []links.Guarded {
	return links.GuardedOf([]playbackid.ID{p.ID}, p.Asset.Address())
}

func (rm *room) linkedAsset(r *shell.Request) (links.Linked, error) {
	row, err := rm.load(r)
	if err != nil {
		return links.Linked{}, err
	}
	v := Video{row, rm.Now()}
	l := links.Linked{Title: v.Title(), ListAddress: shell.AssetsPath, ListName: "Assets"}
	return links.LinkedOf(r, links.GuardedOf(row.PlaybackIDs, v.Address()), l)
}

// shareAsset gives the public playback IDs of an asset; none of one that came to nothing.
func (rm *room) shareAsset(e access.Environment, v Video) []links.Shared {
	if v.Status == asset.Errored {
		return nil
	}
	var shape iframe.Size
	if v.Status == asset.Ready || v.IsLive {
		shape = iframe.Size{Width: v.Facts.Width, Height: v.Facts.Height}
	}
	return rm.Links.Share(e, v.PlaybackIDs, cmp.Or(v.Options.Meta.Title, "Video"), shape)
}
