package api

import (
	"context"
	"net/http"

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

func (r UploadRef) id() id.Upload { return id.Upload(r.ID) }

// Upload is a direct upload as responses have it.
type Upload struct {
	ID               string        `json:"id"`
	Status           string        `json:"status" enum:"waiting,asset_created,errored,cancelled,timed_out"`
	Timeout          int           `json:"timeout" doc:"Seconds from the creation in which the whole file has to come."`
	CORSOrigin       string        `json:"cors_origin"`
	URL              string        `json:"url,omitempty" doc:"Secret; while the upload is waiting. Takes the file by PUT, at once or in chunks with Content-Range."`
	TusURL           string        `json:"tus_url,omitempty" doc:"Secret; while the upload is waiting. The creation URL (endpoint) for tus 1.0 clients; not part of Mux's API."`
	NewAssetSettings *AssetOptions `json:"new_asset_settings,omitempty"`
	BytesReceived    *int64        `json:"bytes_received,omitempty" doc:"Bytes that are kept. While waiting, only of one upload that is asked for. Not part of Mux's API."`
	BytesTotal       *int64        `json:"bytes_total,omitempty" doc:"Bytes of the file, once known. Not part of Mux's API."`
	AssetID          string        `json:"asset_id,omitempty" doc:"Once the file is there."`
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
	Timeout          *int              `json:"timeout,omitempty" minimum:"60" maximum:"604800" doc:"Seconds in which the whole file has to come; 3600 unless given."`
	CORSOrigin       string            `json:"cors_origin,omitempty" doc:"Required: the origin of the page that uploads, such as https://example.com; * for any."`
	NewAssetSettings *NewAssetSettings `json:"new_asset_settings,omitempty" doc:"Settings of the asset. The first input, if any, is the uploaded file and has no url."`
	Test             bool              `json:"test,omitempty" doc:"The asset will be a test asset: watermarked, at most 10 seconds, deleted after 24 hours."`
}

func (s *server) routeUploads() {
	handle(s, route{
		method: http.MethodPost, path: uploadPath, id: "create-direct-upload", tag: uploadTag, status: http.StatusCreated, permission: videoWrite,
		summary: "Create a direct upload", text: "Its url takes one file, by whoever knows it, of which an asset is made.",
	}, s.createUpload)
	handle(s, route{
		method: http.MethodGet, path: uploadPath, id: "list-direct-uploads", tag: uploadTag, permission: videoRead,
		summary: "List direct uploads",
		text:    "Newest first. Each is listed as long as its asset is there; after that, or without one, for 30 days.",
	}, s.listUploads)
	handle(s, route{
		method: http.MethodGet, path: uploadItem, id: "get-direct-upload", tag: uploadTag, permission: videoRead, summary: "Retrieve a direct upload",
	}, s.getUpload)
	handle(s, route{
		method: http.MethodPut, path: uploadItem + "/cancel", id: "cancel-direct-upload", tag: uploadTag, permission: videoWrite,
		summary: "Cancel a direct upload", text: "Only while it is waiting. What has come of the file is deleted.",
	}, s.cancelUpload)
}

type createUploadInput struct{ Body UploadCreate }

func (s *server) createUpload(ctx context.Context, in *createUploadInput) (*one[Upload], error) {
	input, err := in.Body.input()
	if err != nil {
		return nil, err
	}
	input.DefaultQuality = caller(ctx).Environment.VideoQuality
	u, err := s.uploads.Create(ctx, environment(ctx), input, s.now())
	return just(s.upload(u)), err
}

func (s *server) listUploads(ctx context.Context, in *struct{ Page }) (*many[Upload], error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	uploads, err := s.uploads.List(ctx, environment(ctx), upload.ListQuery{Page: page, Limit: limit}, s.now())
	return all(convert(uploads, s.upload)), err
}

func (s *server) getUpload(ctx context.Context, in *UploadRef) (*one[Upload], error) {
	u, err := s.uploads.Get(ctx, environment(ctx), in.id(), s.now())
	if err != nil || u.Status != upload.Waiting {
		return just(s.upload(u)), err
	}
	out := s.upload(u)
	n, err := s.received(ctx, u)
	out.BytesReceived = &n
	return just(out), err
}

func (s *server) cancelUpload(ctx context.Context, in *UploadRef) (*one[Upload], error) {
	u, err := s.uploads.Cancel(ctx, environment(ctx), in.id(), s.now())
	return just(s.upload(u)), err
}

func (c UploadCreate) input() (upload.CreateInput, error) {
	in := upload.CreateInput{Timeout: c.Timeout, CORSOrigin: c.CORSOrigin, Test: c.Test}
	if c.NewAssetSettings == nil {
		return in, nil
	}
	var problems fault.List
	in.Options = c.NewAssetSettings.domain(&problems, "new_asset_settings.")
	return in, problems.Err()
}

// upload is the upload in a response: with the URLs for as long as they can be used.
func (s *server) upload(u upload.Upload) Upload { return wireUpload(u, s.public) }

func wireUpload(u upload.Upload, public string) Upload {
	out := Upload{
		ID: string(u.ID), Status: string(u.Status), Timeout: u.Timeout, CORSOrigin: u.CORSOrigin, NewAssetSettings: wireOptions(u.Options),
		AssetID: string(u.Asset), Error: (*UploadError)(u.Error), Test: u.Test,
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
