package playback

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// body sends media: the whole, or the single byte range that was asked for, RFC 9110 section 14. Anyone who asks for
// several ranges, or with a condition (there are no validators: nothing ever changes), gets the whole, which section
// 14.2 allows.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, b Body, typ, cache string) error {
	if b.Reader != nil {
		defer func() { _ = b.Reader.Close() }() // it was only read
	} else {
		b.Size = int64(len(b.Data))
	}
	release, err := h.hold(r, b)
	if err != nil {
		return err
	}
	defer release()
	if b.Type != "" {
		typ = b.Type
	}
	head := w.Header()
	head["Content-Type"] = []string{typ}
	head["Cache-Control"] = []string{cache}
	head["Accept-Ranges"] = byBytes
	from, n, status := int64(0), b.Size, http.StatusOK
	if asked := r.Header.Get("Range"); asked != "" && r.Method == http.MethodGet && r.Header.Get("If-Range") == "" {
		var ok bool
		if from, n, status, ok = byteRange(asked, b.Size); !ok {
			head.Set("Content-Range", "bytes */"+strconv.FormatInt(b.Size, 10))
			writeError(w, http.StatusRequestedRangeNotSatisfiable, "invalid_parameters", "",
				"Range: begins behind the end")
			return nil
		}
		if status == http.StatusPartialContent {
			head.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, b.Size))
		}
	}
	head["Content-Length"] = []string{strconv.FormatInt(n, 10)}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	sent, err := send(w, b, from, n)
	b.Watched.Sent(sent, b.Size)
	if err != nil {
		h.breakOff(r, err)
	}
	return nil
}

// breakOff ends a response whose rest can't be sent, so that nobody takes what has come for the whole: the connection
// is closed, and of HTTP/2 the stream is reset. To return would end a stream of HTTP/2 as one that is complete.
func (h *Handler) breakOff(r *http.Request, err error) {
	h.opt.Logger.DebugContext(r.Context(), "viewer or storage went away", "path", logged(r), "error", err)
	panic(http.ErrAbortHandler)
}

// byteRange reads a Range header for something of a size: where to begin, how much, and the status. What is not a
// single range of bytes is ignored. ok is false when nothing of it is there.
func byteRange(header string, size int64) (from, n int64, status int, ok bool) {
	spec, isBytes := strings.CutPrefix(header, "bytes=")
	first, last, isRange := strings.Cut(strings.TrimSpace(spec), "-")
	if !isBytes || !isRange || strings.Contains(spec, ",") {
		return 0, size, http.StatusOK, true
	}
	if first == "" { // the last so many
		k, valid := position(last)
		if !valid {
			return 0, size, http.StatusOK, true
		}
		n = min(k, size)
		return size - n, n, http.StatusPartialContent, n > 0
	}
	from, valid := position(first)
	to, bounded := size-1, last != ""
	if bounded && valid {
		to, valid = position(last)
		valid = valid && to >= from
	}
	if !valid {
		return 0, size, http.StatusOK, true
	}
	to = min(to, size-1)
	return from, to - from + 1, http.StatusPartialContent, from < size
}

// position reads digits only; one too large for anything is the largest.
func position(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 1<<63 - 1, true
	}
	return n, true
}

// send copies n bytes from `from` on and says how many went out. A reader that can seek is not read up to there, and is
// given as it is, because only then may the other side know it for a stretch of a file that it can send inside the
// kernel.
func send(w io.Writer, b Body, from, n int64) (sent int64, err error) {
	if b.Reader == nil {
		var written int
		written, err = w.Write(b.Data[from : from+n])
		return int64(written), err
	}
	if from > 0 {
		if err = skip(b.Reader, from); err != nil {
			return 0, err
		}
	}
	if from+n < b.Size {
		return io.CopyN(w, b.Reader, n)
	}
	sent, err = io.Copy(w, b.Reader)
	if err == nil && sent < n {
		err = io.ErrUnexpectedEOF
	}
	return sent, err
}

func skip(r io.Reader, n int64) error {
	if s, ok := r.(io.Seeker); ok {
		_, err := s.Seek(n, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}
