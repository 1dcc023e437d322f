package images_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"os"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/images"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

// moving are pictures that differ from one another everywhere: ten a second for six seconds.
func moving(more ...string) []string {
	return append([]string{"-f", "lavfi", "-i", "testsrc2=s=320x180:r=10", "-t", "6", "-pix_fmt", "yuv420p"}, more...)
}

// all are the pictures of a file, each of which is decoded.
func all(t *testing.T, path string) (out [][]byte) {
	t.Helper()
	raw := programtest.Run(t, "ffmpeg", "-nostdin", "-loglevel", "error", "-i", path, "-vf",
		"scale=flags=bilinear,format=rgba", "-fps_mode", "passthrough", "-f", "rawvideo", "pipe:1")
	const size = 320 * 180 * 4
	for ; len(raw) >= size; raw = raw[size:] {
		out = append(out, raw[:size])
	}
	return out
}

// A picture is, to the last bit, what decoding all of the file gives, though few of its pictures are decoded.
func TestEveryPixel(t *testing.T) {
	t.Parallel()
	x264 := func(params string) []string {
		return moving("-c:v", "libx264", "-preset", "veryfast", "-x264-params", "scenecut=0:"+params)
	}
	pyramid := x264("keyint=20:bframes=7:b-adapt=0:b-pyramid=normal:ref=4")
	x265 := func(params string) []string {
		return moving("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params",
			"log-level=error:scenecut=0:"+params, "-output_ts_offset", "10", "-avoid_negative_ts", "disabled",
			"-use_editlist", "0", "-movflags", "+frag_keyframe+empty_moov+default_base_moof+frag_discont")
	}
	for name, film := range map[string]func(*testing.T) (*images.Video, string){
		"B-pyramid":   ofFile(pyramid),
		"open groups": ofFile(x264("keyint=10:min-keyint=10:bframes=3:b-adapt=0:open-gop=1")),
		"no B":        ofFile(x264("keyint=20:bframes=0")),
		"edit list": func(t *testing.T) (*images.Video, string) {
			t.Helper()
			whole := programtest.SharedMedia(t, "whole.mp4", pyramid...)
			return ofFile([]string{"-ss", "0.7", "-i", whole, "-c", "copy"})(t)
		},
		"HEVC":                ofFragments(x265("keyint=20:bframes=4:b-adapt=0:open-gop=0")),
		"HEVC, open groups":   ofFragments(x265("keyint=10:min-keyint=10:bframes=4:b-adapt=0:open-gop=1")),
		"HEVC with sublayers": ofFragments(x265("keyint=20:bframes=4:b-adapt=0:open-gop=0:temporal-layers=3")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, path := film(t)
			s, want := newStudio(t), all(t, path)
			if len(want) < 50 {
				t.Fatalf("%d pictures", len(want))
			}
			for i := 0; i < len(want); i += 7 {
				p := s.picture(f, "thumbnail.png", fmt.Sprintf("time=%.2f", float64(i)/10+0.05))
				got := image.NewRGBA(image.Rect(0, 0, 320, 180))
				draw.Draw(got, got.Rect, p, p.Bounds().Min, draw.Src)
				if !bytes.Equal(got.Pix, want[i]) {
					t.Errorf("picture %d is not the one that was decoded with all", i)
				}
			}
		})
	}
}

// ofFile is a film of a file that is played as it is.
func ofFile(args []string) func(*testing.T) (*images.Video, string) {
	return func(t *testing.T) (*images.Video, string) {
		t.Helper()
		f := film(t, args...)
		s, _ := f.Source.(*source)
		return f, s.rendition.Source.Object
	}
}

// fragments are segments in memory, as those of live streams are kept.
type fragments struct {
	init     []byte
	segments [][]byte
}

func (f fragments) Init(context.Context, int) ([]byte, error) { return f.init, nil }

func (f fragments) Segment(_ context.Context, msn int64) (delivered.Body, error) {
	if msn < 0 || msn >= int64(len(f.segments)) {
		return delivered.Body{}, fault.New(fault.NotFound, "no such segment")
	}
	return delivered.Body{Data: f.segments[msn]}, nil
}

// ofFragments is a film of a fragmented file that begins at second 10, two fragments a segment.
func ofFragments(args []string) func(*testing.T) (*images.Video, string) {
	return func(t *testing.T) (*images.Video, string) {
		t.Helper()
		path := programtest.SharedMedia(t, "fragments.mp4", args...)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tracks, err := cmaf.NewReader(bytes.NewReader(data), cmaf.ReaderOptions{}).Tracks()
		if err != nil {
			t.Fatal(err)
		}
		var cuts []int // where fragments begin
		for at := 0; ; {
			i := bytes.Index(data[at:], []byte("moof"))
			if i < 0 {
				break
			}
			cuts, at = append(cuts, at+i-4), at+i+4
		}
		end := bytes.LastIndex(data, []byte("mfra")) - 4
		cuts = append(cuts, end)
		s := fragments{init: data[:cuts[0]]}
		entries := []timeline.Entry{
			{Rendition: &timeline.RenditionInfo{
				ID: timeline.MainVideo, Kind: frame.Video, Timescale: tracks[0].Timescale,
			}},
			{Target: 4},
			{Init: &timeline.Init{Rendition: timeline.MainVideo, Codec: "hvc1", Width: 320, Height: 180}},
		}
		for i := 0; i+1 < len(cuts); i += 2 {
			segment := data[cuts[i]:cuts[min(i+2, len(cuts)-1)]]
			var parsed []cmaf.Fragment
			if parsed, err = cmaf.ParseFragments(segment); err != nil {
				t.Fatal(err)
			}
			var long int64
			for _, x := range parsed {
				for _, sample := range x.Samples {
					long += int64(sample.Duration)
				}
			}
			entries = append(entries, timeline.Entry{Segment: &timeline.Segment{
				MSN: int64(len(s.segments)), Chunks: []timeline.Chunk{{
					Rendition: timeline.MainVideo, Time: int64(parsed[0].BaseMediaDecodeTime), Duration: long,
					Independent: true, Size: int64(len(segment)), Object: "o",
				}},
			}})
			s.segments = append(s.segments, segment)
		}
		lines, err := timeline.Build(entries)
		if err != nil {
			t.Fatal(err)
		}
		return &images.Video{Name: "f", Prefix: "media/f/images", Timeline: lines, Source: s}, path
	}
}
