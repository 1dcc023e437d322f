// Package static serves files that are embedded in the binary: compressed where the client accepts it, and at URLs that
// change with the content. It must never know what is in them. It starts no goroutine.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Asset is one file ready to be sent.
type Asset struct {
	contentType string
	etag        string
	plain       []byte
	zipped      func() []byte // plain, compressed when it is first asked for
}

// Assets are files by their names.
type Assets map[string]Asset

// kinds are the content types by the end of a name.
var kinds = map[string]string{ //nolint:gochecknoglobals // a table
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8",
	".LICENSE": "text/plain; charset=utf-8",
}

// Read reads embedded files; it panics when one is missing, which the compiler has already seen to. What is called x.gz
// is the file x, compressed already.
func Read(files fs.FS, names ...string) Assets {
	out := Assets{}
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			panic(fmt.Sprintf("static: embedded file is missing: %v", err))
		}
		base, zipped := strings.CutSuffix(name[strings.LastIndex(name, "/")+1:], ".gz")
		kind := kinds[base[strings.LastIndex(base, "."):]]
		if zipped {
			out[base] = Asset{contentType: kind, etag: etag(b), plain: unzip(b), zipped: func() []byte { return b }}
		} else {
			out[base] = New(b, kind)
		}
	}
	return out
}

// Link has modules import each other by addresses that change with the content, as pages do: by './name.js', which is
// the one of that name. They are named behind those that they import; it panics when there is no such asset.
func (as Assets) Link(modules ...string) {
	for i, name := range modules {
		text := as[name].plain
		for _, other := range modules[:i] {
			text = bytes.ReplaceAll(text, []byte("'./"+other+"'"), []byte("'./"+as.Address(other)+"'"))
		}
		as[name] = New(text, kinds[".js"])
	}
}

// Page reads an embedded page. What it names as "assets/…" gets an address that changes with the content, so that a
// cache may keep it for ever.
func Page(files fs.FS, name string, assets Assets) Asset {
	page := Read(files, name)[name[strings.LastIndex(name, "/")+1:]].plain
	for name, a := range assets {
		page = bytes.ReplaceAll(page, []byte(`"assets/`+name+`"`), []byte(`"assets/`+name+"?v="+a.version()+`"`))
	}
	return New(page, kinds[".html"])
}

// New makes an asset of what is not in a file.
func New(b []byte, contentType string) Asset {
	return Asset{
		contentType: contentType,
		etag:        etag(b),
		plain:       b,
		zipped:      sync.OnceValue(func() []byte { return zip(b) }),
	}
}

func zip(b []byte) []byte {
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		panic(fmt.Sprintf("static: gzip level: %v", err))
	}
	_, _ = w.Write(b) // a bytes.Buffer takes all
	_ = w.Close()
	return z.Bytes()
}

// Zip compresses what is made for one response, which is sent sooner when that is fast.
func Zip(b []byte) []byte {
	z := bytes.NewBuffer(make([]byte, 0, len(b)/4))
	w, err := gzip.NewWriterLevel(z, gzip.BestSpeed)
	if err != nil {
		panic(fmt.Sprintf("static: gzip level: %v", err))
	}
	_, _ = w.Write(b) // a bytes.Buffer takes all
	_ = w.Close()
	return z.Bytes()
}

// unzip panics for what is not gzip: a file of ours is.
func unzip(b []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(z)
	}
	if err != nil {
		panic(fmt.Sprintf("static: embedded file is not gzip: %v", err))
	}
	return b
}

func etag(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:10]) + `"`
}

func (a Asset) version() string { return strings.Trim(a.etag, `"`) }

// Address is the name of an asset in an address that changes with the content; it panics when there is none.
func (as Assets) Address(name string) string {
	a, ok := as[name]
	if !ok {
		panic("static: no such asset: " + name)
	}
	return name + "?v=" + a.version()
}

// Serve responds with one of the assets by its name.
func (as Assets) Serve(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := as[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == a.version() {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	a.Serve(w, r)
}

// Serve responds with the file, or says that the browser has it.
func (a Asset) Serve(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", a.contentType)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Vary", "Accept-Encoding")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	body, etag := a.plain, a.etag
	if AcceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, etag = a.zipped(), strings.TrimSuffix(a.etag, `"`)+`-gzip"`
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
		_, _ = w.Write(body) // who has gone needs no response
	}
}

// AcceptsGzip reports whether an Accept-Encoding header allows gzip (RFC 9110, 12.5.3).
func AcceptsGzip(header string) bool {
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

// matches reports whether If-None-Match names an ETag, compared weakly (RFC 9110, 13.1.2).
func matches(header, etag string) bool {
	for item := range strings.SplitSeq(header, ",") {
		item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
		if item == "*" || item == etag {
			return true
		}
	}
	return false
}
