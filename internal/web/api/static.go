package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/id"
)

const liveStatic = liveItem + "/new-asset-settings/static-renditions"

// staticRenditions are the operations of files for download: of assets, and of the recordings of live streams.
type staticRenditions struct {
	assets  asset.API
	form    assetForm
	streams liveStreams
	now     func() time.Time
}

func (s staticRenditions) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       assetItem + "/static-renditions",
		id:         "create-asset-static-rendition",
		tag:        assetTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Add a static rendition to an asset",
		text:       "Can't be combined with mp4_support. Resolutions above the source's are skipped.",
	}, s.create)
	handle(on, route{
		method:     http.MethodDelete,
		path:       assetItem + "/static-renditions/{static_rendition_id}",
		id:         "delete-asset-static-rendition",
		tag:        assetTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a static rendition",
	}, s.delete)
	handle(on, route{
		method:     http.MethodPut,
		path:       assetItem + "/mp4-support",
		id:         "update-asset-mp4-support",
		tag:        assetTag,
		permission: videoWrite,
		summary:    "Set an asset's mp4_support",
		text:       "Deprecated: use static renditions. The two can't be combined.",
	}, s.setMP4Support)
	handle(on, route{
		method:     http.MethodPut,
		path:       assetItem + "/master-access",
		id:         "update-asset-master-access",
		tag:        assetTag,
		permission: videoWrite,
		summary:    "Set an asset's master_access",
		text:       "temporary makes the original available as one file for 24 hours.",
	}, s.setMasterAccess)
	handle(on, route{
		method:     http.MethodPut,
		path:       liveStatic,
		id:         "update-live-stream-static-renditions",
		tag:        liveTag,
		permission: videoWrite,
		summary:    "Replace the static renditions of a live stream's recordings",
		text:       "Recordings that have already started stay as they are.",
	}, s.setOfRecordings)
	handle(on, route{
		method:     http.MethodDelete,
		path:       liveStatic,
		id:         "delete-live-stream-static-renditions",
		tag:        liveTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Remove the static renditions from a live stream's recordings",
	}, s.deleteOfRecordings)
}

type createStaticInput struct {
	AssetRef
	Body StaticRenditionCreate
}

func (s staticRenditions) create(ctx context.Context, in *createStaticInput) (*one[StaticRendition], error) {
	f, err := s.assets.AddStatic(ctx, environment(ctx), in.id(), assetopt.StaticRendition(in.Body), s.now())
	return just(wireFile(f)), err
}

type staticRef struct {
	AssetRef
	File string `path:"static_rendition_id" maxLength:"255"`
}

func (s staticRenditions) delete(ctx context.Context, in *staticRef) (*none, error) {
	return &none{}, s.assets.DeleteStatic(ctx, environment(ctx), in.id(), id.StaticRendition(in.File), s.now())
}

// MP4SupportUpdate sets mp4_support.
type MP4SupportUpdate struct {
	MP4Support MP4Support `json:"mp4_support"`
}

type setMP4SupportInput struct {
	AssetRef
	Body MP4SupportUpdate
}

func (s staticRenditions) setMP4Support(ctx context.Context, in *setMP4SupportInput) (*one[Asset], error) {
	a, err := s.assets.SetMP4Support(ctx, environment(ctx), in.id(), string(in.Body.MP4Support), s.now())
	return just(s.form.asset(a)), err
}

// MasterAccessUpdate sets master_access.
type MasterAccessUpdate struct {
	MasterAccess string `json:"master_access" enum:"none,temporary"`
}

type setMasterAccessInput struct {
	AssetRef
	Body MasterAccessUpdate
}

func (s staticRenditions) setMasterAccess(ctx context.Context, in *setMasterAccessInput) (*one[Asset], error) {
	a, err := s.assets.SetMasterAccess(ctx, environment(ctx), in.id(), in.Body.MasterAccess, s.now())
	return just(s.form.asset(a)), err
}

// LiveStaticUpdate replaces the files to download of a live stream's recordings.
type LiveStaticUpdate struct {
	StaticRenditions []StaticRenditionCreate `json:"static_renditions"`
}

type setLiveStaticInput struct {
	LiveRef
	Body LiveStaticUpdate
}

func (s staticRenditions) setOfRecordings(ctx context.Context, in *setLiveStaticInput) (*one[LiveStream], error) {
	list := []assetopt.StaticRendition{}
	for _, r := range in.Body.StaticRenditions {
		list = append(list, assetopt.StaticRendition(r))
	}
	patch := live.PatchInput{NewAsset: &live.NewAssetPatch{StaticRenditions: &list}}
	stream, err := s.streams.live.Patch(ctx, environment(ctx), in.id(), patch, s.now())
	return s.streams.response(ctx, stream, err)
}

func (s staticRenditions) deleteOfRecordings(ctx context.Context, in *LiveRef) (*none, error) {
	patch := live.PatchInput{NewAsset: &live.NewAssetPatch{StaticRenditions: new([]assetopt.StaticRendition)}}
	_, err := s.streams.live.Patch(ctx, environment(ctx), in.id(), patch, s.now())
	return &none{}, err
}
