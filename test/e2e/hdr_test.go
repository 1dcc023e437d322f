package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millrace/internal/programtest"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestLiveHDR: a broadcast of high dynamic range is offered as it is, and said to be so; the renditions that are made
// of it are for any screen. So is the recording.
func TestLiveHDR(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	for name, transfer := range map[string]string{"PQ": "smpte2084", "HLG": "arib-std-b67"} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			clip := x265(rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 16})
			clip.More = append(clip.More, highRange(transfer)...)
			l := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
			e := rig.PublishTo(t, s.SRTURL(l, ffmpegUnhurried), clip)
			url := s.PlayURL(l.Text("playback_ids.0.id"))
			s.AwaitPlayable(t, url, patience)
			offered(t, s, url, name, "320x180", 4320)
			check(t, name, hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "codecs", "tfdt", "decodes")
			if said, err := e.Wait(t, patience); err != nil {
				t.Fatalf("encoder: %v: %s", err, said)
			}
			live := s.AwaitLive(t, l.Text("id"), "is idle", patience, func(o rig.Object) bool {
				return o.Text("status") == "idle"
			})
			asset := s.AwaitAsset(t, live.Texts("recent_asset_ids")[0], "is finished", patience, rig.Finished)
			recorded := s.PlayURL(asset.Text("playback_ids.0.id"))
			offered(t, s, recorded, name, "320x180", 4320)
			check(t, name+" recorded", hlscheck.Options{URL: recorded, Decoder: rig.FFmpeg(t)}, "codecs", "tfdt",
				"decodes")
		})
	}
}

// TestLiveHDRIn4K: so is one of 3840x2160, whose renditions small screens get: so few pictures a second, again and
// again, that a small machine makes them while they are live.
func TestLiveHDRIn4K(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	clip := rig.Clip{File: programtest.SharedMedia(t, "hdr4k.ts", append([]string{
		"-f", "lavfi", "-i", "testsrc2=size=3840x2160:rate=4", "-f", "lavfi", "-i", "sine", "-t", "6", "-c:a", "aac",
		"-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:bframes=0:pools=1:frame-threads=1",
		"-g", "4", "-b:v", "4M",
	}, highRange("smpte2084")...)...)}
	l := s.CreateLive(t, "low", rig.Object{
		"reconnect_window":   0,
		"new_asset_settings": rig.Object{"playback_policies": []string{"public"}, "max_resolution_tier": "2160p"},
	})
	e := rig.PublishTo(t, s.SRTURL(l, ffmpegUnhurried), clip)
	url := s.PlayURL(l.Text("playback_ids.0.id"))
	s.AwaitPlayable(t, url, patience)
	offered(t, s, url, "PQ", "3840x2160", 270)
	check(t, "4K, for small screens", hlscheck.Options{
		URL: url + "?max_resolution=270p", Decoder: rig.FFmpeg(t), MaxSegments: 1,
	}, "codecs", "tfdt", "decodes")
	e.Stop()
	s.Complete(t, l.Text("id"))
}

// highRange is how ffmpeg encodes high dynamic range.
func highRange(transfer string) []string {
	return []string{
		"-pix_fmt", "yuv420p10le", "-color_primaries", "bt2020", "-colorspace", "bt2020nc", "-color_trc", transfer,
	}
}

// variants are the lines of a multivariant playlist for each stream, and their URIs.
var variants = regexp.MustCompile(`#EXT-X-STREAM-INF:(.*)\n(.*)`)

// offered checks what a multivariant playlist says of HEVC and H.264, and what H.264 of so many lines at most says of
// itself.
func offered(t *testing.T, s *rig.Server, url, want, size string, lines int) {
	t.Helper()
	_, _, master := s.Get(t, url)
	sources, rungs, probed := 0, 0, 0
	for _, v := range variants.FindAllStringSubmatch(string(master), -1) {
		high := strings.Contains(v[1], ",VIDEO-RANGE="+want)
		switch {
		case strings.Contains(v[1], "hvc1.2."):
			sources++
			if !high || !strings.Contains(v[1], "RESOLUTION="+size) {
				t.Errorf("no VIDEO-RANGE=%s of %s in %s", want, size, v[1])
			}
		case strings.Contains(v[1], "avc1."):
			if rungs++; high {
				t.Errorf("H.264 of high dynamic range: %s", v[1])
			}
			if height(v[1]) > lines {
				continue
			}
			probed++
			playlist, err := resolve(url, v[2])
			if err != nil {
				t.Fatal(err)
			}
			if got := transfer(t, playlist); got != "bt709" {
				t.Errorf("a rendition's transfer characteristics are %q: %s", got, v[1])
			}
		}
	}
	if sources != 1 || rungs == 0 || probed == 0 {
		t.Errorf("%d of HEVC and %d of H.264, of which %d were looked at, in\n%s", sources, rungs, probed, master)
	}
}

// height is that of a variant's picture, by its line.
func height(variant string) int {
	var width, lines int
	_, size, _ := strings.Cut(variant, "RESOLUTION=")
	_, _ = fmt.Sscanf(size, "%dx%d", &width, &lines)
	return lines
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
