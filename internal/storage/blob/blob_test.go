package blob_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/leaktest"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/blob/blobtest"
	"millrace/internal/storage/blob/s3"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func openFolder(tb testing.TB, dir string, noSync bool) blob.Store {
	tb.Helper()
	s, err := blob.Open(tb.Context(), blob.Options{Dir: dir, NoSync: noSync})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// openS3 opens a store under a prefix of its own in the bucket of MILLRACE_TEST_S3.
func openS3(tb testing.TB) blob.Store {
	tb.Helper()
	raw := os.Getenv("MILLRACE_TEST_S3")
	if raw == "" {
		const missing = "MILLRACE_TEST_S3 holds no s3:// URL; make test starts an S3 server and sets it"
		if os.Getenv("MILLRACE_TEST_REQUIRE") == "1" {
			tb.Fatal(missing)
		}
		tb.Skip(missing)
	}
	o, err := blob.ParseURL(raw)
	if err != nil {
		tb.Fatal(err)
	}
	o.S3.Create = true
	o.S3.Prefix = strings.Trim(o.S3.Prefix+"/blobtest-"+strings.ToLower(rand.Text()), "/")
	s, err := blob.Open(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { removeAll(tb, o) })
	return s
}

func removeAll(tb testing.TB, o blob.Options) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	s, err := blob.Open(ctx, o)
	if err != nil {
		tb.Error(err)
		return
	}
	var keys []string
	for key, err := range s.List(ctx, "") {
		if err != nil {
			tb.Error(err)
			break
		}
		keys = append(keys, key)
	}
	if err := errors.Join(s.Delete(ctx, keys...), s.Close()); err != nil {
		tb.Error(err)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { t.Helper(); return openFolder(t, t.TempDir(), true) })
}

func TestFolderSynced(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store { t.Helper(); return openFolder(t, t.TempDir(), false) })
}

func TestS3(t *testing.T) {
	t.Parallel()
	if err := openS3(t).Close(); err != nil { // skips or fails at once
		t.Fatal(err)
	}
	blobtest.Run(t, func(t *testing.T) blob.Store { t.Helper(); return openS3(t) })
}

func TestFolderLeavesNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tmp := filepath.Join(dir, ".tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(tmp, "old"), filepath.Join(tmp, "young")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	s := openFolder(t, dir, true)
	if err := s.Put(t.Context(), "a/b", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a/b/c", strings.NewReader("x")); fault.KindOf(err) != fault.Conflict {
		t.Errorf("put below an object: %v, want a conflict", err)
	}
	if err := s.Put(t.Context(), "a", strings.NewReader("x")); fault.KindOf(err) != fault.Conflict {
		t.Errorf("put on a folder: %v, want a conflict", err)
	}
	if err := s.Put(t.Context(), "c", io.MultiReader(strings.NewReader("x"), errReader{})); err == nil {
		t.Error("broken put returned nil")
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(tmp)
	if err != nil || len(entries) != 1 || entries[0].Name() != "young" {
		t.Errorf("temporary files: %v, %v; want young only", entries, err)
	}
	if entries, err = os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("folder: %v, %v; want nothing but .tmp", entries, err)
	}
}

// TestFolderIsSweptOfTheDead: what a killed process was writing goes with the next start, and what others write stays.
func TestFolderIsSweptOfTheDead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, ".tmp", "OFTHEDEAD")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "half"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	living := openFolder(t, dir, true)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left over: %v", err)
	}
	err := living.Put(t.Context(), "a", readerFunc(func([]byte) (int, error) {
		other, err := blob.Open(t.Context(), blob.Options{Dir: dir, NoSync: true})
		if err == nil {
			err = errors.Join(other.Put(t.Context(), "b", strings.NewReader("x")), other.Close())
		}
		if err == nil {
			err = io.EOF
		}
		return 0, err
	}))
	if err != nil {
		t.Errorf("another store was opened while this one wrote: %v", err)
	}
	if _, err := living.Stat(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broke") }

// TestFolderComesAndGoes deletes the last object of a folder while others are put into it.
func TestFolderComesAndGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, noSync := range []bool{true, false} {
		blobtest.Churn(t, openFolder(t, dir, noSync))
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("folder: %v, %v; want nothing but .tmp", entries, err)
	}
}

func TestFolderShowsRegularFilesOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openFolder(t, dir, true)
	if err := os.WriteFile(filepath.Join(dir, "name with space"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, err := range s.List(t.Context(), "") {
		t.Errorf("listed %s, %v", key, err)
	}
	for _, key := range []string{"link", "fifo"} {
		if _, err := s.Get(t.Context(), key, 0, -1); err == nil ||
			strings.Contains(key, "link") && fault.KindOf(err) != fault.NotFound {
			t.Errorf("get %s: %v", key, err)
		}
		if _, err := s.Stat(t.Context(), key); fault.KindOf(err) != fault.NotFound {
			t.Errorf("stat %s: %v", key, err)
		}
	}
}

func TestFolderOpenFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.Open(t.Context(), blob.Options{Dir: file}); err == nil {
		t.Error("a file was opened as folder")
	}
	if _, err := blob.Open(t.Context(), blob.Options{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("empty options: %v", err)
	}
	if _, err := blob.Open(t.Context(), blob.Options{
		Dir: file, S3: s3.Options{Bucket: "b"},
	}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("two storages: %v", err)
	}
}

// TestAdoptAcrossFilesystems moves a file from memory to disk.
func TestAdoptAcrossFilesystems(t *testing.T) {
	t.Parallel()
	other, err := os.MkdirTemp("/dev/shm", "millrace-blob-*") //nolint:usetesting // the point is another filesystem
	if err != nil {
		t.Skip("no second filesystem at /dev/shm")
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	s := openFolder(t, t.TempDir(), false)
	path, want := filepath.Join(other, "f"), blobtest.Bytes(1, 700_000)
	if err = os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err = s.Adopt(t.Context(), "x/y", path); err != nil {
		t.Fatal(err)
	}
	r, err := s.Get(t.Context(), "x/y", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Error("the file is still there")
	}
}

// TestLink gives a file a second name where that can be, and copies it where it can not; neither leaves anything else
// behind.
func TestLink(t *testing.T) {
	t.Parallel()
	other, err := os.MkdirTemp("/dev/shm", "millrace-blob-*") //nolint:usetesting // the point is another filesystem
	if err != nil {
		t.Skip("no second filesystem at /dev/shm")
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	dir := t.TempDir()
	s := openFolder(t, dir, false)
	for key, tt := range map[string]struct {
		from string
		same bool
	}{"x/near": {t.TempDir(), true}, "x/far": {other, false}} {
		path, want := filepath.Join(tt.from, "f"), blobtest.Bytes(1, 700_000)
		if err = os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		f, failed := os.Open(path)
		if failed != nil {
			t.Fatal(failed)
		}
		if failed = errors.Join(s.Put(t.Context(), key, strings.NewReader("old")), s.Link(t.Context(), key, f),
			s.Link(t.Context(), key, f), f.Close()); failed != nil {
			t.Fatal(failed)
		}
		got, failed := os.ReadFile(filepath.Join(dir, key))
		if failed != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", key, len(got), failed)
		}
		a, err1 := os.Stat(path)
		b, err2 := os.Stat(filepath.Join(dir, key))
		if failed := errors.Join(err1, err2); failed != nil || os.SameFile(a, b) != tt.same {
			t.Errorf("%s: the same file: %v, %v", key, os.SameFile(a, b), failed)
		}
	}
	if failed := s.Close(); failed != nil {
		t.Error(failed)
	}
	entries, err := os.ReadDir(filepath.Join(dir, ".tmp"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestFolderReaderAtIsAFile(t *testing.T) {
	t.Parallel()
	s := openFolder(t, t.TempDir(), true)
	if err := s.Put(t.Context(), "k", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	r, err := blob.ReaderAt(t.Context(), s, "k", -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.(*os.File); !ok {
		t.Errorf("reader is a %T", r)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url  string
		want blob.Options
		msg  string
	}{
		{url: "/var/lib/millrace", want: blob.Options{Dir: "/var/lib/millrace"}},
		{url: "data/media/", want: blob.Options{Dir: "data/media"}},
		{url: "file:///srv/a%20b", want: blob.Options{Dir: "/srv/a b"}},
		{url: "file:///srv?sync=false", want: blob.Options{Dir: "/srv", NoSync: true}},
		{url: "s3://b", want: blob.Options{S3: s3.Options{Bucket: "b"}}},
		{
			url: "s3://b?endpoint=http%3A%2F%2Fh%3A9000&region=eu&access_key_id=id&secret_access_key=s%2Bx&session_token=t&path_style=true&prefix=p/q&create=true",
			want: blob.Options{S3: s3.Options{
				Bucket: "b", Endpoint: "http://h:9000", Region: "eu", AccessKeyID: "id", SecretAccessKey: "s+x",
				SessionToken: "t", PathStyle: true, Prefix: "p/q", Create: true,
			}},
		},
		{url: "", msg: "empty"},
		{url: "file://host/x", msg: "three slashes"},
		{url: "file://", msg: "three slashes"},
		{url: "gs://b", msg: "s3:// is allowed"},
		{url: "s3://b/path", msg: "prefix="},
		{url: "s3://id:secret@b", msg: "access_key_id="},
		{url: "s3://b?secret_key=secret", msg: `unknown parameter "secret_key"`},
		{url: "s3://b?create=perhaps", msg: "create must be true or false"},
		{url: "s3://b?secret_access_key=secret%zz", msg: "percent-encode"},
		{url: "s3://b\x7f?secret_access_key=secret", msg: "percent-encoded"},
	} {
		got, err := blob.ParseURL(tt.url)
		if tt.msg == "" {
			if err != nil || got != tt.want {
				t.Errorf("%s: %+v, %v", tt.url, got, err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.msg) {
			t.Errorf("%s: %v, want %q", tt.url, err, tt.msg)
		} else if strings.Contains(err.Error(), "=secret") || strings.Contains(err.Error(), "id:secret") {
			t.Errorf("%s: the error holds a secret: %v", tt.url, err)
		}
	}
}

// s3Server responds to every request alike.
func s3Server(t *testing.T, status int, body string) (blob.Store, *[]*http.Request) {
	t.Helper()
	var seen []*http.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return remoteAt(t, srv.URL), &seen
}

func remoteAt(t *testing.T, endpoint string) blob.Store {
	t.Helper()
	s, err := blob.OpenURL(t.Context(),
		"s3://b?path_style=true&access_key_id=id&secret_access_key=sesame&endpoint="+url.QueryEscape(endpoint))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestS3Faults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"unauthorized": {401, `<Error><Code>Unauthorized</Code></Error>`, blob.ErrRefused},
		"forbidden":    {403, `<Error><Code>SignatureDoesNotMatch</Code></Error>`, blob.ErrRefused},
		"no policy":    {403, `<Error><Code>AccessDenied</Code></Error>`, blob.ErrRefused},
		"no bucket":    {404, `<Error><Code>NoSuchBucket</Code><Message>gone</Message></Error>`, blob.ErrNoBucket},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := s3Server(t, tt.status, tt.body)
			_, errGet := s.Get(t.Context(), "k", 0, -1)
			_, errStat := s.Stat(t.Context(), "k")
			for what, err := range map[string]error{
				"put": s.Put(t.Context(), "k", strings.NewReader("x")), "delete": s.Delete(t.Context(), "k"),
				"get": errGet, "stat": errStat,
			} {
				// the response to HEAD has no words that tell it from a key
				if what == "stat" && errors.Is(tt.want, blob.ErrNoBucket) {
					if fault.KindOf(err) != fault.NotFound || fault.Permanent(err) {
						t.Errorf("%s: %v of kind %d, permanent: %t", what, err, fault.KindOf(err), fault.Permanent(err))
					}
				} else if fault.KindOf(err) != fault.Unavailable || !errors.Is(err, tt.want) {
					t.Errorf("%s: %v of kind %d, want unavailable, %v", what, err, fault.KindOf(err), tt.want)
				}
				if err != nil && strings.Contains(err.Error(), "sesame") {
					t.Errorf("%s: the error holds the secret", what)
				}
			}
		})
	}
}

func TestS3Away(t *testing.T) {
	t.Parallel()
	s := remoteAt(t, "http://127.0.0.1:1") // a port that was free a moment ago may be another test's by now
	if _, err := s.Stat(t.Context(), "k"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("server is away: %v, want unavailable", err)
	}
}

// TestS3SendsNoChecksums guards a setting that compatible servers need.
func TestS3SendsNoChecksums(t *testing.T) {
	t.Parallel()
	s, seen := s3Server(t, 200, "")
	if err := s.Put(t.Context(), "small", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "stream", io.MultiReader(strings.NewReader("x"))); err != nil {
		t.Fatal(err)
	}
	if len(*seen) != 2 {
		t.Errorf("%d requests for two small objects", len(*seen))
	}
	for _, r := range *seen {
		for name := range r.Header {
			if n := strings.ToLower(name); strings.Contains(n, "checksum") || n == "x-amz-trailer" ||
				n == "content-encoding" {
				t.Errorf("%s carries %s", r.URL.Path, name)
			}
		}
		if !strings.HasPrefix(r.URL.Path, "/b/") || !slices.Contains([]string{"/b/small", "/b/stream"}, r.URL.Path) {
			t.Errorf("path %s", r.URL.Path)
		}
	}
}

// TestS3TakesBackParts gives up a large upload in three ways: its parts must not stay.
func TestS3TakesBackParts(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func(cancel func()) io.Reader{
		"cancelled": func(cancel func()) io.Reader { return io.MultiReader(zeros(), does(cancel), zeros()) },
		"cancelled at the end": func(cancel func()) io.Reader {
			return io.MultiReader(zeros(), does(cancel))
		},
		"broken": func(func()) io.Reader { return io.MultiReader(zeros(), errReader{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var begun, ended atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				switch {
				case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
					begun.Add(1)
					_, _ = io.WriteString(w,
						`<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>u1</UploadId></InitiateMultipartUploadResult>`)
				case r.Method == http.MethodPut:
					w.Header().Set("ETag", `"e"`)
				case r.Method == http.MethodDelete && r.URL.Query().Get("uploadId") == "u1":
					ended.Add(1)
				default:
					t.Errorf("unexpected %s %s", r.Method, r.URL)
				}
			}))
			t.Cleanup(srv.Close)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := remoteAt(t, srv.URL).Put(ctx, "k", body(cancel)); err == nil {
				t.Error("put returned nil")
			}
			if begun.Load() != 1 || ended.Load() != 1 {
				t.Errorf("%d uploads begun, %d taken back", begun.Load(), ended.Load())
			}
		})
	}
}

// zeros are more than one request takes.
func zeros() io.Reader { return io.LimitReader(zero{}, blobtest.Large) }

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// does calls itself when it is read, and is empty.
type does func()

func (d does) Read([]byte) (int, error) { d(); return 0, io.EOF }

// TestS3GetIsOneRequest guards the cost of a range.
func TestS3GetIsOneRequest(t *testing.T) {
	t.Parallel()
	var ranges []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Method+" "+r.Header.Get("Range"))
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(blobtest.Bytes(1, 1000)))
	}))
	t.Cleanup(srv.Close)
	s := remoteAt(t, srv.URL)
	r, err := s.Get(t.Context(), "k", 100, 50)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || len(got) != 50 || r.Size != 1000 {
		t.Errorf("%d bytes of %d, %v", len(got), r.Size, err)
	}
	if !slices.Equal(ranges, []string{"GET bytes=100-149"}) {
		t.Errorf("requests: %q", ranges)
	}
}
