package e2e

import (
	"bytes"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/programtest"
	"millrace/test/browser"
	"millrace/test/rig"
)

// spoken is said over and over, in sentences with a pause behind each.
const spoken = "good morning everyone and welcome to the weekly news program. today we will talk about the weather " +
	"in the north of the country. " +
	"the minister of education visited a new school on monday. in the evening the orchestra will play music from the " +
	"last century."

// TestGeneratedSubtitles: what is said is shown in Chromium while the stream is live. The process that recognises it is
// killed, then the whole service: no cue that was published is lost, others follow, and one who joins late sees both,
// rewound. When the stream has ended the final track takes the live one's place in the playlist, and both remain as
// files.
func TestGeneratedSubtitles(t *testing.T) {
	rig.Paced(t, rig.Long)
	programtest.Speech(t)
	video := programtest.SharedMedia(t, "spoken.flv",
		append(append([]string{
			"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30",
		}, programtest.SpeechArgs("slt", spoken)...),
			"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "30", "-c:a", "aac", "-ar", "48000",
			"-shortest", "-f", "flv")...)
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	stream := s.CreateLive(t, "low", rig.Object{
		"reconnect_window": 300, "generated_subtitles": []rig.Object{{"name": "English", "language_code": "en"}},
	})
	var rtmp atomic.Value
	rtmp.Store(s.RTMP)
	stop := rig.KeepPublishing(t, func() string {
		return rtmp.Load().(string) + "/app/" + stream.Text("stream_key")
	}, rig.Clip{File: video})
	asset := playing(t, s, stream)
	words := []string{
		"morning", "weekly", "program", "weather", "country", "education", "school", "evening", "orchestra", "music",
	}
	live := captionedPage(t, b, s.WatchURL(stream.Text("playback_ids.0.id")), "English", words...)
	live.Close(t)
	said, _ := generatedTracks(t, asset, "preparing")
	more := func(what string, than []captions.Cue) (cues []captions.Cue) {
		until(t, what, func() bool {
			cues = trackCues(t, s, asset, said)
			return len(cues) >= len(than)+2
		})
		keepsCues(t, what, cues, than)
		return cues
	}

	first := more("at first", nil)
	pid := recogniser(t, s)
	if pid == 0 {
		t.Fatal("nothing recognises speech")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "another recogniser", func() bool { now := recogniser(t, s); return now != 0 && now != pid })
	second := more("behind the kill of the recogniser", trackCues(t, s, asset, said))

	s.Kill(t)
	s.Run(t)
	rtmp.Store(s.RTMP)
	third := more("behind the kill of the service", second)
	watch := s.WatchURL(asset.Text("playback_ids.0.id"))
	late := captionedPage(t, b, watch, "English", words...)
	showsCue(t, late, first[0])
	showsCue(t, late, third[len(second)])
	late.Close(t)

	stop()
	s.Complete(t, stream.Text("id"))
	done := s.AwaitAsset(t, asset.Text("id"), "finished with its final track", patience, func(o rig.Object) bool {
		return rig.Finished(o) &&
			!slices.ContainsFunc(textTracks(o), func(x rig.Object) bool { return x.Text("status") == "preparing" })
	})
	still, better := generatedTracks(t, done, "ready")
	if still.Text("id") != said.Text("id") {
		t.Errorf("the live track %s became %s", said.Text("id"), still.Text("id"))
	}
	keepsCues(t, "as a file", trackCues(t, s, done, still), third)
	final := trackCues(t, s, done, better)
	if listed := subtitlesOf(t, s.PlayURL(done.Text("playback_ids.0.id"))); len(listed) != 1 ||
		!strings.Contains(listed[0], better.Text("id")) {
		t.Errorf("the playlist lists %v, the final track is %s", listed, better.Text("id"))
	}
	recording := captionedPage(t, b, watch, "English", words...)
	behind := slices.IndexFunc(final, func(c captions.Cue) bool {
		return c.Start > third[len(second)].Start-time.Second
	})
	if behind < 0 {
		t.Fatalf("the final track has nothing behind the kill of the service: %v", final)
	}
	showsCue(t, recording, final[behind])
}

// TestGeneratedSubtitlesOfAnUpload: a file that is uploaded has its speech recognised, after it can be played: its cues
// are at the times of the words, are shown in Chromium, and make a transcript. A second track is made of its sound on
// request.
func TestGeneratedSubtitlesOfAnUpload(t *testing.T) {
	rig.Parallel(t)
	programtest.Speech(t)
	args := append([]string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30"},
		programtest.SpeechArgs("slt", spoken)...)
	path := programtest.SharedMedia(t, "spoken.mp4", append(args,
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "60",
		"-c:a", "aac", "-ar", "48000", "-shortest")...)
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	s := rig.Start(t, rig.Options{})
	u := createUpload(t, s, rig.Object{"generated_subtitles": []rig.Object{{"name": "English", "language_code": "en"}}})
	resp, err := u.put(s, "", bytes.NewReader(data), int64(len(data)))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("upload: %v %v", resp, err)
	}
	_, o := s.Do(t, http.MethodGet, "/video/v1/uploads/"+u.id, nil)
	finished := func(n int) func(rig.Object) bool {
		return func(a rig.Object) bool {
			tracks := textTracks(a)
			return rig.Ready(a) && len(tracks) == n &&
				!slices.ContainsFunc(tracks, func(x rig.Object) bool { return x.Text("status") == "preparing" })
		}
	}
	a := s.AwaitAsset(t, o.Text("data.asset_id"), "with its track", patience, finished(1))
	made := textTracks(a)[0]
	if made.Text("status") != "ready" || made.Text("text_source") != "generated_vod" || made.Text("name") != "English" {
		t.Fatalf("the track: %v", made)
	}
	cues := trackCues(t, s, a, made)
	text := s.HTTP + "/" + a.Text("playback_ids.0.id") + "/text/"
	said := strings.ToLower(string(get(t, text+made.Text("id")+".txt")))
	for _, word := range []string{"weekly", "weather", "minister", "music"} {
		if !strings.Contains(said, word) {
			t.Errorf("the transcript has no %q: %s", word, said)
		}
	}
	if end := cues[len(cues)-1].End.Seconds(); math.Abs(end-a.Number("duration")) > 2 {
		t.Errorf("the last cue ends at %.1f s of %.1f", end, a.Number("duration"))
	}
	watch := s.WatchURL(a.Text("playback_ids.0.id"))
	page := captionedPage(t, browser.Start(t), watch, "English", "weekly", "program", "morning")
	showsCue(t, page, cues[len(cues)-1])
	page.Close(t)

	tracks := a.List("tracks")
	sound := tracks[slices.IndexFunc(tracks, func(x rig.Object) bool { return x.Text("type") == "audio" })]
	at := "/video/v1/assets/" + a.Text("id") + "/tracks/" + sound.Text("id") + "/generate-subtitles"
	request := rig.Object{"generated_subtitles": []rig.Object{{"name": "Again", "language_code": "en"}}}
	if code, o := s.Do(t, http.MethodPost, at, request); code != http.StatusCreated {
		t.Fatalf("generate subtitles: %d %v", code, o)
	}
	a = s.AwaitAsset(t, a.Text("id"), "with both tracks", patience, finished(2))
	for _, x := range textTracks(a) {
		if x.Text("status") != "ready" || len(trackCues(t, s, a, x)) < len(cues) {
			t.Errorf("track %v", x)
		}
	}
}

// keepsCues fails the test where the first cues are not those that were published before.
func keepsCues(t *testing.T, when string, cues, before []captions.Cue) {
	t.Helper()
	for i, c := range before {
		if i == len(cues) {
			t.Errorf("%s there are %d cues of %d; the next one was %v", when, i, len(before), c)
			return
		}
		if cues[i] != c {
			t.Errorf("%s cue %d of %d is %v and was %v", when, i, len(before), cues[i], c)
			return
		}
	}
}

// generatedTracks are a recording's text tracks, of which the final one is in a state.
func generatedTracks(t *testing.T, asset rig.Object, state string) (live, final rig.Object) {
	t.Helper()
	tracks := textTracks(asset)
	for _, x := range tracks {
		switch x.Text("text_source") + " " + x.Text("status") {
		case "generated_live ready":
			live = x
		case "generated_live_final " + state:
			final = x
		}
	}
	if len(tracks) != 2 || live == nil || final == nil {
		t.Fatalf("text tracks: %v", tracks)
	}
	return live, final
}

// recogniser is the process that recognises speech; 0: there is none.
func recogniser(t *testing.T, s *rig.Server) int {
	t.Helper()
	for pid, line := range s.Children(t) {
		if strings.Contains(line, "millrace-speech") {
			return pid
		}
	}
	return 0
}

// showsCue has a page seek to a cue, and waits until that is shown, at its time.
func showsCue(t *testing.T, page *browser.Page, c captions.Cue) {
	t.Helper()
	seekToCue(t, page, c.Start.Seconds(), c.Text)
}
