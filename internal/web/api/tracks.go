package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/id"
)

const trackItem = assetItem + "/tracks/{track_id}"

type trackRef struct {
	AssetRef
	Track string `path:"track_id" maxLength:"255"`
}

type tracks struct {
	assets asset.API
	form   assetForm
	now    func() time.Time
}

func (t tracks) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       assetItem + "/tracks",
		id:         "create-asset-track",
		tag:        assetTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Add a text or audio track to an asset",
		text:       "The asset must be ready.",
	}, t.create)
	handle(on, route{
		method: http.MethodPatch, path: trackItem, id: "update-asset-track", tag: assetTag, permission: videoWrite,
		summary: "Update a track", text: "Changes only the fields that are sent.",
	}, t.update)
	handle(on, route{
		method:     http.MethodDelete,
		path:       trackItem,
		id:         "delete-asset-track",
		tag:        assetTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a track",
		text:       "Any text track, and any audio track except the primary one.",
	}, t.delete)
}

type createTrackInput struct {
	AssetRef
	Body TrackCreate
}

func (t tracks) create(ctx context.Context, in *createTrackInput) (*one[Track], error) {
	made, err := t.assets.AddTrack(ctx, environment(ctx), in.id(), in.Body.input(), t.now())
	return just(t.form.track(made)), err
}

type updateTrackInput struct {
	AssetRef
	Track string `path:"track_id" maxLength:"255"`
	Body  TrackUpdate
}

func (t tracks) update(ctx context.Context, in *updateTrackInput) (*one[Track], error) {
	changed, err := t.assets.PatchTrack(ctx, environment(ctx), in.id(), id.Track(in.Track), in.Body.input(), t.now())
	return just(t.form.track(changed)), err
}

func (t tracks) delete(ctx context.Context, in *trackRef) (*none, error) {
	return &none{}, t.assets.DeleteTrack(ctx, environment(ctx), in.id(), id.Track(in.Track), t.now())
}
