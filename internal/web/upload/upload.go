// Package upload accepts the files of direct uploads over HTTP, at secret URLs: by PUT, in one request or in chunks,
// and by tus. It must never know where bytes are kept, or SQL. It starts no goroutine; the tus library has one per
// request.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/disk"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/trace"
	"millrace/internal/web/pace"
	"millrace/internal/web/respond"
)

// Path is where uploads are, each at its secret; tusPath where tus clients find the same.
const (
	Path    = "/uploads/"
	tusPath = Path + "tus/"
)

// Files are the files that are being uploaded.
type Files interface {
	// Find reads the upload whose URL has this secret, as it is now; fault.NotFound.
	Find(ctx context.Context, secret string) (upload.Upload, error)
	// Open makes the caller the one writer of an upload; interrupt is called when it should hurry to Close.
	// fault.TooMany: another one is writing. fault.Conflict: the upload is over without its file. Of one whose file is
	// there the Writer has an Asset.
	Open(ctx context.Context, u id.Upload, interrupt func()) (Writer, error)
	// Compare reads what may be the file of an upload that has its file, from a byte of it on, until it is clear that
	// it is another one. It reads nothing where that can't be known. n is how many bytes were read.
	Compare(ctx context.Context, u upload.Upload, from int64, r io.Reader) (n int64, same bool, err error)
	// Quit cancels an upload.
	Quit(ctx context.Context, u id.Upload) error
	// MaxSize is how many bytes a file may have.
	MaxSize() int64
}

// Writer is the one writer of an upload.
type Writer interface {
	Upload() upload.Upload
	// Size is how many bytes are kept, Missing how many are missing; many, if nobody knows.
	Size() int64
	Missing() int64
	// Asset is the asset that was made of the whole file; empty while bytes are missing.
	Asset() id.Asset
	// Declare says how long the file is, or may be so far. fault.TooLarge, fault.Unavailable: there is no room.
	// fault.Invalid: that can't be.
	Declare(ctx context.Context, length upload.Length) error
	// Restart forgets what has come.
	Restart(ctx context.Context) error
	// Receive appends what r gives, and keeps it even if r fails.
	Receive(ctx context.Context, r io.Reader) (int64, error)
	// Finish makes the asset.
	Finish(ctx context.Context) error
	// Close lets others write.
	Close() error
}

// Options is what a Handler needs.
type Options struct {
	Files     Files
	PublicURL string // where clients reach the service, without a slash at the end
	Now       func() time.Time
	Logger    *slog.Logger
	Tracer    *trace.Tracer // nil: requests are in no trace
}

// Handler serves what is below Path.
type Handler struct {
	opt Options
	tus *tus
}

// New returns a Handler.
func New(o Options) (*Handler, error) {
	t, err := newTus(o)
	return &Handler{opt: o, tus: t}, err
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secret, isTus := strings.CutPrefix(r.URL.Path, tusPath)
	if !isTus {
		secret = strings.TrimPrefix(r.URL.Path, Path)
	}
	u, err := h.opt.Files.Find(r.Context(), secret)
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		h.unfound(w, r, err)
		return
	}
	if !allow(w, r, u) {
		h.refuse(w, r,
			fault.New(fault.Denied,
				"pages of this origin may not upload here: cors_origin of the upload is another one"))
		return
	}
	route := Path + "{secret}"
	if isTus {
		route = tusPath + "{secret}"
	}
	ctx, span := h.opt.Tracer.Begin(r.Context(), trace.Method(r)+" "+route, trace.Server)
	span.Text(trace.MethodKey, trace.Method(r))
	span.Text(trace.RouteKey, route)
	defer func() { span.End(err) }()
	r = r.WithContext(ctx)
	switch {
	case isTus:
		h.tus.serve(w, r, u)
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPut:
		w.Header().Set("Allow", "OPTIONS, PUT")
		refuse(w, r, http.StatusMethodNotAllowed, "method_not_allowed",
			"The method must be PUT: the file, or a chunk of it with Content-Range")
	default:
		if err = h.put(w, r, u); err != nil {
			h.refuse(w, r, err)
		}
	}
}

// unfound refuses a request to an upload that there is not, or that can't be read. Any page may read why: it holds
// nothing of anybody's, and without it a page can't tell an upload that is gone from a lost connection.
func (h *Handler) unfound(w http.ResponseWriter, r *http.Request, err error) {
	allow(w, r, upload.Upload{CORSOrigin: upload.AnyOrigin})
	if r.Method == http.MethodOptions { // else the request that would be told is not made
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.refuse(w, r, err)
}

// What pages may send and read, and for how many seconds browsers may remember that.
const (
	corsMethods = "PUT, POST, HEAD, PATCH, DELETE, OPTIONS"
	// Upload-Concat is allowed so that a page gets to read why it is refused.
	corsHeaders = "*, Content-Type, Content-Range, Tus-Resumable, Upload-Length, Upload-Offset, Upload-Metadata, " +
		"Upload-Defer-Length, Upload-Concat, X-HTTP-Method-Override"
	corsExposed = "Range, Location, Retry-After, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size, " +
		"Upload-Offset, Upload-Length, Upload-Metadata, " +
		"Upload-Defer-Length, Upload-Expires"
	corsSeconds = "7200"
)

// allow writes the headers of CORS for pages of the upload's own origin, and refuses those of others.
func allow(w http.ResponseWriter, r *http.Request, u upload.Upload) bool {
	origin, header := r.Header.Get("Origin"), w.Header()
	header.Set("Vary", "Origin")
	if origin == "" {
		return true
	}
	if !u.Allows(origin) {
		return false
	}
	if u.CORSOrigin == upload.AnyOrigin {
		origin = upload.AnyOrigin
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", corsExposed)
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", corsMethods)
		header.Set("Access-Control-Allow-Headers", corsHeaders)
		header.Set("Access-Control-Max-Age", corsSeconds)
	}
	return true
}

// errStopping says that the request was broken off by the service.
var errStopping = fault.New(fault.Unavailable, "the request was broken off: ask how much has come, and go on behind it")

// status is what an error is to an uploader: 503 is tried again by clients, and what will not pass is not.
func status(err error) (code int, typ string) {
	if errors.Is(err, disk.ErrFull) || errors.Is(err, upload.ErrQuota) {
		return http.StatusInsufficientStorage, "no_room"
	}
	if errors.Is(err, pace.ErrSlow) {
		return pace.Status, "request_timeout"
	}
	s := respond.Upload.Of(err)
	return s.Code, s.Type
}

// retryAfter is the Retry-After of a response: in how many seconds it may be another one; empty: not by itself.
func retryAfter(code int) string {
	switch code {
	case http.StatusServiceUnavailable:
		return "1"
	case http.StatusInsufficientStorage: // other uploads have to end
		return "60"
	}
	return ""
}

// explain is the status of an error and what an uploader is told about it. What is ours to mend is logged.
func (o *Options) explain(ctx context.Context, err error) (code int, typ, message string) {
	code, typ = status(err)
	message = strings.Join(fault.Messages(err), "; ")
	if code == http.StatusInternalServerError || message == "" {
		if ctx.Err() == nil {
			o.Logger.ErrorContext(ctx, "upload failed", "error", err)
		}
		message = "The service could not take it because of an error of its own; try again"
	}
	return code, typ, message
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code, typ, message := h.opt.explain(r.Context(), err)
	refuse(w, r, code, typ, message)
}

// anotherFile is said to who sends a file to an upload that has another one, of so many bytes.
func anotherFile(size int64) string {
	return fmt.Sprintf("the upload has its file already, which has %d bytes, and this is another one: "+
		"make another upload for it", size)
}

// refuse responds with an error, in the form of the API's.
func refuse(w http.ResponseWriter, r *http.Request, code int, typ, message string) {
	respond.Unread(w, r)
	if after := retryAfter(code); after != "" {
		w.Header().Set("Retry-After", after)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTime))
	respond.Refuse(w, code, respond.Error{Type: typ, Messages: []string{message}})
}
