package presentation_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/playback/playbacktest"
)

// TestInstantClip lists a stretch of a recording by its seconds and by the time of day: all of it is there, nothing of
// its renditions is apart, and the sequence numbers are those of the whole.
func TestInstantClip(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(60))
		began := time.Now()
		e := n.publish(s.StreamKey).send(10 * time.Second)
		a := w.row(s.ID).ActiveAsset
		v := n.viewer()
		live := string(s.PlaybackIDs[0].ID)
		since := fmt.Sprintf("?program_start_time=%d", began.Add(6*time.Second).Unix())
		list := instant(t, v, live, since)
		if strings.Contains(list, "#EXT-X-MEDIA-SEQUENCE:0\n") || strings.Contains(list, "ENDLIST") ||
			!strings.Contains(list, "#EXT-X-MAP") {
			t.Errorf("from a time on, live:\n%s", list)
		}
		until := fmt.Sprintf("?program_end_time=%d&program_start_time=%d", began.Add(7*time.Second).Unix(),
			began.Add(4*time.Second).Unix())
		if list = instant(t, v, live, until); !strings.HasSuffix(list, "#EXT-X-ENDLIST\n") {
			t.Errorf("up to a time, live:\n%s", list)
		}
		v.Expect("a time to come", http.StatusPreconditionFailed,
			"/"+live+fmt.Sprintf(".m3u8?program_start_time=%d", began.Add(time.Hour).Unix()))
		v.Expect("a time of the list to come", http.StatusPreconditionFailed,
			strings.Split(v.Playlists(s.PlaybackIDs[0].ID)[0], "?")[0]+
				fmt.Sprintf("?program_start_time=%d", began.Add(time.Hour).Unix()))
		e.stop()
		w.wait(10 * time.Second)
		e = n.publish(s.StreamKey).send(10 * time.Second)
		e.stop()
		w.wait(61 * time.Second)
		w.finish(a)
		w.wait(time.Second)
		id := string(w.playbackID(a))
		whole := playbacktest.URIs("", v.Expect("whole", http.StatusOK, v.Playlists(w.playbackID(a))[0]))
		clip := func(query string) []string {
			t.Helper()
			var texts []string
			for line := range strings.Lines(v.Expect(query, http.StatusOK, "/"+id+".m3u8?"+query)) {
				if at, ok := strings.CutSuffix(strings.TrimSpace(line), "?"+query); ok {
					texts = append(texts, v.Expect(query, http.StatusOK, "/"+at+"?"+query))
				} else if _, uri, ok := strings.Cut(line, `URI="`); ok {
					texts = append(texts,
						v.Expect(query, http.StatusOK, "/"+strings.TrimSuffix(strings.TrimSpace(uri), `"`)))
				}
			}
			return texts
		}
		for _, query := range []string{
			"asset_end_time=14.1&asset_start_time=4.5",
			fmt.Sprintf("program_end_time=%d&program_start_time=%d", began.Add(24*time.Second).Unix(),
				began.Add(5*time.Second).Unix()),
		} {
			texts := clip(query)
			if len(texts) != 2 {
				t.Fatalf("%s: %d playlists", query, len(texts))
			}
			for _, text := range texts {
				list := playbacktest.URIs("", text)
				if len(list) < 3 || len(list) >= len(whole) || !strings.Contains(list[0], "init-") ||
					strings.Contains(text, whole[1]+"\n") {
					t.Errorf("%s:\n%s", query, text)
				}
				if !strings.Contains(text, "#EXT-X-MEDIA-SEQUENCE:1\n") ||
					!strings.Contains(text, "#EXT-X-DISCONTINUITY-SEQUENCE:0\n") ||
					strings.Count(text, "#EXT-X-DISCONTINUITY\n") == 0 {
					t.Errorf("%s:\n%s", query, text)
				}
			}
		}
		late := clip("asset_start_time=11.5")[0]
		if strings.Contains(late, "#EXT-X-DISCONTINUITY\n") ||
			!strings.Contains(late, "#EXT-X-DISCONTINUITY-SEQUENCE:1\n") ||
			!strings.HasSuffix(late, "#EXT-X-ENDLIST\n") {
			t.Errorf("behind the discontinuity:\n%s", late)
		}
		media, _, _ := strings.Cut(strings.TrimPrefix(v.Playlists(w.playbackID(a))[0], "/"), "?")
		v.Expect("nothing there", http.StatusNotFound, "/"+id+".m3u8?asset_start_time=1000")
		v.Expect("nothing there to list", http.StatusNotFound, "/"+media+"?asset_start_time=1000")
	})
}

// instant is the video's playlist of a presentation with a query.
func instant(t *testing.T, v playbacktest.Viewer, id, query string) string {
	t.Helper()
	for line := range strings.Lines(v.Expect(query, http.StatusOK, "/"+id+".m3u8"+query)) {
		if line[0] != '#' {
			return v.Expect(query, http.StatusOK, "/"+strings.TrimSpace(line))
		}
	}
	t.Fatal("there is no variant")
	return ""
}
