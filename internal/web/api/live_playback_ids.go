package api

import (
	"context"
	"net/http"

	"millrace/internal/id"
)

func (s *server) routeLivePlaybackIDs() {
	handle(s, route{
		method: http.MethodPost, path: liveItem + "/playback-ids", id: "create-live-stream-playback-id", tag: liveTag,
		status: http.StatusCreated, permission: videoWrite, summary: "Add a playback ID to a live stream",
	}, s.createLivePlaybackID)
	handle(s, route{
		method: http.MethodGet, path: liveItem + "/playback-ids/{playback_id}", id: "get-live-stream-playback-id", tag: liveTag,
		permission: videoRead, summary: "Retrieve a playback ID of a live stream",
	}, s.getLivePlaybackID)
	handle(s, route{
		method: http.MethodDelete, path: liveItem + "/playback-ids/{playback_id}", id: "delete-live-stream-playback-id", tag: liveTag,
		status: http.StatusNoContent, permission: videoWrite, summary: "Delete a playback ID of a live stream",
		text: "New viewers are refused at once; current viewers may continue for a while.",
	}, s.deleteLivePlaybackID)
}

type createLivePlaybackIDInput struct {
	LiveRef
	Body PlaybackIDCreate
}

type livePlaybackRef struct {
	LiveRef
	Playback string `path:"playback_id" maxLength:"255"`
}

func (s *server) createLivePlaybackID(ctx context.Context, in *createLivePlaybackIDInput) (*one[PlaybackID], error) {
	p, err := s.live.AddPlaybackID(ctx, environment(ctx), in.id(), in.Body.request(), s.now())
	return just(playbackIDOf(p)), err
}

func (s *server) getLivePlaybackID(ctx context.Context, in *livePlaybackRef) (*one[PlaybackID], error) {
	p, err := s.live.GetPlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback))
	return just(playbackIDOf(p)), err
}

func (s *server) deleteLivePlaybackID(ctx context.Context, in *livePlaybackRef) (*none, error) {
	return &none{}, s.live.DeletePlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback), s.now())
}
