package playback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/metering"
)

// File is a whole file, whose bytes never change under its tag.
type File struct {
	Size int64
	Type string // media type
	Tag  string // ETag without its quotes
	// Short is the shorter side of the picture in pixels; zero: there is no picture.
	Short int
	// Watched is what a viewer has watched who is sent all of it; zero: nothing that counts.
	Watched metering.Delivery
	Open    func(ctx context.Context, off, n int64) (io.ReadCloser, error)
}

// masterPath is in front of the addresses of originals. No playback ID is that short.
const masterPath = "/master/"

// isDownload reports whether a name is a file's; whether there is such a file is not said.
func isDownload(name string) bool {
	return strings.HasSuffix(name, ".mp4") || strings.HasSuffix(name, ".m4a")
}

func (h *Handler) download(w http.ResponseWriter, r *http.Request, p viewing, name string) error {
	if err := p.unclipped(); err != nil {
		return err
	}
	f, err := p.File(r.Context(), name)
	if err != nil {
		return err
	}
	if err = p.allowsFile(f); err != nil {
		return err
	}
	return h.file(w, r, f, p.permit.cacheControl(3600))
}

func (h *Handler) master(w http.ResponseWriter, r *http.Request) error {
	asset, named := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, masterPath), ".mp4")
	if !named || !plausible(asset) {
		return unknown()
	}
	q := r.URL.Query()
	f, err := h.opt.Source.Master(r.Context(), asset, q.Get("expires"), q.Get("signature"))
	if err != nil {
		return err
	}
	return h.file(w, r, f, "private, no-store")
}

// maxName bounds the name that a file is saved under, in bytes.
const maxName = 255

// attachment reads `download`: the name that the file is to be saved under; empty when it is to be shown.
func attachment(r *http.Request) string {
	name := r.URL.Query().Get("download")
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '/' || c == '\\' || c == '\uFFFD' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(name, ""))
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") // without the rune that is cut in two
	}
	if name == "" {
		return ""
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

// file sends a file, the whole or a single range, RFC 9110 sections 13 and 14.
func (h *Handler) file(w http.ResponseWriter, r *http.Request, f File, cache string) error {
	head := w.Header()
	tag := strconv.Quote(f.Tag)
	head["Etag"] = []string{tag}
	head["Cache-Control"] = []string{cache}
	head["Accept-Ranges"] = byBytes
	if matches(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if want := r.Header.Get("If-Match"); want != "" && !matches(want, tag) {
		writeError(w, http.StatusPreconditionFailed, "invalid_parameters", "", "If-Match: the file is another one")
		return nil
	}
	head["Content-Type"] = []string{f.Type}
	if a := attachment(r); a != "" {
		head.Set("Content-Disposition", a)
	}
	from, n, status := int64(0), f.Size, http.StatusOK
	same := r.Header.Get("If-Range")
	if asked := r.Header.Get("Range"); asked != "" && r.Method == http.MethodGet && (same == "" || same == tag) {
		var ok bool
		if from, n, status, ok = byteRange(asked, f.Size); !ok {
			head.Set("Content-Range", "bytes */"+strconv.FormatInt(f.Size, 10))
			head.Del("Content-Disposition")
			writeError(w, http.StatusRequestedRangeNotSatisfiable, "invalid_parameters", "",
				"Range: begins behind the end")
			return nil
		}
		if status == http.StatusPartialContent {
			head.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, f.Size))
		}
	}
	head["Content-Length"] = []string{strconv.FormatInt(n, 10)}
	if r.Method == http.MethodHead {
		w.WriteHeader(status)
		return nil
	}
	release, err := h.holdPiece(r)
	if err != nil {
		return err
	}
	defer release()
	body, err := f.Open(r.Context(), from, n)
	if err != nil {
		for _, k := range []string{"Content-Length", "Content-Range", "Content-Disposition", "Etag"} {
			head.Del(k)
		}
		return err
	}
	defer func() { _ = body.Close() }() // it was only read
	w.WriteHeader(status)
	if err := pour(w, body, n, func(sent int64) { f.Watched.Sent(sent, f.Size) }); err != nil {
		h.breakOff(r, err)
	}
	return nil
}

// matches reports whether If-None-Match or If-Match names the ETag.
func matches(header, tag string) bool {
	for e := range strings.SplitSeq(header, ",") {
		if e = strings.TrimSpace(e); e == "*" || strings.TrimPrefix(e, "W/") == tag {
			return true
		}
	}
	return false
}

const (
	// stride is how much of a file is sent within one deadline, in bytes.
	stride = 4 << 20
	// slowest is how long that may take: 35 kB a second, below which a download would keep its connection for days.
	slowest = 2 * time.Minute
)

// pour sends n bytes and says of each stride how many went out. A file takes longer than the server gives other
// responses, so that what counts is that it goes on.
func pour(w http.ResponseWriter, body io.Reader, n int64, count func(sent int64)) error {
	c := http.NewResponseController(w)
	// A deadline of reading would end the request's context.
	if err := c.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("prolong download: %w", err)
	}
	for n > 0 {
		if err := c.SetWriteDeadline(time.Now().Add(slowest)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("prolong download: %w", err)
		}
		sent, err := io.CopyN(w, body, min(n, stride))
		count(sent)
		if err != nil {
			return err
		}
		n -= sent
	}
	return nil
}
