package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	uploadTag  = "Direct uploads"
	uploadPath = "/video/v1/uploads"
	uploadItem = uploadPath + "/{upload_id}"

	// uploadFiles and tusFiles are where package web/upload takes the files.
	uploadFiles = "/uploads/"
	tusFiles    = "/uploads/tus/"
)

// UploadRef names a direct upload in a path; exported for huma, which reads embedded fields of exported types only.
type UploadRef struct {
	ID string `path:"upload_id" maxLength:"255"`
}

func (u UploadRef) id() id.Upload { return id.Upload(u.ID) }

// Upload is a direct upload as responses have it.
type Upload struct {
	ID               string        `json:"id"`
	Status           string        `json:"status" enum:"waiting,asset_created,errored,cancelled,timed_out"`
	Timeout          int           `json:"timeout" doc:"Seconds from creation within which the whole file must arrive."`
	CORSOrigin       string        `json:"cors_origin"`
	URL              string        `json:"url,omitempty" doc:"Accepts the file by PUT, whole or in chunks with Content-Range, while the upload is waiting. Keep it secret."`
	TusURL           string        `json:"tus_url,omitempty" doc:"The creation URL (endpoint) for tus 1.0 clients, while the upload is waiting. Keep it secret. Not part of Mux's API."`
	NewAssetSettings *AssetOptions `json:"new_asset_settings,omitempty"`
	BytesReceived    *int64        `json:"bytes_received,omitempty" doc:"Bytes received so far. While the upload is waiting, only when it is retrieved by ID. Not part of Mux's API."`
	BytesTotal       *int64        `json:"bytes_total,omitempty" doc:"Bytes of the file, once known. Not part of Mux's API."`
	AssetID          string        `json:"asset_id,omitempty" doc:"Present once the file has arrived."`
	Error            *UploadError  `json:"error,omitempty"`
	Test             bool          `json:"test,omitempty"`
}

// Received says how many bytes of the file of a waiting upload are kept.
type Received func(ctx context.Context, u upload.Upload) (int64, error)

// UploadError is why an upload is errored.
type UploadError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// UploadCreate asks for a URL that takes a file.
type UploadCreate struct {
	Timeout          *int              `json:"timeout,omitempty" minimum:"60" maximum:"604800" doc:"Seconds within which the whole file must arrive. Default: 3600."`
	CORSOrigin       string            `json:"cors_origin,omitempty" doc:"Required. The origin of the uploading page, such as https://example.com; * for any."`
	NewAssetSettings *NewAssetSettings `json:"new_asset_settings,omitempty" doc:"Settings of the asset. The first input, if any, describes the uploaded file and has no url."`
	Test             bool              `json:"test,omitempty" doc:"The asset will be a test asset: watermarked, at most 10 seconds, deleted after 24 hours."`
}

// uploads are the operations of direct uploads.
type uploads struct {
	uploads  upload.API
	received Received
	public   string // URL of the service
	now      func() time.Time
}

func (u uploads) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       uploadPath,
		id:         "create-direct-upload",
		tag:        uploadTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Create a direct upload",
		text:       "Anyone who has its url can upload one file to it, which becomes an asset.",
	}, u.create)
	handle(on, route{
		method: http.MethodGet, path: uploadPath, id: "list-direct-uploads", tag: uploadTag, permission: videoRead,
		summary: "List direct uploads",
		text:    "Newest first. An upload is listed as long as its asset exists, otherwise for 30 days.",
	}, u.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       uploadItem,
		id:         "get-direct-upload",
		tag:        uploadTag,
		permission: videoRead,
		summary:    "Retrieve a direct upload",
	}, u.get)
	handle(on, route{
		method:     http.MethodPut,
		path:       uploadItem + "/cancel",
		id:         "cancel-direct-upload",
		tag:        uploadTag,
		permission: videoWrite,
		summary:    "Cancel a direct upload",
		text:       "Only while it is waiting. Data already received is deleted.",
	}, u.cancel)
}

type createUploadInput struct{ Body UploadCreate }

func (u uploads) create(ctx context.Context, in *createUploadInput) (*one[Upload], error) {
	input, err := in.Body.input()
	if err != nil {
		return nil, err
	}
	input.DefaultQuality = caller(ctx).Environment.VideoQuality
	made, err := u.uploads.Create(ctx, environment(ctx), input, u.now())
	return just(u.show(made)), err
}

func (u uploads) list(ctx context.Context, in *struct{ Page }) (*many[Upload], error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	uploads, err := u.uploads.List(ctx, environment(ctx), upload.ListQuery{Page: page, Limit: limit}, u.now())
	return all(convert(uploads, u.show)), err
}

func (u uploads) get(ctx context.Context, in *UploadRef) (*one[Upload], error) {
	found, err := u.uploads.Get(ctx, environment(ctx), in.id(), u.now())
	if err != nil || found.Status != upload.Waiting {
		return just(u.show(found)), err
	}
	out := u.show(found)
	n, err := u.received(ctx, found)
	out.BytesReceived = &n
	return just(out), err
}

func (u uploads) cancel(ctx context.Context, in *UploadRef) (*one[Upload], error) {
	cancelled, err := u.uploads.Cancel(ctx, environment(ctx), in.id(), u.now())
	return just(u.show(cancelled)), err
}

func (u UploadCreate) input() (upload.CreateInput, error) {
	in := upload.CreateInput{Timeout: u.Timeout, CORSOrigin: u.CORSOrigin, Test: u.Test}
	if u.NewAssetSettings == nil {
		return in, nil
	}
	var problems fault.List
	in.Options = u.NewAssetSettings.domain(&problems, "new_asset_settings.")
	return in, problems.Err()
}

// show is the upload in a response: with the URLs for as long as they can be used.
func (u uploads) show(v upload.Upload) Upload { return wireUpload(v, u.public) }

func wireUpload(u upload.Upload, public string) Upload {
	out := Upload{
		ID:               string(u.ID),
		Status:           string(u.Status),
		Timeout:          u.Timeout,
		CORSOrigin:       u.CORSOrigin,
		NewAssetSettings: wireOptions(u.Options),
		AssetID:          string(u.Asset),
		Error:            (*UploadError)(u.Error),
		Test:             u.Test,
	}
	if u.Whole {
		out.BytesTotal = &u.Size
		if u.Asset != "" {
			out.BytesReceived = &u.Size
		}
	}
	if u.Status == upload.Waiting && u.Secret != "" {
		out.URL, out.TusURL = public+uploadFiles+u.Secret, public+tusFiles+u.Secret
	}
	return out
}
