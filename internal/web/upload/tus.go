package upload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/tus/tusd/v2/pkg/handler"
	tuslog "golang.org/x/exp/slog"

	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/web/pace"
)

// tus speaks tus 1.0 for uploads that were made by the API: the creation URL of each is its own, and so is the upload
// that is created there, which is always the same one. To terminate it is to cancel the upload.
type tus struct {
	opt     Options
	library *handler.UnroutedHandler
	routes  http.Handler
}

// turn is what one request has of its upload. The library calls several methods for a request, and what they share is
// in its context: it is no other request's, even of one to the same upload at the same time.
type turn struct {
	upload upload.Upload // as it was when the request came
	writer Writer        // while the request has the lock; nil where the file is whole
	body   *tusBody
}

// tusBody is the body of a request. It notes why it could not be read to its end: the library says that in its own way.
type tusBody struct {
	io.ReadCloser
	failed error
}

// Read implements io.Reader.
func (t *tusBody) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.failed = err
	}
	return n, err
}

type turnKey struct{}

func turnOf(ctx context.Context) *turn {
	return ctx.Value(turnKey{}).(*turn) //nolint:forcetypeassert // serve has put it there
}

// maxMetadata bounds Upload-Metadata, in bytes.
const maxMetadata = 4096

func newTus(o Options) (*tus, error) {
	t := &tus{opt: o}
	composer := handler.NewStoreComposer()
	composer.UseCore(t)
	composer.UseLocker(t)
	composer.UseTerminater(t)
	composer.UseLengthDeferrer(t)
	var err error
	t.library, err = handler.NewUnroutedHandler(handler.Config{
		StoreComposer:        composer,
		BasePath:             o.PublicURL + tusPath,
		MaxSize:              o.Files.MaxSize(),
		DisableConcatenation: true,
		DisableDownload:      true,
		Cors:                 &handler.CorsConfig{Disable: true},
		NetworkTimeout:       2 * idleTime, // web/pace ends a body before
		// its lines have URLs, which are secrets
		Logger: tuslog.New(tuslog.NewTextHandler(io.Discard, nil)),
		PreUploadCreateCallback: func(hook handler.HookEvent) (handler.HTTPResponse, handler.FileInfoChanges, error) {
			return handler.HTTPResponse{}, handler.FileInfoChanges{ID: path.Base(hook.HTTPRequest.URI)}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	t.routes = http.StripPrefix(strings.TrimSuffix(tusPath, "/"), t.library.Middleware(http.HandlerFunc(t.route)))
	return t, nil
}

func (t *tus) route(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		t.library.PostFile(w, r)
	case http.MethodHead:
		t.library.HeadFile(w, r)
	case http.MethodPatch:
		if !t.refuseAnother(w, r) {
			t.library.PatchFile(w, r)
		}
	case http.MethodDelete:
		t.library.DelFile(w, r)
	default:
		w.Header().Set("Allow", "OPTIONS, POST, HEAD, PATCH, DELETE")
		refuse(w, r, http.StatusMethodNotAllowed, "method_not_allowed",
			"This URL is for tus clients; PUT goes to the url of the upload")
	}
}

// refuseAnother refuses bytes that are not those of the file that an upload has already. The library would only say
// that they are not expected (409), after which clients ask how much has come, and take their own file for uploaded.
func (t *tus) refuseAnother(w http.ResponseWriter, r *http.Request) bool {
	u := turnOf(r.Context()).upload
	from, err := strconv.ParseInt(r.Header.Get("Upload-Offset"), 10, 64)
	if u.Status != upload.AssetCreated || err != nil || from < 0 || from >= u.Size {
		return false
	}
	b := newBody(w, r)
	_, same, err := t.opt.Files.Compare(r.Context(), u, from, b)
	switch {
	case err != nil:
		code, typ, message := t.explain(r.Context(), err)
		refuse(w, r, code, typ, message)
	case !same:
		_, _ = io.CopyN(io.Discard, b, drainBytes)
		refuse(w, r, http.StatusGone, "upload_over", anotherFile(u.Size))
	}
	return err != nil || !same
}

func (t *tus) serve(w http.ResponseWriter, r *http.Request, u upload.Upload) {
	if u.Status == upload.Waiting {
		w.Header().Set("Upload-Expires", u.Expires().UTC().Format(http.TimeFormat))
	}
	if r.Method == http.MethodOptions {
		w = &extended{w}
	}
	// With the extension off the library takes a part for a whole file.
	if _, parallel := r.Header["Upload-Concat"]; parallel {
		refuse(w, r, http.StatusBadRequest, "invalid_parameters", "A file can't be uploaded in several parts at once "+
			"(Upload-Concat): set parallelUploads to 1 in Uppy or tus-js-client")
		return
	}
	if len(r.Header.Get("Upload-Metadata")) > maxMetadata {
		refuse(w, r, http.StatusBadRequest, "invalid_parameters", "Upload-Metadata may have at most 4096 bytes")
		return
	}
	on := &turn{upload: u, body: &tusBody{ReadCloser: r.Body}}
	r = r.WithContext(context.WithValue(r.Context(), turnKey{}, on))
	r.Body = on.body
	t.routes.ServeHTTP(w, r)
}

// extended names the extension that is ours: uploads expire.
type extended struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (e *extended) WriteHeader(status int) {
	e.Header().Set("Tus-Extension", e.Header().Get("Tus-Extension")+",expiration")
	e.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (e *extended) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// libraryError is an error as the library shows it.
func (t *tus) libraryError(ctx context.Context, err error) error {
	if own, ok := errors.AsType[handler.Error](err); ok || err == nil {
		if err == nil {
			return nil
		}
		return own
	}
	code, typ, message := t.explain(ctx, err)
	e := handler.NewError(typ, message, code)
	if after := retryAfter(code); after != "" {
		e.HTTPResponse.Header["Retry-After"] = after
	}
	return e
}

// explain is the status of an error and what a client is told about it. After 408 clients such as tus-js-client give
// up.
func (t *tus) explain(ctx context.Context, err error) (code int, typ, message string) {
	if code, typ, message = t.opt.explain(ctx, err); code == pace.Status {
		code = http.StatusServiceUnavailable
	}
	return code, typ, message
}

// NewLock implements handler.Locker.
func (t *tus) NewLock(secret string) (handler.Lock, error) {
	return &tusLock{tus: t, secret: secret}, nil
}

type tusLock struct {
	tus    *tus
	secret string
	turn   *turn // nil: it has not been locked
}

// Lock opens the upload for writing, unless it is whole already.
func (t *tusLock) Lock(ctx context.Context, interrupt func()) error {
	u, err := t.tus.opt.Files.Find(ctx, t.secret)
	if err != nil {
		return t.tus.libraryError(ctx, err)
	}
	switch u.Status {
	case upload.AssetCreated:
		return nil
	case upload.Waiting:
	case upload.Errored, upload.Cancelled, upload.TimedOut:
		return t.tus.libraryError(ctx,
			fault.New(fault.Conflict, "the upload is %s: it takes nothing any more", u.Status))
	}
	w, err := t.tus.opt.Files.Open(ctx, u.ID, interrupt)
	if fault.Is(err, fault.TooMany) {
		return handler.ErrFileLocked
	}
	if err != nil {
		return t.tus.libraryError(ctx, err)
	}
	t.turn = turnOf(ctx)
	t.turn.writer = w
	return nil
}

// Unlock implements handler.Lock.
func (t *tusLock) Unlock() error {
	if t.turn == nil {
		return nil
	}
	w := t.turn.writer
	t.turn.writer = nil
	return w.Close()
}

// NewUpload implements handler.DataStore: it notes the length of the file. One that was created before stays as it is,
// with its bytes.
func (t *tus) NewUpload(ctx context.Context, info handler.FileInfo) (handler.Upload, error) {
	lock := &tusLock{tus: t, secret: info.ID}
	if err := lock.Lock(ctx, func() {}); err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }() // only a note was made
	u := &tusUpload{tus: t, secret: info.ID, turn: turnOf(ctx)}
	if w := u.turn.writer; w != nil && w.Asset() == "" {
		length := upload.Length{
			Size:     info.Size,
			Whole:    !info.SizeIsDeferred,
			Metadata: handler.SerializeMetadataHeader(info.MetaData),
		}
		if info.SizeIsDeferred {
			length.Size = max(1, w.Size())
		}
		if err := w.Declare(ctx, length); err != nil {
			return nil, t.libraryError(ctx, err)
		}
	}
	created, err := u.GetInfo(ctx)
	if err == nil && !info.SizeIsDeferred && !created.SizeIsDeferred && info.Size != created.Size {
		return nil, handler.NewError("upload_over", anotherFile(created.Size), http.StatusConflict)
	}
	created.Offset = 0 // what comes with a creation is the beginning of the file
	u.created = &created
	return u, err
}

// GetUpload implements handler.DataStore.
func (t *tus) GetUpload(ctx context.Context, secret string) (handler.Upload, error) {
	return &tusUpload{tus: t, secret: secret, turn: turnOf(ctx)}, nil
}

// AsTerminatableUpload implements handler.TerminaterDataStore.
func (*tus) AsTerminatableUpload(u handler.Upload) handler.TerminatableUpload {
	return u.(*tusUpload) //nolint:forcetypeassert // it was made here
}

// AsLengthDeclarableUpload implements handler.LengthDeferrerDataStore.
func (*tus) AsLengthDeclarableUpload(u handler.Upload) handler.LengthDeclarableUpload {
	return u.(*tusUpload) //nolint:forcetypeassert // it was made here
}

// tusUpload is an upload to the library, by its secret.
type tusUpload struct {
	tus     *tus
	secret  string
	turn    *turn
	created *handler.FileInfo // of one that the request creates: the library asks for it without the lock
}

// GetInfo implements handler.Upload.
func (t *tusUpload) GetInfo(ctx context.Context) (handler.FileInfo, error) {
	if t.created != nil {
		return *t.created, nil
	}
	var now upload.Upload
	var size int64
	if w := t.turn.writer; w != nil {
		now, size = w.Upload(), w.Size()
	} else {
		var err error
		if now, err = t.tus.opt.Files.Find(ctx, t.secret); err != nil {
			return handler.FileInfo{}, t.tus.libraryError(ctx, err)
		}
		if now.Status == upload.AssetCreated {
			size = now.Size
		}
	}
	info := handler.FileInfo{
		ID:       t.secret,
		Size:     now.Size,
		Offset:   size,
		MetaData: handler.ParseMetadataHeader(now.Metadata),
	}
	if !now.Whole {
		info.Size, info.SizeIsDeferred = 0, true
	}
	return info, nil
}

// WriteChunk implements handler.Upload. What comes with a creation may have come before, with one whose response was
// lost: those bytes are read and are not taken again. The number that is returned brings the client to the end of what
// is kept.
func (t *tusUpload) WriteChunk(ctx context.Context, offset int64, src io.Reader) (int64, error) {
	w := t.turn.writer
	if w == nil || w.Asset() != "" {
		return t.again(ctx, offset, src)
	}
	if offset > w.Size() {
		return 0, handler.ErrMismatchOffset
	}
	_, err := io.CopyN(io.Discard, src, w.Size()-offset)
	if err == nil {
		_, err = w.Receive(ctx, src)
	} else if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && errors.Is(t.turn.body.failed, pace.ErrSlow) {
		err = tooSlow()
	}
	return w.Size() - offset, t.tus.libraryError(ctx, err)
}

// again reads what comes for a file that is whole already, with the creation of its upload or after waiting for who
// sent its last byte. Another file is refused, as it would be lost.
func (t *tusUpload) again(ctx context.Context, offset int64, src io.Reader) (int64, error) {
	now, err := t.tus.opt.Files.Find(ctx, t.secret)
	if err != nil {
		return 0, t.tus.libraryError(ctx, err)
	}
	_, same, err := t.tus.opt.Files.Compare(ctx, now, offset, src)
	if err == nil && !same {
		err = handler.NewError("upload_over", anotherFile(now.Size), http.StatusConflict)
	}
	_, _ = io.CopyN(io.Discard, src, drainBytes)
	return now.Size - offset, t.tus.libraryError(ctx, err)
}

// FinishUpload implements handler.Upload.
func (t *tusUpload) FinishUpload(ctx context.Context) error {
	w := t.turn.writer
	if w == nil || w.Asset() != "" {
		return nil
	}
	return t.tus.libraryError(ctx, w.Finish(ctx))
}

// GetReader implements handler.Upload; nobody may read what was uploaded.
func (*tusUpload) GetReader(context.Context) (io.ReadCloser, error) {
	return nil, handler.ErrNotImplemented
}

// Terminate implements handler.TerminatableUpload. The job that clears up waits until this request has left.
func (t *tusUpload) Terminate(ctx context.Context) error {
	now, err := t.tus.opt.Files.Find(ctx, t.secret)
	if err == nil {
		err = t.tus.opt.Files.Quit(ctx, now.ID)
	}
	return t.tus.libraryError(ctx, err)
}

// DeclareLength implements handler.LengthDeclarableUpload.
func (t *tusUpload) DeclareLength(ctx context.Context, length int64) error {
	w := t.turn.writer
	if w == nil {
		return nil
	}
	return t.tus.libraryError(ctx, w.Declare(ctx, upload.Length{Size: length, Whole: true}))
}
