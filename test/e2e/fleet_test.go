package e2e

import (
	"bytes"
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// fleet starts two nodes on one PostgreSQL and one S3; the first one's environment has more.
func fleet(t *testing.T, more ...string) (a, b *stage) {
	t.Helper()
	o := rig.Options{Pair: rig.Scaled, Args: []string{"--metrics-addr", "127.0.0.1:0"}}
	b = &stage{Server: rig.Start(t, o)}
	o.Beside, o.Env = b.Server, more
	return &stage{Server: rig.Start(t, o)}, b
}

var encodedSegments = regexp.MustCompile(`millrace_rung_segments_total\{outcome="(\w+)"\} (\d+)`)

// encoded is how many segments of smaller renditions a node has encoded: those that are kept, and those that another
// one had stored before.
func encoded(t *testing.T, s *stage) (kept, vain int) {
	t.Helper()
	for _, m := range encodedSegments.FindAllStringSubmatch(metrics(t, s.Server), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if m[1] == "kept" {
			kept += n
		} else {
			vain += n
		}
	}
	return kept, vain
}

// smaller gives the playlist of an asset's smallest picture on a node.
func smaller(t *testing.T, s *stage, playbackID string) mediaPlaylist {
	t.Helper()
	var last mediaPlaylist
	for _, m := range mediaPlaylists(t, s.PlayURL(playbackID)) {
		if !m.audio {
			last = m
		}
	}
	return last
}

// TestFleetEncodesOnce has viewers ask two nodes for the same cold segments of a rung at the same time: all get the
// same bytes, and each segment is encoded once, by whichever node.
func TestFleetEncodesOnce(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	a, b := fleet(t)
	file := rig.File(t, "a.mp4", rig.Clip{Size: "640x480", Kbit: 600, GOP: 2, Seconds: 41})
	asset := a.CreateAsset(t, rig.Files(t, map[string]string{"a.mp4": file})+"/a.mp4")
	asset = a.AwaitAsset(t, asset.Text("id"), "ready", patience, rig.Ready)
	lists := []mediaPlaylist{
		smaller(t, a, asset.Text("playback_ids.0.id")), smaller(t, b, asset.Text("playback_ids.0.id")),
	}
	entries := len(lists[0].entries)
	if entries < 8 || entries != len(lists[1].entries) {
		t.Fatalf("%d and %d entries", entries, len(lists[1].entries))
	}
	const viewers = 2 // at each node
	ask := func(entries ...int) {
		var all sync.WaitGroup
		got := make([][]byte, len(entries)*len(lists)*viewers)
		for i := range got {
			all.Go(func() {
				code, _, body := a.Get(t, lists[i%len(lists)].entries[entries[i/(len(lists)*viewers)]].url)
				if code != http.StatusOK {
					t.Errorf("status %d: %.300s", code, body)
				}
				got[i] = body
			})
		}
		all.Wait()
		for i := range got {
			if first := i - i%(len(lists)*viewers); len(got[i]) == 0 || !bytes.Equal(got[i], got[first]) {
				t.Errorf("entry %d: viewers have different bytes, %d and %d of them", entries[i/(len(lists)*viewers)],
					len(got[i]), len(got[first]))
			}
		}
	}
	ask(0, 1, 2, 3) // with the init segment
	for i := 4; i < entries; i++ {
		ask(i)
	}
	keptA, vainA := encoded(t, a)
	keptB, vainB := encoded(t, b)
	for end := time.Now().Add(patience); keptA+keptB < entries-1 &&
		time.Now().Before(end); rig.Pause(50 * time.Millisecond) {
		keptA, vainA = encoded(t, a) // what is stored can be had before it is counted
		keptB, vainB = encoded(t, b)
	}
	if keptA+keptB != entries-1 || vainA+vainB > 0 {
		t.Errorf("of %d segments one node has encoded %d, the other %d; in vain %d and %d", entries-1, keptA, keptB,
			vainA, vainB)
	}
	t.Logf("one node has encoded %d, the other %d", keptA, keptB)
}

// scaled skips a test where the servers of the scaled pair are missing.
func scaled(t *testing.T) {
	t.Helper()
	if os.Getenv("MILLRACE_TEST_POSTGRES") == "" || os.Getenv("MILLRACE_TEST_S3") == "" {
		rig.Missing(t, "MILLRACE_TEST_POSTGRES and MILLRACE_TEST_S3 are not set")
	}
}

// TestFleetLosesNode kills the node that encodes a segment while another node's viewer waits for it: that one makes it
// within seconds.
func TestFleetLosesNode(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	a, b := fleet(t, "PATH="+neverReady(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	file := rig.File(t, "a.mp4", rig.Clip{Size: "640x480", Kbit: 600, GOP: 2, Seconds: 12})
	asset := b.CreateAsset(t, rig.Files(t, map[string]string{"a.mp4": file})+"/a.mp4")
	asset = b.AwaitAsset(t, asset.Text("id"), "ready", patience, rig.Ready)
	m, n := smaller(t, a, asset.Text("playback_ids.0.id")), smaller(t, b, asset.Text("playback_ids.0.id"))
	db, err := sql.Open("pgx", b.Setting("MILLRACE_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	until := func(what, condition string) {
		t.Helper()
		for end := time.Now().Add(patience); ; rig.Pause(20 * time.Millisecond) {
			var n int
			if err := db.QueryRowContext(t.Context(),
				"SELECT count(*) FROM claims WHERE "+condition).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: never", what)
			}
		}
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if res, err := http.Get(m.entries[1].url); err == nil { //nolint:noctx // it ends with the node
			_ = res.Body.Close()
		}
	}()
	until("the node encodes", "true")
	type response struct {
		code int
		body []byte
		err  error
		at   time.Time
	}
	got := make(chan response, 1)
	go func() {
		code, body, err := try(t.Context(), n.entries[1].url)
		got <- response{code, body, err, time.Now()}
	}()
	until("the other node waits", "wanted")
	a.Kill(t)
	killed := time.Now()
	x := <-got
	<-asked
	took := x.at.Sub(killed)
	// a lease of 4 s, and the rest for a busy machine
	if x.code != http.StatusOK || len(x.body) == 0 || took > 40*time.Second {
		t.Errorf("status %d, %d bytes, %v, %s after the other node died", x.code, len(x.body), x.err, took)
	}
	kept, vain := encoded(t, b)
	for end := time.Now().Add(patience); kept < 1 && time.Now().Before(end); rig.Pause(50 * time.Millisecond) {
		kept, vain = encoded(t, b) // what is stored can be had before it is counted
	}
	if kept < 1 || vain > 0 {
		t.Errorf("encoded %d, in vain %d", kept, vain)
	}
	t.Logf("%s after the other node died", took.Round(10*time.Millisecond))
}

// neverReady is a folder with an ffmpeg that never gets ready when it has to encode H.264.
func neverReady(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *-preset*) exec sleep 600;; esac\nexec '" + programtest.Path(t, "ffmpeg") +
		"' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ffmpeg"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFleetRights changes at one node who may watch: the other one, which has just let the viewer in, refuses the token
// and the signed path, while nobody asks it to forget anything. That it takes less than 5 s is shown by clocks of their
// own: TestRightsEndUntold.
func TestFleetRights(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	a, b := fleet(t)
	keys := newSigner(t, a.Server)
	file := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 4})
	asset := a.CreateAsset(t, rig.Files(t, map[string]string{"a.mp4": file})+"/a.mp4")
	asset = a.AwaitAsset(t, asset.Text("id"), "ready", patience, rig.Ready)
	do := func(want int, method, path string, body any) rig.Object {
		t.Helper()
		code, o := a.Do(t, method, path, body)
		if code != want {
			t.Fatalf("%s %s: %d %v", method, path, code, o)
		}
		return o
	}
	id := do(http.StatusCreated, http.MethodPost, "/video/v1/assets/"+asset.Text("id")+"/playback-ids", rig.Object{
		"policy": "signed",
	}).Text("data.id")
	pages := func(open bool) rig.Object {
		return rig.Object{"allowed_domains": []string{}, "allow_no_referrer": open}
	}
	rule := do(http.StatusCreated, http.MethodPost, "/video/v1/playback-restrictions", rig.Object{
		"referrer":   pages(true),
		"user_agent": rig.Object{"allow_no_user_agent": true, "allow_high_risk_user_agent": true},
	}).Text("data.id")
	token := keys.token(t, id, "--param", "playback_restriction_id="+rule)
	master := b.PlayURL(id) + "?token=" + token
	b.AwaitPlayable(t, master, patience)
	path := mediaPlaylists(t, master)[0].url
	expect := func(when string, want int) {
		t.Helper()
		began := time.Now()
		for _, url := range []string{master, path} {
			code, _, body := b.Get(t, url)
			for end := began.Add(patience); code != want && time.Now().Before(end); code, _, body = b.Get(t, url) {
				rig.Pause(100 * time.Millisecond)
			}
			if code != want {
				t.Errorf("%s: %s: %d, want %d: %.200s", when, url, code, want, body)
			}
		}
		t.Logf("%s: the other node knew after %v", when, time.Since(began))
	}
	expect("at first", http.StatusOK)
	do(http.StatusOK, http.MethodPut, "/video/v1/playback-restrictions/"+rule+"/referrer", pages(false))
	expect("the restriction was changed", http.StatusForbidden)
	do(http.StatusOK, http.MethodPut, "/video/v1/playback-restrictions/"+rule+"/referrer", pages(true))
	expect("and back", http.StatusOK)
	do(http.StatusNoContent, http.MethodDelete, "/system/v1/signing-keys/"+keys.key, nil)
	expect("the key was deleted", http.StatusForbidden)
}
