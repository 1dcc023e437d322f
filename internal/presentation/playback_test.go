package presentation_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	"millrace/internal/presentation"
)

// viewer asks a node over HTTP.
type viewer struct {
	t *testing.T
	h http.Handler
}

func (n *node) viewer() viewer {
	return viewer{n.w.t, playback.New(playback.Options{Source: n.playback, Logger: slog.New(slog.DiscardHandler)})}
}

func (v viewer) get(target string) (int, string) {
	v.t.Helper()
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, httptest.NewRequestWithContext(v.t.Context(), http.MethodGet, target, nil))
	return w.Code, w.Body.String()
}

func (v viewer) expect(what string, status int, target string) string {
	v.t.Helper()
	code, body := v.get(target)
	if code != status {
		v.t.Errorf("%s: GET %s returns %d, want %d: %s", what, target, code, status, body)
	}
	return body
}

// playlists gives the addresses of the media playlists of a multivariant playlist, video first.
func (v viewer) playlists(p id.Playback) []string {
	v.t.Helper()
	var out []string
	for line := range strings.Lines(v.expect("multivariant", http.StatusOK, "/"+string(p)+".m3u8")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append([]string{"/" + line}, out...)
		} else if _, uri, ok := strings.Cut(line, `URI="`); ok {
			out = append(out, "/"+strings.TrimSuffix(uri, `"`))
		}
	}
	return out
}

// uris gives the addresses of everything that a media playlist lists, but for gaps.
func uris(at, text string) []string {
	var out []string
	gap := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		gap = gap || line == "#EXT-X-GAP"
		if _, uri, ok := strings.Cut(line, `URI="`); ok && strings.HasPrefix(line, "#EXT-X-MAP") {
			line, _, _ = strings.Cut(uri, `"`)
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !gap {
			out = append(out, path.Join(path.Dir(at), line))
		}
		gap = false
	}
	return out
}

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
		v.expect("unknown", http.StatusNotFound, "/doesNotExistAtAll.m3u8")
		if said := v.expect("signed", http.StatusForbidden, "/"+string(signed.ID)+".m3u8"); !strings.Contains(said,
			"has the policy signed, which is not played here") {
			t.Errorf("signed: %s", said)
		}
		v.expect("idle", http.StatusPreconditionFailed, "/"+string(open))
		e := n.publish(s.StreamKey)
		w.wait(0)
		v.expect("connected", http.StatusPreconditionFailed, "/"+string(open))
		e.send(3 * time.Second)
		v.expect("before the first segment", http.StatusPreconditionFailed, "/"+string(open)+".m3u8")
		preparing := w.playbackID(w.row(s.ID).ActiveAsset)
		v.expect("asset before the first segment", http.StatusPreconditionFailed, "/"+string(preparing)+".m3u8")
		e.send(7 * time.Second)
		lists := v.playlists(open)
		if len(lists) != 2 {
			t.Fatalf("playlists %v", lists)
		}
		v.expect("live", http.StatusOK, lists[0])
		v.expect("live", http.StatusOK, lists[1])
		v.expect("unknown rendition", http.StatusNotFound, path.Dir(lists[0])+"/x.m3u8")
		v.expect("unknown media", http.StatusNotFound, "/"+string(open)+"/unknown/v.m3u8")
		v.expect("too far ahead", http.StatusBadRequest, lists[0]+"?_HLS_msn=100")
		e.stop()
		w.wait(0)
		v.expect("ended, for newcomers", http.StatusPreconditionFailed, "/"+string(open)+".m3u8")
		if text := v.expect("ended, for those who watch", http.StatusOK, lists[0]); !strings.Contains(text,
			"#EXT-X-ENDLIST") {
			t.Errorf("the end is not told:\n%s", text)
		}
		w.wait(61 * time.Second)
		v.expect("long ended", http.StatusPreconditionFailed, lists[0])

		n.publish(s.StreamKey).stop() // nothing comes of this one
		w.wait(0)
		errored := w.row(s.ID).RecentAssets[1]
		if said := v.expect("errored", http.StatusNotFound,
			"/"+string(w.playbackID(errored))+".m3u8"); !strings.Contains(said, "the asset is errored") {
			t.Errorf("errored: %s", said)
		}

		w.must(w.streams.DeletePlaybackID(w.ctx, env, s.ID, open, time.Now()))
		w.wait(time.Second)
		v.expect("deleted", http.StatusNotFound, "/"+string(open)+".m3u8")
	})
}

// TestNextBroadcastWhileTheLastIsWatched lets viewers of the last one find its end.
func TestNextBroadcastWhileTheLastIsWatched(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0))
		v, open := n.viewer(), s.PlaybackIDs[0].ID
		n.publish(s.StreamKey).send(10 * time.Second)
		first := v.playlists(open)
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(0)
		n.publish(s.StreamKey).send(10 * time.Second)
		second := v.playlists(open)
		if first[0] == second[0] {
			t.Errorf("both broadcasts are under %s", first[0])
		}
		text := v.expect("the first one", http.StatusOK, first[0])
		if !strings.Contains(text, "#EXT-X-ENDLIST") {
			t.Errorf("the first one has no end:\n%s", text)
		}
		for _, uri := range uris(first[0], text) {
			v.expect("of the first one", http.StatusOK, uri)
		}
		if text := v.expect("the second one", http.StatusOK, second[0]); strings.Contains(text, "#EXT-X-ENDLIST") {
			t.Errorf("the second one has ended:\n%s", text)
		}
		other := w.stream()
		v.expect("through another stream", http.StatusPreconditionFailed,
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
				lists := v.playlists(w.playbackID(a))
				content, dates := map[string]string{}, map[string]string{}
				var listed [2][]string
				look := func(when, typ string, ended bool) {
					t.Helper()
					if got := v.playlists(w.playbackID(a)); !slices.Equal(got, lists) {
						t.Errorf("%s: playlists %v, before %v", when, got, lists)
					}
					for i, l := range lists {
						text := v.expect(when, http.StatusOK, l)
						if !strings.Contains(text, "#EXT-X-PLAYLIST-TYPE:"+typ) ||
							strings.Contains(text, "#EXT-X-ENDLIST") != ended {
							t.Errorf("%s: not %s, or ended is not %v:\n%s", when, typ, ended, text)
						}
						now := uris(l, text)
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
							body := v.expect(when, http.StatusOK, uri)
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
		lists := b.viewer().playlists(w.playbackID(w.row(s.ID).ActiveAsset))
		text := b.viewer().expect("from elsewhere", http.StatusOK, lists[0])
		if n := len(uris(lists[0], text)); n != 3 || strings.Contains(text, "ENDLIST") {
			t.Errorf("%d addresses:\n%s", n, text)
		}
		e.send(10 * time.Second)
		w.wait(time.Second)
		if n := len(uris(lists[0], b.viewer().expect("later", http.StatusOK, lists[0]))); n != 5 {
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
		v.expect("preparing", http.StatusNotFound, sidecar)
		track.Object = "media/tracks/en.vtt"
		w.must(w.objects.Put(w.ctx, track.Object, strings.NewReader("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n")))
		w.must(w.assets.TrackReady(w.ctx, a, track, time.Now()))
		w.wait(time.Second)
		if text := v.expect("ready", http.StatusOK, sidecar); !strings.Contains(text, "Hello") {
			t.Errorf("the track is %q", text)
		}
		if lists := v.playlists(p); len(lists) != 3 { // it is there at once
			t.Errorf("live: %v", lists)
		}
		e.send(10 * time.Second).stop()
		w.wait(0)
		w.finish(a)
		w.wait(time.Second)
		lists := v.playlists(p)
		if len(lists) != 3 {
			t.Fatalf("finished: %v", lists)
		}
		text := ""
		for _, l := range lists {
			if strings.Contains(l, string(track.ID)) {
				text = v.expect("subtitles", http.StatusOK, l)
				for _, uri := range uris(l, text) {
					v.expect("subtitles", http.StatusOK, uri)
				}
			}
		}
		if !strings.Contains(text, "#EXT-X-ENDLIST") {
			t.Errorf("subtitles:\n%s", text)
		}
		w.must(w.assets.Delete(w.ctx, env, a, time.Now()))
		w.wait(time.Second)
		v.expect("deleted", http.StatusNotFound, "/"+string(p)+".m3u8")
		v.expect("deleted", http.StatusNotFound, lists[0])
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
