package ondemand_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

// A picture that no decoder takes is left out of the segments with those behind it up to the next key frame. The one
// before it stands: nothing moves.
func TestDamagedPicturesAreLeftOut(t *testing.T) {
	t.Parallel()
	in := ffmpeg(t, "a.mkv", args(picture("7", "30"), sound("7"), h264("60"))...)
	mp4 := programtest.Run(t, "ffmpeg", encode.RewriteArgs{Input: in, Format: encode.Matroska}.Build()...)
	whole := stream(t, mp4)
	var pictures [][]byte
	r := cmaf.NewReader(bytes.NewReader(mp4), cmaf.ReaderOptions{})
	tracks, err := r.Tracks()
	for err == nil {
		var fragments []cmaf.Fragment
		fragments, err = r.Next()
		for _, f := range fragments {
			for _, k := range tracks {
				for _, s := range f.Samples {
					if k.ID == f.TrackID && k.Kind == frame.Video {
						pictures = append(pictures, s.Data)
					}
				}
			}
		}
	}
	if !errors.Is(err, io.EOF) || len(pictures) != 210 {
		t.Fatalf("%d pictures, %v", len(pictures), err)
	}
	for _, i := range []int{70, 75, 150} { // key frames are 0, 60, 120 and 180
		mp4[bytes.Index(mp4, pictures[i])] = 0xff // of its length
	}
	leftOut := -1
	got := streamWith(t, mp4, ondemand.StreamOptions{Prefix: "media/x/", LeftOut: func(n int) { leftOut = n }})
	if leftOut != 80 {
		t.Errorf("%d pictures were left out, want 80", leftOut)
	}
	if is, was := got.timeline.Duration(), whole.timeline.Duration(); is != was {
		t.Errorf("lasts %v, it was %v", is, was)
	}
	for _, id := range []string{timeline.MainVideo, timeline.MainAudio} {
		is, was := got.timeline.Rendition(id), whole.timeline.Rendition(id)
		got.join(t, is)
		if len(is.Chunks) != len(was.Chunks) {
			t.Fatalf("%s: %d segments, there were %d", id, len(is.Chunks), len(was.Chunks))
		}
		for i, c := range is.Chunks {
			if c.Time != was.Chunks[i].Time || c.Duration != was.Chunks[i].Duration {
				t.Errorf("%s: segment %d is %+v, it was %+v", id, i, c, was.Chunks[i])
			}
		}
	}
}
