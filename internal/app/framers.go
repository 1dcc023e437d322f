package app

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/id"
	"millrace/internal/stalecache"
	"millrace/internal/web/watch"
)

const (
	framersKept  = 4096            // playback IDs
	framersAfter = 5 * time.Second // a change holds
)

// watchPage is the page with the player.
func (n *node) watchPage() http.Handler { return watch.Handler(n.framers()) }

// framers says which sites may embed the watch page of a playback ID, as its environment has it. Where that is not known, nobody may.
func (n *node) framers() watch.Framers {
	cache := stalecache.New[string, string](framersKept, framersAfter)
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
