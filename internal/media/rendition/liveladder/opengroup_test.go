package liveladder_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/rendition/liveladder"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

// shootHEVC is shoot with x265 and groups of two seconds, open as its default has them.
func shootHEVC(t *testing.T, seconds string) film {
	t.Helper()
	const fps = 30
	out, err := os.ReadFile(programtest.SharedMedia(t, "film.mp4",
		"-f", "lavfi", "-i", "testsrc2=size=640x480:rate=30:duration="+seconds,
		"-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-x265-params",
		"open-gop=1:keyint=60:min-keyint=60:scenecut=0:bframes=3:b-adapt=0:log-level=error",
		"-movflags", "+frag_every_frame+empty_moov"))
	if err != nil {
		t.Fatal(err)
	}
	mp4 := cmaf.NewReader(bytes.NewReader(out), cmaf.ReaderOptions{})
	tracks, err := mp4.Tracks()
	if err != nil || len(tracks) != 1 {
		t.Fatalf("%d tracks: %v", len(tracks), err)
	}
	const fields = 8 + 78 // ISO 14496-12 section 12.1.3
	vps, sps, pps, _, err := hevc.ParseHVCC(bmff.Find(tracks[0].SampleEntry[fields:], "hvcC"))
	if err != nil {
		t.Fatal(err)
	}
	var f film
	if f.config, err = hevc.TrackConfig(vps[0], sps[0], pps[0]); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; {
		fragments, err := mp4.Next()
		if errors.Is(err, io.EOF) {
			return f
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range fragments {
			for _, s := range x.Samples {
				at := time.Duration(i) * time.Second / fps
				later := time.Duration(s.CompositionOffset) * time.Second / time.Duration(tracks[0].Timescale)
				f.frames = append(f.frames, frame.Frame{
					Kind: frame.Video, DTS: at, PTS: at + (later*fps).Round(time.Second)/fps,
					Duration: time.Second / fps, Key: hevc.IsKey(s.Data), Data: s.Data,
				})
				i++
			}
		}
	}
}

// TestOpenGroups makes rungs of pictures that refer to some in front of their segment: no encoder's first segment lacks
// any.
func TestOpenGroups(t *testing.T) {
	t.Parallel()
	h264Film := func(b int, params string) func(t *testing.T) film {
		return func(t *testing.T) film { // has one key frame, and is cut where it may have no other
			t.Helper()
			f := shoot(t, "640x480", 30, 14, b, "-x264-params", params)
			for i := range f.frames {
				f.frames[i].Key = h264.HasIDR(f.frames[i].Data)
			}
			return f
		}
	}
	for name, film := range map[string]func(t *testing.T) film{
		"HEVC":              func(t *testing.T) film { return shootHEVC(t, "14") },
		"H.264":             h264Film(3, "open-gop=1:keyint=60:min-keyint=60:scenecut=0:b-adapt=0"),
		"H.264, bit by bit": h264Film(0, "intra-refresh=1:keyint=30"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, m := film(t), &mortal{}
			s := open(t, true, func(o *liveladder.Options) { m.Encoder, o.Encoder = o.Encoder, m })
			s.edge.Target(2, nil)
			s.configure(f)
			s.send(f.frames[:140])
			begun := s.edge.Newest(timeline.MainVideo)
			s.want("270p") // the open segment, and the one before it
			s.send(f.frames[140:230], "270p")
			added := s.edge.Newest(timeline.MainVideo)
			s.want("360p") // likewise, and both from the next segment on
			s.send(f.frames[230:390], "270p", "360p")
			for id, from := range map[string]int64{"270p": begun - 1, "360p": added} {
				for msn := from; msn < s.edge.Newest(timeline.MainVideo)-1; msn++ {
					s.shows(id, msn)
				}
			}
			if n := m.births(); n != 4 {
				t.Errorf("%d encoders", n)
			}
			s.close()
		})
	}
}

// shows checks that a rung's segment begins with a key frame and has the pictures of the source's. Rungs have no
// reordering: a picture that is shown behind the first one of the next segment, which was cut inside of a group, may
// have no place in either.
func (s *studio) shows(id string, msn int64) {
	s.t.Helper()
	_, next, _ := times(s.t, s.segment(timeline.MainVideo, msn+1))
	late := func(at int64) bool { return at > next[0] }
	_, want, _ := times(s.t, s.segment(timeline.MainVideo, msn))
	_, have, keys := times(s.t, s.segment(id, msn))
	want, have = slices.DeleteFunc(want, late), slices.DeleteFunc(have, late)
	if !slices.Equal(have, want) {
		s.t.Errorf("segment %d of %s: pictures shown at %v, not at %v", msn, id, have, want)
	}
	if len(keys) == 0 || keys[0] != 0 {
		s.t.Errorf("segment %d of %s: key frames at %v", msn, id, keys)
	}
}
