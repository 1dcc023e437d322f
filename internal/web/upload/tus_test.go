package upload_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/upload"
)

// tus sends one request of a tus client and checks the status.
func (s *service) tus(u upload.Upload, method string, status int, body []byte, header ...string) http.Header {
	s.t.Helper()
	if method == http.MethodPatch {
		header = append(header, "Content-Type: application/offset+octet-stream")
	}
	resp := s.send(u, sent{method: method, tus: true, header: header, body: bytes.NewReader(body)})
	if resp.StatusCode != status {
		s.t.Fatalf("%s: %d, want %d: %s", method, resp.StatusCode, status, text(resp))
	}
	return resp.Header
}

func (s *service) offset(u upload.Upload, want int) {
	s.t.Helper()
	h := s.tus(u, http.MethodHead, 200, nil)
	if got := h.Get("Upload-Offset"); got != fmt.Sprint(want) {
		s.t.Fatalf("offset %s, want %d", got, want)
	}
}

// TestTus creates, sends in two requests with a restart between, and asks once more when all is done.
func TestTus(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	data := file(mib + 3)
	h := s.send(u, sent{method: http.MethodOptions, tus: true}).Header
	if h.Get("Tus-Version") != "1.0.0" || h.Get("Tus-Max-Size") != fmt.Sprint(maxSize) ||
		!strings.Contains(h.Get("Tus-Extension"), "creation") ||
		!strings.Contains(h.Get("Tus-Extension"), "termination") ||
		!strings.Contains(h.Get("Tus-Extension"), "expiration") {
		t.Errorf("options %v", h)
	}
	create := []string{fmt.Sprintf("Upload-Length: %d", len(data)), "Upload-Metadata: filename YS5tcDQ="}
	for range 2 { // the response may have been lost
		h = s.tus(u, http.MethodPost, 201, nil, create...)
		if h.Get("Location") != s.server.URL+"/uploads/tus/"+u.Secret {
			t.Errorf("location %s", h.Get("Location"))
		}
	}
	if at, err := http.ParseTime(h.Get("Upload-Expires")); err != nil ||
		at.Sub(u.CreatedAt.Add(time.Hour)).Abs() > 2*time.Second {
		t.Errorf("expires %v", h)
	}
	s.offset(u, 0)
	h = s.tus(u, http.MethodPatch, 204, data[:mib], "Upload-Offset: 0")
	if h.Get("Upload-Offset") != fmt.Sprint(mib) {
		t.Errorf("patched: %v", h)
	}
	s.restart()
	s.tus(u, http.MethodPost, 201, nil, create...)
	h = s.tus(u, http.MethodHead, 200, nil)
	if h.Get("Upload-Offset") != fmt.Sprint(mib) || h.Get("Upload-Length") != fmt.Sprint(len(data)) ||
		h.Get("Upload-Metadata") != "filename YS5tcDQ=" {
		t.Errorf("after a restart: %v", h)
	}
	s.tus(u, http.MethodPatch, 409, data[:5], "Upload-Offset: 0")
	s.tus(u, http.MethodPatch, 413, append(data[mib:], 1), fmt.Sprintf("Upload-Offset: %d", mib))
	s.tus(u, http.MethodPatch, 204, data[mib:], fmt.Sprintf("Upload-Offset: %d", mib))
	s.arrived(u, data)
	s.offset(u, len(data)) // the response to the last byte was lost
	s.tus(u, http.MethodPatch, 204, nil, fmt.Sprintf("Upload-Offset: %d", len(data)))
}

func TestTusWithinCreation(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	s.tus(u, http.MethodPost, 201, file(100), "Upload-Length: 100", "Content-Type: application/offset+octet-stream")
	s.arrived(u, file(100))
}

// TestTusCreatedAgain: a creation with bytes whose response was lost is sent again, and its bytes are taken once.
func TestTusCreatedAgain(t *testing.T) {
	t.Parallel()
	data := file(2 * mib)
	size := fmt.Sprintf("Upload-Length: %d", len(data))
	for _, c := range []struct {
		name   string
		length string // of the creations
		chunk  int    // that comes with them
		more   int    // bytes that came by PATCH before the second one
		want   int    // Upload-Offset of the response to it
	}{
		{name: "a chunk", length: size, chunk: mib, want: mib},
		{name: "the whole file", length: size, chunk: 2 * mib, want: 2 * mib},
		{name: "behind others", length: size, chunk: mib, more: mib, want: mib + mib/2},
		{name: "length deferred", length: "Upload-Defer-Length: 1", chunk: mib, want: mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			u := s.create()
			at := s.cutTus(u, http.MethodPost, data[:c.chunk], c.chunk/2, c.length)
			if c.more > 0 {
				s.tus(u, http.MethodPatch, 204, data[at:c.want], fmt.Sprintf("Upload-Offset: %d", at))
			}
			s.restart()
			h := s.tus(u, http.MethodPost, 201, data[:c.chunk], c.length,
				"Content-Type: application/offset+octet-stream")
			if got := h.Get("Upload-Offset"); got != fmt.Sprint(c.want) {
				t.Fatalf("offset %s, want %d", got, c.want)
			}
			if c.want < len(data) {
				rest := []string{fmt.Sprintf("Upload-Offset: %d", c.want)}
				if c.length != size {
					rest = append(rest, size)
				}
				s.tus(u, http.MethodPatch, 204, data[c.want:], rest...)
			}
			s.arrived(u, data)
			h = s.tus(u, http.MethodPost, 201, data[:c.chunk], c.length,
				"Content-Type: application/offset+octet-stream")
			if got := h.Get("Upload-Offset"); got != fmt.Sprint(len(data)) {
				t.Errorf("offset %s of a whole file, want %d", got, len(data))
			}
			s.arrived(u, data)
		})
	}
}

// TestTusBesideAnother asks about a file while the request that sent its last byte is still there: it does not touch
// what is that one's.
func TestTusBesideAnother(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	s.tus(u, http.MethodPost, 201, nil, "Upload-Length: 100")
	s.closed.Store(0)
	s.finished = func() {
		s.offset(u, 100)
		s.tus(u, http.MethodPost, 201, nil, "Upload-Length: 100")
		if n := s.closed.Load(); n != 0 {
			t.Errorf("%d writers were closed beside the one that writes", n)
		}
	}
	s.tus(u, http.MethodPatch, 204, file(100), "Upload-Offset: 0")
	s.arrived(u, file(100))
}

func TestTusLengthDeclaredLater(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	s.tus(u, http.MethodPost, 201, nil, "Upload-Defer-Length: 1")
	s.tus(u, http.MethodPatch, 204, file(100)[:60], "Upload-Offset: 0")
	if h := s.tus(u, http.MethodHead, 200, nil); h.Get("Upload-Defer-Length") != "1" || h.Get("Upload-Offset") != "60" {
		t.Errorf("%v", h)
	}
	s.tus(u, http.MethodPatch, 204, file(100)[60:], "Upload-Offset: 60", "Upload-Length: 100")
	s.arrived(u, file(100))
}

func TestTusTermination(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	s.tus(u, http.MethodPost, 201, nil, "Upload-Length: 100")
	s.tus(u, http.MethodPatch, 204, file(100)[:60], "Upload-Offset: 0")
	s.tus(u, http.MethodDelete, 204, nil)
	got, err := s.uploads.Get(t.Context(), env, u.ID, time.Now())
	must(t, err)
	if got.Status != upload.Cancelled {
		t.Errorf("the upload is %s", got.Status)
	}
	s.tus(u, http.MethodHead, 410, nil)
	s.tus(u, http.MethodPatch, 410, file(100)[60:], "Upload-Offset: 60")
}

func TestTusRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	s.tus(u, http.MethodPost, 413, nil, fmt.Sprintf("Upload-Length: %d", maxSize+1))
	s.tus(u, http.MethodPost, 400, nil, "Upload-Length: 10", "Upload-Metadata: a "+strings.Repeat("A", 4096))
	s.tus(u, http.MethodPost, 400, nil)
	s.tus(u, http.MethodPut, 405, nil)
	s.tus(upload.Upload{Secret: "unknown"}, http.MethodHead, 404, nil)
	must(t, s.uploads.Declare(t.Context(), s.create().ID, upload.Length{Size: quota - 10}))
	if h := s.tus(u, http.MethodPost, 507, nil, "Upload-Length: 11"); h.Get("Retry-After") != "60" {
		t.Errorf("%v", h)
	}
}

// TestTusAnotherFile: to create an upload that has its file already is no error for the sender of that file, and one
// for that of another file, which would be lost. One of the same length is told from it by its first bytes, and by a
// status after which no client asks how much has come: all of it, but of another file.
func TestTusAnotherFile(t *testing.T) {
	t.Parallel()
	const size = 300 << 10
	mine := file(size)
	other := bytes.Repeat([]byte{1}, size)
	length, content := fmt.Sprintf("Upload-Length: %d", size), "Content-Type: application/offset+octet-stream"
	s := start(t)
	u := s.create()
	s.put(u, mine, "", 200, "")
	s.tus(u, http.MethodPost, 201, nil, length)
	s.tus(u, http.MethodPost, 409, nil, fmt.Sprintf("Upload-Length: %d", size+1))
	s.tus(u, http.MethodPost, 409, other, length, content)
	s.tus(u, http.MethodPatch, 410, other, "Upload-Offset: 0")
	s.tus(u, http.MethodPatch, 410, other[256<<10:], fmt.Sprintf("Upload-Offset: %d", 256<<10))
	s.tus(u, http.MethodPatch, 409, mine, "Upload-Offset: 0") // the library's: they are not expected
	s.tus(u, http.MethodPatch, 409, mine[1:], "Upload-Offset: 1")
	s.tus(u, http.MethodPatch, 400, mine, "Upload-Offset: -1")
	s.offset(u, size)
	s.arrived(u, mine)
}

// TestTusInParts: a client that would send a file in several parts at once is told not to, in words that its page can
// read, whatever it says of them; nothing becomes an asset of a part, and the file can still come as one.
func TestTusInParts(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	for _, concat := range []string{"partial", "PARTIAL", "final;/uploads/tus/a /uploads/tus/b", "final;", "none", ""} {
		for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodHead} {
			header := []string{
				"Upload-Concat: " + concat, "Upload-Length: 50", "Upload-Offset: 0",
				"Content-Type: application/offset+octet-stream",
			}
			resp := s.send(u, sent{method: method, tus: true, header: header, body: bytes.NewReader(file(50))})
			got := text(resp)
			if resp.StatusCode != 400 || method != http.MethodHead && !strings.Contains(got, "parallelUploads to 1") {
				t.Errorf("%s of %q: %d %s", method, concat, resp.StatusCode, got)
			}
		}
	}
	h := s.send(u, sent{method: http.MethodOptions, tus: true, header: []string{"Origin: https://example.com"}}).Header
	if strings.Contains(h.Get("Tus-Extension"), "concatenation") || h.Get("Tus-Extension") == "" {
		t.Errorf("extensions %q", h.Get("Tus-Extension"))
	}
	if allowed := h.Get("Access-Control-Allow-Headers"); !strings.Contains(allowed, "Upload-Concat") {
		t.Errorf("pages may send %q", allowed)
	}
	s.tus(u, http.MethodPost, 201, nil, "Upload-Length: 100")
	s.offset(u, 0)
	s.tus(u, http.MethodPatch, 204, file(100), "Upload-Offset: 0")
	s.arrived(u, file(100))
}

// cutTus sends a request of which n bytes get through before the connection is lost, and asks how many are kept.
func (s *service) cutTus(u upload.Upload, method string, body []byte, n int, header ...string) (kept int) {
	s.t.Helper()
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+"/uploads/tus/"+u.Secret, r)
	must(s.t, err)
	req.ContentLength = int64(len(body))
	for _, h := range append(header, "Tus-Resumable: 1.0.0", "Content-Type: application/offset+octet-stream") {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	go func() {
		_, _ = w.Write(body[:n])
		_ = w.CloseWithError(io.ErrClosedPipe)
	}()
	if resp, derr := s.server.Client().Do(req); derr == nil {
		_ = resp.Body.Close()
		s.t.Fatal("a request that was cut has a response")
	}
	for kept == 0 {
		_, err = fmt.Sscan(s.tus(u, http.MethodHead, 200, nil).Get("Upload-Offset"), &kept)
		must(s.t, err)
	}
	return kept
}

// TestTusConnectionLost: what has come of a request that was cut counts.
func TestTusConnectionLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	data := file(mib)
	s.tus(u, http.MethodPost, 201, nil, fmt.Sprintf("Upload-Length: %d", mib))
	at := s.cutTus(u, http.MethodPatch, data, mib/2, "Upload-Offset: 0")
	s.tus(u, http.MethodPatch, 204, data[at:], fmt.Sprintf("Upload-Offset: %d", at))
	s.arrived(u, data)
}
