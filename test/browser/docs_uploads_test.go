package browser_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// docsPages are the pages to copy that stand in docs/uploads.md.
func docsPages(t *testing.T) (pages []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/uploads.md")
	made(t, err)
	for i, block := range strings.Split(string(text), "```html\n") {
		if i > 0 {
			page, _, _ := strings.Cut(block, "```")
			pages = append(pages, page)
		}
	}
	return pages
}

// cdn is where the pages take their uploaders from: package and version.
var cdn = regexp.MustCompile(`https://cdn\.jsdelivr\.net/npm/(@?[\w/-]+)@([\d.]+)/`)

// fromHere has a page take its uploader from the packages that are installed, of the version that it names.
func fromHere(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("driver/package.json")
	made(t, err)
	var installed struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	made(t, json.Unmarshal(text, &installed))
	for _, m := range cdn.FindAllStringSubmatch(page, -1) {
		if have := installed.Dependencies[m[1]]; have != m[2] {
			t.Errorf("the page names %s %s, what was tried is %q", m[1], m[2], have)
		}
	}
	return cdn.ReplaceAllString(page, "/modules/$1/")
}

// TestDocsUploadsPages: the pages of docs/uploads.md, word by word, upload the film that a person chooses.
func TestDocsUploadsPages(t *testing.T) {
	rig.Parallel(t)
	documented := docsPages(t)
	film := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Seconds: 4})
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	for i, c := range []struct{ url, field, file, done string }{
		{
			"URL of the upload", "data.url", "mux-uploader input[type=file]",
			"document.querySelector('mux-uploader').hasAttribute('upload-complete')",
		},
		{
			"URL of the upload for UpChunk", "data.url", "#file",
			"document.getElementById('said').textContent === 'Uploaded.'",
		},
		{
			"tus_url of the upload", "data.tus_url", "#file",
			"document.getElementById('said').textContent === 'Uploaded.'",
		},
	} {
		if len(documented) != 3 || !strings.Contains(documented[i], c.url) {
			t.Fatalf("%d pages, none of which has %q", len(documented), c.url)
		}
		pages := http.NewServeMux()
		site := httptest.NewServer(pages)
		t.Cleanup(site.Close)
		code, o := s.Do(t, "POST", "/video/v1/uploads", rig.Object{"cors_origin": site.URL})
		if code != http.StatusCreated {
			t.Fatalf("create upload: %d %v", code, o)
		}
		page := strings.Replace(fromHere(t, documented[i]), c.url, o.Text(c.field), 1)
		pages.Handle("/modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir("driver/node_modules"))))
		pages.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) })
		p := b.Open(t, site.URL)
		p.Choose(t, c.file, film)
		p.Await(t, "uploaded", c.done, patience)
		_, now := s.Do(t, "GET", "/video/v1/uploads/"+o.Text("data.id"), nil)
		if now.Text("data.status") != "asset_created" {
			t.Errorf("%s: upload %v", c.url, now)
		}
	}
}

// TestDocsUpChunkGoesOn: the page for UpChunk uploads a film over connections that are reset in the middle of chunks.
func TestDocsUpChunkGoesOn(t *testing.T) {
	rig.Parallel(t)
	film := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Seconds: 4})
	const padding = 12 << 20 // a box that players pass over: with it the film has three chunks
	box := binary.BigEndian.AppendUint32(nil, padding)
	data, err := os.ReadFile(film)
	made(t, err)
	data = append(append(data, append(box, "free"...)...), make([]byte, padding-8)...)
	film = filepath.Join(t.TempDir(), "padded.mp4")
	made(t, os.WriteFile(film, data, 0o600))

	s := rig.Start(t, rig.Options{})
	pages := http.NewServeMux()
	site := httptest.NewServer(pages)
	t.Cleanup(site.Close)
	code, o := s.Do(t, "POST", "/video/v1/uploads", rig.Object{"cors_origin": site.URL})
	if code != http.StatusCreated {
		t.Fatalf("create upload: %d %v", code, o)
	}
	to, err := url.Parse(o.Text("data.url"))
	made(t, err)
	var cuts atomic.Int32
	onward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := strings.HasPrefix(r.Header.Get("Content-Range"), "bytes 0-")
		if r.Method == http.MethodPut && !first && cuts.Add(1) <= 3 {
			_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
			reset(t, w)
			return
		}
		onward.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	page := fromHere(t, docsPages(t)[1])
	page = strings.Replace(page, "URL of the upload for UpChunk", between.URL+to.RequestURI(), 1)
	pages.Handle("/modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir("driver/node_modules"))))
	pages.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) })
	p := browser.Start(t).Open(t, site.URL)
	p.Choose(t, "#file", film)
	p.Await(t, "says how it went", "document.getElementById('said').textContent !== ''", patience)
	var said string
	p.Eval(t, "document.getElementById('said').textContent", &said)
	_, now := s.Do(t, "GET", "/video/v1/uploads/"+o.Text("data.id"), nil)
	if said != "Uploaded." || now.Text("data.status") != "asset_created" || cuts.Load() < 4 {
		t.Errorf("after %d cuts it says %q, upload %v", cuts.Load(), said, now)
	}
}

// reset ends a request's connection without a word.
func reset(t *testing.T, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Errorf("take the connection: %v", err)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it would end in order
	}
	_ = conn.Close()
}
