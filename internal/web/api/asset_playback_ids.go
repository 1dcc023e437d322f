package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/id"
)

type assetPlaybackIDs struct {
	assets asset.API
	now    func() time.Time
}

func (a assetPlaybackIDs) register(on *server) {
	handle(on, route{
		method: http.MethodPost, path: assetItem + "/playback-ids", id: "create-asset-playback-id", tag: assetTag,
		status: http.StatusCreated, permission: videoWrite, summary: "Add a playback ID to an asset",
	}, a.create)
	handle(on, route{
		method:     http.MethodGet,
		path:       assetItem + "/playback-ids/{playback_id}",
		id:         "get-asset-playback-id",
		tag:        assetTag,
		permission: videoRead,
		summary:    "Retrieve a playback ID of an asset",
	}, a.get)
	handle(on, route{
		method:     http.MethodDelete,
		path:       assetItem + "/playback-ids/{playback_id}",
		id:         "delete-asset-playback-id",
		tag:        assetTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a playback ID of an asset",
	}, a.delete)
}

type createAssetPlaybackIDInput struct {
	AssetRef
	Body PlaybackIDCreate
}

type assetPlaybackRef struct {
	AssetRef
	Playback string `path:"playback_id" maxLength:"255"`
}

func (a assetPlaybackIDs) create(ctx context.Context, in *createAssetPlaybackIDInput) (*one[PlaybackID], error) {
	p, err := a.assets.AddPlaybackID(ctx, environment(ctx), in.id(), in.Body.request(), a.now())
	return just(playbackIDOf(p)), err
}

func (a assetPlaybackIDs) get(ctx context.Context, in *assetPlaybackRef) (*one[PlaybackID], error) {
	p, err := a.assets.GetPlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback))
	return just(playbackIDOf(p)), err
}

func (a assetPlaybackIDs) delete(ctx context.Context, in *assetPlaybackRef) (*none, error) {
	return &none{}, a.assets.DeletePlaybackID(ctx, environment(ctx), in.id(), id.Playback(in.Playback), a.now())
}
