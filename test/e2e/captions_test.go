package e2e

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/programtest"
	"millrace/test/browser"
	"millrace/test/rig"
)

// markup is what a page must not take for its own.
const markup = "<img src=x onerror=hacked()>"

// captionedClip is a film of so many seconds whose pictures carry a caption each two seconds, for a second, on CC1:
// their number, and at second 5 markup. The captions are put into a video without B-frames, which ffmpeg encodes again
// with B-frames: it takes them over, in its own way.
func captionedClip(t *testing.T, seconds int) string {
	t.Helper()
	return captionedClipOf(t, "320x180", seconds)
}

// captionedClipOf is captionedClip with a picture of another size.
func captionedClipOf(t *testing.T, size string, seconds int) string {
	t.Helper()
	const rate = 30
	length := fmt.Sprint(seconds)
	plain := programtest.SharedMedia(t, "plain.h264", "-f", "lavfi", "-i", "testsrc2=size="+size+":rate=30",
		"-t", length, "-c:v", "libx264", "-preset", "ultrafast",
		"-bf", "0", "-g", "30", "-x264-params", "slices=1:threads=1", "-pix_fmt", "yuv420p", "-f", "h264")
	stream, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	e := &cea608test.Encoder{}
	for at := 1.0; at < float64(seconds)-2; at += 2 {
		text := fmt.Sprintf("Caption of second %.0f", at)
		if at == 5 {
			text = markup
		}
		e.PopOn(1, at-1, at, at+1, 14, text) // erased before the next one is loaded: they go one behind another
	}
	with := filepath.Join(t.TempDir(), "captioned.h264")
	if err := os.WriteFile(with, e.Into(stream, false, rate), 0o600); err != nil {
		t.Fatal(err)
	}
	return programtest.Media(t, "captioned.ts", "-f", "h264", "-r", "30", "-i", with, "-f", "lavfi", "-i",
		"sine=frequency=500", "-t", length, "-c:v", "libx264",
		"-preset", "ultrafast", "-a53cc", "1", "-bf", "2", "-g", "30", "-sc_threshold", "0", "-pix_fmt", "yuv420p",
		"-c:a", "aac", "-shortest", "-f", "mpegts")
}

// TestCaptions: captions in the picture are shown in Chromium while the stream is live, to one who joins late, rewound,
// and in the recording, at their seconds; what they say is never markup of the page.
func TestCaptions(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		b := browser.Start(t)
		stream := s.CreateLive(t, "low", rig.Object{
			"embedded_subtitles": []rig.Object{{"name": "Captions", "language_code": "en", "language_channel": "cc1"}},
		})
		encoder := s.Publish(t, stream.Text("stream_key"), rig.Clip{File: captionedClip(t, 120), Seconds: 120})
		live := captionedPage(t, b, s.WatchURL(stream.Text("playback_ids.0.id")), "Captions", "Caption of second")
		asset := s.Live(t, stream.Text("id")).Text("active_asset_id")
		watch := s.WatchURL(s.AwaitAsset(t, asset, "playable", patience, rig.Ready).Text("playback_ids.0.id"))
		late := captionedPage(t, b, watch, "Captions", "Caption of second")
		late.Until(t, "plays past the markup", patience, func(p browser.Probe) bool { return p.Time > 8 })
		seekToCue(t, late, 5, markup)
		var hacked bool
		late.Eval(t, "window.hacks > 0 || document.querySelector('img[src=x]') !== null", &hacked)
		if hacked {
			t.Error("a caption has become markup of the page")
		}
		encoder.Stop()
		s.Complete(t, stream.Text("id"))
		live.Until(t, "the end", patience, func(p browser.Probe) bool {
			return p.State == "ended" || p.State == "waiting"
		})
		done := s.AwaitAsset(t, asset, "finished", patience, rig.Finished)
		texts := textTracks(done)
		if len(texts) != 1 || texts[0].Text("text_source") != "embedded" || texts[0].Text("status") != "ready" ||
			texts[0]["closed_captions"] != true {
			t.Fatalf("text tracks: %v", texts)
		}
		recording := captionedPage(t, b, watch, "Captions", "Caption of second")
		seekToCue(t, recording, 3, "Caption of second 3")
		_, _, file := s.Get(t, s.HTTP+"/"+done.Text("playback_ids.0.id")+"/text/"+texts[0].Text("id")+".vtt")
		if !strings.Contains(string(file), "Caption of second 3") || strings.Contains(string(file), "<img") {
			t.Errorf("the track:\n%s", file)
		}
	})
}

// TestCaptionsOfUpload: captions in the pictures of an uploaded file are a text track of its asset, also where the
// service is killed when the asset has just become ready.
func TestCaptionsOfUpload(t *testing.T) {
	rig.Parallel(t)
	data, err := os.ReadFile(captionedClip(t, 20))
	if err != nil {
		t.Fatal(err)
	}
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		u := createUpload(t, s, rig.Object{
			"embedded_subtitles": []rig.Object{{"name": "Captions", "language_code": "en"}},
		})
		if resp, err := u.put(s, "", bytes.NewReader(data), int64(len(data))); err != nil || resp.StatusCode/100 != 2 {
			t.Fatalf("upload: %v, %v", resp, err)
		}
		_, o := s.Do(t, "GET", "/video/v1/uploads/"+u.id, nil)
		asset := o.Text("data.asset_id")
		s.AwaitAsset(t, asset, "ready", patience, rig.Ready)
		s.Kill(t)
		s.Run(t)
		var text rig.Object
		done := s.AwaitAsset(t, asset, "with captions", patience, func(o rig.Object) bool {
			texts := slices.DeleteFunc(o.List("tracks"), func(o rig.Object) bool { return o.Text("type") != "text" })
			if len(texts) != 1 || texts[0].Text("text_source") != "embedded" || texts[0]["closed_captions"] != true ||
				texts[0].Text("status") == "errored" {
				t.Fatalf("text tracks: %v", texts)
			}
			text = texts[0]
			return text.Text("status") == "ready"
		})
		base := s.HTTP + "/" + done.Text("playback_ids.0.id")
		_, _, file := s.Get(t, base+"/text/"+text.Text("id")+".vtt")
		if !strings.Contains(string(file), "00:00:03.") || !strings.Contains(string(file), "Caption of second 3") ||
			strings.Contains(string(file), "<img") {
			t.Errorf("the track:\n%s", file)
		}
		_, _, list := s.Get(t, base+".m3u8")
		if !strings.Contains(string(list), `TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="Captions",LANGUAGE="en"`) ||
			!strings.Contains(string(list), "CLOSED-CAPTIONS=NONE") {
			t.Errorf("the playlist:\n%s", list)
		}
	})
}

// TestCaptionsOverSRT: captions that come in a transport stream are in the live rendition and in the recording's track,
// at their seconds.
func TestCaptionsOverSRT(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	stream := s.CreateLive(t, "low", rig.Object{
		"reconnect_window":   0,
		"embedded_subtitles": []rig.Object{{"name": "Captions", "language_code": "en", "language_channel": "cc1"}},
	})
	encoder := rig.PublishTo(t, s.SRTURL(stream, ffmpegUnhurried), rig.Clip{File: captionedClip(t, 120), Seconds: 120})
	asset := playing(t, s, stream)
	const said = "Caption of second 3"
	has := func(cues []captions.Cue) bool {
		return slices.ContainsFunc(cues, func(c captions.Cue) bool { return c.Text == said })
	}
	var live []captions.Cue
	until(t, "a caption in the live rendition", func() bool {
		live = renditionCues(t, s, asset)
		return has(live)
	})
	encoder.Stop()
	asset = s.AwaitAsset(t, asset.Text("id"), "finished", patience, rig.Finished)
	tracks := textTracks(asset)
	if len(tracks) != 1 || tracks[0].Text("text_source") != "embedded" || tracks[0].Text("status") != "ready" {
		t.Fatalf("text tracks: %v", tracks)
	}
	for name, cues := range map[string][]captions.Cue{
		"live": live, "recorded": renditionCues(t, s, asset), "file": trackCues(t, s, asset, tracks[0]),
	} {
		for _, c := range cues {
			if c.Text == said && (c.Start < 2500*time.Millisecond || c.End > 5*time.Second) {
				t.Errorf("%s: %q from %s to %s", name, c.Text, c.Start, c.End)
			}
		}
		if !has(cues) {
			t.Errorf("%s: no %q in %v", name, said, cues)
		}
	}
}

// textTracks are an asset's.
func textTracks(asset rig.Object) []rig.Object {
	return slices.DeleteFunc(asset.List("tracks"), func(o rig.Object) bool { return o.Text("type") != "text" })
}

// until waits for what will be.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); rig.Pause(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// renditionCues are the cues in the segments of an asset's only text rendition. Those that span segments are there more
// than once.
func renditionCues(t *testing.T, s *rig.Server, asset rig.Object) (out []captions.Cue) {
	t.Helper()
	master := s.PlayURL(asset.Text("playback_ids.0.id"))
	found := subtitlesOf(t, master)
	if len(found) != 1 {
		t.Fatalf("text renditions: %v", found)
	}
	list := mediaPlaylist{url: found[0]}
	list.read(t)
	for _, e := range list.entries {
		if d, err := captions.Parse(get(t, e.url)); err == nil { // else it has no cue
			out = append(out, d.Cues()...)
		}
	}
	return out
}

// subtitlesOf are the addresses of the text renditions that a multivariant playlist names.
func subtitlesOf(t *testing.T, master string) (out []string) {
	t.Helper()
	for line := range strings.Lines(string(get(t, master))) {
		if m := uriAttribute.FindStringSubmatch(line); m != nil &&
			strings.HasPrefix(line, "#EXT-X-MEDIA:TYPE=SUBTITLES") {
			out = append(out, join(t, master, m[1]))
		}
	}
	return out
}

// trackCues are the cues of a text track's file. There may be none yet.
func trackCues(t *testing.T, s *rig.Server, asset, track rig.Object) []captions.Cue {
	t.Helper()
	d, err := captions.Parse(get(t, s.HTTP+"/"+asset.Text("playback_ids.0.id")+"/text/"+track.Text("id")+".vtt"))
	if err != nil {
		return nil
	}
	return d.Cues()
}

// captionedPage opens a page, asks for the text track of a name, its only one, and waits for a cue with one of the
// texts.
func captionedPage(t *testing.T, b *browser.Browser, url, name string, texts ...string) *browser.Page {
	t.Helper()
	page := b.Open(t, url)
	page.Eval(t, "window.hacks = 0; window.hacked = () => { window.hacks++ }", nil)
	page.FirstPicture(t, patience)
	page.Until(t, "offers captions", patience, func(p browser.Probe) bool {
		return slices.Equal(p.SubtitleTracks, []string{name})
	})
	page.Select(t, "#subtitles", name)
	page.Until(t, "a caption", patience, func(p browser.Probe) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return captionShown(p, text) })
	})
	return page
}

// seekToCue seeks a page, which it pauses, to the cue with a text that should begin at a second, and waits until that
// is shown. The cue may be a quarter of a second beside its place, not more. What is not there yet is waited for: a
// browser takes a seek behind the end of the stream for one to the end.
func seekToCue(t *testing.T, page *browser.Page, second float64, text string) {
	t.Helper()
	const apart = 0.25 // seconds
	page.Until(t, fmt.Sprintf("has second %.1f", second+2*apart), patience, func(p browser.Probe) bool {
		return len(p.Seekable) > 0 && p.Seekable[len(p.Seekable)-1][1] > second+2*apart
	})
	page.Eval(t, "document.querySelector('video').pause()", nil)
	page.Seek(t, second+apart)
	var start float64
	page.Until(t, fmt.Sprintf("has %q at second %.2f", text, second), patience, func(p browser.Probe) bool {
		for _, c := range cuesShowing(p) {
			if captionIs(c.Text, text) && math.Abs(c.Start-second) <= apart {
				start = c.Start
				return true
			}
		}
		return false
	})
	page.Seek(t, start+apart)
	page.Until(t, fmt.Sprintf("shows %q at second %.2f", text, start+apart), patience, func(p browser.Probe) bool {
		return captionShown(p, text) && math.Abs(p.Time-start-apart) < 0.01
	})
}

// cuesShowing are those of the text track that is shown, also where they are not shown now.
func cuesShowing(p browser.Probe) (out []browser.Cue) {
	for _, track := range p.TextTracks {
		if track.Mode == "showing" {
			out = append(out, track.Cues...)
		}
	}
	return out
}

// captionShown reports whether a caption is on the screen.
func captionShown(p browser.Probe, text string) bool {
	return slices.ContainsFunc(p.TextTracks, func(track browser.TextTrack) bool {
		return track.Mode == "showing" && slices.ContainsFunc(track.Active, func(active string) bool {
			return captionIs(active, text)
		})
	})
}

// captionIs reports whether a cue, as the page has it, says a text.
func captionIs(cue, text string) bool {
	return strings.Contains(strings.NewReplacer("&lt;", "<", "&gt;", ">").Replace(cue), text)
}
