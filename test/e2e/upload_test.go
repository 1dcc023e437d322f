package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// uploaded is one direct upload as its client knows it. Servers change their ports when they start again.
type uploaded struct {
	t             *testing.T
	id, path, tus string
}

// createUpload asks for an upload. Its asset's inputs may be given.
func createUpload(t *testing.T, s *rig.Server, inputs ...rig.Object) uploaded {
	t.Helper()
	settings := rig.Object{"playback_policies": []string{"public"}}
	if len(inputs) > 0 {
		settings["inputs"] = inputs
	}
	code, o := s.Do(t, "POST", "/video/v1/uploads", rig.Object{"cors_origin": "*", "new_asset_settings": settings})
	if code != http.StatusCreated {
		t.Fatalf("create upload: %d %v", code, o)
	}
	made := uploaded{t: t, id: o.Text("data.id")}
	for field, path := range map[string]*string{"data.url": &made.path, "data.tus_url": &made.tus} {
		u, err := url.Parse(o.Text(field))
		if err != nil {
			t.Fatal(err)
		}
		*path = u.Path
	}
	return made
}

// send sends one request; the error is that of a connection that was lost.
func (u uploaded) send(method, at string, header http.Header, body io.Reader, size int64) (*http.Response, error) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), 3*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		u.t.Fatal(err)
	}
	req.ContentLength, req.Header = size, header
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

// put sends one PUT.
func (u uploaded) put(s *rig.Server, contentRange string, body io.Reader, size int64) (*http.Response, error) {
	u.t.Helper()
	header := http.Header{}
	if contentRange != "" {
		header.Set("Content-Range", "bytes "+contentRange)
	}
	return u.send(http.MethodPut, s.HTTP+u.path, header, body, size)
}

// kept asks how many bytes have come; done says that all have.
func (u uploaded) kept(s *rig.Server, total int) (n int, done bool) {
	u.t.Helper()
	for {
		resp, err := u.put(s, fmt.Sprintf("*/%d", total), nil, 0)
		switch {
		case err != nil:
			u.t.Fatal(err)
		case resp.StatusCode == http.StatusOK:
			return total, true
		case resp.StatusCode == http.StatusServiceUnavailable: // the node that had it is given some seconds
			rig.Pause(100 * time.Millisecond)
			continue
		case resp.StatusCode != http.StatusPermanentRedirect:
			u.t.Fatalf("status query: %d", resp.StatusCode)
		}
		if _, err = fmt.Sscanf(resp.Header.Get("Range"), "bytes=0-%d", &n); err == nil {
			n++
		}
		return n, false
	}
}

// sender sends what is left of a file of total bytes, and asks how many are kept.
type sender interface {
	send(s *rig.Server, at int, body io.Reader, size, total int) (*http.Response, error)
	kept(s *rig.Server, total int) int
	status() int // of a response to bytes that are not the last ones
}

// chunks sends as UpChunk does.
type chunks struct{ u uploaded }

func (c chunks) send(s *rig.Server, at int, body io.Reader, size, total int) (*http.Response, error) {
	return c.u.put(s, fmt.Sprintf("%d-%d/%d", at, at+size-1, total), body, int64(size))
}

func (c chunks) kept(s *rig.Server, total int) int {
	n, _ := c.u.kept(s, total)
	return n
}

func (chunks) status() int { return http.StatusPermanentRedirect }

// tus sends as a client of tus does that remembers nothing but the URL that it was given.
type tus struct{ u uploaded }

func (t tus) request(
	s *rig.Server, method string, body io.Reader, size int, name string, value int,
) (*http.Response, error) {
	header := http.Header{"Tus-Resumable": {"1.0.0"}, "Content-Type": {"application/offset+octet-stream"}}
	if body == nil {
		header.Del("Content-Type")
	}
	if name != "" {
		header.Set(name, strconv.Itoa(value))
	}
	return t.u.send(method, s.HTTP+t.u.tus, header, body, int64(size))
}

func (t tus) send(s *rig.Server, at int, body io.Reader, size, _ int) (*http.Response, error) {
	return t.request(s, http.MethodPatch, body, size, "Upload-Offset", at)
}

func (t tus) kept(s *rig.Server, total int) (n int) {
	t.u.t.Helper()
	t.patient(func() (*http.Response, error) { return t.request(s, http.MethodPost, nil, 0, "Upload-Length", total) })
	resp := t.patient(func() (*http.Response, error) { return t.request(s, http.MethodHead, nil, 0, "", 0) })
	n, err := strconv.Atoi(resp.Header.Get("Upload-Offset"))
	if err != nil {
		t.u.t.Fatal(err)
	}
	return n
}

// patient asks again while the node that had it is given some seconds.
func (t tus) patient(ask func() (*http.Response, error)) *http.Response {
	t.u.t.Helper()
	for {
		resp, err := ask()
		switch {
		case err != nil:
			t.u.t.Fatal(err)
		case resp.StatusCode == http.StatusLocked, resp.StatusCode == http.StatusServiceUnavailable:
			rig.Pause(100 * time.Millisecond)
		case resp.StatusCode >= 300:
			t.u.t.Fatalf("%s: %d", resp.Request.Method, resp.StatusCode)
		default:
			return resp
		}
	}
}

func (tus) status() int { return http.StatusNoContent }

// broken gives n bytes of a body and then does something.
type broken struct {
	io.Reader
	n    int
	then func()
}

func (b *broken) Read(p []byte) (int, error) {
	if b.n == 0 {
		b.then()
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.Reader.Read(p[:min(len(p), b.n)])
	b.n -= n
	return n, err
}

// killsPerUpload is how often the server is killed during one upload.
const killsPerUpload = 20

// TestUploadSurvivesKills kills the server at random bytes of an upload, in front of every acknowledgement and behind
// it, while it is sent in chunks and by tus in turns. What was acknowledged is never asked for again, another node goes
// on where the dead one was, and the file is the one that was sent. MILLRACE_TEST_KILLS says how often it is killed, in
// as many uploads as that takes (make storm-uploads).
func TestUploadSurvivesKills(t *testing.T) {
	rig.Parallel(t, rig.Long)
	film := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds})
	data := rig.Padded(t, film, killsPerUpload*9<<18) // as much as is sent at most, and several pieces of a bucket
	kills := killsOr(t, killsPerUpload)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		r := dice(t)
		for done := 0; done < kills; done += killsPerUpload {
			t.Run(fmt.Sprintf("from kill %d on", done), func(t *testing.T) {
				uploadOverKills(t, p, data, r, min(killsPerUpload, kills-done))
			})
		}
	})
}

// uploadOverKills sends one file to servers that are killed so often meanwhile.
func uploadOverKills(t *testing.T, p rig.Pair, data []byte, r *rand.Rand, kills int) {
	t.Helper()
	s := rig.Start(t, rig.Options{Pair: p})
	nodes := []*rig.Server{s}
	if p == rig.Scaled {
		nodes = append(nodes, rig.Start(t, rig.Options{Pair: p, Beside: s}))
	}
	u := createUpload(t, s)
	senders := []sender{chunks{u}, tus{u}}
	at := 0
	for k := range kills {
		victim, next, by := nodes[k%len(nodes)], nodes[(k+1)%len(nodes)], senders[k/2%2]
		if k == 0 || senders[(k-1)/2%2] != by {
			if n := by.kept(victim, len(data)); n != at {
				t.Fatalf("kill %d: %d bytes are kept for one protocol, and %d for the other", k, n, at)
			}
		}
		at = acknowledged(t, by, victim, data, at, (1+r.IntN(5))*256<<10)
		cut := r.IntN(1 << 20)
		body := &broken{bytes.NewReader(data[at : len(data)-1]), cut, func() { victim.Kill(t) }}
		if _, err := by.send(victim, at, body, len(data)-at, len(data)); err == nil {
			t.Fatal("a request that was cut has a response")
		}
		if next == victim {
			victim.Run(t)
		}
		n := by.kept(next, len(data))
		if n < at || n > at+cut {
			t.Fatalf("kill %d: %d bytes are kept, %d were acknowledged and %d more were sent", k, n, at, cut)
		}
		if next != victim {
			victim.Run(t)
		}
		at = n
	}
	last := fmt.Sprintf("%d-%d/%d", at, len(data)-1, len(data))
	if resp, err := u.put(s, last, bytes.NewReader(data[at:]), int64(len(data)-at)); err != nil ||
		resp.StatusCode != 200 {
		t.Fatalf("last chunk: %v, %v", resp, err)
	}
	u.plays(s, data)
}

// acknowledged sends size bytes from byte at on, and gives where they end.
func acknowledged(t *testing.T, by sender, s *rig.Server, data []byte, at, size int) (end int) {
	t.Helper()
	resp, err := by.send(s, at, bytes.NewReader(data[at:at+size]), size, len(data))
	if err != nil || resp.StatusCode != by.status() {
		t.Fatalf("%d bytes at %d: %v, %v", size, at, resp, err)
	}
	return at + size
}

// plays waits for the asset, and compares what is stored with what was sent.
func (u uploaded) plays(s *rig.Server, data []byte) {
	u.t.Helper()
	_, o := s.Do(u.t, "GET", "/video/v1/uploads/"+u.id, nil)
	if o.Text("data.status") != "asset_created" || o.Text("data.url") != "" {
		u.t.Fatalf("upload %v", o)
	}
	a := s.AwaitAsset(u.t, o.Text("data.asset_id"), "ready", 2*time.Minute, rig.Ready)
	if a.Text("upload_id") != u.id || a.Text("ingest_type") != "on_demand_direct_upload" {
		u.t.Errorf("asset %v", a)
	}
	s.AwaitPlayable(u.t, s.PlayURL(a.Text("playback_ids.0.id")), time.Minute)
	if got := s.Stored(u.t, "source.mp4"); !bytes.Equal(got, data) {
		u.t.Errorf("%d bytes are stored, and not the %d that were sent", len(got), len(data))
	}
}

// filesIn lists the files of a name below a folder.
func filesIn(t *testing.T, dir, name string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), name) {
			found = append(found, path)
		}
		return nil // files come and go
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCancelledUploadLeavesNothing: also when the server is killed before it could clear up.
func TestCancelledUploadLeavesNothing(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	u := createUpload(t, s)
	part := make([]byte, 1<<20)
	if resp, err := u.put(s, "0-1048575/*", bytes.NewReader(part), 1<<20); err != nil || resp.StatusCode != 308 {
		t.Fatalf("%v, %v", resp, err)
	}
	if found := filesIn(t, s.Dir, "source.mp4"); len(found) != 1 {
		t.Fatalf("kept: %v", found)
	}
	if code, o := s.Do(t, "PUT", "/video/v1/uploads/"+u.id+"/cancel", nil); code != 200 ||
		o.Text("data.status") != "cancelled" {
		t.Fatalf("cancel: %d %v", code, o)
	}
	s.Kill(t)
	s.Run(t)
	for deadline := time.Now().Add(2 * time.Minute); len(filesIn(t, s.Dir,
		"source.mp4")) > 0; rig.Pause(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what had come is still there")
		}
	}
	if resp, err := u.put(s, "*/*", nil, 0); err != nil || resp.StatusCode != http.StatusGone {
		t.Errorf("%v, %v", resp, err)
	}
	if code, _ := s.Do(t, "PUT", "/video/v1/uploads/"+u.id+"/cancel", nil); code != http.StatusForbidden {
		t.Errorf("a second cancel: %d", code)
	}
}
