package e2e

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestFailuresAreTold: what goes wrong with a file, and what is wanted of it, has its events.
func TestFailuresAreTold(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	cut := content(t, "a.mkv", rig.Clip{Size: "320x180", Kbit: 300, Seconds: 12, Video: "mpeg4"})
	nonsense := strings.Repeat("\x01\x02nonsense", 1000)
	base := rig.Files(t, map[string]string{"nonsense.bin": nonsense, "cut.mkv": string(cut[:len(cut)/2])})
	create := func(file string, with rig.Object) rig.Object {
		t.Helper()
		with["inputs"], with["playback_policies"] = []rig.Object{{"url": base + "/" + file}}, []string{"public"}
		code, o := s.Do(t, http.MethodPost, "/video/v1/assets", with)
		if code != http.StatusCreated {
			t.Fatalf("create asset: %d %v", code, o)
		}
		return s.AwaitAsset(t, o.Text("data.id"), "at its end", patience, func(a rig.Object) bool {
			return a.Text("status") == "errored" || a.Text("progress.state") == "completed"
		})
	}
	told := func(object string, want ...string) {
		t.Helper()
		have := events(t, s, object)
		for _, e := range want {
			if !slices.Contains(have, e) {
				t.Errorf("events %q, want %s", have, e)
			}
		}
	}
	a := create("nonsense.bin", rig.Object{"mp4_support": "capped-1080p", "master_access": "temporary"})
	told(a.Text("id"), "video.asset.errored", "video.asset.static_renditions.errored", "video.asset.master.errored")
	a = create("nonsense.bin", rig.Object{"static_renditions": []rig.Object{{"resolution": "audio-only"}}})
	told(a.Text("static_renditions.files.0.id"), "video.asset.static_rendition.created",
		"video.asset.static_rendition.errored")
	a = create("cut.mkv", rig.Object{})
	told(a.Text("id"), "video.asset.non_standard_input_detected", "video.asset.warning")

	u := createUpload(t, s)
	resp, err := u.put(s, "", bytes.NewReader([]byte(nonsense)), int64(len(nonsense)))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	for end := time.Now().Add(patience); ; rig.Pause(50 * time.Millisecond) {
		code, o := s.Do(t, http.MethodGet, "/video/v1/uploads/"+u.id, nil)
		if o.Text("data.status") == "errored" {
			break
		}
		if code != http.StatusOK || time.Now().After(end) {
			t.Fatalf("%d %v", code, o)
		}
	}
	told(u.id, "video.upload.created", "video.upload.asset_created", "video.upload.errored")
}
