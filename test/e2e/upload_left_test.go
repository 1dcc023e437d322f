package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestCancelledUploadLeavesNothingInABucket: neither the multipart upload with its pieces nor the tail behind them,
// also when the node is killed before it could clear up.
func TestCancelledUploadLeavesNothingInABucket(t *testing.T) {
	rig.Parallel(t)
	rig.Scaled.Run(t, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		for _, killed := range []bool{false, true} {
			u := createUpload(t, s)
			const size = 9 << 20 // a piece, and a tail of 1 MiB
			resp, err := u.put(s, "0-9437183/*", bytes.NewReader(make([]byte, size)), size)
			if err != nil || resp.StatusCode != http.StatusPermanentRedirect {
				t.Fatalf("%v, %v", resp, err)
			}
			tails, parts := s.Kept(t, "source.mp4")
			if len(parts) != 1 || len(tails) != 1 || !strings.HasPrefix(tails[0], "tails/"+parts[0]+"/") {
				t.Fatalf("kept: %v, %v", tails, parts)
			}
			code, o := s.Do(t, "PUT", "/video/v1/uploads/"+u.id+"/cancel", nil)
			if code != 200 || o.Text("data.status") != "cancelled" {
				t.Fatalf("cancel: %d %v", code, o)
			}
			if killed {
				s.Kill(t)
				s.Run(t)
			}
			nothingKept(t, s)
		}
	})
}

// nothingKept waits until nothing is left of any upload's file.
func nothingKept(t *testing.T, s *rig.Server) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; rig.Pause(50 * time.Millisecond) {
		whole, parts := s.Kept(t, "source.mp4")
		if len(whole)+len(parts) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still kept: %v, %v", whole, parts)
		}
	}
}

// TestAbandonedUploadsGo: the first sweep of a server removes bytes that no row knows, and leaves those that are young
// and those of an upload that waits, however old they are.
func TestAbandonedUploadsGo(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	u := createUpload(t, s)
	resp, err := u.put(s, "0-262143/*", bytes.NewReader(make([]byte, 256<<10)), 256<<10)
	if err != nil || resp.StatusCode != http.StatusPermanentRedirect {
		t.Fatalf("%v, %v", resp, err)
	}
	s.Stop(t)
	growing := filepath.Join(s.Dir, "storage", ".growing")
	waiting := filesIn(t, growing, "source.mp4")
	old, young := filepath.Join(growing, "media/old/source.mp4"), filepath.Join(growing, "media/young/source.mp4")
	for _, path := range []string{old, young} {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 3<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ages := map[string]time.Duration{old: 26 * time.Hour, young: 2 * time.Hour, waiting[0]: 26 * time.Hour}
	for path, age := range ages {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	const abandoned = "1 under way; 2 abandoned that no row of the database knows, with 6.0 MiB"
	if said := doctorSays(t, s); !strings.Contains(said, abandoned) {
		t.Errorf("doctor says %s, and not %s", said, abandoned)
	}
	s.Run(t)
	s.AwaitLogLine(t, "removed what was left of abandoned uploads", time.Minute)
	left, want := filesIn(t, growing, "source.mp4"), []string{waiting[0], young}
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
}

// TestTwoNodesTakeOneUpload: while one node takes bytes, another one refuses them with a time after which to come
// again, and goes on as soon as the first one is done, or has heard nothing for a second. The file is the one that was
// sent.
func TestTwoNodesTakeOneUpload(t *testing.T) {
	rig.Parallel(t)
	film := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds})
	data := rig.Padded(t, film, 12<<20)
	rig.Scaled.Run(t, func(t *testing.T, p rig.Pair) {
		a := rig.Start(t, rig.Options{Pair: p})
		b := rig.Start(t, rig.Options{Pair: p, Beside: a})
		u := createUpload(t, a)
		const chunk = 9 << 20 // beyond a piece
		enough := make(chan struct{})
		first := answered(func() (*http.Response, error) {
			return u.put(a, chunkRange(0, chunk, len(data)), &unhurried{data: data[:chunk], enough: enough}, chunk)
		})
		u.refused(b, data)
		close(enough)
		if r := <-first; r.err != nil || r.code != http.StatusPermanentRedirect {
			t.Fatalf("the first node: %+v", r)
		}
		// Now the first one gets bytes that do not end, and no more for a second.
		hang := make(chan struct{})
		stalled := &broken{bytes.NewReader(data[chunk:]), 300 << 10, func() { <-hang }}
		second := answered(func() (*http.Response, error) {
			return u.put(a, chunkRange(chunk, len(data), len(data)), stalled, int64(len(data)-chunk))
		})
		at := chunk
		deadline := time.Now().Add(time.Minute)
		for ; at == chunk; rig.Pause(50 * time.Millisecond) { // the first one may begin late
			var done bool
			if at, done = u.kept(b, len(data)); at < chunk || done || time.Now().After(deadline) {
				t.Fatalf("%d bytes are kept, %d were acknowledged and more were sent", at, chunk)
			}
		}
		resp, err := u.put(b, chunkRange(at, len(data), len(data)), bytes.NewReader(data[at:]), int64(len(data)-at))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("the other node: %v, %v", resp, err)
		}
		close(hang)
		if r := <-second; r.err == nil && r.code < 400 {
			t.Errorf("who was overtaken is told %d", r.code)
		}
		for _, s := range []*rig.Server{a, b} {
			if n, done := u.kept(s, len(data)); !done {
				t.Errorf("%d bytes are kept, and not all", n)
			}
		}
		if code, o := a.Do(t, "GET", "/video/v1/assets?upload_id="+u.id, nil); code != 200 || len(o.List("data")) != 1 {
			t.Errorf("assets: %d %v", code, o)
		}
		u.plays(a, data)
		if whole, parts := a.Kept(t, "source.mp4"); len(whole) != 1 || len(parts) != 0 {
			t.Errorf("kept: %v, %v", whole, parts)
		}
	})
}

// refused waits until a node says that another one writes, and has it refuse bytes, too.
func (u uploaded) refused(s *rig.Server, data []byte) {
	u.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for asked := 0; ; rig.Pause(50 * time.Millisecond) {
		resp, err := u.put(s, fmt.Sprintf("*/%d", len(data)), nil, 0)
		if err == nil && resp.StatusCode == http.StatusServiceUnavailable {
			break
		}
		if asked++; err != nil || resp.StatusCode != http.StatusPermanentRedirect || time.Now().After(deadline) {
			u.t.Fatalf("status query %d beside another writer: %v, %v", asked, resp, err)
		}
	}
	const n = 256 << 10
	resp, err := u.put(s, chunkRange(0, n, len(data)), bytes.NewReader(data[:n]), n)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		u.t.Fatalf("a chunk beside another writer: %v, %v", resp, err)
	}
}

// chunkRange is the Content-Range of the bytes from one to another.
func chunkRange(from, to, total int) string { return fmt.Sprintf("%d-%d/%d", from, to-1, total) }

type answer struct {
	code int
	err  error
}

// answered sends a request that takes its time.
func answered(send func() (*http.Response, error)) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		resp, err := send()
		if err != nil {
			c <- answer{err: err}
			return
		}
		c <- answer{code: resp.StatusCode}
	}()
	return c
}

// unhurried is a body that is never quiet for long, and whose rest comes at once when it is enough.
type unhurried struct {
	data   []byte
	enough <-chan struct{}
}

func (u *unhurried) Read(p []byte) (int, error) {
	if len(u.data) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(u.data))
	select {
	case <-u.enough:
	case <-time.After(50 * time.Millisecond):
		n = min(n, 1<<10)
	}
	copy(p, u.data[:n])
	u.data = u.data[n:]
	return n, nil
}

// doctorSays is what doctor finds of uploads.
func doctorSays(t *testing.T, s *rig.Server) string {
	t.Helper()
	args := []string{"doctor"}
	for _, flag := range []string{"http", "rtmp", "srt", "webrtc-udp", "webrtc-tcp"} {
		args = append(args, "--"+flag+"-addr=127.0.0.1:0")
	}
	for line := range strings.Lines(s.Command(t, args...)) {
		if strings.Contains(line, " uploads ") {
			return line
		}
	}
	return "nothing"
}
