package broadcast_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/playback/playbacktest"
	edge "millrace/internal/media/window"
)

// captioned is a stream with two text tracks of captions.
func captioned(in *live.CreateInput) {
	in.EmbeddedSubtitles = []assetopt.EmbeddedSubtitle{
		{Name: "English CC", LanguageCode: "en", LanguageChannel: "cc1"},
		{LanguageCode: "fr", LanguageChannel: "cc3", Passthrough: "mine"},
	}
}

// textTracks are an asset's text tracks.
func textTracks(a asset.Asset) (out []asset.Track) {
	for _, t := range a.Tracks {
		if t.Type == asset.TextTrack {
			out = append(out, t)
		}
	}
	return out
}

func (n *node) texts(w *world, s live.Stream) *edge.Texts {
	b, err := n.Watched(w.t.Context(), s.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return b.(edgeview.Broadcast).Edge.Texts()
}

// TestTextTracks: a broadcast's text tracks are offered from its first segment on, named as their rows say at the
// moment, and go on as tracks of the recording, with the same segments, over a crash.
func TestTextTracks(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		w.journals(t)
		n, s := w.start("a"), w.stream(window(60), captioned)
		e := n.publish(s.StreamKey).send(5 * time.Second)
		a := w.row(s.ID).ActiveAsset
		tracks := textTracks(w.asset(a))
		if len(tracks) != 2 || tracks[0].Status != asset.TrackReady || tracks[0].TextSource != "embedded" ||
			!tracks[0].ClosedCaptions ||
			tracks[1].Name != "French" || tracks[1].Passthrough != "mine" {
			t.Fatalf("tracks: %+v", tracks)
		}
		say := func(n *node, from time.Duration, text string) {
			if !n.texts(w, s).Publish(tracks[0].Rendition, captions.Cue{
				Start: from, End: from + 2*time.Second, Text: text,
			}) {
				t.Errorf("%s is not taken", text)
			}
		}
		say(n, 5*time.Second, "first words")
		e.send(4 * time.Second)
		v := n.viewer()
		for _, p := range []string{string(s.PlaybackIDs[0].ID), string(w.playbackID(a))} {
			list := v.Expect("multivariant", http.StatusOK, "/"+p+".m3u8")
			for _, want := range []string{
				`TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="English CC",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,CHARACTERISTICS="public.accessibility.`,
				`NAME="French"`, `SUBTITLES="subtitles"`, "CLOSED-CAPTIONS=NONE",
			} {
				if !strings.Contains(list, want) {
					t.Errorf("no %s in\n%s", want, list)
				}
			}
		}
		given := w.textSegments(v, w.playbackID(a), tracks[0])
		if all := strings.Join(given, ""); !strings.Contains(all, "00:00:05.000 --> 00:00:07.000\nfirst words") {
			t.Errorf("segments: %q", given)
		}
		sidecar := "/" + string(w.playbackID(a)) + "/text/" + string(tracks[0].ID) + ".vtt"
		if text := v.Expect("sidecar", http.StatusOK, sidecar); !strings.Contains(text, "first words") {
			t.Errorf("sidecar: %s", text)
		}
		name := "Renamed"
		_, err := w.assets.PatchTrack(w.ctx, env, a, tracks[0].ID, asset.TrackPatch{Name: &name}, time.Now())
		w.must(err)
		w.must(w.assets.DeleteTrack(w.ctx, env, a, tracks[1].ID, time.Now()))
		n.playback.AssetChanged(a)
		list := v.Expect("multivariant", http.StatusOK, "/"+string(s.PlaybackIDs[0].ID)+".m3u8")
		if !strings.Contains(list, `NAME="Renamed"`) || strings.Contains(list, `NAME="French"`) {
			t.Errorf("after the changes:\n%s", list)
		}
		say(n, 9*time.Second, "before the crash")
		w.wait(0)
		n.kill()
		e.stop()
		w.wait(20 * time.Second)
		n = w.start("a")
		e = n.publish(s.StreamKey).send(8 * time.Second)
		say(n, 14*time.Second, "behind it")
		e.send(3 * time.Second)
		// the first is one from before
		given = append(given[:1], w.textSegments(n.viewer(), w.playbackID(a), tracks[0])[1:]...)
		e.stop()
		w.wait(62 * time.Second)
		w.finish(a)
		done := textTracks(w.asset(a))
		if len(done) != 1 || done[0].Object == "" || done[0].Duration < 7 {
			t.Fatalf("tracks at the end: %+v", done)
		}
		n = w.start("b")
		recorded := w.textSegments(n.viewer(), w.playbackID(a), tracks[0])
		if len(recorded) < len(given) || !slices.Equal(recorded[:len(given)], given) {
			t.Errorf("recorded\n%q\nlive\n%q", recorded, given)
		}
		text := n.viewer().Expect("sidecar", http.StatusOK, sidecar)
		for _, want := range []string{"first words", "before the crash", "behind it"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%q is not once in\n%s", want, text)
			}
		}
		if list := n.viewer().Expect("multivariant", http.StatusOK,
			"/"+string(w.playbackID(a))+".m3u8"); !strings.Contains(list, `NAME="Renamed"`) ||
			!strings.Contains(list, "CLOSED-CAPTIONS=NONE") {
			t.Errorf("recorded:\n%s", list)
		}
	})
}

// textSegments are the segments of a text track, as they are listed.
// addText does what the API and the worker do for a text track that is added to an asset.
func (w *world) addText(n *node, a id.Asset, name string, cues ...captions.Cue) asset.Track {
	w.t.Helper()
	t, err := w.assets.AddTrack(w.ctx, env, a, asset.TrackInput{
		URL: "https://example.com/" + name, Type: asset.TextTrack, LanguageCode: "de", Name: name,
	}, time.Now())
	w.must(err)
	t.Object = "added/" + string(t.ID) + ".vtt"
	w.must(w.objects.Put(w.ctx, t.Object, bytes.NewReader(captions.New(cues).AppendVTT(nil))))
	w.must(w.assets.TrackReady(w.ctx, a, t, time.Now()))
	n.playback.AssetChanged(a)
	return t
}

// TestAddedText: a text track that is added to the asset of a running broadcast is in its playlists when it is ready,
// in every latency mode and beside captions or none, with the segments that the recording has later. The live stream's
// viewers have none of it, and how far behind live players stay does not change.
func TestAddedText(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Standard, live.Reduced, live.Low} {
		for _, captions := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, captions %t", mode, captions), func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					how := []func(*live.CreateInput){window(60), func(in *live.CreateInput) { in.LatencyMode = mode }}
					if captions {
						how = append(how, captioned)
					}
					w.addsText(w.stream(how...))
				})
			})
		}
	}
}

func (w *world) addsText(s live.Stream) {
	t, n := w.t, w.start("a")
	e := n.publish(s.StreamKey).send(9 * time.Second)
	a := w.row(s.ID).ActiveAsset
	v, own, dvr := n.viewer(), s.PlaybackIDs[0].ID, w.playbackID(a)
	multivariant := func(p id.Playback) string {
		return v.Expect("multivariant", http.StatusOK, "/"+string(p)+".m3u8")
	}
	media := v.Playlists(dvr)[0]
	holdBack := func() string {
		return regexp.MustCompile(`PART-HOLD-BACK=[0-9.]+`).FindString(v.Expect("playlist", http.StatusOK, media))
	}
	before := holdBack()
	if (before != "") != (s.Settings.LatencyMode == live.Low) {
		t.Fatalf("PART-HOLD-BACK is %q", before)
	}
	added := w.addText(
		n, a, "Deutsch", captions.Cue{Start: 3 * time.Second, End: 5 * time.Second, Text: "drei"},
		captions.Cue{Start: 13 * time.Second, End: 14 * time.Second, Text: "dreizehn"},
	)
	dropped := w.addText(n, a, "Falsch", captions.Cue{End: time.Second, Text: "falsch"})
	list := multivariant(dvr)
	if !strings.Contains(list, `NAME="Deutsch",LANGUAGE="de"`) || !strings.Contains(list, `SUBTITLES="subtitles"`) {
		t.Fatalf("the asset's playlist while live:\n%s", list)
	}
	if list = multivariant(own); strings.Contains(list, "Deutsch") {
		t.Errorf("the live stream's playlist:\n%s", list)
	}
	if now := holdBack(); now != before {
		t.Errorf("%q was %q before", now, before)
	}
	given := w.textSegments(v, dvr, added)
	if all := strings.Join(given, ""); !strings.Contains(all, "00:00:03.000 --> 00:00:05.000\ndrei") {
		t.Errorf("segments: %q", given)
	}
	lists := v.Playlists(dvr)
	gone := slices.IndexFunc(lists, func(l string) bool { return strings.HasSuffix(l, "/"+dropped.Rendition+".m3u8") })
	w.must(w.assets.DeleteTrack(w.ctx, env, a, dropped.ID, time.Now()))
	n.playback.AssetChanged(a)
	if list = multivariant(dvr); strings.Contains(list, "Falsch") {
		t.Errorf("after it was deleted:\n%s", list)
	}
	v.Expect("playlist of a track that was deleted", http.StatusNotFound, lists[gone])
	e.send(9 * time.Second)
	given = w.textSegments(v, dvr, added)
	if all := strings.Join(given, ""); !strings.Contains(all, "dreizehn") {
		t.Errorf("segments that came later: %q", given)
	}
	e.stop()
	w.wait(62 * time.Second)
	w.finish(a)
	recorded := w.textSegments(w.start("b").viewer(), dvr, added)
	if len(recorded) < len(given) || !slices.Equal(recorded[:len(given)], given) {
		t.Errorf("recorded\n%q\nlive\n%q", recorded, given)
	}
}

func (w *world) textSegments(v playbacktest.Viewer, p id.Playback, t asset.Track) (out []string) {
	w.t.Helper()
	at := "/" + string(p) + ".m3u8"
	for _, list := range v.Playlists(p) {
		if strings.HasSuffix(list, "/"+t.Rendition+".m3u8") {
			at = list
		}
	}
	for _, uri := range playbacktest.URIs(at, v.Expect("text playlist", http.StatusOK, at)) {
		out = append(out, v.Expect("text segment", http.StatusOK, uri))
	}
	return out
}

// TestClosedCaptions: the captions in the pictures are in the text tracks of their channels when the segment that shows
// them is listed, in every latency mode; a reconnect ends them. The recording's segments are those that were listed,
// and its file has each caption once.
func TestClosedCaptions(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Standard, live.Reduced, live.Low} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"),
					w.stream(window(60), captioned, func(in *live.CreateInput) { in.LatencyMode = mode })
				e := n.publish(s.StreamKey)
				e.lag, e.says = 2, &cea608test.Encoder{}
				e.says.PopOn(1, 0, 5, 7, 15, "from cc1")
				e.says.PopOn(3, 0, 6, 0, 15, "du cc3") // and never erased
				e.send(11 * time.Second)
				a := w.row(s.ID).ActiveAsset
				v, tracks := n.viewer(), textTracks(w.asset(a))
				first, third := strings.Join(w.textSegments(v, w.playbackID(a), tracks[0]), ""),
					strings.Join(w.textSegments(v, w.playbackID(a), tracks[1]), "")
				if !strings.Contains(first, "00:00:05.") || !strings.Contains(first, "--> 00:00:07.") ||
					!strings.Contains(first, "line:84.67% position:20.00% align:start\nfrom cc1") {
					t.Errorf("cc1:\n%s", first)
				}
				if !strings.Contains(third, "du cc3") || strings.Contains(third, "cc1") ||
					strings.Contains(first, "cc3") {
					t.Errorf("cc3:\n%s", third)
				}
				e.stop()
				w.wait(10 * time.Second)
				n.publish(s.StreamKey).send(5 * time.Second).stop()
				w.wait(61 * time.Second)
				w.finish(a)
				n.playback.AssetChanged(a)
				again := strings.Join(w.textSegments(v, w.playbackID(a), tracks[0]), "")
				if !strings.HasPrefix(again, first) {
					t.Errorf("the segments were\n%s\nand are\n%s", first, again)
				}
				file := "/" + string(w.playbackID(a)) + "/text/" + string(tracks[0].ID)
				whole := v.Expect("sidecar", http.StatusOK, file+".vtt")
				from, to := strings.Index(whole, "00:00:05."), strings.Index(whole, " --> 00:00:07.")
				if strings.Count(whole, "from cc1") != 1 || from < 0 || to != from+len("00:00:05.000") {
					t.Errorf("cc1 as a file:\n%s", whole)
				}
				if said := v.Expect("transcript", http.StatusOK, file+".txt"); said != "from cc1\n" {
					t.Errorf("said in cc1: %q", said)
				}
				file = "/" + string(w.playbackID(a)) + "/text/" + string(tracks[1].ID)
				whole = v.Expect("sidecar", http.StatusOK, file+".vtt")
				if strings.Contains(whole, "--> 00:00:12") || !strings.Contains(whole, "du cc3") {
					t.Errorf("a caption goes on over a reconnect:\n%s", whole)
				}
			})
		})
	}
}

// TestTooManyCaptions: captions beyond what a text track takes are left out, which is told once, and the stream goes
// on.
func TestTooManyCaptions(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0), captioned)
		e := n.publish(s.StreamKey)
		e.says = &cea608test.Encoder{}
		e.says.PopOn(1, 0, 5, 6, 15, "too many")
		e.says.PopOn(1, 0, 8, 9, 15, "later")
		e.send(time.Second)
		a := w.row(s.ID).ActiveAsset
		track := textTracks(w.asset(a))[0]
		for n.texts(w, s).Publish(track.Rendition, captions.Cue{
			Start: 5500 * time.Millisecond, End: 6 * time.Second, Text: "many",
		}) {
		}
		e.send(15 * time.Second)
		all := strings.Join(w.textSegments(n.viewer(), w.playbackID(a), track), "")
		if strings.Contains(all, "too many") || !strings.Contains(all, "later") {
			t.Errorf("listed:\n%s", all)
		}
		e.stop()
		w.wait(time.Second)
		if told := strings.Count(strings.Join(w.events(), " ")+" ", " warning "); told != 1 {
			t.Errorf("warned %d times", told)
		} else if got := last[live.Warned](w, "warning"); got.Warning.Type != broadcast.CaptionsLeftOut {
			t.Errorf("told %+v", got.Warning)
		}
	})
}

// TestClosedCaptionsInTime: at low latency, who is 2 s behind the newest picture finds its captions in the playlist,
// wherever in a segment they begin: segments last 2 s there, as the encoder's key frames allow it.
func TestClosedCaptionsInTime(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0), captioned, func(in *live.CreateInput) { in.LatencyMode = live.Low })
		began := time.Now()
		e := n.publish(s.StreamKey)
		e.lag, e.says = 2, &cea608test.Encoder{}
		const every, step, behind = 1300 * time.Millisecond, 50 * time.Millisecond, 2 * time.Second
		shown := func(i int) time.Duration { return 4*time.Second + time.Duration(i)*every }
		for i := range 12 {
			e.says.PopOn(1, shown(i-1).Seconds()+0.01, shown(i).Seconds(), 0, 15, fmt.Sprintf("c%d.", i))
		}
		e.send(4 * time.Second)
		track, v := textTracks(w.asset(w.row(s.ID).ActiveAsset))[0], n.viewer()
		segments, seen := map[string]string{}, 0
		for range 20 * time.Second / step {
			e.send(step)
			w.unchanged(v, w.playbackID(w.row(s.ID).ActiveAsset), track, segments)
			whole := strings.Join(slices.Collect(maps.Values(segments)), "")
			newest := time.Since(began)
			for i := range 12 {
				if strings.Contains(whole, fmt.Sprintf("\nc%d.\n", i)) {
					seen = max(seen, i)
				} else if late := newest - shown(i); late > behind+step+at(e.lag, fps) {
					t.Fatalf("c%d is not listed %s after it was shown, in %q", i, late, whole)
				}
			}
		}
		if seen < 11 {
			t.Errorf("only %d captions are listed", seen)
		}
		e.stop()
	})
}
