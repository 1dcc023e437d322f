package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/stalecache"
	"millrace/internal/web/watch"
)

const (
	watchedKept  = 4096            // playback IDs
	framersAfter = 5 * time.Second // a change holds
	aboutAfter   = time.Second     // at the end of a broadcast all its viewers ask at once
)

// watchPage is the page with the player.
func (n *node) watchPage() http.Handler {
	return watch.Handler(watch.Options{Framers: n.framers(), Describe: n.describe()})
}

// framers says which sites may embed the watch page of a playback ID, as its environment has it. Where that is not known, nobody may.
func (n *node) framers() watch.Framers {
	cache := stalecache.New[string, string](watchedKept, framersAfter)
	return func(ctx context.Context, playback string) string {
		sources, err := cache.Get(ctx, playback, clock(), func(ctx context.Context) (string, error) {
			o, err := n.access.Resolve(ctx, id.Playback(playback))
			if err != nil {
				return "", err
			}
			env, err := n.access.Environment(ctx, o.Environment)
			return env.FrameAncestors, err
		})
		if err != nil {
			return access.FrameNone
		}
		return sources
	}
}

// describe says what of a live stream or an asset those may know who may watch it.
func (n *node) describe() watch.Describe {
	cache := stalecache.New[id.Playback, watch.About](watchedKept, aboutAfter)
	return func(ctx context.Context, v watch.Viewer) (watch.About, error) {
		now := clock()
		o, err := n.viewers.Resolve(ctx, id.Playback(v.PlaybackID))
		if err != nil {
			return watch.About{}, err
		}
		if _, err = n.guard.Admit(ctx, o, playback.Request{
			PlaybackID: v.PlaybackID, Use: playback.ToWatch, Tokens: v.Tokens, UserAgents: v.UserAgents,
		}, now); err != nil {
			return watch.About{}, err
		}
		return cache.Get(ctx, o.ID.ID, now, func(ctx context.Context) (watch.About, error) { return n.about(ctx, o) })
	}
}

// about reads what a playback ID leads to.
func (n *node) about(ctx context.Context, o playbackid.Object) (watch.About, error) {
	if o.Kind == playbackid.OfAsset {
		a, err := n.assets.Find(ctx, id.Asset(o.ObjectID))
		return watch.About{Title: a.Options.Meta.Title, State: watch.Video}, err
	}
	s, err := n.streams.Find(ctx, id.LiveStream(o.ObjectID))
	if err != nil {
		return watch.About{}, err
	}
	var recording *asset.Asset
	if s.ActiveAsset == "" && len(s.RecentAssets) > 0 {
		a, err := n.assets.Find(ctx, s.RecentAssets[len(s.RecentAssets)-1])
		if err != nil && !fault.Is(err, fault.NotFound) {
			return watch.About{}, err
		}
		if err == nil {
			recording = &a
		}
	}
	return aboutStream(s, recording), nil
}

// aboutStream is what viewers of a live stream may know; recording is that of the last broadcast, nil: there is none. It
// is led to only where its owner made it public.
func aboutStream(s live.Stream, recording *asset.Asset) watch.About {
	about := watch.About{Title: s.Settings.Meta.Title, State: watch.Ended}
	switch {
	case s.ActiveAsset != "":
		about.State = watch.OnAir
	case len(s.RecentAssets) == 0:
		about.State = watch.Idle
	case recording == nil:
	case recording.IsLive, recording.Status == asset.Preparing:
		about.State = watch.Finishing
	case recording.Status == asset.Ready:
		public := func(p playbackid.ID) bool { return p.Policy == playbackid.Public }
		if i := slices.IndexFunc(recording.PlaybackIDs, public); i >= 0 {
			about.Recording = string(recording.PlaybackIDs[i].ID)
		}
	}
	return about
}
