package app

import (
	"context"
	"net/http"
	"slices"
	"time"

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

// watchPage is the pages with the player.
func (n *node) watchPage() http.Handler {
	return watch.Handler(watch.Options{Framers: n.framers(), Describe: n.describe(), PublicURL: n.base})
}

// framers says which sites may embed the pages of a playback ID, as its environment has it.
func (n *node) framers() watch.Framers {
	cache := stalecache.New[string, string](watchedKept, framersAfter)
	return func(ctx context.Context, playback string) (string, error) {
		return cache.Get(ctx, playback, clock(), func(ctx context.Context) (string, error) {
			o, err := n.access.Resolve(ctx, id.Playback(playback))
			if err != nil {
				return "", err
			}
			env, err := n.access.Environment(ctx, o.Environment)
			return env.FrameAncestors, err
		})
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
	public := o.ID.Policy == playbackid.Public
	if o.Kind == playbackid.OfAsset {
		a, err := n.assets.Find(ctx, id.Asset(o.ObjectID))
		if err != nil {
			return watch.About{}, err
		}
		return aboutAsset(a, public), nil
	}
	s, err := n.db.LiveStreams().Find(ctx, id.LiveStream(o.ObjectID))
	if err != nil {
		return watch.About{}, err
	}
	recording, err := n.newestRecording(ctx, s)
	if err != nil {
		return watch.About{}, err
	}
	return aboutStream(s, recording, public), nil
}

// newestRecording is that of a live stream's current or last broadcast; nil: there is none.
func (n *node) newestRecording(ctx context.Context, s live.Stream) (*asset.Asset, error) {
	newest := s.ActiveAsset
	if newest == "" && len(s.RecentAssets) > 0 {
		newest = s.RecentAssets[len(s.RecentAssets)-1]
	}
	if newest == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	a, err := n.assets.Find(ctx, newest)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil //nolint:nilnil // it is deleted
	case err != nil:
		return nil, err
	}
	return &a, nil
}

// aboutAsset is what viewers of an asset may know; public says that everybody may watch it.
func aboutAsset(a asset.Asset, public bool) watch.About {
	about := watch.About{
		Title: a.Options.Meta.Title, State: watch.Video, Public: public && a.Status != asset.Errored,
	}
	if a.Status == asset.Ready || a.IsLive {
		about.Width, about.Height = a.Facts.Width, a.Facts.Height
	}
	return about
}

// aboutStream is what viewers of a live stream may know; recording is that of the current or last broadcast, nil: there
// is none. It is led to only where its owner made it public; public says that everybody may watch the stream.
func aboutStream(s live.Stream, recording *asset.Asset, public bool) watch.About {
	about := watch.About{Title: s.Settings.Meta.Title, State: watch.Ended, Public: public}
	if recording != nil {
		about.Width, about.Height = recording.Facts.Width, recording.Facts.Height
	}
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
