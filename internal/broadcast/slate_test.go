package broadcast_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/media/timeline"
)

// stills encodes as ffmpeg does, but for the looks.
type stills struct {
	mu    sync.Mutex
	jobs  []encode.StillArgs
	lasts []encode.LastArgs
	fails bool
	busy  int // so many stills first are not made, for want of a processor
}

// tried is how many stills were asked for.
func (s *stills) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs)
}

func (s *stills) Still(_ context.Context, job encode.StillArgs, output func(mp4 io.Reader) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs = append(s.jobs, job); s.fails {
		return errors.New("no encoder today")
	}
	if len(s.jobs) <= s.busy {
		return fault.New(fault.Unavailable, "the picture can't be encoded in time")
	}
	head, err := cmaf.Init(frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc1}, Width: 320,
		Height: 180,
	}, 90000)
	if err != nil {
		return err
	}
	samples := make([]cmaf.Sample, job.Frames)
	for i := range samples {
		samples[i] = cmaf.Sample{Duration: 9000, Sync: i == 0, Data: []byte{0, 0, 0, 2, 0x65, 0xff}}
	}
	return output(bytes.NewReader(cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, samples)))
}

// Image decodes as ffmpeg does.
func (*stills) Image(_ context.Context, data []byte) (*image.NRGBA, error) {
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the image is damaged")
	}
	out := image.NewNRGBA(img.Bounds())
	draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Src)
	return out, nil
}

// Last gives a picture that can be told from all others.
func (s *stills) Last(
	ctx context.Context, job encode.LastArgs, input func(context.Context, io.Writer) error,
	output func(mp4 io.Reader) error,
) error {
	var mp4 bytes.Buffer
	if err := input(ctx, &mp4); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lasts = append(s.lasts, job); s.fails {
		return errors.New("no encoder today")
	}
	head, err := cmaf.Init(frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc2}, Width: 320,
		Height: 180,
	}, 90000)
	if err != nil {
		return err
	}
	return output(bytes.NewReader(cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, []cmaf.Sample{
		{Duration: 9000, Sync: true, Data: []byte{0, 0, 0, 2, 0x65, 0xee}},
	})))
}

// images is what lies at the addresses of slates.
type images map[string][]byte

func (i images) Image(_ context.Context, url string, _ int64) ([]byte, error) {
	if data, ok := i[url]; ok {
		return data, nil
	}
	return nil, fault.New(fault.Invalid, "https://example.com/slate.png returns 404")
}

func slated(s *stills, i images) func(*broadcast.Options) {
	return func(o *broadcast.Options) { o.Stills, o.Images = s, i }
}

func low(seconds float64) func(*live.CreateInput) {
	return func(in *live.CreateInput) { in.LatencyMode, in.ReconnectWindow = live.Low, &seconds }
}

// times is what an asset shows of its recording, in short: kind and length in seconds; and how much slate is left out
// at its end, in whole seconds: its last picture is the last that was written when the broadcast ended.
func (w *world) times(a id.Asset) []string { return w.timesTo(a, 1) }

// timesTo is times with the lengths of slate to that many digits: where slate ends with no encoder, it does so with the
// picture that was written last, which depends on when its writer woke.
func (w *world) timesTo(a id.Asset, digits int) []string {
	w.t.Helper()
	recordings, t := w.recorded(a)
	var out []string
	for _, r := range recordings {
		of := 1
		if r.Type == "slate" {
			of = digits
		}
		out = append(out, fmt.Sprintf("%s %.*f at %.1f", r.Type, of, r.Duration, r.StartedAt.Sub(w.began).Seconds()))
	}
	if t.Tail != nil {
		out = append(out, fmt.Sprintf("left out: slate %.0f", t.Tail.Duration().Seconds()))
	}
	return out
}

// seamless checks that no rendition of a timeline has a hole in its media time, or a segment that is longer than said.
func (w *world) seamless(t *timeline.Timeline) {
	w.t.Helper()
	for _, l := range t.Renditions {
		for i := range l.Chunks {
			c := &l.Chunks[i]
			if c.Gap {
				w.t.Errorf("segment %d of %s is a gap", i, l.ID)
			}
			if s := l.Seconds(i); math.Round(s) > float64(t.Target) {
				w.t.Errorf("segment %d of %s has %.3f s, the target is %d", i, l.ID, s, t.Target)
			}
			if i == 0 {
				continue
			}
			last := &l.Chunks[i-1]
			if hole := float64(c.Time-last.Time-last.Duration) / float64(l.Timescale); math.Abs(hole) > 0.12 {
				w.t.Errorf("segment %d of %s begins %.3f s after the last one's end", i, l.ID, hole)
			}
			if !t.Marks[i].Discontinuity && t.Marks[i-1].Slate && !t.Marks[i].Slate {
				w.t.Errorf("segment %d goes on where slate was", i)
			}
			if step := t.Marks[i].Start.Sub(t.Marks[i-1].Start).Seconds() - l.Seconds(i-1); l.ID ==
				timeline.MainVideo && math.Abs(step) > 0.7 {
				w.t.Errorf("segment %d is dated %.3f s off", i, step)
			}
		}
	}
}

// TestSlate plays a stream's troubles and says what is recorded of them.
func TestSlate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream func(*live.CreateInput)
		play   func(w *world, n *node, key string)
		times  []string
		holes  bool // there are some
	}{
		"drop, slate, return, and the window is over": {low(30), func(w *world, n *node, key string) {
			n.publish(key).send(10 * time.Second).stop()
			w.wait(20 * time.Second)
			n.publish(key).send(10 * time.Second).stop()
			w.wait(31 * time.Second)
		}, []string{"content 10.0 at 0.0", "slate 19.9 at 10.0", "content 10.0 at 30.0", "left out: slate 30"}, false},
		"reduced latency": {
			func(in *live.CreateInput) { in.LatencyMode, in.ReconnectWindow = live.Reduced, new(20.0) },
			func(w *world, n *node, key string) {
				n.publish(key).send(10 * time.Second).stop()
				w.wait(21 * time.Second)
			},
			[]string{"content 10.0 at 0.0", "left out: slate 20"},
			false,
		},
		"standard latency, asked for": {
			func(in *live.CreateInput) { in.SlateForStandard = true }, func(w *world, n *node, key string) {
				n.publish(key).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
			}, []string{"content 10.0 at 0.0", "left out: slate 60"}, false,
		},
		"standard latency, not asked for": {window(60), func(w *world, n *node, key string) {
			n.publish(key).send(10 * time.Second).stop()
			w.wait(61 * time.Second)
		}, []string{"content 10.0 at 0.0"}, false},
		"low latency without a window": {low(0), func(w *world, n *node, key string) {
			n.publish(key).send(10 * time.Second).stop()
			w.wait(61 * time.Second)
		}, []string{"content 10.0 at 0.0"}, false},
		"the encoder leaves before a segment is whole": {low(20), func(w *world, n *node, key string) {
			n.publish(key).send(500 * time.Millisecond).stop()
			w.wait(21 * time.Second)
		}, []string{"content 0.5 at 0.0", "left out: slate 20"}, false},
		"connected and silent, then dropped": {low(20), func(w *world, n *node, key string) {
			e := n.publish(key).send(10 * time.Second)
			w.wait(60 * time.Second)
			e.leave(ingest.ErrSilent)
			w.wait(21 * time.Second)
		}, []string{"content 10.0 at 0.0", "left out: slate 80"}, false},
		"a pause while connected": {low(20), func(w *world, n *node, key string) {
			e := n.publish(key).send(10 * time.Second)
			w.wait(5 * time.Second)
			e.skip(5 * time.Second)
			e.send(10 * time.Second).stop()
			w.wait(21 * time.Second)
		}, []string{"content 10.0 at 0.0", "slate 4.9 at 10.0", "content 10.0 at 15.0", "left out: slate 20"}, false},
		"sound fails": {low(20), func(w *world, n *node, key string) {
			e := n.publish(key).send(10 * time.Second)
			e.noAudio = true
			e.send(20 * time.Second)
			w.must(w.streams.Complete(w.ctx, env, w.only(), time.Now()))
			w.wait(time.Second)
		}, []string{"content 30.1 at 0.0"}, false},
		"the picture fails": {low(20), func(w *world, n *node, key string) {
			e := n.publish(key).send(10 * time.Second)
			e.noVideo = true
			e.send(20 * time.Second)
			w.must(w.streams.Complete(w.ctx, env, w.only(), time.Now()))
			w.wait(time.Second)
		}, []string{"content 29.8 at 0.0"}, false},
		"sound alone": {
			func(in *live.CreateInput) { low(20)(in); in.AudioOnly = true }, func(w *world, n *node, key string) {
				n.publish(key).send(10 * time.Second).stop()
				w.wait(10 * time.Second)
				n.publish(key).send(10 * time.Second).stop()
				w.wait(21 * time.Second)
			},
			[]string{"content 10.0 at 0.0", "slate 10.0 at 10.0", "content 10.0 at 20.0", "left out: slate 20"},
			false,
		},
		"slate is switched off meanwhile": {
			func(in *live.CreateInput) { in.SlateForStandard = true }, func(w *world, n *node, key string) {
				n.publish(key).send(10 * time.Second).stop()
				w.wait(20 * time.Second)
				_, err := w.streams.Patch(w.ctx, env, w.only(), live.PatchInput{SlateForStandard: new(false)},
					time.Now())
				w.must(err)
				w.wait(20 * time.Second)
				n.publish(key).send(10 * time.Second)
				w.must(w.streams.Complete(w.ctx, env, w.only(), time.Now()))
				w.wait(time.Second)
			}, []string{"content 10.0 at 0.0", "slate 20 at 10.0", "content 10.0 at 50.0"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a", slated(&stills{}, nil)), w.stream(tt.stream)
				tt.play(w, n, s.StreamKey)
				row := w.row(s.ID)
				if row.State != live.Idle || len(row.RecentAssets) != 1 {
					t.Fatalf("the stream is %s, its assets %v", row.State, row.RecentAssets)
				}
				digits := 1
				if tt.holes {
					digits = 0
				}
				if got := w.timesTo(row.RecentAssets[0], digits); !slices.Equal(got, tt.times) {
					t.Errorf("recorded\n\t%q\nwant\n\t%q", got, tt.times)
				}
				if !tt.holes {
					w.seamless(w.timeline(row.RecentAssets[0]))
				}
				w.finish(row.RecentAssets[0])
				a, recorded := w.asset(row.RecentAssets[0]), 0.0
				for _, r := range a.Recordings {
					recorded += r.Duration
				}
				if a.Status != asset.Ready || math.Abs(a.Facts.Duration-recorded) > 0.01 {
					t.Errorf("the asset is %s, %.2f s long, with recording times of %.2f s", a.Status, a.Facts.Duration,
						recorded)
				}
			})
		})
	}
}

// only is the one live stream there is.
func (w *world) only() id.LiveStream {
	w.t.Helper()
	list, err := w.streams.List(w.ctx, env, live.ListQuery{Page: 1, Limit: 2})
	w.must(err)
	if len(list) != 1 {
		w.t.Fatalf("%d streams", len(list))
	}
	return list[0].ID
}

// skip is what an encoder does not send although its clock goes on.
func (e *encoder) skip(d time.Duration) {
	e.picture += int(d.Seconds() * fps)
	e.sound += int(d.Seconds() * 48000 / 1024)
}

// TestSlatePlaylistsGrow watches a stream whose encoder is away: there is something new all the time, and it never says
// that it was.
func TestSlatePlaylistsGrow(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", slated(&stills{}, nil)), w.stream(low(60))
		v := n.viewer()
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		lists := v.Playlists(s.PlaybackIDs[0].ID)
		w.wait(time.Second)
		var last [2]string
		for range 60 {
			w.wait(700 * time.Millisecond)
			for i, l := range lists {
				text := v.Expect("away", http.StatusOK, l)
				if text == last[i] {
					t.Errorf("%s stands still", l)
				}
				if last[i] = text; strings.Contains(text, "#EXT-X-GAP") &&
					!strings.Contains(text, "#EXT-X-MEDIA-SEQUENCE:0") && i > 1 {
					t.Errorf("%s has a gap", l)
				}
			}
		}
		if a, b := strings.Count(last[0], "DISCONTINUITY\n"), strings.Count(last[1], "DISCONTINUITY\n"); a != b {
			t.Errorf("%d discontinuities in one playlist, %d in the other", a, b)
		}
	})
}

// whiteSquare is a PNG.
func whiteSquare(t *testing.T) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 50, 50))
	for i := range img.Pix {
		img.Pix[i] = 0xff
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestEndInSlate watches a recording whose encoder does not come back: it ends with what the encoder sent last, and
// what was listed of the slate before is still at its address.
func TestEndInSlate(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", slated(&stills{}, nil)), w.stream(low(20))
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(15 * time.Second)
		v, a := n.viewer(), w.row(s.ID).ActiveAsset
		lists, content := v.Playlists(w.playbackID(a)), map[string]string{}
		longest := map[string]int{}
		look := func(when, typ string, ended bool) {
			t.Helper()
			for _, l := range lists {
				text := v.Expect(when, http.StatusOK, l)
				if !strings.Contains(text, "#EXT-X-PLAYLIST-TYPE:"+typ) ||
					strings.Contains(text, "#EXT-X-ENDLIST") != ended {
					t.Errorf("%s: not %s, or ended is not %v:\n%s", when, typ, ended, text)
				}
				if n := strings.Count(text, "#EXTINF"); ended && typ == "VOD" {
					if n >= longest[l] || strings.Contains(text, "#EXT-X-DISCONTINUITY\n") {
						t.Errorf("%s: it does not end with what the encoder sent:\n%s", when, text)
					}
				} else {
					longest[l] = n
				}
				for _, uri := range playbacktest.URIs(l, text) {
					content[uri] = v.Expect(when, http.StatusOK, uri)
				}
			}
			for uri, was := range content {
				if v.Expect(when, http.StatusOK, uri) != was {
					t.Errorf("%s: %s has changed", when, uri)
				}
			}
		}
		look("slate", "EVENT", false)
		w.wait(10 * time.Second)
		look("ended", "EVENT", true)
		w.wait(61 * time.Second)
		look("ended and out of memory", "VOD", true)
		w.finish(a)
		w.wait(time.Second)
		look("finished", "VOD", true)
		v = w.start("b").viewer()
		look("on another node", "VOD", true)
		if d := w.asset(a).Facts.Duration; math.Abs(d-10) > 0.1 {
			t.Errorf("the asset has %.2f s", d)
		}
	})
}

// TestSlateImage fetches the owner's image once per recording, and tells stream and asset when it is of no use.
func TestSlateImage(t *testing.T) {
	t.Parallel()
	const url = "https://example.com/slate.png?token=secret"
	square := whiteSquare(t)
	for name, tt := range map[string]struct {
		images images
		warns  string
	}{
		"used":       {images{url: square}, ""},
		"not there":  {images{}, "returns 404"},
		"not one":    {images{url: []byte("<html>")}, "neither PNG nor JPEG"},
		"cut off":    {images{url: square[:60]}, "is damaged"},
		"not wanted": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				encoder := &stills{}
				n, s := w.start("a", slated(encoder, tt.images)), w.stream(low(20), func(in *live.CreateInput) {
					if tt.images != nil {
						in.ReconnectSlateURL = url
					}
				})
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(21 * time.Second)
				if len(encoder.jobs) != 1 || encoder.jobs[0].Picture.Bounds().Size() != image.Pt(320, 180) ||
					encoder.jobs[0].Frames != 20 {
					t.Fatalf("encoded: %d times", len(encoder.jobs))
				}
				if c := encoder.jobs[0].Picture.RGBAAt(160, 20); (c.R > 0xf0) != (name == "used") {
					t.Errorf("the picture is %v", c)
				}
				warned := slices.DeleteFunc(w.events(), func(e string) bool { return !strings.HasSuffix(e, "warning") })
				if tt.warns == "" {
					if len(warned) > 0 {
						t.Errorf("told: %v", warned)
					}
					return
				}
				if !slices.Equal(warned, []string{"warning", "asset.warning"}) {
					t.Fatalf("told: %v", warned)
				}
				a, b := last[live.Warned](w, "warning"), last[asset.Warned](w, "asset.warning")
				if a.ID != s.ID || b.ID != w.row(s.ID).RecentAssets[0] || b.LiveStream != s.ID ||
					b.Status != asset.Preparing || a.State.Status() != live.StatusIdle {
					t.Errorf("told %+v and %+v", a, b)
				}
				for _, m := range []string{a.Warning.Message, b.Warning.Message} {
					if !strings.Contains(m, tt.warns) || strings.Contains(m, "secret") {
						t.Errorf("told %q", m)
					}
				}
				if a.Warning.Type != "custom_slate_unavailable" || b.Warning.Type != a.Warning.Type {
					t.Errorf("told of %q and %q", a.Warning.Type, b.Warning.Type)
				}
			})
		})
	}
}

// TestSlateOfABusyMachine: a slate that the machine was too busy for is made later.
func TestSlateOfABusyMachine(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		encoder := &stills{busy: 1}
		n, s := w.start("a", slated(encoder, nil)), w.stream(low(300))
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(20 * time.Second)
		if n := encoder.tried(); n != 1 {
			t.Errorf("it was tried %d times at once", n)
		}
		w.wait(time.Minute)
		if n := encoder.tried(); n != 2 {
			t.Errorf("it was tried %d times", n)
		}
		w.wait(2 * time.Minute)
		if len(encoder.jobs) != 2 {
			t.Errorf("it was there, and was tried %d times", len(encoder.jobs))
		}
	})
}

// TestSlateWithoutAnEncoder shows the last key frame where no slate can be made.
func TestSlateWithoutAnEncoder(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", slated(&stills{fails: true}, nil)), w.stream(low(20))
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(21 * time.Second)
		a := w.row(s.ID).RecentAssets[0]
		if got, want := w.times(a), []string{"content 10.0 at 0.0", "left out: slate 20"}; !slices.Equal(got, want) {
			t.Errorf("recorded %q, want %q", got, want)
		}
		t1 := w.timeline(a)
		w.seamless(t1)
		if n := len(t1.Rendition(timeline.MainVideo).Inits); n != 1 {
			t.Errorf("%d init segments for one kind of video", n)
		}
	})
}

// TestSlateAfterACrash kills the node while it shows slate.
func TestSlateAfterACrash(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		journal bool
		times   []string
	}{
		"with a journal": {
			true, []string{"content 10.0 at 0.0", "slate 34.8 at 10.0", "content 10.0 at 50.0", "left out: slate 60"},
		},
		"without": {
			false, []string{"content 10.0 at 0.0", "slate 34.5 at 10.0", "content 10.0 at 50.0", "left out: slate 60"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				if tt.journal {
					w.journals(t)
				}
				first, s := w.start("a", slated(&stills{}, nil)), w.stream(low(60))
				first.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(15 * time.Second)
				first.kill()
				w.wait(5 * time.Second)
				second := w.start("a", slated(&stills{}, nil))
				w.wait(20 * time.Second)
				second.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
				if got := w.times(w.row(s.ID).RecentAssets[0]); !slices.Equal(got, tt.times) {
					t.Errorf("recorded\n\t%q\nwant\n\t%q", got, tt.times)
				}
			})
		})
	}
}
