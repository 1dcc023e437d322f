package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/test/hostile"
	"millrace/test/rig"
)

// TestHostileFiles gives a server all at once what nobody should: each asset ends with a reason, the server's memory
// stays within bounds, and nothing is left over, neither files nor processes.
func TestHostileFiles(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	good, err := os.ReadFile(rig.File(t, "a.mp4", rig.Clip{
		Size: "320x180", Kbit: 300, GOP: 1, Seconds: 2, NoAudio: true,
	}))
	if err != nil {
		t.Fatal(err)
	}
	files, paths := hostile.Files(good), map[string]string{}
	dir := t.TempDir()
	for i, f := range files {
		name := strconv.Itoa(i)
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := rig.Files(t, paths)
	ids := map[int]string{}
	for i, f := range files {
		if f.Slow {
			continue
		}
		ids[i] = s.CreateAsset(t, base+"/"+strconv.Itoa(i)).Text("id")
	}
	for i, id := range ids {
		f := files[i]
		a := s.AwaitAsset(t, id, "an end", 2*patience, func(o rig.Object) bool {
			return o.Text("status") != "preparing"
		})
		if why := a.Texts("errors.messages"); a.Text("status") == "ready" && !f.Plays ||
			a.Text("status") == "errored" && (len(why) != 1 || why[0] == "") {
			t.Errorf("%s: the asset is %s: %v", f.Name, a.Text("status"), a["errors"])
		}
	}
	if mb := s.Peak(t) >> 20; mb > 700 {
		t.Errorf("the server has had %d MB", mb)
	} else {
		t.Logf("the server has had %d MB", mb)
	}
	downloads := func() []string { // of an asset they are deleted once it is told to be errored
		left, _ := filepath.Glob(filepath.Join(s.Dir, "*", "asset-*"))
		return left
	}
	deadline := time.Now().Add(patience)
	for len(s.Children(t))+len(downloads()) > 0 && time.Now().Before(deadline) {
		rig.Pause(100 * time.Millisecond)
	}
	if left := s.Children(t); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if left := downloads(); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestHostileConnections opens more connections than the server may have descriptors, keeps them, and goes on with it:
// the live stream that is there is recorded without a gap, viewers and publishers get in as before, and memory stays
// within bounds.
func TestHostileConnections(t *testing.T) {
	rig.Parallel(t)
	const descriptors = 512
	s := rig.Start(t, rig.Options{OpenFiles: descriptors})
	stream := s.CreateLive(t, "standard", nil)
	s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 200, GOP: 1})
	playlist := s.PlayURL(stream.Text("playback_ids.0.id"))
	s.AwaitPlayable(t, playlist, patience)
	var held int
	for i := range descriptors + descriptors/2 {
		from := fmt.Sprintf("127.0.0.%d", 2+i%3)
		switch path := strings.TrimPrefix(playlist, s.HTTP); i % 4 {
		case 0: // of those that viewers have
			held += keepAlive(t, from, s.HTTP, path)
		case 1: // of the API's
			held += keepAlive(t, from, s.HTTP, "/healthz")
		case 2: // that say nothing
			held += hold(t, from, strings.TrimPrefix(s.HTTP, "http://"))
		case 3:
			held += hold(t, from, strings.TrimPrefix(s.RTMP, "rtmp://"))
		}
	}
	if held < descriptors {
		t.Fatalf("only %d connections were made: that is no attack", held)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil || len(open) > descriptors*3/4 {
		t.Errorf("%d descriptors are open, %v", len(open), err)
	}
	second := s.CreateLive(t, "standard", nil)
	s.Publish(t, second.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 200, GOP: 1})
	// its journal and its segments have descriptors
	s.AwaitPlayable(t, s.PlayURL(second.Text("playback_ids.0.id")), patience)
	if mb := s.Peak(t) >> 20; mb > 400 {
		t.Errorf("the server has had %d MB", mb)
	}
	if log := s.Log(); strings.Contains(log, "too many open files") || !strings.Contains(log, "too many connections") {
		t.Errorf("the log does not tell of the attack, or of what it did")
	}
	wholeRecording(t, s, stream.Text("id"))
}

// wholeRecording ends a live stream and checks that its recording has neither a gap nor a discontinuity.
func wholeRecording(t *testing.T, s *rig.Server, stream string) {
	t.Helper()
	asset := s.Live(t, stream).Text("active_asset_id")
	s.Complete(t, stream)
	recording := s.AwaitAsset(t, asset, "finished", patience, rig.Finished)
	main := s.PlayURL(recording.Text("playback_ids.0.id"))
	renditions := playlists(t, s, main)
	if len(renditions) == 0 {
		t.Errorf("%s offers nothing", main)
	}
	for _, at := range renditions {
		code, _, media := s.Get(t, at)
		if text := string(media); code != http.StatusOK || !strings.Contains(text, "#EXT-X-ENDLIST") ||
			strings.Contains(text, "#EXT-X-GAP") || strings.Contains(text, "#EXT-X-DISCONTINUITY\n") {
			t.Errorf("%s: %d\n%s", at, code, media)
		}
	}
}

// playlists are the addresses of the lines of a playlist that are no tags.
func playlists(t *testing.T, s *rig.Server, of string) (out []string) {
	t.Helper()
	at, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	_, _, list := s.Get(t, of)
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		to, err := at.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, to.String())
	}
	return out
}

// keepAlive asks for a path and keeps the connection; 0: it was closed.
func keepAlive(t *testing.T, from, base, path string) int {
	t.Helper()
	nc := connect(t, from, strings.TrimPrefix(base, "http://"))
	if nc == nil {
		return 0
	}
	if _, err := io.WriteString(nc, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0
	}
	res, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return 1
}

// hold connects and says nothing.
func hold(t *testing.T, from, addr string) int {
	t.Helper()
	if connect(t, from, addr) == nil {
		return 0
	}
	return 1
}

func connect(t *testing.T, from, addr string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	nc, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return nc
}
