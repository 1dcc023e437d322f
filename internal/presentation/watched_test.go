package presentation_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback/playbacktest"
)

// TestDelivered watches a broadcast and its recording: what was sent is counted once, by the size of the picture, of
// the same asset.
func TestDelivered(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Standard, live.Low} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"), w.stream(window(0), func(in *live.CreateInput) { in.LatencyMode = mode })
				v := n.viewer()
				e := n.publish(s.StreamKey)
				e.hd = true
				e.send(20 * time.Second)
				a := w.row(s.ID).ActiveAsset
				expect := func(what string, want time.Duration) {
					t.Helper()
					got := n.meter.Take()
					of := metering.Asset{ID: string(a), Environment: string(env), LiveStream: string(s.ID)}
					if sum := got[of]; len(got) > 1 || sum != (metering.Lengths{metering.Tier720: want}) {
						t.Errorf("%s: %v, want %s", what, got, want)
					}
				}
				all := func(list string) (long time.Duration, addresses []string) {
					text := v.Expect("playlist", http.StatusOK, list)
					var length time.Duration
					gap := false
					for line := range strings.Lines(text) {
						tag, value, _ := strings.Cut(strings.TrimSpace(line), ":")
						switch {
						case tag == "#EXTINF":
							d, err := time.ParseDuration(strings.TrimSuffix(value, ",") + "s")
							w.must(err)
							length = d
						case tag == "#EXT-X-GAP":
							gap = true
						case !strings.HasPrefix(tag, "#"):
							if !gap {
								long += length
							}
							length, gap = 0, false
						}
					}
					return long, playbacktest.URIs(list, text)
				}
				video, audio := "/v.m3u8", "/a.m3u8"
				prefix := func(list string) string { return list[:strings.LastIndex(list, "/")] }
				stream, whole := prefix(v.Playlists(s.PlaybackIDs[0].ID)[0]), prefix(v.Playlists(w.playbackID(a))[0])
				expect("playlists", 0)

				for _, list := range []string{stream, whole} {
					long, addresses := all(list + video)
					for _, u := range addresses {
						v.Expect("segment", http.StatusOK, u)
					}
					expect("segments", long)
				}
				_, addresses := all(whole + audio)
				for _, u := range addresses {
					v.Expect("sound", http.StatusOK, u)
				}
				expect("sound beside the picture", 0)
				v.Expect("unknown segment", http.StatusNotFound, whole+"/v/9999.m4s")
				expect("what is not there", 0)

				if mode == live.Low {
					text := v.Expect("playlist", http.StatusOK, stream+video)
					_, part, ok := strings.Cut(text, "#EXT-X-PART:DURATION=")
					length, rest, _ := strings.Cut(part, ",")
					_, uri, _ := strings.Cut(rest, `URI="`)
					uri, _, _ = strings.Cut(uri, `"`)
					if !ok {
						t.Fatalf("no part in\n%s", text)
					}
					d, err := time.ParseDuration(length + "s")
					w.must(err)
					v.Expect("part", http.StatusOK, stream+"/"+uri)
					expect("a part", d)
				}
				e.stop()
				w.wait(0)
				w.finish(a)
				w.wait(2 * time.Minute)
				long, addresses := all(whole + video)
				for _, u := range addresses {
					v.Expect("stored segment", http.StatusOK, u)
				}
				expect("the recording", long)

				first := addresses[1]
				size := len(v.Expect("the first segment", http.StatusOK, first))
				length := n.meter.Take()
				for method, wanted := range map[string]int{http.MethodHead: 0, http.MethodGet: size / 2} {
					r := httptest.NewRequestWithContext(t.Context(), method, first, nil)
					if wanted > 0 {
						r.Header.Set("Range", "bytes=0-"+strconv.Itoa(wanted-1))
					}
					rec := httptest.NewRecorder()
					v.Handler.ServeHTTP(rec, r)
					if rec.Code/100 != 2 || rec.Body.Len() != wanted {
						t.Errorf("%s: %d, %d bytes", method, rec.Code, rec.Body.Len())
					}
				}
				for _, sum := range length {
					expect("half a segment",
						time.Duration(float64(sum[metering.Tier720])*float64(size/2)/float64(size)))
				}
			})
		})
	}
}

// TestDeliveredSound: of a broadcast without a picture, sound is what is watched.
func TestDeliveredSound(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0), func(in *live.CreateInput) { in.AudioOnly = true })
		v, e := n.viewer(), n.publish(s.StreamKey)
		e.noVideo = true
		e.send(20 * time.Second)
		list := v.Playlists(s.PlaybackIDs[0].ID)[0]
		for _, u := range playbacktest.URIs(list, v.Expect("playlist", http.StatusOK, list)) {
			v.Expect("segment", http.StatusOK, u)
		}
		for of, sum := range n.meter.Take() {
			if only := (metering.Lengths{metering.AudioOnly: sum[metering.AudioOnly]}); sum != only ||
				sum[metering.AudioOnly] < 10*time.Second {
				t.Errorf("%v: %v", of, sum)
			}
			return
		}
		t.Error("nothing is counted")
	})
}

// TestTitles: viewers of the live stream are told its title, and those of its recording the recording's.
func TestTitles(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0), func(in *live.CreateInput) {
			in.Meta.Title, in.NewAsset.Meta.Title, in.NewAsset.Meta.CreatorID = "Tonight", "What was", "secret"
		})
		v := n.viewer()
		e := n.publish(s.StreamKey).send(10 * time.Second)
		a := w.row(s.ID).ActiveAsset
		expect := func(what, id, want string) {
			t.Helper()
			if got := v.Expect(what, http.StatusOK, "/"+id+"/metadata.json"); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
			if list := v.Expect(what, http.StatusOK, "/"+id); !strings.Contains(list, `URI="`+id+`/metadata.json"`) {
				t.Errorf("%s: not named in\n%s", what, list)
			}
		}
		expect("live", string(s.PlaybackIDs[0].ID), `[{"start-time":0,"metadata":[{"key":"title","value":"Tonight"}]}]`)
		expect("its recording", string(w.playbackID(a)),
			`[{"start-time":0,"metadata":[{"key":"title","value":"What was"}]}]`)
		e.stop()
		w.wait(0)
		w.finish(a)
		w.wait(2 * time.Minute)
		expect("recorded", string(w.playbackID(a)),
			`[{"start-time":0,"duration":10,"metadata":[{"key":"title","value":"What was"}]}]`)
	})
}
