package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"millrace/test/rig"
)

// TestDownloads asks for every kind of file of an asset: each is one MP4 that a player begins before it has the rest, with the frames that
// viewers get, in step; what would have to be scaled up is skipped; nothing stays in storage of what is deleted.
func TestDownloads(t *testing.T) {
	t.Parallel()
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		t.Parallel()
		s := rig.Start(t, rig.Options{Pair: p})
		file := rig.File(t, "a.mp4", rig.Clip{Size: "640x480", Kbit: 600, GOP: 2, Flash: true, Seconds: 12})
		code, answer := s.Do(t, http.MethodPost, "/video/v1/assets", rig.Object{
			"inputs": []rig.Object{{"url": rig.Files(t, map[string]string{"a.mp4": file}) + "/a.mp4"}}, "playback_policies": []string{"public"},
			"static_renditions": []rig.Object{{"resolution": "highest", "passthrough": "mine"}, {"resolution": "audio-only"}}, "master_access": "temporary",
		})
		if code != http.StatusCreated {
			t.Fatalf("create: %d %v", code, answer)
		}
		id := answer.Text("data.id")
		a := s.AwaitAsset(t, id, "files", patience, filesDone)
		base := s.HTTP + "/" + a.Text("playback_ids.0.id") + "/"
		want := frames(t, file)["video"]
		hls := frames(t, s.PlayURL(a.Text("playback_ids.0.id")))
		for _, f := range a.List("static_renditions.files") {
			got := download(t, s, base+f.Text("name"), f)
			have := frames(t, got)
			if f.Text("name") == "highest.mp4" {
				if len(have["video"]) != len(want) || f.Number("width") != 640 || f.Text("passthrough") != "mine" || f.Text("type") != "standard" {
					t.Errorf("%d pictures of %d: %v", len(have["video"]), len(want), f)
				}
				white, beep := flashesOf(t, []stretch{{path: got}, {path: got, audio: true}})
				apart(t, white, beep, 8, 0, false)
			}
			if len(have["audio"]) != len(hls["audio"]) {
				t.Errorf("%s: %d frames of sound of %d", f.Text("name"), len(have["audio"]), len(hls["audio"]))
			}
		}
	})
}

// filesDone says that no file of an asset is being made any more.
func filesDone(a rig.Object) bool {
	for _, f := range append(a.List("static_renditions.files"), rig.Object{"status": a.Text("master.status")}) {
		if f.Text("status") == "preparing" {
			return false
		}
	}
	return a.Text("status") != "preparing" && a.Text("static_renditions.status") != "preparing"
}

// download gives the path of a file, after a look at what the server says of it and at its boxes.
func download(t *testing.T, s *rig.Server, url string, f rig.Object) string {
	t.Helper()
	code, head, body := s.Get(t, url+"?download=film%20one.mp4")
	if code != http.StatusOK || strconv.Itoa(len(body)) != f.Text("filesize") || head.Get("Accept-Ranges") != "bytes" || head.Get("Etag") == "" ||
		head.Get("Content-Disposition") != `attachment; filename="film one.mp4"` {
		t.Fatalf("%s: status %d, %d bytes, %v; %v", url, code, len(body), head, f)
	}
	fastStart(t, url, body)
	path := filepath.Join(t.TempDir(), filepath.Base(f.Text("name")))
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fastStart says that a file is ftyp, moov and mdat, whole.
func fastStart(t *testing.T, what string, data []byte) {
	t.Helper()
	var boxes []string
	for at := 0; at+8 <= len(data); {
		n := int(binary.BigEndian.Uint32(data[at:]))
		boxes = append(boxes, string(data[at+4:at+8]))
		if n < 8 || at+n > len(data) {
			t.Errorf("%s: box %s of %d bytes at %d of %d", what, boxes[len(boxes)-1], n, at, len(data))
			return
		}
		at += n
	}
	if !slices.Equal(boxes, []string{"ftyp", "moov", "mdat"}) {
		t.Errorf("%s: boxes %v", what, boxes)
	}
}

// probe is what ffprobe says of a file's streams.
func probe(t *testing.T, path string) []rig.Object {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ffprobe", "-v", "error", "-of", "json", "-show_streams", path).Output()
	var found struct{ Streams []rig.Object }
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(out)).Decode(&found)
	}
	if err != nil {
		t.Fatalf("ffprobe %s: %v", path, err)
	}
	return found.Streams
}
