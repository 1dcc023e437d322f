package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// fleetStream is a stream to one node of a fleet, of which viewers ask all nodes: with captions, in two sizes, public,
// signed and encrypted.
type fleetStream struct {
	mode string
	must []string // rules of hlscheck that have to be applied, beside those of every mode

	f     *rig.Fleet
	owner *rig.Server
	d     *drmRig
	staff *http.Client // somebody who is signed in to the dashboard
	live  rig.Object
	id    map[string]string // playback IDs by policy
}

// TestFleetPlays: whatever node an encoder comes to, every node plays the stream as that one does, in each latency
// mode: it keeps RFC 8216bis, and each address has the same bytes. So have images of it; licences have the same keys,
// and the encoder's health is the same.
func TestFleetPlays(t *testing.T) {
	rig.Parallel(t, rig.Long)
	scaled(t)
	f := rig.StartFleet(t, 3, rig.Options{})
	clip := rig.Clip{File: captionedClipOf(t, "640x360", 120), Seconds: 120}
	d, staff := newDRMRig(t, f.Nodes[0], rig.Scaled), signedIn(t, f.Nodes[0])
	for at, s := range []fleetStream{{mode: "low", must: lowLatencyRules}, {mode: "reduced"}, {mode: "standard"}} {
		s.f, s.owner, s.d, s.staff, s.id = f, f.Nodes[at], d, staff, map[string]string{}
		t.Run(s.mode, func(t *testing.T) {
			rig.Parallel(t)
			s.play(t, clip)
		})
	}
}

func (f fleetStream) play(t *testing.T, clip rig.Clip) {
	f.live = f.owner.CreateLive(t, f.mode, rig.Object{
		"playback_policies": []string{}, "advanced_playback_policies": []rig.Object{
			{"policy": "public"}, {"policy": "signed"}, {"policy": "drm", "drm_configuration_id": f.d.configuration},
		},
		"embedded_subtitles": []rig.Object{{"name": "Captions", "language_code": "en", "language_channel": "cc1"}},
	})
	for i := range 3 {
		of := fmt.Sprintf("playback_ids.%d.", i)
		f.id[f.live.Text(of+"policy")] = f.live.Text(of + "id")
	}
	encoder := f.owner.Publish(t, f.live.Text("stream_key"), clip)
	f.keepsRules(t)
	for policy := range f.id {
		f.sameBytes(t, policy)
	}
	f.sameBounds(t)
	f.sameImages(t)
	f.sameKeys(t)
	f.sameHealth(t)
	encoder.Stop()
	f.owner.Complete(t, f.live.Text("id"))
}

// path is that of a policy's multivariant playlist, with a token if need be.
func (f fleetStream) path(t *testing.T, policy string) string {
	t.Helper()
	path := "/" + f.id[policy] + ".m3u8"
	if policy != "public" {
		path += "?token=" + f.d.keys.token(t, f.id[policy])
	}
	return path
}

// keepsRules follows every policy at every node.
func (f fleetStream) keepsRules(t *testing.T) {
	t.Helper()
	must := append([]string{"reload-grows", "tfdt", "immutable-bytes", "bandwidth", "webvtt"}, f.must...)
	var all sync.WaitGroup
	for policy := range f.id {
		path := f.path(t, policy)
		for i, node := range f.f.Nodes {
			all.Go(func() {
				node.AwaitPlayable(t, node.HTTP+path, patience)
				check(t, fmt.Sprintf("%s at node %d", policy, i+1), hlscheck.Options{
					URL: node.HTTP + path, Follow: 3 * time.Second, LowLatency: f.mode == "low", MaxSegments: 2,
					Until: []string{"webvtt"},
				}, must...)
			})
		}
	}
	all.Wait()
}

// sameBytes asks all nodes for all that the playlists of one of them list.
func (f fleetStream) sameBytes(t *testing.T, policy string) {
	t.Helper()
	master := f.owner.HTTP + f.path(t, policy)
	text := string(get(t, master))
	for what, n := range map[string]int{"#EXT-X-STREAM-INF:": 2, "TYPE=AUDIO": 1, "TYPE=SUBTITLES": 1} {
		if strings.Count(text, what) != n {
			t.Errorf("%s: not %d times %s:\n%s", policy, n, what, text)
		}
	}
	lists, compared := 0, 0
	for _, ref := range references(text) {
		if !strings.Contains(ref, ".m3u8") {
			continue
		}
		m := mediaPlaylist{url: join(t, master, ref)}
		m.read(t)
		lists++
		urls := partURLs(t, m)
		for _, e := range m.entries[max(0, len(m.entries)-4):] {
			urls = append(urls, e.url)
		}
		for _, url := range urls {
			want := get(t, url)
			for _, node := range f.f.Nodes {
				code, _, got := node.Get(t, strings.Replace(url, f.owner.HTTP, node.HTTP, 1))
				if code != http.StatusOK || !bytes.Equal(got, want) || len(want) == 0 {
					t.Errorf("%s: another node has %d, %d bytes of %d", url, code, len(got), len(want))
				}
				compared++
			}
		}
	}
	if compared < 6*lists {
		t.Errorf("%s: %d responses were compared", policy, compared)
	}
}

// below is what a signed path has in front of what is below it.
var below = regexp.MustCompile(`/signed-v\.[^/]+/`)

// sameBounds: the bearer of a token for small pictures gets no other ones at any node, by no address: the source is not
// offered, and its playlist, init segment, parts and segments are refused below the path of the token's playlist,
// whatever node that is from. What is small enough plays.
func (f fleetStream) sameBounds(t *testing.T) {
	t.Helper()
	id := f.id["signed"]
	path := "/" + id + ".m3u8?token="
	whole := mediaPlaylist{url: source(t, f.owner.HTTP+path+f.d.keys.token(t, id))}
	whole.read(t)
	refused := append(partURLs(t, whole), whole.url)
	for _, e := range whole.entries[max(0, len(whole.entries)-4):] {
		refused = append(refused, e.url)
	}
	small := path + f.d.keys.token(t, id, "--param", "max_resolution=270p")
	for _, from := range f.f.Nodes {
		master := from.HTTP + small
		text := string(get(t, master))
		if strings.Contains(text, "RESOLUTION=640x360") || strings.Count(text, "RESOLUTION=480x270") != 1 {
			t.Errorf("small pictures alone are\n%s", text)
		}
		signed := below.FindString(join(t, master, references(text)[0]))
		if signed == "" {
			t.Fatalf("no signed path in\n%s", text)
		}
		for i, node := range f.f.Nodes {
			at := func(url string) int {
				url = strings.Replace(url, f.owner.HTTP, node.HTTP, 1)
				code, _, _ := node.Get(t, below.ReplaceAllString(url, signed))
				return code
			}
			for _, url := range refused {
				if code := at(url); code != http.StatusForbidden {
					t.Errorf("node %d: %d for %s, which is larger than the token allows", i+1, code, url)
				}
			}
			rung := mediaPlaylist{url: strings.Replace(source(t, master), from.HTTP, node.HTTP, 1)}
			rung.read(t)
			if code := at(rung.entries[len(rung.entries)-1].url); code != http.StatusOK {
				t.Errorf("node %d: %d for what the token allows", i+1, code)
			}
		}
	}
}

// source is the address of a multivariant playlist's first variant.
func source(t *testing.T, master string) string {
	t.Helper()
	text := string(get(t, master))
	v := variants.FindStringSubmatch(text)
	if v == nil {
		t.Fatalf("no variant in\n%s", text)
	}
	return join(t, master, v[2])
}

// sameImages asks all nodes for images of fixed times, which each of them makes for itself: they are equal. The newest
// picture is another one in each moment: of that, the size is equal.
func (f fleetStream) sameImages(t *testing.T) {
	t.Helper()
	const board = "?asset_start_time=0&asset_end_time=2"
	for _, image := range []string{
		"thumbnail.jpg?time=1", "thumbnail.png?time=1.5&width=160", "animated.gif?start=0&end=1&width=160&fps=5",
		"storyboard.jpg" + board, "storyboard.vtt" + board,
	} {
		at := func(node *rig.Server) []byte {
			body := get(t, node.HTTP+"/"+f.id["public"]+"/"+image)
			return bytes.ReplaceAll(body, []byte(node.HTTP), nil) // a storyboard's text leads to its pictures
		}
		want := at(f.owner)
		for i, node := range f.f.Nodes {
			if got := at(node); !bytes.Equal(got, want) || len(want) == 0 {
				t.Errorf("%s: node %d has %d other bytes, the encoder's %d", image, i+1, len(got), len(want))
			}
		}
	}
	for policy, id := range f.id {
		query := "?latest=true"
		if policy != "public" {
			query = "?token=" + f.d.keys.token(t, id, "--type", "thumbnail", "--param", "latest=true")
		}
		for _, node := range f.f.Nodes {
			picture(t, node.HTTP+"/"+id+"/thumbnail.jpg"+query, "jpeg", 640, 360)
		}
	}
}

// sameKeys asks all nodes for a licence.
func (f fleetStream) sameKeys(t *testing.T) {
	t.Helper()
	at := *f.d
	at.s = f.owner
	want := at.licence(t, f.id["drm"])
	for i, node := range f.f.Nodes {
		at.s = node
		if got := at.licence(t, f.id["drm"]); !maps.Equal(got, want) {
			t.Errorf("node %d gives other keys than the encoder's", i+1)
		}
	}
}

func (f fleetStream) sameHealth(t *testing.T) {
	t.Helper()
	is := func(h rig.Object) bool { return h.Text("status") == "live" }
	want := health(t, f.owner, f.live, "is live", is)
	for i, node := range f.f.Nodes {
		got := health(t, node, f.live, "is live at another node", is)
		for _, field := range []string{"status", "encoder.protocol", "encoder.remote_address", "encoder.connected_at"} {
			if got.Text(field) != want.Text(field) {
				t.Errorf("node %d says %s is %q, the encoder's says %q", i+1, field, got.Text(field), want.Text(field))
			}
		}
		figures := func() bool {
			address := node.HTTP + "/dashboard/live/" + f.live.Text("id")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Contains(body(t, f.staff, req), []byte("<dt>Bitrate</dt>"))
		}
		for end := time.Now().Add(patience); !figures(); rig.Pause(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the dashboard of node %d never shows figures", i+1)
			}
		}
	}
}
