package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/web/pace"
)

const (
	// idleTime is how long nothing may come of a body, responseTime how long a response may take to go.
	idleTime     = time.Minute
	responseTime = 30 * time.Second
	// drainBytes are read of a body that nobody needs, so that its sender gets the response.
	drainBytes = 64 << 20
)

// body is one request's, with a deadline that goes on while something comes.
type body struct {
	io.Reader
	control *http.ResponseController
	stopped atomic.Bool
}

func newBody(w http.ResponseWriter, r *http.Request) *body {
	b := &body{Reader: r.Body, control: http.NewResponseController(w)}
	_ = b.control.SetWriteDeadline(time.Time{}) // not every writer has deadlines
	return b
}

// stop breaks off what is being read. It may be called from another goroutine.
func (b *body) stop() {
	b.stopped.Store(true)
	_ = b.control.SetReadDeadline(time.Unix(1, 0))
}

func (b *body) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(idleTime))
	if b.stopped.Load() {
		_ = b.control.SetReadDeadline(time.Unix(1, 0))
		return 0, errStopping
	}
	n, err := b.Reader.Read(p)
	switch {
	case err == nil, errors.Is(err, io.EOF):
	case b.stopped.Load():
		err = errStopping
	case pace.TooSlow(err):
		err = tooSlow()
	default:
		err = fault.Wrap(fault.Unavailable, err, "the connection was lost")
	}
	return n, err
}

func tooSlow() error {
	return fault.Wrap(fault.Unavailable, pace.ErrSlow, "%s: go on where it ended", pace.ErrSlow)
}

// put takes the whole file or a chunk of it, or says which bytes have come.
func (h *Handler) put(w http.ResponseWriter, r *http.Request, u upload.Upload) error {
	of, chunked := contentRange{total: r.ContentLength}, false
	if header := r.Header.Get("Content-Range"); header != "" {
		var err error
		if of, err = parseContentRange(header); err != nil {
			return err
		}
		chunked = true
	}
	b := newBody(w, r)
	defer context.AfterFunc(r.Context(), b.stop)()
	switch {
	case u.Status == upload.AssetCreated:
		return h.again(w, r, of, u, b)
	case u.Status != upload.Waiting:
		return fault.New(fault.Conflict, "the upload is %s: it takes nothing any more", u.Status)
	case chunked && !of.query && r.ContentLength >= 0 && r.ContentLength != of.end-of.first:
		return fault.New(fault.Invalid, "Content-Range says %d bytes, and Content-Length %d", of.end-of.first,
			r.ContentLength)
	case chunked && !of.query && !of.whole():
		return fault.New(fault.Invalid,
			"a chunk must have a multiple of 262144 bytes (256 KiB), unless it is the last one")
	}
	wr, err := h.opt.Files.Open(r.Context(), u.ID, b.stop)
	if err != nil {
		return err
	}
	defer func() { _ = wr.Close() }() // what was received is kept already
	if wr.Asset() != "" {             // made while this request waited
		return h.again(w, r, of, wr.Upload(), b)
	}
	if chunked {
		err = chunk(r.Context(), wr, of, b)
	} else {
		err = receiveFile(r.Context(), wr, r.ContentLength, b)
	}
	switch gap := (*errGap)(nil); {
	case errors.As(err, &gap):
		incomplete(w, wr.Size())
		refuse(w, r, http.StatusRequestedRangeNotSatisfiable, "invalid_parameters", gap.Error())
	case err != nil:
		return err
	case wr.Asset() != "":
		respondEmpty(w, http.StatusOK)
	default:
		incomplete(w, wr.Size())
		respondEmpty(w, http.StatusPermanentRedirect) // Resume Incomplete, as these clients know it
	}
	return nil
}

// receiveFile takes a file in one request; what came of an earlier one is forgotten.
func receiveFile(ctx context.Context, w Writer, length int64, b *body) error {
	if err := w.Restart(ctx); err != nil {
		return err
	}
	if length >= 0 {
		if err := w.Declare(ctx, upload.Length{Size: length, Whole: true}); err != nil {
			return err
		}
	}
	if _, err := w.Receive(ctx, b); err != nil {
		return err
	}
	return w.Finish(ctx)
}

// errGap is a chunk that does not begin where the last one ended.
type errGap struct{ first, size int64 }

func (e *errGap) Error() string {
	return fmt.Sprintf("the chunk begins at byte %d, and only the %d bytes in front of byte %d have come: go on there",
		e.first, e.size, e.size)
}

// chunk takes what is new of a chunk. It may be none, as of one that is sent again because the response was lost.
func chunk(ctx context.Context, w Writer, of contentRange, b *body) error {
	if of.first > w.Size() {
		return &errGap{of.first, w.Size()}
	}
	length := upload.Length{Size: of.end}
	if of.total >= 0 {
		length = upload.Length{Size: of.total, Whole: true}
	}
	if err := w.Declare(ctx, length); err != nil {
		return err
	}
	if !of.query {
		known := min(w.Size(), of.end) - of.first
		if _, err := io.CopyN(io.Discard, b, known); err != nil {
			return err
		}
		fresh := of.end - of.first - known
		n, err := w.Receive(ctx, io.LimitReader(b, fresh))
		if err != nil {
			return err
		}
		if n != fresh {
			return fault.New(fault.Invalid, "the request ended after %d of the %d bytes that Content-Range says",
				known+n, known+fresh)
		}
	}
	if w.Missing() > 0 {
		return nil
	}
	return w.Finish(ctx)
}

// incomplete says which bytes have come.
func incomplete(w http.ResponseWriter, size int64) {
	if size > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", size-1))
	}
}

// again responds to one who sends to an upload that has its file already: to the sender of that file, who has lost the
// response to its last byte, that it is there. Another file is refused, as it would be lost. What is sent is read,
// since its sender may not listen before.
func (h *Handler) again(w http.ResponseWriter, r *http.Request, of contentRange, u upload.Upload, b *body) error {
	same, err := h.same(r.Context(), of, u, b)
	if err != nil {
		return err
	}
	if !same {
		_, _ = io.CopyN(io.Discard, b, drainBytes)
		refuse(w, r, http.StatusConflict, "upload_over", anotherFile(u.Size))
		return nil
	}
	respondEmpty(w, http.StatusOK)
	return nil
}

// same reports whether what is sent is of the file that an upload has.
func (h *Handler) same(ctx context.Context, of contentRange, u upload.Upload, b *body) (bool, error) {
	if of.total >= 0 && of.total != u.Size || of.end > u.Size {
		return false, nil
	}
	if of.query {
		return true, nil
	}
	sent := io.Reader(b)
	if of.end > 0 {
		sent = io.LimitReader(b, of.end-of.first)
	}
	n, same, err := h.opt.Files.Compare(ctx, u, of.first, sent)
	if err != nil || !same {
		return false, err
	}
	more, err := io.CopyN(io.Discard, b, drainBytes) // what was not compared
	unsized := of.total < 0 && of.end == 0           // its length is known by its end alone
	return !unsized || !errors.Is(err, io.EOF) || n+more == u.Size, nil
}

func respondEmpty(w http.ResponseWriter, code int) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTime))
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(code)
}
