package presentation

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
)

// sized is a broadcast with pictures of some sizes.
type sized struct {
	*follower

	sizes [][2]int
}

func (s sized) View(w playback.Watch) playback.Live {
	return sizedView{followed{s.follower, w}, s.sizes}
}

type sizedView struct {
	followed

	sizes [][2]int
}

func (s sizedView) Pictures(context.Context) (all []hls.Picture, err error) {
	for i, size := range s.sizes {
		all = append(all, hls.Picture{Rendition: fmt.Sprint("v", i), Short: min(size[0], size[1]), Offered: true})
	}
	return all, nil
}

func (s sizedView) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	m := &hls.Multivariant{}
	for i, size := range s.sizes {
		uri := hls.PlaylistURI(fmt.Sprint("v", i))
		m.Variants = append(m.Variants, hls.Variant{Bandwidth: 1, Width: size[0], Height: size[1], URI: uri})
	}
	return m, nil
}

// sizedBroadcasts have one of the stream; nil: there is none.
type sizedBroadcasts struct{ sizes [][2]int }

func (sizedBroadcasts) Recovered(context.Context) error { return nil }

func (s sizedBroadcasts) Watched(context.Context, id.LiveStream) (playback.Broadcast, error) {
	if s.sizes == nil {
		return nil, playback.Inactive()
	}
	return sized{&follower{about: playback.About{Media: "m"}}, s.sizes}, nil
}

func (s sizedBroadcasts) OfAsset(context.Context, id.LiveStream, id.Asset) (playback.Broadcast, error) {
	return nil, errNoEarlier()
}

func (s sizedBroadcasts) Earlier(context.Context, id.LiveStream, id.Media) (playback.Broadcast, error) {
	return nil, errNoEarlier()
}

type noKeys struct{}

func (noKeys) Content(context.Context, playbackid.Object, time.Time) (protection.Content, error) {
	return protection.Content{}, nil
}

var resolution = regexp.MustCompile(`RESOLUTION=(\d+)x(\d+)`)

// TestSmallest: no playlist offers a picture that is larger than its max_resolution and than the smallest one, and that
// one it offers.
func TestSmallest(t *testing.T) {
	t.Parallel()
	show := func(b sizedBroadcasts) *Source {
		return New(Options{
			Access: followedRows{}, Assets: followedRows{}, Broadcasts: b, Keys: noKeys{}, Now: time.Now,
		})
	}
	o := playbackid.Object{
		ID: playbackid.ID{Policy: playbackid.DRM}, Kind: playbackid.OfLiveStream, ObjectID: followedStream,
	}
	for _, tt := range []struct {
		sizes [][2]int
		want  int
	}{
		{[][2]int{{1280, 720}}, 720},
		{[][2]int{{1920, 1080}, {1280, 720}, {720, 1280}}, 720},
		{[][2]int{{1280, 536}, {2560, 1072}}, 536},
		{[][2]int{{2560, 1440}, {480, 270}}, 270},
	} {
		p := show(sizedBroadcasts{tt.sizes})
		smallest, err := p.Smallest(t.Context(), o)
		if err != nil || smallest != tt.want {
			t.Errorf("%v: %d, %v, want %d", tt.sizes, smallest, err, tt.want)
		}
		h := playback.New(playback.Options{Source: p, Logger: slog.New(slog.DiscardHandler)})
		for _, most := range []int{270, 480, 720, 1080} {
			w := httptest.NewRecorder()
			url := fmt.Sprintf("/streamplayback.m3u8?max_resolution=%dp", most)
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
			found := false
			for _, m := range resolution.FindAllStringSubmatch(w.Body.String(), -1) {
				width, _ := strconv.Atoi(m[1])
				height, _ := strconv.Atoi(m[2])
				short := min(width, height)
				found = found || short == smallest
				if short > max(most, smallest) {
					t.Errorf("%v: max_resolution=%dp offers %s", tt.sizes, most, m[0])
				}
			}
			if !found {
				t.Errorf("%v: max_resolution=%dp does not offer the smallest:\n%s", tt.sizes, most, w.Body)
			}
		}
	}
	if smallest, err := show(sizedBroadcasts{}).Smallest(t.Context(), o); smallest != 0 || err != nil {
		t.Errorf("of a stream that is idle: %d, %v", smallest, err)
	}
}
