package presentation_test

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/presentation"
)

func TestPlaybackStatuses(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n := w.start("a")
		v := n.viewer()
		s := w.stream(window(0))
		open := s.PlaybackIDs[0].ID
		signed, err := w.streams.AddPlaybackID(w.ctx, env, s.ID, playbackid.Request{Policy: playbackid.Signed},
			time.Now())
		w.must(err)
		v.Expect("unknown", http.StatusNotFound, "/doesNotExistAtAll.m3u8")
		if said := v.Expect("signed", http.StatusForbidden, "/"+string(signed.ID)+".m3u8"); !strings.Contains(said,
			"has the policy signed, which is not played here") {
			t.Errorf("signed: %s", said)
		}
		v.Expect("idle", http.StatusPreconditionFailed, "/"+string(open))
		e := n.publish(s.StreamKey)
		w.wait(0)
		v.Expect("connected", http.StatusPreconditionFailed, "/"+string(open))
		e.send(3 * time.Second)
		v.Expect("before the first segment", http.StatusPreconditionFailed, "/"+string(open)+".m3u8")
		preparing := w.playbackID(w.row(s.ID).ActiveAsset)
		v.Expect("asset before the first segment", http.StatusPreconditionFailed, "/"+string(preparing)+".m3u8")
		e.send(7 * time.Second)
		lists := v.Playlists(open)
		if len(lists) != 2 {
			t.Fatalf("playlists %v", lists)
		}
		v.Expect("live", http.StatusOK, lists[0])
		v.Expect("live", http.StatusOK, lists[1])
		v.Expect("unknown rendition", http.StatusNotFound, path.Dir(lists[0])+"/x.m3u8")
		v.Expect("unknown media", http.StatusNotFound, "/"+string(open)+"/unknown/v.m3u8")
		v.Expect("too far ahead", http.StatusBadRequest, lists[0]+"?_HLS_msn=100")
		e.stop()
		w.wait(0)
		v.Expect("ended, for newcomers", http.StatusPreconditionFailed, "/"+string(open)+".m3u8")
		if text := v.Expect("ended, for those who watch", http.StatusOK, lists[0]); !strings.Contains(text,
			"#EXT-X-ENDLIST") {
			t.Errorf("the end is not told:\n%s", text)
		}
		w.wait(61 * time.Second)
		v.Expect("long ended", http.StatusPreconditionFailed, lists[0])

		n.publish(s.StreamKey).stop() // nothing comes of this one
		w.wait(0)
		errored := w.row(s.ID).RecentAssets[1]
		if said := v.Expect("errored", http.StatusNotFound,
			"/"+string(w.playbackID(errored))+".m3u8"); !strings.Contains(said, "the asset is errored") {
			t.Errorf("errored: %s", said)
		}

		w.must(w.streams.DeletePlaybackID(w.ctx, env, s.ID, open, time.Now()))
		w.wait(time.Second)
		v.Expect("deleted", http.StatusNotFound, "/"+string(open)+".m3u8")
	})
}

// TestNextBroadcastWhileTheLastIsWatched lets viewers of the last one find its end.
func TestNextBroadcastWhileTheLastIsWatched(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0))
		v, open := n.viewer(), s.PlaybackIDs[0].ID
		n.publish(s.StreamKey).send(10 * time.Second)
		first := v.Playlists(open)
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(0)
		n.publish(s.StreamKey).send(10 * time.Second)
		second := v.Playlists(open)
		if first[0] == second[0] {
			t.Errorf("both broadcasts are under %s", first[0])
		}
		text := v.Expect("the first one", http.StatusOK, first[0])
		if !strings.Contains(text, "#EXT-X-ENDLIST") {
			t.Errorf("the first one has no end:\n%s", text)
		}
		for _, uri := range playbacktest.URIs(first[0], text) {
			v.Expect("of the first one", http.StatusOK, uri)
		}
		if text := v.Expect("the second one", http.StatusOK, second[0]); strings.Contains(text, "#EXT-X-ENDLIST") {
			t.Errorf("the second one has ended:\n%s", text)
		}
		other := w.stream()
		v.Expect("through another stream", http.StatusPreconditionFailed,
			strings.Replace(first[0], string(open), string(other.PlaybackIDs[0].ID), 1))
	})
}

// dated is a segment with its date.
var dated = regexp.MustCompile(`#EXT-X-PROGRAM-DATE-TIME:(.*)\n(?:#.*\n)*([^#\n]+)\n`)

// TestAssetFromLiveToStored watches one asset from its first segment to long after its end: nothing that was listed
// changes.
func TestAssetFromLiveToStored(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Standard, live.Reduced, live.Low} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"), w.stream(window(60), func(in *live.CreateInput) { in.LatencyMode = mode })
				v := n.viewer()
				e := n.publish(s.StreamKey).send(10 * time.Second)
				a := w.row(s.ID).ActiveAsset
				lists := v.Playlists(w.playbackID(a))
				content, dates := map[string]string{}, map[string]string{}
				var listed [2][]string
				look := func(when, typ string, ended bool) {
					t.Helper()
					if got := v.Playlists(w.playbackID(a)); !slices.Equal(got, lists) {
						t.Errorf("%s: playlists %v, before %v", when, got, lists)
					}
					for i, l := range lists {
						text := v.Expect(when, http.StatusOK, l)
						if !strings.Contains(text, "#EXT-X-PLAYLIST-TYPE:"+typ) ||
							strings.Contains(text, "#EXT-X-ENDLIST") != ended {
							t.Errorf("%s: not %s, or ended is not %v:\n%s", when, typ, ended, text)
						}
						now := playbacktest.URIs(l, text)
						if len(now) < len(listed[i]) || !slices.Equal(now[:len(listed[i])], listed[i]) {
							t.Errorf("%s: lists\n%v\nafter\n%v", when, now, listed[i])
						}
						listed[i] = now
						for _, m := range dated.FindAllStringSubmatch(text, -1) {
							if was, known := dates[m[2]]; known && was != m[1] {
								t.Errorf("%s: %s was dated %s, now %s", when, m[2], was, m[1])
							}
							dates[m[2]] = m[1]
						}
						for _, uri := range now {
							body := v.Expect(when, http.StatusOK, uri)
							if was, known := content[uri]; known && was != body {
								t.Errorf("%s: %s has changed", when, uri)
							}
							content[uri] = body
						}
					}
				}
				look("live", "EVENT", false)
				e.send(10 * time.Second)
				look("later", "EVENT", false)
				e.stop()
				w.wait(time.Second)
				look("encoder away", "EVENT", false)
				n.publish(s.StreamKey).send(10 * time.Second)
				look("encoder back", "EVENT", false)
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now())) // without slate at the end
				w.wait(time.Second)
				look("ended", "VOD", true)
				w.wait(61 * time.Second)
				look("ended and out of memory", "VOD", true)
				w.finish(a)
				w.wait(time.Second)
				look("finished", "VOD", true)
				other := w.start("b")
				v = other.viewer()
				look("on another node", "VOD", true)
			})
		})
	}
}

// TestAssetWithoutItsNode watches a growing asset from what is stored of it.
func TestAssetWithoutItsNode(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, s := w.start("a"), w.stream()
		b := w.start("b")
		e := a.publish(s.StreamKey).send(10 * time.Second)
		lists := b.viewer().Playlists(w.playbackID(w.row(s.ID).ActiveAsset))
		text := b.viewer().Expect("from elsewhere", http.StatusOK, lists[0])
		if n := len(playbacktest.URIs(lists[0], text)); n != 3 || strings.Contains(text, "ENDLIST") {
			t.Errorf("%d addresses:\n%s", n, text)
		}
		e.send(10 * time.Second)
		w.wait(time.Second)
		if n := len(playbacktest.URIs(lists[0], b.viewer().Expect("later", http.StatusOK, lists[0]))); n != 5 {
			t.Errorf("later %d addresses", n)
		}
		e.stop()
		w.wait(0)
	})
}

// TestTracksOfARecording adds subtitles while the broadcast runs.
func TestTracksOfARecording(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0))
		v := n.viewer()
		e := n.publish(s.StreamKey).send(10 * time.Second)
		a := w.row(s.ID).ActiveAsset
		p := w.playbackID(a)
		track, err := w.assets.AddTrack(w.ctx, env, a, asset.TrackInput{
			URL: "https://example.com/en.vtt", Type: asset.TextTrack, TextType: "subtitles", LanguageCode: "en",
			Name: "English",
		}, time.Now())
		w.must(err)
		sidecar := "/" + string(p) + "/text/" + string(track.ID) + ".vtt"
		v.Expect("preparing", http.StatusNotFound, sidecar)
		track.Object = "media/tracks/en.vtt"
		w.must(w.objects.Put(w.ctx, track.Object, strings.NewReader("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n")))
		w.must(w.assets.TrackReady(w.ctx, a, track, time.Now()))
		w.wait(time.Second)
		if text := v.Expect("ready", http.StatusOK, sidecar); !strings.Contains(text, "Hello") {
			t.Errorf("the track is %q", text)
		}
		if lists := v.Playlists(p); len(lists) != 3 { // it is there at once
			t.Errorf("live: %v", lists)
		}
		e.send(10 * time.Second).stop()
		w.wait(0)
		w.finish(a)
		w.wait(time.Second)
		lists := v.Playlists(p)
		if len(lists) != 3 {
			t.Fatalf("finished: %v", lists)
		}
		text := ""
		for _, l := range lists {
			if strings.Contains(l, string(track.ID)) {
				text = v.Expect("subtitles", http.StatusOK, l)
				for _, uri := range playbacktest.URIs(l, text) {
					v.Expect("subtitles", http.StatusOK, uri)
				}
			}
		}
		if !strings.Contains(text, "#EXT-X-ENDLIST") {
			t.Errorf("subtitles:\n%s", text)
		}
		w.must(w.assets.Delete(w.ctx, env, a, time.Now()))
		w.wait(time.Second)
		v.Expect("deleted", http.StatusNotFound, "/"+string(p)+".m3u8")
		v.Expect("deleted", http.StatusNotFound, lists[0])
	})
}

// counted counts what reaches the database.
type counted struct {
	presentation.Resolver
	asked atomic.Int64
}

func (c *counted) Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error) {
	c.asked.Add(1)
	pause(10 * time.Millisecond)
	return c.Resolver.Resolve(ctx, p)
}

// TestHerd has many viewers ask for the same at once.
func TestHerd(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		from := &counted{Resolver: w.access}
		p := presentation.New(presentation.Options{
			Access: from, Assets: w.assets, Broadcasts: n.Service, Blob: w.objects, Now: time.Now,
			Logger: slog.New(slog.DiscardHandler),
		})
		for name, target := range map[string]struct {
			id   id.Playback
			want fault.Kind
		}{"known": {s.PlaybackIDs[0].ID, fault.NotReady}, "unknown": {"doesNotExistAtAll", fault.NotFound}} {
			from.asked.Store(0)
			var wg sync.WaitGroup
			for range 200 {
				wg.Go(func() {
					if _, _, err := p.Open(w.ctx, playback.Request{
						PlaybackID: string(target.id),
					}); fault.KindOf(err) != target.want {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			if asked := from.asked.Load(); asked != 1 {
				t.Errorf("%s: the database was asked %d times", name, asked)
			}
		}
	})
}

// completing has a recording completed between the look at its asset and the one at its rows.
type completing struct {
	asset.Reader
	complete func()
}

func (c *completing) Timeline(ctx context.Context, a id.Asset, from int64) ([]asset.TimelineEntry, error) {
	c.complete()
	return c.Reader.Timeline(ctx, a, from)
}

// TestCompletedMeanwhile: the rows of a recording go when it is completed, and it is played all the same.
func TestCompletedMeanwhile(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0))
		e := n.publish(s.StreamKey).send(10 * time.Second)
		a := w.row(s.ID).ActiveAsset
		e.stop()
		w.wait(time.Minute)
		p := presentation.New(presentation.Options{
			Access: w.access, Assets: &completing{w.assets, func() { w.finish(a) }}, Blob: w.objects, Now: time.Now,
			Logger: slog.New(slog.DiscardHandler),
		})
		v, _, err := p.Open(w.ctx, playback.Request{PlaybackID: string(w.playbackID(a))})
		if err != nil {
			t.Fatal(err)
		}
		text, err := v.Playlist(w.ctx, "v", playback.Reload{}, false)
		if err != nil || !strings.Contains(string(text.Data), "#EXT-X-ENDLIST") {
			t.Errorf("%v:\n%s", err, text.Data)
		}
	})
}
