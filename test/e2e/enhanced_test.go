package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestEnhancedRTMP publishes what only Enhanced RTMP carries, over RTMP and RTMPS, and plays it live and recorded.
func TestEnhancedRTMP(t *testing.T) {
	rig.Parallel(t)
	certFile, keyFile := ownCertificate(t, t.TempDir(), 1)
	s := rig.Start(t, rig.Options{Args: []string{"--tls-cert", certFile, "--tls-key", keyFile}})
	t.Cleanup(func() { noSecrets(t, s) })
	const length = 20 // longer than it is looked at while it is live, also by a slow machine
	for name, tt := range map[string]struct {
		server, encoder, codecs, probed string
	}{
		"HEVC and Opus over RTMPS": {s.RTMPS, "libx265", "hvc1.", "hevc"},
		"AV1 and Opus":             {s.RTMP, "libaom-av1", "av01.", "av1"},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			stream := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
			done := rig.PublishEnhanced(t, tt.server, stream.Text("stream_key"), tt.encoder, length)
			url := s.PlayURL(stream.Text("playback_ids.0.id"))
			s.AwaitPlayable(t, url, patience)
			_, _, master := s.Get(t, url)
			if text := string(master); !strings.Contains(text, tt.codecs) || !strings.Contains(text, "opus") {
				t.Errorf("no %s and opus in\n%s", tt.codecs, text)
			}
			check(t, name, hlscheck.Options{
				URL: url, Follow: 5 * time.Second, Decoder: rig.FFmpeg(t),
			}, "codecs", "tfdt", "decodes")
			if err := <-done; err != nil {
				t.Fatalf("the encoder: %v", err)
			}
			live := s.AwaitLive(t, stream.Text("id"), "is idle", patience, func(o rig.Object) bool {
				return o.Text("status") == "idle"
			})
			asset := s.AwaitAsset(t, live.Texts("recent_asset_ids")[0], "is finished", patience, rig.Finished)
			recorded := s.PlayURL(asset.Text("playback_ids.0.id"))
			sums := read(t, recorded, false)
			// ffprobe has no durations for AV1 and Opus, so the distance to the next packet counts as a gap.
			if v, a := sums["video"], sums["audio"]; v.count != length*30 || v.gap > 0.034 || a.count < length*50-10 ||
				a.gap > 0.021 {
				t.Errorf("ffprobe reads %+v", sums)
			}
			out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(rig.FFmpeg(t)), "ffprobe"), "-v",
				"error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", recorded).CombinedOutput()
			if text := string(out); err != nil || !strings.Contains(text, tt.probed) ||
				!strings.Contains(text, "opus") {
				t.Errorf("ffprobe names %q: %v", text, err)
			}
		})
	}
}

// TestWhatIsNotTaken shows the reason to the encoder, in the log and at the asset.
func TestWhatIsNotTaken(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	stream := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
	e := s.Publish(t, stream.Text("stream_key"), rig.Clip{Video: "flv1", NoAudio: true, Seconds: 30})
	if said, err := e.Wait(t, patience); err == nil {
		t.Errorf("the encoder went on, and says %q", said)
	}
	const reason = "video codec Sorenson H.263 is not supported, send H.264, HEVC, AV1 or VP9"
	live := s.AwaitLive(t, stream.Text("id"), "is idle", patience, func(o rig.Object) bool {
		return o.Text("status") == "idle" && len(o.Texts("recent_asset_ids")) > 0
	})
	asset := s.AwaitAsset(t, live.Texts("recent_asset_ids")[0], "over", patience, func(o rig.Object) bool {
		return o.Text("status") != "preparing"
	})
	if asset.Text("status") != "errored" || asset.Text("errors.messages.0") != reason {
		t.Errorf("the asset is %v", asset)
	}
	s.AwaitLog(t, patience, reason)
}
