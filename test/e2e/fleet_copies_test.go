package e2e

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestOwnerDiesCopied kills the node with the encoder of a stream that another node copies. All that its own viewers
// were given is there at the others afterwards, with the same bytes: each part of the segment under way too, of a lower
// rendition as well. What was listed is no gap.
func TestOwnerDiesCopied(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	f := rig.StartFleet(t, 3, rig.Options{Args: []string{"--live-copies", "2", "--metrics-addr", "127.0.0.1:0"}})
	a, b, c := f.Nodes[0], f.Nodes[1], f.Nodes[2]
	l := a.CreateLive(t, "low", nil)
	a.Publish(t, l.Text("stream_key"), rig.Clip{Size: "640x480", Kbit: 600, GOP: 1})
	list := firstList(t, c, l)
	copied := regexp.MustCompile(`millrace_live_copy_streams_current (\d+)`)
	for end := time.Now().Add(patience); ; rig.Pause(50 * time.Millisecond) {
		if m := copied.FindStringSubmatch(metrics(t, a)); m != nil && m[1] == "1" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody copies the stream")
		}
	}
	viewer := newMemory(1)
	viewer.made = true
	watched, leave := context.WithCancel(t.Context())
	var at address
	at.set(a)
	_, master := fetched(t, a, "/"+l.Text("playback_ids.0.id")+".m3u8", "identity")
	var watching sync.WaitGroup
	var lists []string
	for _, uri := range listedURIs(string(master)) {
		lists = append(lists, "/"+uri)
		watching.Go(func() { viewer.follow(watched, &at, "/"+uri, func() []time.Time { return nil }) })
	}
	if len(lists) < 3 {
		t.Fatalf("there is no lower rendition:\n%s", master)
	}
	from := lastNumber(playlistAt(t, c, list))
	for end := time.Now().Add(patience); lastNumber(playlistAt(t, c, list)) < from+3; rig.Pause(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not go on")
		}
	}
	a.Kill(t)
	leave()
	watching.Wait()
	listed := viewer.last()
	b.Publish(t, l.Text("stream_key"), rig.Clip{Size: "640x480", Kbit: 600, GOP: 1})
	b.AwaitLog(t, patience, `"encoder connected"`, l.Text("id"))
	for _, n := range []*rig.Server{b, c} {
		viewer.recall(t, n.HTTP, "after the death of the owner", listed)
	}
	parts := 0
	for _, path := range listed {
		if strings.Contains(path, ".m4s") && len(partName.FindString(path)) > 0 {
			parts++
		}
	}
	for _, list := range lists {
		viewer.read(list, playlistAt(t, b, list)) // what was listed with a length is no gap now
	}
	viewer.recall(t, b.HTTP, "in the playlists since", nil)
	t.Logf("%d names were listed last, %d of them parts", len(listed), parts)
	if parts == 0 {
		t.Error("no parts were listed")
	}
}

// partName is how the name of a part ends.
var partName = regexp.MustCompile(`[0-9]\.[0-9]+\.m4s$`)

// lastNumber is the last media sequence number of a playlist.
func lastNumber(playlist string) int {
	_, text, _ := strings.Cut(playlist, "#EXT-X-MEDIA-SEQUENCE:")
	text, _, _ = strings.Cut(text, "\n")
	n, _ := strconv.Atoi(text)
	return n + strings.Count(playlist, "#EXTINF:")
}
