package assets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// loss is something of an asset that is deleted, and cannot be brought back.
type loss struct {
	operation string
	ask       func(v Video, r *shell.Request) (shell.Question, bool) // false: there is no such thing
	do        func(ctx context.Context, a asset.API, e id.Environment, r *shell.Request, now time.Time) error
	leave     bool // the asset has no page afterwards
}

// losses are by their paths below the asset's.
var lossesByPath = map[string]loss{ //nolint:gochecknoglobals // a table
	"/delete": {
		operation: "delete-asset", ask: askAsset, leave: true,
		do: func(ctx context.Context, a asset.API, e id.Environment, r *shell.Request, now time.Time) error {
			return a.Delete(ctx, e, assetOf(r), now)
		},
	},
	"/tracks/{track}/delete": {
		operation: "delete-asset-track", ask: askTrack,
		do: func(ctx context.Context, a asset.API, e id.Environment, r *shell.Request, now time.Time) error {
			return a.DeleteTrack(ctx, e, assetOf(r), id.Track(r.PathValue("track")), now)
		},
	},
	"/playback-ids/{playback}/delete": {
		operation: "delete-asset-playback-id", ask: askPlaybackID,
		do: func(ctx context.Context, a asset.API, e id.Environment, r *shell.Request, now time.Time) error {
			return a.DeletePlaybackID(ctx, e, assetOf(r), id.Playback(r.PathValue("playback")), now)
		},
	},
}

func askAsset(v Video, _ *shell.Request) (shell.Question, bool) {
	lost := []string{"the video"}
	for _, n := range []struct {
		count     int
		one, many string
	}{
		{len(v.Asset.Tracks), "track", "tracks"},
		{len(v.Static.Files), "file to download", "files to download"},
	} {
		switch {
		case n.count == 1:
			lost = append(lost, "1 "+n.one)
		case n.count > 1:
			lost = append(lost, fmt.Sprintf("%d %s", n.count, n.many))
		}
	}
	text := "It cannot be brought back: " + strings.Join(lost, ", ") + ". "
	switch n := len(v.PlaybackIDs); n {
	case 0:
	case 1:
		text += "Its playback ID and all links with it stop working at once. "
	default:
		text += fmt.Sprintf("Its %d playback IDs and all links with them stop working at once. ", n)
	}
	if v.Growing() {
		text += "It is still being recorded: end the broadcast first, else this is refused. "
	}
	return shell.Question{
		Heading: "Delete this asset?", Name: v.Title(), Text: text + "Clips made from it are kept.",
		Yes: "Delete", No: "Keep it", Class: "harm",
	}, true
}

func askTrack(v Video, r *shell.Request) (shell.Question, bool) {
	i := slices.IndexFunc(v.Asset.Tracks, func(t asset.Track) bool { return string(t.ID) == r.PathValue("track") })
	if i < 0 {
		return shell.Question{}, false
	}
	t := TrackView{v.Asset.Tracks[i], v}
	return shell.Question{
		Heading: "Delete this track?", Name: t.Title(), Yes: "Delete", No: "Keep it", Class: "harm",
		Text: "Players no longer offer it, and it can't be restored. The video and its other tracks are kept.",
	}, true
}

func askPlaybackID(v Video, r *shell.Request) (shell.Question, bool) {
	i := slices.IndexFunc(v.PlaybackIDs, func(p playbackid.ID) bool { return string(p.ID) == r.PathValue("playback") })
	if i < 0 {
		return shell.Question{}, false
	}
	text := "Links and players that use it stop working at once, and it can't be restored. The asset is kept."
	if len(v.PlaybackIDs) == 1 {
		text += " It is the only one: nobody may watch the asset then."
	}
	return shell.Question{
		Heading: "Delete this playback ID?", Name: string(v.PlaybackIDs[i].ID), Text: text,
		Yes: "Delete", No: "Keep it", Class: "harm",
	}, true
}

// loss reads what is asked before.
func (l *losses) loss(r *shell.Request, path string) (shell.Question, Video, error) {
	row, err := l.load(r)
	if err != nil {
		return shell.Question{}, Video{}, err
	}
	v := Video{row, l.Now()}
	q, ok := lossesByPath[path].ask(v, r)
	if !ok {
		return shell.Question{}, v, fault.New(fault.NotFound, "the asset has no such part")
	}
	q.Address, q.ListAddress, q.ListName, q.To = v.Address(), shell.AssetsPath, "Assets", r.URL.EscapedPath()
	return q, v, nil
}

func (l *losses) askLoss(path string) shell.Handler {
	return func(r *shell.Request) (shell.View, error) {
		q, _, err := l.loss(r, path)
		return shell.Show("ask", q), err
	}
}

func (l *losses) lose(path string) shell.Handler {
	return func(r *shell.Request) (shell.View, error) {
		_, v, err := l.loss(r, path)
		if err == nil {
			err = trackStillSo(r, v)
		}
		if err == nil {
			err = lossesByPath[path].do(r.Context(), l.Assets, r.Person.Environment.ID, r, l.Now())
		}
		if err != nil {
			return shell.View{}, err
		}
		if r.Undoes() {
			r.Undoable("", "", nil, nil)
		}
		to := v.Address()
		if lossesByPath[path].leave {
			to = shell.AssetsPath
		}
		return shell.Redirect(to), nil
	}
}

// trackStillSo keeps a track that is to be taken away by who has added it, and was changed since.
func trackStillSo(r *shell.Request, v Video) error {
	for _, t := range v.Asset.Tracks {
		if string(t.ID) == r.PathValue("track") {
			return r.StillSo(trackFormer(t))
		}
	}
	return nil
}
