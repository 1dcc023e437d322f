package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/id"
)

const (
	assetTag  = "Assets"
	assetPath = "/video/v1/assets"
	assetItem = assetPath + "/{asset_id}"
)

// AssetRef names an asset in a path; exported for huma, which reads embedded fields of exported types only.
type AssetRef struct {
	ID string `path:"asset_id" maxLength:"255"`
}

func (a AssetRef) id() id.Asset { return id.Asset(a.ID) }

// assets are the operations of assets.
type assets struct {
	assets asset.API
	form   assetForm
	now    func() time.Time
}

func (a assets) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       assetPath,
		id:         "create-asset",
		tag:        assetTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Create an asset",
		text:       "From the URL of a media file, or as a clip of another asset.",
	}, a.create)
	handle(on, route{
		method: http.MethodGet, path: assetPath, id: "list-assets", tag: assetTag, permission: videoRead,
		summary: "List assets", text: "Newest first, by page or cursor.",
	}, a.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       assetItem,
		id:         "get-asset",
		tag:        assetTag,
		permission: videoRead,
		summary:    "Retrieve an asset",
	}, a.get)
	handle(on, route{
		method: http.MethodPatch, path: assetItem, id: "update-asset", tag: assetTag, permission: videoWrite,
		summary: "Update an asset", text: "Changes only the fields that are sent.",
	}, a.update)
	handle(on, route{
		method:     http.MethodDelete,
		path:       assetItem,
		id:         "delete-asset",
		tag:        assetTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete an asset",
		text: "Deletes its files too, except those still used by a clip, which are kept until the clip is " +
			"deleted.",
	}, a.delete)
	handle(on, route{
		method:     http.MethodDelete,
		path:       assetItem + "/thumbnail-time",
		id:         "delete-asset-thumbnail-time",
		tag:        assetTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Clear an asset's thumbnail_time",
	}, a.deleteThumbnailTime)
	handle(on, route{
		method:     http.MethodGet,
		path:       assetItem + "/input-info",
		id:         "get-asset-input-info",
		tag:        assetTag,
		permission: videoRead,
		summary:    "Retrieve an asset's input info",
	}, a.getInputInfo)
}

type createAssetInput struct{ Body AssetCreate }

func (a assets) create(ctx context.Context, in *createAssetInput) (*one[Asset], error) {
	input, err := in.Body.input()
	if err != nil {
		return nil, err
	}
	input.DefaultQuality = caller(ctx).Environment.VideoQuality
	made, err := a.assets.Create(ctx, environment(ctx), input, a.now())
	return just(a.form.asset(made)), err
}

type listAssetsInput struct {
	Page
	LiveStreamID string `query:"live_stream_id" doc:"Recordings of this live stream."`
	UploadID     string `query:"upload_id" doc:"The asset of this direct upload."`
	Cursor       string `query:"cursor" doc:"The next_cursor of the previous response; page is then ignored."`
}

type listAssetsOutput struct{ Body AssetListResponse }

func (a assets) list(ctx context.Context, in *listAssetsInput) (*listAssetsOutput, error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	assets, next, err := a.assets.List(ctx, environment(ctx), asset.ListQuery{
		LiveStream: id.LiveStream(in.LiveStreamID),
		Upload:     id.Upload(in.UploadID),
		Page:       page,
		Limit:      limit,
		Cursor:     in.Cursor,
	})
	out := AssetListResponse{Data: convert(assets, a.form.asset)}
	if next != "" {
		out.NextCursor = &next
	}
	return &listAssetsOutput{out}, err
}

func (a assets) get(ctx context.Context, in *AssetRef) (*one[Asset], error) {
	found, err := a.assets.Get(ctx, environment(ctx), in.id())
	return just(a.form.asset(found)), err
}

type updateAssetInput struct {
	AssetRef
	Body AssetUpdate
}

func (a assets) update(ctx context.Context, in *updateAssetInput) (*one[Asset], error) {
	changed, err := a.assets.Patch(ctx, environment(ctx), in.id(), in.Body.input(), a.now())
	return just(a.form.asset(changed)), err
}

func (a assets) delete(ctx context.Context, in *AssetRef) (*none, error) {
	return &none{}, a.assets.Delete(ctx, environment(ctx), in.id(), a.now())
}

func (a assets) deleteThumbnailTime(ctx context.Context, in *AssetRef) (*none, error) {
	_, err := a.assets.Patch(ctx, environment(ctx), in.id(), asset.PatchInput{ThumbnailTime: new(*float64)}, a.now())
	return &none{}, err
}

// InputInfo is what was found in one input file.
type InputInfo struct {
	Settings InputSettings `json:"settings"`
	File     InputFile     `json:"file,omitzero"`
}

// InputFile is one input file.
type InputFile struct {
	ContainerFormat string           `json:"container_format,omitempty"`
	Tracks          []InputFileTrack `json:"tracks,omitempty"`
}

// InputFileTrack is one track of an input file.
type InputFileTrack struct {
	Type       string  `json:"type"`
	Duration   float64 `json:"duration,omitempty" doc:"Seconds."`
	Encoding   string  `json:"encoding,omitempty"`
	Width      int     `json:"width,omitempty"`
	Height     int     `json:"height,omitempty"`
	FrameRate  float64 `json:"frame_rate,omitempty" doc:"Frames per second; -1 when unknown."`
	SampleRate int     `json:"sample_rate,omitempty" doc:"Hertz."`
	SampleSize int     `json:"sample_size,omitempty" doc:"Bits."`
	Channels   int     `json:"channels,omitempty"`
}

func (a assets) getInputInfo(ctx context.Context, in *AssetRef) (*many[InputInfo], error) {
	found, err := a.assets.Get(ctx, environment(ctx), in.id())
	if err != nil {
		return nil, err
	}
	if len(found.InputInfo) == 0 { // nothing was looked into yet
		return all(convert(found.Options.Inputs, func(i assetopt.Input) InputInfo {
			return InputInfo{Settings: wireInput(i)}
		})), nil
	}
	return all(convert(found.InputInfo, wireInputInfo)), nil
}

func wireInputInfo(i asset.InputInfo) InputInfo {
	return InputInfo{Settings: wireInput(i.Settings), File: InputFile{
		ContainerFormat: i.File.ContainerFormat,
		Tracks: convert(i.File.Tracks, func(t asset.InputTrack) InputFileTrack {
			t.Duration, t.FrameRate = finite(t.Duration), finite(t.FrameRate)
			return InputFileTrack(t)
		}),
	}}
}
