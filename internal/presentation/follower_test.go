package presentation

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

const (
	followedStream = "followedstream1"
	followedAsset  = "followedasset01"
)

// follower holds what another node has sent of its broadcast, playlists as text and segments as bytes; it has no edge.
type follower struct {
	about    playback.About
	segments []string
	more     chan struct{} // closed when there is another segment
}

func (f *follower) About() playback.About { return f.about }

func (f *follower) HasTexts() bool { return true }

func (f *follower) View(w playback.Watch) playback.Live { return followed{f, w} }

func (f *follower) publish(segment string) {
	f.segments = append(f.segments, segment)
	close(f.more)
	f.more = make(chan struct{})
}

type followed struct {
	*follower
	playback.Watch
}

func (f followed) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	video := hls.Variant{Bandwidth: 1, Subtitles: "subtitles", URI: hls.PlaylistURI(timeline.MainVideo)}
	m := &hls.Multivariant{Variants: []hls.Variant{video}}
	for _, t := range f.Texts {
		text := hls.Rendition{Type: "SUBTITLES", GroupID: "subtitles", Name: t.Name, URI: hls.PlaylistURI(t.Rendition)}
		m.Renditions = append(m.Renditions, text)
	}
	return m, nil
}

func (f followed) Playlist(ctx context.Context, _ string, r playback.Reload, _ bool) (playback.Text, error) {
	for r.MSN >= int64(len(f.segments)) {
		select {
		case <-f.more:
		case <-ctx.Done():
			return playback.Text{}, context.Cause(ctx)
		}
	}
	kind := "sliding"
	if f.Event {
		kind = "EVENT"
	}
	return playback.Text{Data: []byte(kind + " with " + strings.Join(f.segments, ", "))}, nil
}

func (f followed) Chunk(_ context.Context, _ string, r hls.Resource) (playback.Body, error) {
	if r.MSN >= int64(len(f.segments)) {
		return playback.Body{}, fault.New(fault.NotFound, "no such segment")
	}
	return playback.Body{Data: []byte(f.segments[r.MSN])}, nil
}

func (f followed) Pictures(context.Context) ([]hls.Picture, error) { return nil, nil }

func (f followed) Covers(context.Context, string, hls.Resource, playback.Clip) (bool, error) {
	return true, nil
}

func (f followed) Text(_ context.Context, rendition string) (captions.Document, error) {
	return captions.New([]captions.Cue{{End: time.Second, Text: "of " + rendition}}), nil
}

func (followed) TextSpan(context.Context, string, hls.Resource) (from, to time.Duration, err error) {
	return 0, 0, fault.New(fault.NotFound, "the follower has no text that was added")
}

func (f followed) Footage(context.Context) (playback.Footage, error) {
	return playback.Footage{}, fault.New(fault.NotFound, "the follower has no footage")
}

// elsewhere are the broadcasts of another node, the newest last.
type elsewhere []*follower

func (elsewhere) Recovered(context.Context) error { return nil }

func (e elsewhere) Watched(_ context.Context, s id.LiveStream) (playback.Broadcast, error) {
	if s != followedStream {
		return nil, playback.Inactive()
	}
	return e[len(e)-1], nil
}

func (e elsewhere) OfAsset(_ context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error) {
	if s != followedStream || a != followedAsset {
		return nil, errNoEarlier()
	}
	return e[len(e)-1], nil
}

func (e elsewhere) Earlier(_ context.Context, _ id.LiveStream, m id.Media) (playback.Broadcast, error) {
	for _, f := range e {
		if f.about.Media == m {
			return f, nil
		}
	}
	return nil, errNoEarlier()
}

func public(p id.Playback) playbackid.ID { return playbackid.ID{ID: p, Policy: playbackid.Public} }

// followedRows are the rows of the stream and its asset.
type followedRows struct{ asset.Reader }

func (followedRows) Resolve(_ context.Context, p id.Playback) (playbackid.Object, error) {
	o := playbackid.Object{ID: public(p), Kind: playbackid.OfLiveStream, ObjectID: followedStream}
	if p == "assetplayback" {
		o.Kind, o.ObjectID = playbackid.OfAsset, followedAsset
	}
	return o, nil
}

func (followedRows) Find(context.Context, id.Asset) (asset.Asset, error) {
	return asset.Asset{
		ID: followedAsset, Status: asset.Ready, LiveStream: followedStream,
		PlaybackIDs: []playbackid.ID{public("assetplayback")},
		Tracks: []asset.Track{{
			ID: "words", Rendition: "t1", Name: "English CC",
			Type: asset.TextTrack, Status: asset.TrackReady, TextSource: asset.Embedded,
		}},
	}, nil
}

// TestFollower: what another node's edge holds is played as this node's would be, by the stream and by its asset:
// nothing here needs an edge.
func TestFollower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		earlier := &follower{about: playback.About{Media: "m1"}, segments: []string{"past"}, more: make(chan struct{})}
		about := playback.About{Media: "m2", Asset: followedAsset, Title: "Far away", Began: time.Unix(1e9, 0)}
		now := &follower{about: about, more: make(chan struct{})}
		now.publish("one")
		p := New(Options{
			Access: followedRows{}, Assets: followedRows{}, Broadcasts: elsewhere{earlier, now}, Now: time.Now,
		})
		h := playback.New(playback.Options{Source: p, Logger: slog.New(slog.DiscardHandler)})
		get := func(path string) (int, string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			return w.Code, w.Body.String()
		}
		waited := make(chan string)
		go func() {
			_, text := get("/streamplayback/m2/v.m3u8?_HLS_msn=1")
			waited <- text
		}()
		synctest.Wait()
		now.publish("two")
		if got := <-waited; got != "sliding with one, two" {
			t.Errorf("a viewer who waits: %q", got)
		}
		for _, tt := range []struct {
			path   string
			status int
			want   string
		}{
			{"/streamplayback.m3u8", http.StatusOK, "\nstreamplayback/m2/v.m3u8"},
			{"/streamplayback.m3u8", http.StatusOK, `NAME="English CC"`},
			{"/assetplayback.m3u8", http.StatusOK, "\nassetplayback/m2/v.m3u8"},
			{"/assetplayback/m2/v.m3u8", http.StatusOK, "EVENT with one, two"},
			{"/streamplayback/m2/v/1.m4s", http.StatusOK, "two"},
			{"/streamplayback/m2/v/2.m4s", http.StatusNotFound, ""},
			{"/streamplayback/m1/v.m3u8", http.StatusOK, "sliding with past"},
			{"/streamplayback/m0/v.m3u8", http.StatusNotFound, ""},
			{"/streamplayback/text/words.vtt", http.StatusOK, "of t1"},
			{"/streamplayback/thumbnail.jpg", http.StatusNotFound, "the follower has no footage"},
			{"/streamplayback/metadata.json", http.StatusOK, "Far away"},
		} {
			if status, got := get(tt.path); status != tt.status || !strings.Contains(got, tt.want) {
				t.Errorf("%s: %d %q, want %d %q", tt.path, status, got, tt.status, tt.want)
			}
		}
		found, _, err := p.Open(t.Context(), playback.Request{PlaybackID: "streamplayback"})
		if err != nil {
			t.Fatal(err)
		}
		if found.Began().IsZero() {
			t.Error("it would be encrypted without the keys of when it began")
		}
	})
}
