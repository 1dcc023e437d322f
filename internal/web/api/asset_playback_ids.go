package api

import (
	"context"
	"net/http"

	"millrace/internal/id"
)

func (s *server) routeAssetPlaybackIDs() {
	handle(s, route{
		method: http.MethodPost, path: assetItem + "/playback-ids", id: "create-asset-playback-id", tag: assetTag,
		status: http.StatusCreated, permission: videoWrite, summary: "Add a playback ID to an asset",
	}, s.createAssetPlaybackID)
	handle(s, route{
		method: http.MethodGet, path: assetItem + "/playback-ids/{playback_id}", id: "get-asset-playback-id", tag: assetTag,
		permission: videoRead, summary: "Retrieve a playback ID of an asset",
	}, s.getAssetPlaybackID)
	handle(s, route{
		method: http.MethodDelete, path: assetItem + "/playback-ids/{playback_id}", id: "delete-asset-playback-id", tag: assetTag,
		status: http.StatusNoContent, permission: videoWrite, summary: "Delete a playback ID of an asset",
	}, s.deleteAssetPlaybackID)
}

type createAssetPlaybackIDInput struct {
	AssetRef
	Body PlaybackIDCreate
}

type assetPlaybackRef struct {
	AssetRef
	Playback string `path:"playback_id" maxLength:"255"`
}

func (s *server) createAssetPlaybackID(ctx context.Context, in *createAssetPlaybackIDInput) (*one[PlaybackID], error) {
	p, err := s.assets.AddPlaybackID(ctx, environment(ctx), in.id(), in.Body.request(), s.now())
	return just(playbackIDOf(p)), err
}

func (s *server) getAssetPlaybackID(ctx context.Context, in *assetPlaybackRef) (*one[PlaybackID], error) {
	p, err := s.assets.GetPlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback))
	return just(playbackIDOf(p)), err
}

func (s *server) deleteAssetPlaybackID(ctx context.Context, in *assetPlaybackRef) (*none, error) {
	return &none{}, s.assets.DeletePlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback), s.now())
}
