package api

import (
	"context"
	"net/http"

	"millrace/internal/id"
)

const trackItem = assetItem + "/tracks/{track_id}"

type trackRef struct {
	AssetRef
	Track string `path:"track_id" maxLength:"255"`
}

func (s *server) routeTracks() {
	handle(s, route{
		method: http.MethodPost, path: assetItem + "/tracks", id: "create-asset-track", tag: assetTag, status: http.StatusCreated,
		permission: videoWrite, summary: "Add a text or audio track to an asset", text: "The asset must be ready.",
	}, s.createTrack)
	handle(s, route{
		method: http.MethodPatch, path: trackItem, id: "update-asset-track", tag: assetTag, permission: videoWrite,
		summary: "Update a track", text: "Changes only the fields that are sent.",
	}, s.updateTrack)
	handle(s, route{
		method: http.MethodDelete, path: trackItem, id: "delete-asset-track", tag: assetTag, status: http.StatusNoContent,
		permission: videoWrite, summary: "Delete a track", text: "Any text track, and any audio track except the primary one.",
	}, s.deleteTrack)
}

type createTrackInput struct {
	AssetRef
	Body TrackCreate
}

func (s *server) createTrack(ctx context.Context, in *createTrackInput) (*one[Track], error) {
	t, err := s.assets.AddTrack(ctx, environment(ctx), in.id(), in.Body.input(), s.now())
	return just(s.track(t)), err
}

type updateTrackInput struct {
	AssetRef
	Track string `path:"track_id" maxLength:"255"`
	Body  TrackUpdate
}

func (s *server) updateTrack(ctx context.Context, in *updateTrackInput) (*one[Track], error) {
	t, err := s.assets.PatchTrack(ctx, environment(ctx), in.id(), id.Track(in.Track), in.Body.input(), s.now())
	return just(s.track(t)), err
}

func (s *server) deleteTrack(ctx context.Context, in *trackRef) (*none, error) {
	return &none{}, s.assets.DeleteTrack(ctx, environment(ctx), in.id(), id.Track(in.Track), s.now())
}
