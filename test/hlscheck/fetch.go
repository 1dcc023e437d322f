package hlscheck

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

// response is a response read to its end.
type response struct {
	status int
	header http.Header
	body   []byte // without the content coding
	coded  bool   // it came compressed
	took   time.Duration
}

// maxBody bounds what one request may cost us.
const maxBody = 512 << 20

// patience is how long any request may take; a blocking reload may wait three target durations.
const patience = 60 * time.Second

func (c *checker) fetch(ctx context.Context, method, u, byteRange string) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, u, nil)
	if err != nil {
		return response{}, fmt.Errorf("ask %s: %w", u, err)
	}
	req.Header.Set("Origin", "https://player.example")
	// Named by hand, so that the client leaves the coding to us.
	req.Header.Set("Accept-Encoding", "gzip")
	if byteRange != "" {
		req.Header.Set("Range", byteRange)
	}
	began := time.Now()
	res, err := c.o.Client.Do(req)
	if err != nil {
		return response{}, fmt.Errorf("ask %s: %w", u, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return response{}, fmt.Errorf("read %s: %w", u, err)
	}
	a := response{status: res.StatusCode, header: res.Header, body: body, took: time.Since(began)}
	if res.Header.Get("Content-Encoding") == "gzip" && len(body) > 0 {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return response{}, fmt.Errorf("read %s: %w", u, err)
		}
		if a.body, err = io.ReadAll(io.LimitReader(z, maxBody)); err != nil {
			return response{}, fmt.Errorf("read %s: %w", u, err)
		}
		a.coded = true
	}
	allow := res.Header.Get("Access-Control-Allow-Origin")
	c.check("cors", allow == "*" || allow == "https://player.example", u, "Access-Control-Allow-Origin is %q", allow)
	return a, nil
}

// fetchPlaylist gets a playlist and checks how it was delivered.
func (c *checker) fetchPlaylist(ctx context.Context, u string) (response, error) {
	a, err := c.fetch(ctx, http.MethodGet, u, "")
	if err != nil || a.status != http.StatusOK {
		return a, err
	}
	kind, _, _ := strings.Cut(strings.ToLower(a.header.Get("Content-Type")), ";")
	c.check("playlist-type-http", kind == "application/vnd.apple.mpegurl" || kind == "audio/mpegurl", u,
		"Content-Type is %q", a.header.Get("Content-Type"))
	c.check("gzip", a.coded, u, "%d bytes came without gzip", len(a.body))
	c.check("gzip", !a.coded || strings.Contains(strings.ToLower(a.header.Get("Vary")), "accept-encoding"), u,
		"compressed without Vary: Accept-Encoding")
	return a, nil
}

// checkPlaylistCache holds a media playlist's Cache-Control against its target duration.
func (c *checker) checkPlaylistCache(u string, a response, m *media) {
	age, ok := maxAge(a.header)
	if m.ended {
		c.check("playlist-cache", ok, u, "Cache-Control is %q", a.header.Get("Cache-Control"))
		return
	}
	limit := time.Duration(m.target) * time.Second
	if strings.Contains(u, "_HLS_msn=") {
		limit *= 6 // B.1: a response to a blocking request names one state for ever
	}
	c.check("playlist-cache", ok && age < max(limit, time.Second+1), u, "Cache-Control %q, target duration %d s",
		a.header.Get("Cache-Control"), m.target)
}

// maxAge reads Cache-Control; no-store and no-cache are 0. It says no when nothing is stated.
func maxAge(h http.Header) (time.Duration, bool) {
	for d := range strings.SplitSeq(strings.ToLower(h.Get("Cache-Control")), ",") {
		d = strings.TrimSpace(d)
		if d == "no-cache" || d == "no-store" {
			return 0, true
		}
		if v, ok := strings.CutPrefix(d, "max-age="); ok {
			n, err := strconv.Atoi(v)
			return time.Duration(n) * time.Second, err == nil
		}
	}
	return 0, false
}

// fetchMedia gets a segment, part or init segment and checks how it was delivered. A body is nil when it could not be
// had.
func (c *checker) fetchMedia(ctx context.Context, u, byteRange, kind string) ([]byte, error) {
	a, err := c.fetch(ctx, http.MethodGet, u, rangeHeader(byteRange))
	if err != nil {
		return nil, err
	}
	want := http.StatusOK
	if byteRange != "" {
		want = http.StatusPartialContent
	}
	if !c.check("status", a.status == want, u, "status %d, want %d: %.100q", a.status, want, a.body) {
		return nil, nil
	}
	if !c.check("unknown-404", len(a.body) > 0, u, "an empty 200") {
		return nil, nil
	}
	mime, _, _ := strings.Cut(strings.ToLower(a.header.Get("Content-Type")), ";")
	ok := map[string][]string{
		"video": {"video/mp4", "video/iso.segment"},
		"audio": {"audio/mp4", "video/mp4", "video/iso.segment"},
		"text":  {"text/vtt"},
	}[kind]
	found := false
	for _, m := range ok {
		found = found || m == mime
	}
	c.check("media-type-http", found, u, "Content-Type %q of %s", a.header.Get("Content-Type"), kind)
	age, stated := maxAge(a.header)
	if strings.Contains(u, "/signed-") { // a path that ends: what is below it may be kept as long
		age += 300 * 24 * time.Hour
	}
	c.check("media-cache",
		stated && age >= 300*24*time.Hour && strings.Contains(a.header.Get("Cache-Control"), "immutable"), u,
		"Cache-Control is %q", a.header.Get("Cache-Control"))
	return a.body, nil
}

// rangeHeader turns "length@start" into a Range header.
func rangeHeader(byteRange string) string {
	length, start, ok := strings.Cut(byteRange, "@")
	n, err := strconv.Atoi(length)
	from, err2 := strconv.Atoi(start)
	if !ok || err != nil || err2 != nil {
		return ""
	}
	return fmt.Sprintf("bytes=%d-%d", from, from+n-1)
}

func (c *checker) resolve(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := b.Parse(ref)
	if err != nil {
		return ref
	}
	return r.String()
}

// checkUnknown asks for what cannot exist.
func (c *checker) checkUnknown(ctx context.Context) {
	u, err := url.Parse(c.o.URL)
	if err != nil {
		return
	}
	name := path.Base(u.Path)
	unknown := *u
	unknown.RawQuery = ""
	unknown.Path = path.Join(path.Dir(u.Path), "NoSuchPlaybackID0000000000000000"+path.Ext(name))
	targets := []string{unknown.String()}
	for _, v := range c.renditions {
		targets = append(targets, c.resolve(v.url, "no-such-segment-999999999.m4s"))
	}
	for _, target := range targets {
		a, err := c.fetch(ctx, http.MethodGet, target, "")
		if err == nil {
			c.check("unknown-404", a.status == http.StatusNotFound, target, "status %d, want 404", a.status)
		}
	}
	if a, err := c.fetch(ctx, http.MethodHead, c.o.URL, ""); err == nil {
		c.check("head", a.status == http.StatusOK && len(a.body) == 0, c.o.URL, "HEAD has status %d and %d bytes",
			a.status, len(a.body))
	}
}

// checkRange asks for a middle piece of a segment whose bytes are known.
func (c *checker) checkRange(ctx context.Context, u string, whole []byte) error {
	if len(whole) < 100 {
		return nil
	}
	a, err := c.fetch(ctx, http.MethodGet, u, "bytes=10-49")
	if err != nil {
		return err
	}
	// A server may ignore the header (RFC 9110, 14.2).
	ok := a.status == http.StatusPartialContent && bytes.Equal(a.body, whole[10:50]) ||
		a.status == http.StatusOK && bytes.Equal(a.body, whole)
	c.check("ranges", ok, u,
		"bytes=10-49: status %d, %d bytes", a.status, len(a.body))
	return nil
}

// withQuery adds directives to a playlist's URL.
func withQuery(u string, pairs ...string) string {
	p, err := url.Parse(u)
	if err != nil {
		return u
	}
	q := p.Query()
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	p.RawQuery = q.Encode()
	return p.String()
}
