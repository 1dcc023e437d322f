package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millrace/test/rig"
)

// TestDownloads asks for every kind of file of an asset: each is one MP4 that a player begins before it has the rest,
// with the frames that viewers get, in step; what would have to be scaled up is skipped; nothing stays in storage of
// what is deleted.
func TestDownloads(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		file := rig.File(t, "a.mp4", rig.Clip{Size: "640x480", Kbit: 600, GOP: 2, Flash: true, Seconds: 12})
		code, response := s.Do(t, http.MethodPost, "/video/v1/assets", rig.Object{
			"inputs":            []rig.Object{{"url": rig.Files(t, map[string]string{"a.mp4": file}) + "/a.mp4"}},
			"playback_policies": []string{"public", "signed"},
			"static_renditions": []rig.Object{
				{"resolution": "highest", "passthrough": "mine"}, {"resolution": "audio-only"},
			}, "master_access": "temporary",
		})
		if code != http.StatusCreated {
			t.Fatalf("create: %d %v", code, response)
		}
		d := &downloads{t: t, s: s, id: response.Text("data.id"), want: frames(t, file)}
		a := d.awaitIdle()
		d.base = s.HTTP + "/" + a.Text("playback_ids.0.id") + "/"
		first := d.files(a, map[string]int{"highest.mp4": 480, "audio.m4a": 0})
		d.closed(a.Text("playback_ids.1.id"))
		d.ranges(d.base + "highest.mp4")
		d.master(a)
		d.exclusions()

		old := a.List("static_renditions.files")[0]
		d.do(http.StatusNoContent, http.MethodDelete, "/static-renditions/"+old.Text("id"), nil)
		d.absent("highest.mp4")
		d.do(http.StatusCreated, http.MethodPost, "/static-renditions", rig.Object{"resolution": "highest"})
		if again := d.files(d.awaitIdle(), map[string]int{
			"highest.mp4": 480, "audio.m4a": 0,
		}); first["highest.mp4"] != again["highest.mp4"] {
			t.Error("the same file made a second time has other bytes")
		}
		for _, f := range d.awaitIdle().List("static_renditions.files") {
			d.do(http.StatusNoContent, http.MethodDelete, "/static-renditions/"+f.Text("id"), nil)
		}
		d.do(http.StatusCreated, http.MethodPost, "/static-renditions", rig.Object{"resolution": "1080p"})
		// no rung of the ladder
		d.do(http.StatusCreated, http.MethodPost, "/static-renditions", rig.Object{"resolution": "360p"})
		s.Kill(t)
		s.Run(t)
		d.base = s.HTTP + "/" + a.Text("playback_ids.0.id") + "/"
		a = d.awaitIdle()
		d.files(a, map[string]int{"360p.mp4": 360, "1080p.mp4": -1})
		for _, f := range a.List("static_renditions.files") {
			d.do(http.StatusNoContent, http.MethodDelete, "/static-renditions/"+f.Text("id"), nil)
		}
		d.legacy()
		nothingLeft(t, s)
	})
}

// downloads are the files of an asset.
type downloads struct {
	t        *testing.T
	s        *rig.Server
	id, base string
	want     map[string][]float64 // frames of the asset
}

func (d *downloads) do(want int, method, path string, body any) rig.Object {
	d.t.Helper()
	code, o := d.s.Do(d.t, method, "/video/v1/assets/"+d.id+path, body)
	if code != want {
		d.t.Fatalf("%s %s %v: status %d, want %d: %v", method, path, body, code, want, o)
	}
	return o
}

func (d *downloads) awaitIdle() rig.Object {
	d.t.Helper()
	return d.s.AwaitAsset(d.t, d.id, "files", patience, filesDone)
}

func (d *downloads) absent(name string) {
	d.t.Helper()
	if code, _, _ := d.s.Get(d.t, d.base+name); code != http.StatusNotFound {
		d.t.Errorf("%s: status %d", name, code)
	}
}

// closed asks for the file of 480 lines below a signed playback ID: it needs a token, and one that allows as much.
func (d *downloads) closed(id string) {
	d.t.Helper()
	keys, url := newSigner(d.t, d.s), d.s.HTTP+"/"+id+"/highest.mp4"
	small, large := keys.token(d.t, id, "--param", "max_resolution=360p"),
		keys.token(d.t, id, "--param", "max_resolution=480p")
	for url, want := range map[string]int{
		url: http.StatusForbidden, url + "?token=" + small: http.StatusForbidden,
		url + "?token=" + large: http.StatusOK,
	} {
		if code, _, body := d.s.Get(d.t, url); code != want {
			d.t.Errorf("%s: status %d, want %d: %.200s", url, code, want, body)
		}
	}
	_, head, _ := d.s.Get(d.t, url+"?token="+large+"&download=film.mp4")
	if got := head.Get("Content-Disposition"); got != "attachment; filename=film.mp4" {
		d.t.Errorf("to be saved with a token: Content-Disposition %q", got)
	}
}

// files checks all files by name: the lines of the picture, 0 for sound alone, -1 for one that is skipped. It gives
// their sums.
func (d *downloads) files(a rig.Object, want map[string]int) map[string]string {
	t := d.t
	t.Helper()
	sums := map[string]string{}
	list := a.List("static_renditions.files")
	if len(list) != len(want) {
		t.Errorf("files %v, want %v", list, want)
	}
	for _, f := range list {
		name := f.Text("name")
		lines, ok := want[name]
		if status := f.Text("status"); !ok || lines < 0 && status != "skipped" ||
			lines >= 0 && status != "ready" && a.Text("static_renditions.status") != "ready" {
			t.Errorf("file %v", f)
			continue
		}
		if lines < 0 {
			d.absent(name)
			continue
		}
		path := d.get(d.base+name, f)
		sums[name] = d.inside(path, lines)
		if int(f.Number("height")) != lines {
			t.Errorf("%s has %d lines: %v", name, lines, f)
		}
	}
	return sums
}

// inside holds what is in a file against the asset.
func (d *downloads) inside(path string, lines int) (sum string) {
	t := d.t
	t.Helper()
	have := frames(t, path)
	for _, x := range probe(t, path) {
		tag, height := x.Text("codec_tag_string"), int(x.Number("height"))
		if x.Text("codec_type") == "video" && (tag != "avc1" || height != lines) ||
			x.Text("codec_type") == "audio" && tag != "mp4a" {
			t.Errorf("%s: %s of %d lines", path, tag, height)
		}
	}
	// Priming of sound is decoded and not heard; ffmpeg counts it where no edit list says so.
	if lines > 0 && len(have["video"]) != len(d.want["video"]) || lines == 0 && len(have["video"]) > 0 ||
		absolute(len(have["audio"])-len(d.want["audio"])) > 2 {
		t.Errorf("%s: %d pictures and %d frames of sound, the asset has %d and %d", path, len(have["video"]),
			len(have["audio"]), len(d.want["video"]), len(d.want["audio"]))
	}
	if lines > 0 {
		white, beep := flashesOf(t, []stretch{{path: path}, {path: path, audio: true}})
		apart(t, white, beep, 8, 0, false)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(data)
	return string(hash[:])
}

func absolute(n int) int { return max(n, -n) }

// get gives the path of a file, after a look at what the server says of it and at its boxes.
func (d *downloads) get(url string, f rig.Object) string {
	t := d.t
	t.Helper()
	code, head, body := d.s.Get(t, url+"?download=film%20one.mp4")
	if code != http.StatusOK || strconv.Itoa(len(body)) != f.Text("filesize") || head.Get("Etag") == "" ||
		f.Number("bitrate") < 10_000 ||
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

// ranges reads a part of a file, as players do.
func (d *downloads) ranges(url string) {
	d.t.Helper()
	_, _, whole := d.s.Get(d.t, url)
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Range", "bytes=1000-1999")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	part, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != http.StatusPartialContent || !bytes.Equal(part, whole[1000:2000]) {
		d.t.Errorf("a range: status %d, %d bytes, %v", res.StatusCode, len(part), err)
	}
}

// master downloads the master by the address that the API gives, and by wrong ones.
func (d *downloads) master(a rig.Object) {
	t := d.t
	t.Helper()
	address := a.Text("master.url")
	if a.Text("master.status") != "ready" || address == "" {
		t.Fatalf("master: %v", a["master"])
	}
	code, head, body := d.s.Get(t, address+"&download=original.mp4")
	if code != http.StatusOK || head.Get("Content-Disposition") != `attachment; filename=original.mp4` {
		t.Fatalf("master: status %d, %v", code, head)
	}
	fastStart(t, "master", body)
	path := filepath.Join(t.TempDir(), "master.mp4")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	d.inside(path, 480)
	for _, wrong := range []string{
		strings.Replace(address, "expires=1", "expires=2", 1), address + "x",
		strings.Replace(address, d.id, d.id[1:]+d.id[:1], 1),
	} {
		if code, _, _ := d.s.Get(t, wrong); code != http.StatusForbidden {
			t.Errorf("%s: status %d", wrong, code)
		}
	}
	if o := d.do(http.StatusOK, http.MethodPut, "/master-access", rig.Object{
		"master_access": "none",
	}); o.Text("data.master_access") != "none" || o["data"].(map[string]any)["master"] != nil {
		t.Errorf("master taken away: %v", o)
	}
	if code, _, _ := d.s.Get(t, address); code != http.StatusForbidden {
		t.Errorf("the master after it was taken away: status %d", code)
	}
	have := events(t, d.s, d.id)
	if want := []string{
		"video.asset.ready", "video.asset.master.preparing", "video.asset.master.ready", "video.asset.master.deleted",
	}; !inOrder(have, want) {
		t.Errorf("events %v, want %v", have, want)
	}
}

// exclusions asks for what does not go together.
func (d *downloads) exclusions() {
	d.t.Helper()
	d.do(http.StatusBadRequest, http.MethodPut, "/mp4-support", rig.Object{"mp4_support": "standard"})
	d.do(http.StatusBadRequest, http.MethodPost, "/static-renditions", rig.Object{"resolution": "720p"})
	d.do(http.StatusBadRequest, http.MethodPost, "/static-renditions", rig.Object{"resolution": "highest"})
}

// legacy asks for files in the old way.
func (d *downloads) legacy() {
	d.t.Helper()
	d.do(http.StatusOK, http.MethodPut, "/mp4-support", rig.Object{"mp4_support": "audio-only,capped-1080p"})
	a := d.awaitIdle()
	d.files(a, map[string]int{"capped-1080p.mp4": 480, "audio.m4a": 0})
	if f := a.List("static_renditions.files")[0]; a.Text("static_renditions.status") != "ready" || f["id"] != nil ||
		f["status"] != nil || f["resolution"] != nil {
		d.t.Errorf("files of mp4_support: %v", a["static_renditions"])
	}
	d.do(http.StatusBadRequest, http.MethodPost, "/static-renditions", rig.Object{"resolution": "highest"})
	o := d.do(http.StatusOK, http.MethodPut, "/mp4-support", rig.Object{"mp4_support": "none"})
	if o.Text("data.static_renditions.status") != "disabled" {
		d.t.Errorf("mp4_support was ended: %v", o["data"])
	}
	d.absent("capped-1080p.mp4")
	have := events(d.t, d.s, d.id)
	if want := []string{
		"video.asset.static_renditions.preparing", "video.asset.static_renditions.ready",
		"video.asset.static_renditions.deleted",
	}; !inOrder(have, want) {
		d.t.Errorf("events %v, want %v", have, want)
	}
}

// filesDone reports whether no file of an asset is being made any more.
func filesDone(a rig.Object) bool {
	for _, f := range append(a.List("static_renditions.files"), rig.Object{"status": a.Text("master.status")}) {
		if f.Text("status") == "preparing" {
			return false
		}
	}
	return a.Text("status") != "preparing" && a.Text("static_renditions.status") != "preparing"
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
	var found struct {
		Streams []rig.Object `json:"streams"`
	}
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(out)).Decode(&found)
	}
	if err != nil {
		t.Fatalf("ffprobe %s: %v", path, err)
	}
	return found.Streams
}
