// Package watch serves the page on which a person looks at a stream or an asset: /watch/{playback_id}, plain HTML with an
// embedded player. It must never know streams, assets or rights: the page asks for /{playback_id}.m3u8 like any other player,
// and shows what that answers. It starts no goroutine.
package watch

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed assets
var files embed.FS

// policy lets the page run its own script, talk to its own origin, and nothing else. hls.js runs its worker and feeds
// the video element from blobs; its subtitle tracks begin with an empty data: address.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob: data:; " +
	"connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'"

// maxID bounds a playback ID in an address; the service's own are shorter.
const maxID = 128

// asset is one file ready to be sent.
type asset struct {
	contentType string
	etag        string
	plain       []byte
	zipped      []byte
}

type handler struct {
	page   asset
	assets map[string]asset
}

// Handler serves GET and HEAD of /watch/{playback_id} and of /watch/assets/….
func Handler() http.Handler {
	h := &handler{assets: map[string]asset{}}
	for name, kind := range map[string]string{
		"hls.min.js":  "text/javascript; charset=utf-8",
		"watch.js":    "text/javascript; charset=utf-8",
		"watch.css":   "text/css; charset=utf-8",
		"hls.LICENSE": "text/plain; charset=utf-8",
	} {
		h.assets[name] = newAsset(read(name), kind)
	}
	page := read("watch.html")
	for name, a := range h.assets {
		// The address changes with the content, so that a cache may keep it for ever.
		page = bytes.ReplaceAll(page, []byte(`"assets/`+name+`"`), []byte(`"assets/`+name+"?v="+a.version()+`"`))
	}
	h.page = newAsset(page, "text/html; charset=utf-8")
	return h
}

// read panics when a file is missing, which the compiler has already seen to.
func read(name string) []byte {
	b, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(fmt.Sprintf("watch: embedded file is missing: %v", err))
	}
	return b
}

func newAsset(b []byte, contentType string) asset {
	sum := sha256.Sum256(b)
	a := asset{contentType: contentType, etag: `"` + hex.EncodeToString(sum[:10]) + `"`, plain: b}
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		panic(fmt.Sprintf("watch: gzip level: %v", err))
	}
	_, _ = w.Write(b) // a bytes.Buffer takes all
	_ = w.Close()
	a.zipped = z.Bytes()
	return a
}

func (a asset) version() string { return strings.Trim(a.etag, `"`) }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	rest, ok := strings.CutPrefix(path.Clean(r.URL.Path), "/watch/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if name, ok := strings.CutPrefix(rest, "assets/"); ok {
		h.serveAsset(w, r, name)
		return
	}
	if !validID(rest) {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/") { // the page's addresses are relative to /watch/{id}
		to := "../" + rest
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("Referrer-Policy", "no-referrer") // a token may be in the address
	head.Set("Cache-Control", "no-cache")
	h.page.serve(w, r)
}

func (h *handler) serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := h.assets[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == a.version() {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	a.serve(w, r)
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", a.contentType)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Vary", "Accept-Encoding")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	body, etag := a.plain, a.etag
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, etag = a.zipped, strings.TrimSuffix(a.etag, `"`)+`-gzip"`
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		head.Del("Content-Type")
		head.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // who has gone needs no answer
	}
}

// acceptsGzip reads an Accept-Encoding header (RFC 9110, 12.5.3).
func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(item, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && coding != "*" {
			continue
		}
		q, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		if !ok {
			return true
		}
		weight, err := strconv.ParseFloat(q, 64)
		return err == nil && weight > 0
	}
	return false
}

// matches compares If-None-Match with an ETag, weakly (RFC 9110, 13.1.2).
func matches(header, etag string) bool {
	for item := range strings.SplitSeq(header, ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == "*" || item == etag {
			return true
		}
	}
	return false
}

func validID(id string) bool {
	if id == "" || len(id) > maxID || id == "assets" {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
