package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Object is a resource as the API writes it.
type Object map[string]any

// Text reads a string by its path ("playback_ids.0.id"); like the other readers it gives the zero value when there is
// none.
func (o Object) Text(path string) string { s, _ := o.at(path).(string); return s }

// Number reads a number.
func (o Object) Number(path string) float64 { n, _ := o.at(path).(float64); return n }

// Flag reads a boolean.
func (o Object) Flag(path string) bool { b, _ := o.at(path).(bool); return b }

// List reads an array of objects.
func (o Object) List(path string) []Object {
	var list []Object
	items, _ := o.at(path).([]any)
	for _, v := range items {
		if m, ok := v.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

// Texts reads an array of strings.
func (o Object) Texts(path string) []string {
	var list []string
	items, _ := o.at(path).([]any)
	for _, v := range items {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func (o Object) at(path string) any {
	var v any = map[string]any(o)
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// responseWait is how long any response may take: for a machine that has more to do than it can.
const responseWait = 3 * time.Minute

// Do sends a request to the REST API and gives status and body. body is JSON-encoded unless nil.
func (s *Server) Do(t testing.TB, method, path string, body any) (int, Object) {
	t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		in = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), responseWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.HTTP+path, in)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	req.SetBasicAuth(s.tokenID, s.tokenSecret)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	var o Object
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatalf("%s %s: status %d, body is no JSON: %v: %.300s", method, path, res.StatusCode, err, raw)
		}
	}
	return res.StatusCode, o
}

// must sends a request that has to succeed with the given status and gives its data.
func (s *Server) must(t testing.TB, want int, method, path string, body any) Object {
	t.Helper()
	code, o := s.Do(t, method, path, body)
	if code != want {
		t.Fatalf("%s %s: status %d, want %d: %v", method, path, code, want, o)
	}
	data, _ := o["data"].(map[string]any)
	return data
}

// CreateLive makes a live stream with public playback of the stream and of its recordings; more fields may be given.
func (s *Server) CreateLive(t testing.TB, latencyMode string, more Object) Object {
	t.Helper()
	body := Object{
		"latency_mode": latencyMode, "playback_policies": []string{"public"},
		"new_asset_settings": Object{"playback_policies": []string{"public"}},
	}
	maps.Copy(body, more)
	return s.must(t, http.StatusCreated, "POST", "/video/v1/live-streams", body)
}

// Live reads a live stream.
func (s *Server) Live(t testing.TB, id string) Object {
	t.Helper()
	return s.must(t, http.StatusOK, "GET", "/video/v1/live-streams/"+id, nil)
}

// Complete ends a broadcast now.
func (s *Server) Complete(t testing.TB, id string) {
	t.Helper()
	if code, o := s.Do(t, "PUT", "/video/v1/live-streams/"+id+"/complete", nil); code/100 != 2 {
		t.Fatalf("complete: status %d: %v", code, o)
	}
}

// CreateAsset makes an asset with public playback from a URL.
func (s *Server) CreateAsset(t testing.TB, input string) Object {
	t.Helper()
	return s.must(t, http.StatusCreated, "POST", "/video/v1/assets", Object{
		"inputs": []Object{{"url": input}}, "playback_policies": []string{"public"},
	})
}

// Asset reads an asset.
func (s *Server) Asset(t testing.TB, id string) Object {
	t.Helper()
	return s.must(t, http.StatusOK, "GET", "/video/v1/assets/"+id, nil)
}

// AddTrack adds a track by URL.
func (s *Server) AddTrack(t testing.TB, asset string, body Object) Object {
	t.Helper()
	return s.must(t, http.StatusCreated, "POST", "/video/v1/assets/"+asset+"/tracks", body)
}

// AwaitLive reads a live stream until ok.
func (s *Server) AwaitLive(t testing.TB, id, what string, limit time.Duration, ok func(Object) bool) Object {
	t.Helper()
	return await(t, "live stream "+what, limit, func() Object { return s.Live(t, id) }, ok)
}

// AwaitAsset reads an asset until ok.
func (s *Server) AwaitAsset(t testing.TB, id, what string, limit time.Duration, ok func(Object) bool) Object {
	t.Helper()
	return await(t, "asset "+what, limit, func() Object { return s.Asset(t, id) }, ok)
}

// Ready is a condition: status ready.
func Ready(o Object) bool { return o.Text("status") == "ready" }

// Finished is a condition: ready and no longer live.
func Finished(o Object) bool { return Ready(o) && !o.Flag("is_live") }

func await(t testing.TB, what string, limit time.Duration, read func() Object, ok func(Object) bool) Object {
	t.Helper()
	end := time.Now().Add(limit)
	for {
		o := read()
		if ok(o) {
			return o
		}
		if o.Text("status") == "errored" {
			t.Fatalf("%s: errored: %v", what, o)
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %v", what, limit, o)
		}
		Pause(100 * time.Millisecond)
	}
}

// Get fetches a playback URL and gives status, header and body.
func (s *Server) Get(t testing.TB, url string) (int, http.Header, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), responseWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, 256<<20))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, b
}

// AwaitPlayable polls a playlist until it returns 200 and gives how long that took; every response before must be 412.
func (s *Server) AwaitPlayable(t testing.TB, url string, limit time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		code, _, body := s.Get(t, url)
		switch {
		case code == http.StatusOK:
			return time.Since(begin)
		case code != http.StatusPreconditionFailed:
			t.Fatalf("%s: status %d before it was playable, want 412: %.300s", url, code, body)
		case time.Since(begin) > limit:
			t.Fatalf("%s: not playable within %v", url, limit)
		}
		Pause(50 * time.Millisecond)
	}
}

// Pause waits on real time: encoders and servers have no fake clock.
func Pause(d time.Duration) { <-time.After(d) }
