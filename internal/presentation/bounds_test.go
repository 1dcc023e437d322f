package presentation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/frame"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
	"millrace/internal/storage/blob"
)

// boundedVideo is one whose viewers may see some sizes alone.
type boundedVideo struct {
	pictures [][2]int // that it has had, one after the other
	rate     int64    // bits per second
	tier     string   // max_resolution_tier
	live     bool     // it was live
}

// segments are how many each picture has, of two seconds.
const segments = 20

func (b boundedVideo) inits() (all []timeline.Init) {
	for i, size := range b.pictures {
		all = append(all, timeline.Init{
			Rendition: timeline.MainVideo, Codec: "avc1.640033", Width: size[0], Height: size[1], FrameRate: 30,
			Object: fmt.Sprintf("media/m/v/init-%d.mp4", i),
		})
	}
	return all
}

// recording is the video from storage.
func (b boundedVideo) recording(t *testing.T, p *Source) playback.Presentation {
	t.Helper()
	entries := []timeline.Entry{
		{Target: 2}, {Rendition: &timeline.RenditionInfo{ID: timeline.MainVideo, Kind: frame.Video, Timescale: 90000}},
	}
	for i, in := range b.inits() {
		entries = append(entries, timeline.Entry{Init: &in})
		for k := range int64(segments) {
			msn := int64(i)*segments + k
			entries = append(entries, timeline.Entry{Segment: &timeline.Segment{MSN: msn, Chunks: []timeline.Chunk{{
				Rendition: timeline.MainVideo, Init: i, Time: msn * 180000, Duration: 180000, Size: b.rate / 8 * 2,
				Independent: true, Object: "media/m/v/segment",
			}}}})
		}
	}
	line, err := timeline.Build(entries)
	if err != nil {
		t.Fatal(err)
	}
	row := asset.Asset{
		Media: "m", Index: "index", Options: assetopt.Options{MaxResolution: b.tier, VideoQuality: "plus"},
	}
	if b.live {
		row.LiveStream = "stream"
	}
	v, err := p.present(t.Context(), row, line)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// broadcast is the video while it is live, or shortly after.
func (b boundedVideo) broadcast(p *Source, ended bool) playback.Presentation {
	edge := window.New(window.Options{
		Media: "m", Mode: window.Mode{Low: true, Listed: time.Hour, InMemory: 2}, Logger: slog.New(slog.DiscardHandler),
	})
	edge.Target(2, map[string]time.Duration{timeline.MainVideo: 2 * time.Second})
	picture := make([]byte, b.rate/8*2)
	for i, in := range b.inits() {
		n := edge.AddInit(frame.Video, 90000, in, []byte("init"+fmt.Sprint(i)))
		edge.Live(true)
		for k := range int64(segments) {
			at := (int64(i)*segments + k) * 180000
			m := timeline.Mark{Start: time.Unix(1e9, 0), Discontinuity: i > 0 && k == 0}
			edge.Begin(timeline.MainVideo, m, n, at)
			edge.Part(timeline.MainVideo, picture, 180000, true)
			edge.Finish(timeline.MainVideo, 180000)
		}
	}
	if ended {
		edge.Close()
	}
	below := rendition.NewLive(rendition.LiveOptions{
		Media: "m", Edge: edge, Timescale: 90000, Limits: rendition.Limits{Quality: "plus", MaxResolution: b.tier},
		Makers: rendition.Makers{Maker: p.opt.Renditions, Objects: p.objects}, Now: time.Now,
		AwaitStored: func(context.Context, int64) error { return nil }, Logger: slog.New(slog.DiscardHandler),
	})
	return p.live(edgeview.Broadcast{ID: "m", Edge: edge, Below: below}, "stream", nil)
}

// shown is a presentation as a viewer with a permit gets it.
type shown struct {
	playback.Source
	playback.Presentation

	permit playback.Permit
}

func (s shown) Open(context.Context, playback.Request) (playback.Presentation, playback.Permit, error) {
	return s.Presentation, s.permit, nil
}

// TestBounds: what a viewer may have of a video, by every address. Each case says of every rendition, v being the
// source, which the playlist lists (+), which it does not and can be had all the same (o), and which can't (-).
func TestBounds(t *testing.T) {
	t.Parallel()
	one := func(width, height int) [][2]int { return [][2]int{{width, height}} }
	const most, few = 8_000_000, 120_000
	for name, tt := range map[string]struct {
		boundedVideo

		token    string // its modifiers; empty: the playback ID is public
		want     string
		smallest int
	}{
		"public":          {boundedVideo{one(1920, 1080), most, "1080p", false}, "", "v+ 720p+ 480p+ 270p+", 270},
		"public, upright": {boundedVideo{one(1080, 1920), most, "1080p", false}, "", "v+ 720p+ 480p+ 270p+", 270},
		"public, little":  {boundedVideo{one(1280, 720), few, "1080p", false}, "", "v+ 480po 270po", 270},
		"above the tier": {
			boundedVideo{one(2560, 1440), most, "1080p", false}, "", "v- 1080p+ 720p+ 480p+ 270p+", 270,
		},
		"above the tier, live": {
			boundedVideo{one(2560, 1440), most, "1080p", true}, "", "v- 1080p+ 720p+ 480p+ 270p+", 270,
		},
		"the tier's size": {
			boundedVideo{one(2560, 1440), most, "1440p", false}, "", "v+ 1080p+ 720p+ 480p+ 270p+", 270,
		},
		"a little above it": {boundedVideo{one(1920, 1088), most, "1080p", true}, "", "v+ 720p+ 480p+ 270p+", 270},
		"larger when it goes on": {
			boundedVideo{[][2]int{{1280, 720}, {2560, 1440}}, most, "1080p", true},
			"",
			"vo 1080p+ 720p+ 480p+ 270p+", 270,
		},
		"smaller when it goes on": {
			boundedVideo{[][2]int{{2560, 1440}, {1280, 720}}, most, "1080p", true},
			"",
			"v- 1080p+ 720p+ 480p+ 270p+", 270,
		},
		"token, above the tier": {
			boundedVideo{one(2560, 1440), most, "1080p", false},
			"max_resolution=270p",
			"v- 1080p- 720p- 480p- 270p+", 270,
		},
		"token, above the tier, live": {
			boundedVideo{one(2560, 1440), most, "1080p", true},
			"max_resolution=270p",
			"v- 1080p- 720p- 480p- 270p+", 270,
		},
		"token, more than the tier": {
			boundedVideo{one(2560, 1440), most, "1080p", true},
			"max_resolution=2160p",
			"v- 1080p+ 720p+ 480p+ 270p+", 270,
		},
		"token, in between": {
			boundedVideo{one(1920, 1080), most, "1080p", false}, "max_resolution=540p", "v- 720p- 480p+ 270p+", 270,
		},
		"token, upright": {
			boundedVideo{one(1080, 1920), most, "1080p", true}, "max_resolution=720p", "v- 720p+ 480p+ 270p+", 270,
		},
		"token, little": {
			boundedVideo{one(1280, 720), few, "1080p", false}, "max_resolution=270p", "v- 480p- 270p+", 270,
		},
		"token, little, in between": {
			boundedVideo{one(1280, 720), few, "1080p", true}, "max_resolution=540p", "v- 480p+ 270p+", 270,
		},
		"token, little, enough for it": {
			boundedVideo{one(1280, 720), few, "1080p", true}, "max_resolution=720p", "v+ 480po 270po", 270,
		},
		"token, nothing as small": {
			boundedVideo{one(480, 300), most, "1080p", false}, "max_resolution=270p", "v+", 300,
		},
		"token, larger when it goes on": {
			boundedVideo{[][2]int{{1280, 720}, {1920, 1080}}, most, "1080p", true},
			"max_resolution=720p",
			"v- 720p+ 480p+ 270p+", 270,
		},
		"token, smaller when it goes on": {
			boundedVideo{[][2]int{{1920, 1080}, {1280, 720}}, most, "1080p", true},
			"max_resolution=720p",
			"v- 720p+ 480p+ 270p+", 270,
		},
		"token, least": {
			boundedVideo{one(1920, 1080), most, "1080p", false}, "min_resolution=480p", "v+ 720p+ 480p+ 270p-", 270,
		},
		"token, least, little": {
			boundedVideo{one(1280, 720), few, "1080p", true}, "min_resolution=480p", "v+ 480po 270p-", 270,
		},
		"token, least of more than there is": {
			boundedVideo{one(1280, 720), most, "1080p", true}, "min_resolution=2160p", "v+ 480p- 270p-", 270,
		},
		"token, least above the tier": {
			boundedVideo{one(2560, 1440), most, "1080p", false},
			"min_resolution=1440p",
			"v- 1080p+ 720p- 480p- 270p-", 270,
		},
		"token, least, larger when it goes on": {
			boundedVideo{[][2]int{{1280, 720}, {2560, 1440}}, most, "1080p", true},
			"min_resolution=1440p",
			"vo 1080p+ 720p- 480p- 270p-", 270,
		},
		"token, both": {
			boundedVideo{one(1920, 1080), most, "1080p", false},
			"max_resolution=720p&min_resolution=480p",
			"v- 720p+ 480p+ 270p-", 270,
		},
		"token, nothing between both": {
			boundedVideo{one(1920, 1080), most, "1080p", true},
			"max_resolution=360p&min_resolution=360p",
			"v- 720p- 480p- 270p+", 270,
		},
		"token, nothing between both, little": {
			boundedVideo{one(1280, 720), few, "1080p", false},
			"max_resolution=360p&min_resolution=360p",
			"v- 480p- 270p+", 270,
		},
	} {
		maker := justintime.New(justintime.Options{
			Store: allMade{}, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		})
		p := New(Options{Blob: everything{}, Renditions: maker, Now: time.Now})
		stages := map[string]playback.Presentation{"recorded": tt.recording(t, p)}
		if tt.live {
			stages["live"], stages["over"] = tt.broadcast(p, false), tt.broadcast(p, true)
		}
		for stage, v := range stages {
			t.Run(name+"/"+stage, func(t *testing.T) {
				t.Parallel()
				want := tt.want
				if stage == "over" {
					want = strings.ReplaceAll(want, "+", "o") // nobody begins to watch what has ended
				}
				w := watcher{t, playback.Permit{Signed: tt.token != "", Query: tt.token}, v}
				if got := w.may(stage); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if all, err := v.Pictures(t.Context()); err != nil || playback.Smallest(all) != tt.smallest {
					t.Errorf("the smallest of %+v is not %d, %v", all, tt.smallest, err)
				}
			})
		}
	}
}

// watcher is a viewer with a permit.
type watcher struct {
	t      *testing.T
	permit playback.Permit
	shown  playback.Presentation
}

func (w watcher) get(path string) (int, string) {
	h := playback.New(playback.Options{
		Source: shown{Presentation: w.shown, permit: w.permit}, Logger: slog.New(slog.DiscardHandler),
	})
	out := httptest.NewRecorder()
	h.ServeHTTP(out, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil))
	return out.Code, out.Body.String()
}

var listedVariant = regexp.MustCompile(`\nplaybackid01/m/(\S+)\.m3u8`)

// may lists, in the form of TestBounds, which renditions the viewer is given, by whatever name.
func (w watcher) may(stage string) string {
	all := []string{timeline.MainVideo}
	pictures, err := w.shown.Pictures(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range pictures {
		if p.Rendition != timeline.MainVideo {
			all = append(all, p.Rendition)
		}
	}
	listed := map[string]bool{}
	status, text := w.get("/playbackid01.m3u8")
	if stage == "over" {
		if status != http.StatusPreconditionFailed {
			w.t.Errorf("the playlist is %d", status)
		}
	} else if status != http.StatusOK {
		w.t.Fatalf("the playlist is %d: %s", status, text)
	}
	for _, m := range listedVariant.FindAllStringSubmatch(text, -1) {
		listed[m[1]] = true
	}
	var out []string
	for _, name := range all {
		out = append(out, w.rendition(name, stage, listed[name]))
	}
	return strings.Join(out, " ")
}

// rendition is a rendition's name and how the viewer may have it: all that it consists of has to be alike.
func (w watcher) rendition(name, stage string, listed bool) string {
	label, _, _ := strings.Cut(name, "-")
	paths := []string{name + ".m3u8", name + "/init-0.mp4", name + "/0.m4s", name + "/19.m4s"}
	if stage != "recorded" {
		paths = append(paths, name+"/19.0.m4s")
	}
	allowed := 0
	for _, path := range paths {
		switch status, body := w.get("/playbackid01/m/" + path); status {
		case http.StatusOK:
			allowed++
		case http.StatusForbidden, http.StatusNotFound:
			if listed {
				w.t.Errorf("%s is listed, and %d: %s", path, status, body)
			}
		default:
			w.t.Errorf("%s is %d: %s", path, status, body)
		}
	}
	switch {
	case allowed == len(paths) && listed:
		return label + "+"
	case allowed == len(paths):
		return label + "o"
	case allowed > 0:
		w.t.Errorf("%s: %d of %d addresses are allowed", name, allowed, len(paths))
	}
	return label + "-"
}

// everything is a storage that has an object under every key.
type everything struct{ blob.Store }

func (everything) Get(context.Context, string, int64, int64) (*blob.Reader, error) {
	sample := cmaf.Sample{Duration: 180000, Sync: true, Data: []byte("picture")}
	data := cmaf.AppendFragment(nil, 1, cmaf.TrackID, 0, []cmaf.Sample{sample})
	return &blob.Reader{ReadCloser: io.NopCloser(bytes.NewReader(data)), Size: int64(len(data))}, nil
}

// allMade is a justintime.Store of a rendition that is whole.
type allMade struct{ justintime.Store }

func (allMade) Has(context.Context, string) (bool, error) { return true, nil }
