package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/disk"
	"millrace/internal/fault"
	"millrace/internal/fetch"
)

const mib = 1 << 20

// file is a server of one file that breaks off on demand.
type file struct {
	mu       sync.Mutex
	data     []byte
	etag     string
	modified time.Time
	noRange  bool
	breaks   []int // bytes after which each coming response breaks off
	asked    []string
}

func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Header.Get("Range")+" "+r.Header.Get("If-Range"))
	if f.etag != "" {
		w.Header().Set("ETag", f.etag)
	}
	if f.noRange {
		r.Header.Del("Range")
	}
	if len(f.breaks) > 0 {
		w = &breaking{ResponseWriter: w, left: f.breaks[0]}
		f.breaks = f.breaks[1:]
	}
	http.ServeContent(w, r, "v.mp4", f.modified, bytes.NewReader(f.data))
}

type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		_, _ = b.ResponseWriter.Write(p[:b.left])
		if f, ok := b.ResponseWriter.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

func download(t *testing.T, c *fetch.Client, url, path string) (fetch.Info, error) {
	t.Helper()
	return c.Download(t.Context(), url, path, fetch.Limits{MaxBytes: 10 * mib}, nil)
}

// wantFile checks the file and that it is alone in its folder.
func wantFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
	wantNames(t, filepath.Dir(path), filepath.Base(path))
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("folder has %v, want %v", got, want)
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	f := &file{data: content(3 * mib), etag: `"v1"`, modified: time.Unix(1e9, 0)}
	url := serve(t, f.ServeHTTP)
	path := filepath.Join(t.TempDir(), "v.mp4")
	var reports [][2]int64
	info, err := newClient(t).Download(t.Context(), url+"/v.mp4", path, fetch.Limits{
		MaxBytes: 3 * mib,
	}, func(done, total int64) {
		reports = append(reports, [2]int64{done, total})
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, f.data)
	want := fetch.Info{
		Size: 3 * mib, ContentType: "video/mp4", ETag: `"v1"`, LastModified: "Sun, 09 Sep 2001 01:46:40 GMT",
	}
	if info != want {
		t.Errorf("info %+v, want %+v", info, want)
	}
	if len(reports) < 2 || reports[0][1] != 3*mib || reports[len(reports)-1] != [2]int64{3 * mib, 3 * mib} {
		t.Errorf("progress %v", reports)
	}
	if _, err := download(t, newClient(t), url, path); err != nil { // a second time replaces
		t.Error(err)
	}
}

func TestDownloadResumes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file  *file
		asked []string
	}{
		"by tag": {
			&file{etag: `"v1"`, breaks: []int{mib, 1000, 0}},
			[]string{" ", `bytes=1048576- "v1"`, `bytes=1049576- "v1"`, `bytes=1049576- "v1"`},
		},
		"by time": {
			&file{modified: time.Unix(1e9, 0), breaks: []int{mib}},
			[]string{" ", "bytes=1048576- Sun, 09 Sep 2001 01:46:40 GMT"},
		},
		"a weak tag does not identify": {&file{etag: `W/"v1"`, breaks: []int{mib}}, []string{" ", " "}},
		"nothing identifies":           {&file{breaks: []int{mib}}, []string{" ", " "}},
		"the server can't continue": {
			&file{etag: `"v1"`, noRange: true, breaks: []int{mib}}, []string{" ", `bytes=1048576- "v1"`},
		},
		"changed in the current second": {
			&file{modified: time.Now().Add(time.Hour), breaks: []int{mib}}, []string{" ", " "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tt.file
			f.data = content(2 * mib)
			url := serve(t, f.ServeHTTP)
			path := filepath.Join(t.TempDir(), "v.mp4")
			info, err := download(t, newClient(t), url, path)
			if err != nil || info.Size != 2*mib {
				t.Fatalf("%+v, %v", info, err)
			}
			wantFile(t, path, f.data)
			if !slices.Equal(f.asked, tt.asked) {
				t.Errorf("asked %q, want %q", f.asked, tt.asked)
			}
		})
	}
}

// TestDownloadResumesInAnotherProcess gives up in the middle, as a stopping process does, and goes on with a new
// client.
func TestDownloadResumesInAnotherProcess(t *testing.T) {
	t.Parallel()
	data := content(2 * mib)
	f := &file{data: data, etag: `"v1"`}
	first, second := serve(t, holding(data[:mib], len(data))), serve(t, f.ServeHTTP)
	// One name for both servers, since only the same URL is continued.
	one := newClient(t, func(o *fetch.Options) { o.Resolver = nil })
	one.DialBy(dialTo(first))
	path := filepath.Join(t.TempDir(), "v.mp4")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := one.Download(ctx, "http://video.example/v.mp4", path, fetch.Limits{
		MaxBytes: 10 * mib,
	}, func(int64, int64) {
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("given up: %v", err)
	}
	wantNames(t, filepath.Dir(path), "v.mp4.part", "v.mp4.part.json")
	note, err := os.ReadFile(path + ".part.json")
	if err != nil || bytes.Contains(note, []byte("video.example")) {
		t.Errorf("note %s, %v", note, err)
	}
	info, err := os.Stat(path + ".part")
	if err != nil {
		t.Fatal(err)
	}
	two := newClient(t)
	two.DialBy(dialTo(second))
	if _, err := download(t, two, "http://video.example/v.mp4", path); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, data)
	if want := "bytes=" + strconv.FormatInt(info.Size(), 10) + `- "v1"`; info.Size() == 0 ||
		!slices.Equal(f.asked, []string{want}) {
		t.Errorf("asked %q, want %q", f.asked, want)
	}
}

// holding sends some of total bytes and then nothing, until the client goes away.
func holding(some []byte, total int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", strconv.Itoa(total))
		_, _ = w.Write(some)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func dialTo(url string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, strings.TrimPrefix(url, "http://"))
	}
}

// TestDownloadKeepsOnlyItsOwn begins with leftovers that must or must not be used.
func TestDownloadKeepsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	const sum = "6d8f1a8d0d0ca6d2b1d4a9c1b1c7e9b4" // of no URL
	for name, tt := range map[string]struct{ part, note string }{
		"another URL":          {"old bytes", `{"url":"` + sum + `","validator":"\"v1\"","total":100}`},
		"no note":              {"old bytes", ""},
		"damaged note":         {"old bytes", `{"url":`},
		"an empty note":        {"old bytes", ``},
		"note without bytes":   {"", `{"url":"` + sum + `","validator":"\"v1\"","total":100}`},
		"more bytes than file": {strings.Repeat("x", 500_000), `{"url":"URL","validator":"\"v1\"","total":100}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &file{data: content(200_000), etag: `"v1"`}
			url := serve(t, f.ServeHTTP)
			path := filepath.Join(t.TempDir(), "v.mp4")
			for name, text := range map[string]string{
				".part": tt.part, ".part.json": strings.ReplaceAll(tt.note, "URL", hashOf(url)),
			} {
				if err := os.WriteFile(path+name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := download(t, newClient(t), url, path); err != nil {
				t.Fatal(err)
			}
			wantFile(t, path, f.data)
			if !slices.Equal(f.asked, []string{" "}) {
				t.Errorf("asked %q", f.asked)
			}
		})
	}
}

func TestDownloadFinishesWhatIsComplete(t *testing.T) {
	t.Parallel()
	f := &file{data: content(200_000), etag: `"v1"`}
	url := serve(t, f.ServeHTTP)
	path := filepath.Join(t.TempDir(), "v.mp4")
	leave(t, path, url, f.data, 200_000)
	info, err := download(t, newClient(t), url, path)
	if err != nil || info.Size != 200_000 || info.ETag != `"v1"` {
		t.Fatalf("%+v, %v", info, err)
	}
	wantFile(t, path, f.data)
	if !slices.Equal(f.asked, []string{`bytes=200000- "v1"`}) {
		t.Errorf("asked %q", f.asked)
	}
}

// leave puts down what a download that was killed would have.
func leave(t *testing.T, path, url string, data []byte, total int) {
	t.Helper()
	note := `{"url":"` + hashOf(url) + `","validator":"\"v1\"","total":` + strconv.Itoa(total) +
		`,"info":{"etag":"\"v1\""}}`
	if err := errors.Join(os.WriteFile(path+".part", data, 0o600),
		os.WriteFile(path+".part.json", []byte(note), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestDownloadOfAChangedFile(t *testing.T) {
	t.Parallel()
	old, changed := content(300_000), bytes.Repeat([]byte("new!"), 50_000)
	for name, handler := range map[string]http.HandlerFunc{
		"the server says so": (&file{data: changed, etag: `"v2"`}).ServeHTTP,
		"If-Range is ignored": func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Range")
			(&file{data: changed, etag: `"v2"`}).ServeHTTP(w, r)
		},
		"only the length tells": func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Range")
			(&file{data: changed}).ServeHTTP(w, r)
		},
		"another place is sent": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				(&file{data: changed}).ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Range", "bytes 5-9/300000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "xxxxx")
		},
		"a range that can't be read": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				(&file{data: changed}).ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Range", "bytes, some")
			w.WriteHeader(http.StatusPartialContent)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, handler)
			path := filepath.Join(t.TempDir(), "v.mp4")
			leave(t, path, url, old[:100_000], 300_000)
			if _, err := download(t, newClient(t), url, path); err != nil {
				t.Fatal(err)
			}
			wantFile(t, path, changed)
		})
	}
}

// TestDownloadOfAFileThatBecameShorter has more bytes already than the file has now.
func TestDownloadOfAFileThatBecameShorter(t *testing.T) {
	t.Parallel()
	f := &file{data: content(1000)}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Range") // so that it returns 416
		f.ServeHTTP(w, r)
	})
	path := filepath.Join(t.TempDir(), "v.mp4")
	leave(t, path, url, content(5000), -1)
	if _, err := download(t, newClient(t), url, path); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, f.data)
}

func TestDownloadTooLarge(t *testing.T) {
	t.Parallel()
	data := content(3 * mib)
	for name, handler := range map[string]http.HandlerFunc{
		"announced": (&file{data: data}).ServeHTTP,
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(data[:1000]); err != nil {
					return
				}
			}
		},
		"continued": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				holdingBroken(w, data[:mib/2])
			}
			w.Header().Set("Content-Range", "bytes 524288-99999999/100000000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "v.mp4")
			_, err := newClient(t).Download(t.Context(), serve(t, handler), path, fetch.Limits{MaxBytes: mib}, nil)
			if fault.KindOf(err) != fault.TooLarge {
				t.Errorf("%v, want too large", err)
			}
			wantNames(t, filepath.Dir(path))
		})
	}
}

// holdingBroken sends some bytes of an unknown number and breaks off.
func holdingBroken(w http.ResponseWriter, some []byte) {
	w.Header().Set("ETag", `"v1"`)
	_, _ = w.Write(some)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// TestDownloadOfALiar announces more than it ever sends.
func TestDownloadOfALiar(t *testing.T) {
	t.Parallel()
	tries := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" +
			strings.Repeat("x", 500))
		_ = errors.Join(buf.Flush(), conn.Close())
	})
	path := filepath.Join(t.TempDir(), "v.mp4")
	_, err := download(t, newClient(t), url, path)
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "broke off") || tries != 4 {
		t.Errorf("%v after %d tries, want unavailable after 4", err, tries)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("half a file was delivered")
	}
	if err := fetch.Discard(path); err != nil {
		t.Error(err)
	}
	wantNames(t, filepath.Dir(path))
	if err := fetch.Discard(path); err != nil {
		t.Errorf("discard of nothing: %v", err)
	}
}

// TestDownloadThatAdvances breaks off more often than the tries allow, but each time a mebibyte further on.
func TestDownloadThatAdvances(t *testing.T) {
	t.Parallel()
	f := &file{data: content(9 * mib), etag: `"v1"`, breaks: slices.Repeat([]int{mib + 1}, 8)}
	path := filepath.Join(t.TempDir(), "v.mp4")
	if _, err := download(t, newClient(t), serve(t, f.ServeHTTP), path); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, f.data)
	slow := &file{data: content(mib), etag: `"v1"`, breaks: slices.Repeat([]int{1}, 8)}
	if _, err := download(t, newClient(t), serve(t, slow.ServeHTTP), path); fault.KindOf(err) != fault.Unavailable ||
		len(slow.asked) != 4 {
		t.Errorf("a byte at a time: %v after %d requests", err, len(slow.asked))
	}
}

func TestDownloadChunkedAndEmpty(t *testing.T) {
	t.Parallel()
	data := content(2 * mib)
	path := filepath.Join(t.TempDir(), "v.mp4")
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chunked" {
			_, _ = w.Write(data[:mib])
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(data[mib:])
		}
	})
	if _, err := download(t, newClient(t), url+"/chunked", path); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, data)
	if _, err := download(t, newClient(t), url+"/empty", path); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, nil)
}

func TestDownloadFailsLocally(t *testing.T) {
	t.Parallel()
	f := &file{data: content(1000)}
	url := serve(t, f.ServeHTTP)
	if _, err := download(t, newClient(t), url, filepath.Join(t.TempDir(), "none", "v.mp4")); err == nil ||
		fault.KindOf(err) != fault.Internal {
		t.Errorf("no folder: %v", err)
	}
	if _, err := newClient(t).Download(t.Context(), url, filepath.Join(t.TempDir(), "f"), fetch.Limits{},
		nil); err == nil {
		t.Error("a download without a limit was made")
	}
	if _, err := download(t, newClient(t), "file:///etc/passwd",
		filepath.Join(t.TempDir(), "f")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("file URL: %v", err)
	}
	if len(f.asked) != 0 {
		t.Errorf("asked %q", f.asked)
	}
}

// TestDownloadLeavesRoom: what does not fit beside what live streams need is not begun, and gives back what it has when
// the disk fills up.
func TestDownloadLeavesSpace(t *testing.T) {
	t.Parallel()
	data := content(40 * mib)
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(data[:mib]); err != nil {
				return
			}
		}
	}
	const total = 1000 * mib // of which 50 MiB are left
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		free    []uint64 // each time it is asked
		kept    bool     // an earlier process has left some
		fits    bool
		most    int64 // that may have been written
	}{
		"fits":          {(&file{data: data}).ServeHTTP, []uint64{90 * mib, 74 * mib, 58 * mib}, false, true, 40 * mib},
		"announced":     {(&file{data: data}).ServeHTTP, []uint64{89 * mib}, false, false, 0},
		"filled by all": {(&file{data: data}).ServeHTTP, []uint64{500 * mib, 49 * mib}, false, false, 17 * mib},
		"endless":       {endless, []uint64{82 * mib, 66 * mib, 49 * mib}, false, false, 33 * mib},
		"continued":     {(&file{data: data, etag: `"v1"`}).ServeHTTP, []uint64{60 * mib}, true, false, 4},
		"unknown":       {(&file{data: data}).ServeHTTP, nil, false, true, 40 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, path := serve(t, tt.handler), filepath.Join(t.TempDir(), "v.mp4")
			if tt.kept {
				leave(t, path, url, data[:4], len(data))
			}
			c, asked := newClient(t), 0
			c.SpaceBy(func(string) (disk.Space, error) {
				if asked++; asked > len(tt.free) {
					return disk.Space{}, errors.New("not known")
				}
				return disk.Space{Free: tt.free[asked-1], Total: total}, nil
			})
			var most int64
			_, err := c.Download(t.Context(), url, path, fetch.Limits{MaxBytes: 100 * mib}, func(done, _ int64) {
				most = done
			})
			if tt.fits {
				if err != nil {
					t.Fatal(err)
				}
				wantFile(t, path, data)
				return
			}
			if fault.KindOf(err) != fault.Unavailable ||
				!strings.Contains(strings.Join(fault.Messages(err), ""), "no room") {
				t.Errorf("%v, want that there is no room", err)
			}
			if most > tt.most || asked != len(tt.free) {
				t.Errorf("%d bytes were written, the disk was asked %d times", most, asked)
			}
			wantNames(t, filepath.Dir(path))
		})
	}
}
