package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// fleetStream is a way to stream to one node of a fleet, of which viewers ask all nodes.
type fleetStream struct {
	mode     string
	policy   string // of its playback ID
	clip     rig.Clip
	captions bool     // there are captions in the picture
	pictures int      // in so many sizes
	must     []string // rules of hlscheck that have to be applied
}

// TestFleetPlays: whatever node an encoder comes to, every node plays the stream as that one does: it keeps RFC
// 8216bis, and each address has the same bytes. So do pictures of it, and the encoder's health is the same.
func TestFleetPlays(t *testing.T) {
	rig.Parallel(t, rig.Long)
	scaled(t)
	f := rig.StartFleet(t, 3, rig.Options{})
	small := rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, NoB: true}
	d := newDRMRig(t, f.Nodes[0], rig.Scaled)
	at := 0
	for name, s := range map[string]fleetStream{
		"low, captions": {
			mode: "low", policy: "public", clip: rig.Clip{File: captionedClip(t, 120), Seconds: 120}, captions: true,
			pictures: 1, must: append(slices.Clone(lowLatencyRules), "webvtt"),
		},
		"low, rungs": {
			mode: "low", policy: "public", clip: rig.Clip{Size: "640x480", Kbit: 600, GOP: 1, NoB: true}, pictures: 2,
			must: lowLatencyRules,
		},
		"reduced, signed": {mode: "reduced", policy: "signed", clip: small, pictures: 1},
		"standard, DRM":   {mode: "standard", policy: "drm", clip: small, pictures: 1},
	} {
		owner := f.Nodes[at%len(f.Nodes)]
		at++
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			s.play(t, f, owner, d)
		})
	}
}

func (s fleetStream) play(t *testing.T, f *rig.Fleet, owner *rig.Server, d *drmRig) {
	policy := rig.Object{"policy": s.policy}
	if s.policy == "drm" {
		policy["drm_configuration_id"] = d.configuration
	}
	about := rig.Object{"playback_policies": []string{}, "advanced_playback_policies": []rig.Object{policy}}
	if s.captions {
		about["embedded_subtitles"] = []rig.Object{{"name": "Captions", "language_code": "en", "language_channel": "cc1"}}
	}
	l := owner.CreateLive(t, s.mode, about)
	id := l.Text("playback_ids.0.id")
	token, thumbnail := "", "?latest=true"
	if s.policy != "public" {
		token = "?token=" + d.keys.token(t, id)
		thumbnail = "?token=" + d.keys.token(t, id, "--type", "thumbnail", "--param", "latest=true")
	}
	encoder := owner.Publish(t, l.Text("stream_key"), s.clip)
	var all sync.WaitGroup
	for i, node := range f.Nodes {
		all.Go(func() {
			node.AwaitPlayable(t, node.PlayURL(id)+token, patience)
			o := hlscheck.Options{
				URL: node.PlayURL(id) + token, Follow: 3 * time.Second, LowLatency: s.mode == "low", MaxSegments: 2,
				Until: slices.DeleteFunc(slices.Clone(s.must), func(rule string) bool { return rule != "webvtt" }),
			}
			must := append([]string{"reload-grows", "tfdt", "immutable-bytes", "bandwidth"}, s.must...)
			check(t, "node "+string(rune('1'+i)), o, must...)
		})
	}
	all.Wait()
	s.sameBytes(t, f, owner, id+".m3u8"+token)
	want := health(t, owner, l, "is live", func(h rig.Object) bool { return h.Text("status") == "live" })
	for _, node := range f.Nodes {
		got := health(t, node, l, "is live at another node", func(h rig.Object) bool { return h.Text("status") == "live" })
		for _, field := range []string{"status", "encoder.protocol", "encoder.remote_address", "encoder.connected_at"} {
			if got.Text(field) != want.Text(field) {
				t.Errorf("one node says %s is %q, the encoder's says %q", field, got.Text(field), want.Text(field))
			}
		}
		picture(t, node.HTTP+"/"+id+"/thumbnail.jpg"+thumbnail, "jpeg", 0, 0)
	}
	encoder.Stop()
	owner.Complete(t, l.Text("id"))
}

// sameBytes asks all nodes for all that the playlists of one of them list.
func (s fleetStream) sameBytes(t *testing.T, f *rig.Fleet, owner *rig.Server, path string) {
	t.Helper()
	lists := mediaPlaylists(t, owner.HTTP+"/"+path)
	pictures, compared := 0, 0
	for _, m := range lists {
		if !m.audio {
			pictures++
		}
		urls := partURLs(t, m)
		for _, e := range m.entries[max(0, len(m.entries)-4):] {
			urls = append(urls, e.url)
		}
		for _, url := range urls {
			want := get(t, url)
			for _, node := range f.Nodes {
				code, _, got := node.Get(t, strings.Replace(url, owner.HTTP, node.HTTP, 1))
				if code != http.StatusOK || !bytes.Equal(got, want) || len(want) == 0 {
					t.Errorf("%s: another node has %d, %d bytes of %d", url, code, len(got), len(want))
				}
				compared++
			}
		}
	}
	if pictures != s.pictures || compared < 6*len(lists) {
		t.Errorf("%d sizes of the picture, want %d; %d responses were compared", pictures, s.pictures, compared)
	}
}
