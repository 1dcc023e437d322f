package upload_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/upload"
	"millrace/internal/disk"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/receive"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	webupload "millrace/internal/web/upload"
)

const (
	env = id.Environment("env")
	mib = 1 << 20
)

// service takes uploads on a real database and a real folder.
type service struct {
	t       *testing.T
	db      *db.DB
	store   blob.Store
	uploads *upload.Service
	assets  struct {
		*asset.Service
		*asset.Work
	}
	files  *receive.Files
	server *httptest.Server
	space  disk.Space
	late   atomic.Int64 // how far the clock is ahead, nanoseconds
	// opening happens before a request gets its Writer, finished when it has made the asset; nil: nothing does.
	opening, finished func()
	closed            atomic.Int32 // Writers
}

func (s *service) now() time.Time { return time.Now().Add(time.Duration(s.late.Load())) }

const (
	maxSize = 32 * mib
	quota   = 48 * mib
)

func start(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, db: dbtest.Open(t, dbtest.SQLite(t))}
	var err error
	s.store, err = blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	must(t, err)
	t.Cleanup(func() { _ = s.store.Close() })
	s.uploads = upload.New(upload.Options{Store: s.db.Uploads(), Quota: quota})
	o := asset.Options{Store: s.db.Assets()}
	s.assets.Service, s.assets.Work = asset.New(o), asset.NewWork(o)
	s.restart()
	return s
}

// restart forgets what was in memory, as another process would not know it.
func (s *service) restart() {
	s.t.Helper()
	if s.server != nil {
		s.server.CloseClientConnections()
		s.server.Close()
	}
	s.files = receive.New(receive.Options{
		Uploads: s.uploads, Assets: s.assets, Complete: s.db.CompleteUpload, Store: s.store, MaxSize: maxSize,
		Now:   s.now,
		Space: func() (disk.Space, error) { return s.space, nil },
	})
	handler := http.NewServeMux()
	s.server = httptest.NewServer(handler)
	s.t.Cleanup(s.server.Close)
	s.server.Client().Transport.(*http.Transport).ExpectContinueTimeout = time.Minute //nolint:forcetypeassert // it is one
	h, err := webupload.New(webupload.Options{
		Files: uploadFiles{s.files, s}, PublicURL: s.server.URL, Now: s.now, Logger: slog.New(slog.DiscardHandler),
	})
	must(s.t, err)
	handler.Handle(webupload.Path, h)
}

type uploadFiles struct {
	*receive.Files
	service *service
}

func (uf uploadFiles) Open(ctx context.Context, u id.Upload, interrupt func()) (webupload.Writer, error) {
	once(&uf.service.opening)
	w, err := uf.Files.Open(ctx, u, interrupt)
	if err != nil {
		return nil, err
	}
	return writer{w, uf.service}, nil
}

// once calls what is there, and not again.
func once(f *func()) {
	if call := *f; call != nil {
		*f = nil
		call()
	}
}

type writer struct {
	webupload.Writer
	service *service
}

func (w writer) Finish(ctx context.Context) error {
	err := w.Writer.Finish(ctx)
	once(&w.service.finished)
	return err
}

func (w writer) Close() error {
	w.service.closed.Add(1)
	return w.Writer.Close()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *service) create() upload.Upload { return s.createFor("*") }

func (s *service) createFor(origin string) upload.Upload {
	s.t.Helper()
	u, err := s.uploads.Create(s.t.Context(), env, upload.CreateInput{CORSOrigin: origin}, time.Now())
	must(s.t, err)
	return u
}

// sent is one request: header lines are "Name: value".
type sent struct {
	method string
	tus    bool
	header []string
	body   io.Reader
	size   int64 // 0: as the body says
}

func (s *service) send(u upload.Upload, r sent) *http.Response {
	s.t.Helper()
	path := webupload.Path
	if r.tus {
		path += "tus/"
		r.header = append(r.header, "Tus-Resumable: 1.0.0")
	}
	req, err := http.NewRequestWithContext(s.t.Context(), r.method, s.server.URL+path+u.Secret, r.body)
	must(s.t, err)
	if r.size > 0 {
		req.ContentLength = r.size
	}
	for _, h := range r.header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := s.server.Client().Do(req)
	must(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(s.t, err)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp
}

func text(r *http.Response) string {
	b, _ := io.ReadAll(r.Body)
	return string(b)
}

// put sends one PUT and checks status and Range.
func (s *service) put(u upload.Upload, body []byte, contentRange string, status int, kept string) *http.Response {
	s.t.Helper()
	r := sent{method: http.MethodPut, body: bytes.NewReader(body)}
	if contentRange != "" {
		r.header = []string{"Content-Range: bytes " + contentRange}
	}
	resp := s.send(u, r)
	if resp.StatusCode != status || resp.Header.Get("Range") != kept {
		s.t.Fatalf("PUT %s: %d, Range %q, want %d, %q: %s", contentRange, resp.StatusCode, resp.Header.Get("Range"),
			status, kept, text(resp))
	}
	return resp
}

// file is n bytes that can be made again.
func file(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// arrived checks that the upload has an asset of these bytes, and that there is nothing else.
func (s *service) arrived(u upload.Upload, want []byte) {
	s.t.Helper()
	got, err := s.uploads.Get(s.t.Context(), env, u.ID, s.now())
	must(s.t, err)
	if got.Status != upload.AssetCreated || got.Size != int64(len(want)) {
		s.t.Fatalf("upload %+v", got)
	}
	a, err := s.assets.Get(s.t.Context(), env, got.Asset)
	must(s.t, err)
	if a.Upload != u.ID || a.Media != u.Media {
		s.t.Errorf("asset %+v", a)
	}
	r, err := s.store.Get(s.t.Context(), objectkey.SourceFile(u.Media), 0, -1)
	must(s.t, err)
	hash := sha256.New()
	_, err = io.Copy(hash, r)
	must(s.t, err)
	_ = r.Close()
	if sum := sha256.Sum256(want); !bytes.Equal(hash.Sum(nil), sum[:]) || r.Size != int64(len(want)) {
		s.t.Errorf("the file has %d bytes, and not those that were sent (%d)", r.Size, len(want))
	}
}
