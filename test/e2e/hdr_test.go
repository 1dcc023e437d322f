package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestLiveHDR: a broadcast of high dynamic range is offered as it is, and said to be so; the renditions that are made of
// it are for any screen. So is the recording.
func TestLiveHDR(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	for name, transfer := range map[string]string{"PQ": "smpte2084", "HLG": "arib-std-b67"} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			clip := x265(rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 16})
			clip.More = append(clip.More, "-pix_fmt", "yuv420p10le", "-color_primaries", "bt2020", "-colorspace", "bt2020nc",
				"-color_trc", transfer)
			l := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
			e := rig.PublishTo(t, s.SRTURL(l, ffmpegUnhurried), clip)
			url := s.PlayURL(l.Text("playback_ids.0.id"))
			s.AwaitPlayable(t, url, patience)
			offered(t, s, url, name)
			check(t, name, hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "codecs", "tfdt", "decodes")
			if said, err := e.Wait(t, patience); err != nil {
				t.Fatalf("encoder: %v: %s", err, said)
			}
			live := s.AwaitLive(t, l.Text("id"), "is idle", patience, func(o rig.Object) bool { return o.Text("status") == "idle" })
			asset := s.AwaitAsset(t, live.Texts("recent_asset_ids")[0], "is finished", patience, rig.Finished)
			recorded := s.PlayURL(asset.Text("playback_ids.0.id"))
			offered(t, s, recorded, name)
			check(t, name+" recorded", hlscheck.Options{URL: recorded, Decoder: rig.FFmpeg(t)}, "codecs", "tfdt", "decodes")
		})
	}
}

// variants are the lines of a multivariant playlist for each stream, and their URIs.
var variants = regexp.MustCompile(`#EXT-X-STREAM-INF:(.*)\n(.*)`)

// offered checks what a multivariant playlist says of HEVC and H.264, and what H.264 says of itself.
func offered(t *testing.T, s *rig.Server, url, want string) {
	t.Helper()
	_, _, master := s.Get(t, url)
	sources, rungs := 0, 0
	for _, v := range variants.FindAllStringSubmatch(string(master), -1) {
		high := strings.Contains(v[1], ",VIDEO-RANGE="+want)
		switch {
		case strings.Contains(v[1], "hvc1.2."):
			sources++
			if !high {
				t.Errorf("no VIDEO-RANGE=%s in %s", want, v[1])
			}
		case strings.Contains(v[1], "avc1."):
			if rungs++; high {
				t.Errorf("H.264 of high dynamic range: %s", v[1])
			}
			playlist, err := resolve(url, v[2])
			if err != nil {
				t.Fatal(err)
			}
			if got := transfer(t, playlist); got != "bt709" {
				t.Errorf("a rendition's transfer characteristics are %q: %s", got, v[1])
			}
		}
	}
	if sources != 1 || rungs == 0 {
		t.Errorf("%d of HEVC and %d of H.264 in\n%s", sources, rungs, master)
	}
}

// transfer are the transfer characteristics of a playlist's video, as ffprobe names them: it lists the stream by itself
// and as one of the playlist's program.
func transfer(t *testing.T, url string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(rig.FFmpeg(t)), "ffprobe"), "-v", "error",
		"-select_streams", "v", "-show_entries", "stream=color_transfer", "-of", "csv=p=0", url).CombinedOutput()
	if err != nil {
		t.Errorf("ffprobe %s: %v", url, err)
	}
	names := strings.Fields(string(out))
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " and ")
}
