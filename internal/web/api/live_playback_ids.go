package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

type livePlaybackIDs struct {
	live live.API
	now  func() time.Time
}

func (l livePlaybackIDs) register(on *server) {
	handle(on, route{
		method: http.MethodPost, path: liveItem + "/playback-ids", id: "create-live-stream-playback-id", tag: liveTag,
		status: http.StatusCreated, permission: videoWrite, summary: "Add a playback ID to a live stream",
	}, l.create)
	handle(on, route{
		method:     http.MethodGet,
		path:       liveItem + "/playback-ids/{playback_id}",
		id:         "get-live-stream-playback-id",
		tag:        liveTag,
		permission: videoRead,
		summary:    "Retrieve a playback ID of a live stream",
	}, l.get)
	handle(on, route{
		method:     http.MethodDelete,
		path:       liveItem + "/playback-ids/{playback_id}",
		id:         "delete-live-stream-playback-id",
		tag:        liveTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a playback ID of a live stream",
		text:       "New viewers are refused at once; current viewers may continue for a while.",
	}, l.delete)
}

type createLivePlaybackIDInput struct {
	LiveRef
	Body PlaybackIDCreate
}

type livePlaybackRef struct {
	LiveRef
	Playback string `path:"playback_id" maxLength:"255"`
}

func (l livePlaybackIDs) create(ctx context.Context, in *createLivePlaybackIDInput) (*one[PlaybackID], error) {
	p, err := l.live.AddPlaybackID(ctx, environment(ctx), in.id(), in.Body.request(), l.now())
	return just(playbackIDOf(p)), err
}

func (l livePlaybackIDs) get(ctx context.Context, in *livePlaybackRef) (*one[PlaybackID], error) {
	p, err := l.live.GetPlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback))
	return just(playbackIDOf(p)), err
}

func (l livePlaybackIDs) delete(ctx context.Context, in *livePlaybackRef) (*none, error) {
	return &none{}, l.live.DeletePlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback), l.now())
}
