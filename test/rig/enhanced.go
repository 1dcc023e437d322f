package rig

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/Eyevinn/mp4ff/mp4"
	"github.com/bluenviron/gortmplib"
	"github.com/bluenviron/gortmplib/pkg/amf0"
	"github.com/bluenviron/gortmplib/pkg/codecs"
	"github.com/bluenviron/gortmplib/pkg/message"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/av1"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/opus"
)

// Enhanced is what an encoder over Enhanced RTMP sends: ffmpeg encodes it into files, gortmplib sends it, in real time. Debian's ffmpeg
// does not speak it yet.
type Enhanced struct {
	Video   string // libx265 or libaom-av1
	Seconds int
}

type timed struct {
	at, offset time.Duration
	data       []byte
	track      *gortmplib.Track
}

// PublishEnhanced sends picture and Opus to rtmp(s)://host:port/app and a key, says goodbye, and gives what went wrong.
func PublishEnhanced(t testing.TB, server, key string, e Enhanced) <-chan error {
	t.Helper()
	sps, picture := encodeTrack(t, "picture.mp4", "-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=320x180:rate=30:duration=%d", e.Seconds),
		"-c:v", e.Video, "-pix_fmt", "yuv420p", "-g", "30", "-b:v", "300k", "-preset", "ultrafast", "-cpu-used", "8", "-usage", "realtime",
		"-x265-params", "log-level=none:keyint=30:open-gop=0:pools=1", "-tag:v", map[bool]string{true: "hvc1", false: "av01"}[e.Video == "libx265"])
	_, sound := encodeTrack(t, "sound.mp4", "-f", "lavfi", "-i", fmt.Sprintf("sine=frequency=440:sample_rate=48000:duration=%d", e.Seconds),
		"-c:a", "libopus", "-ac", "2")
	var video codecs.Codec = &codecs.AV1{}
	if len(sps) == 3 {
		video = &codecs.H265{VPS: sps[0], SPS: sps[1], PPS: sps[2]}
	}
	tracks := []*gortmplib.Track{{Codec: video}, {Codec: &codecs.Opus{IDHeader: &opus.IDHeader{Version: 1, ChannelCount: 2, PreSkip: 312, InputSampleRate: 48000}}}}
	for i := range picture {
		picture[i].track = tracks[0]
	}
	for i := range sound {
		sound[i].track = tracks[1]
	}
	all := slices.Concat(picture, sound)
	slices.SortStableFunc(all, func(a, b timed) int { return int(a.at - b.at) })
	u, err := url.Parse(server + "/app#" + key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := &gortmplib.Client{URL: u, Publish: true, TLSConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test's own server
	if err := c.Initialize(ctx); err != nil {
		t.Fatalf("publish: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		defer c.Close()
		done <- send(c, tracks, all)
	}()
	t.Cleanup(c.Close)
	return done
}

func send(c *gortmplib.Client, tracks []*gortmplib.Track, all []timed) error {
	w := &gortmplib.Writer{Conn: c, Tracks: tracks}
	if err := w.Initialize(); err != nil {
		return err
	}
	begin := time.Now()
	for _, s := range all {
		Pause(time.Until(begin.Add(s.at)))
		if err := sendOne(w, s); err != nil {
			return err
		}
	}
	return c.Write(&message.CommandAMF0{ChunkStreamID: 3, Name: "deleteStream", Arguments: amf0.Data{nil, 1.0}})
}

func sendOne(w *gortmplib.Writer, s timed) error {
	switch s.track.Codec.(type) {
	case *codecs.H265:
		var au h264.AVCC
		if err := au.Unmarshal(s.data); err != nil {
			return err
		}
		return w.WriteH265(s.track, s.at+s.offset, s.at, au)
	case *codecs.AV1:
		var tu av1.Bitstream
		if err := tu.Unmarshal(s.data); err != nil {
			return err
		}
		return w.WriteAV1(s.track, s.at, tu)
	}
	return w.WriteOpus(s.track, s.at, s.data)
}

// encodeTrack has ffmpeg encode one track and gives its samples, and HEVC's VPS, SPS and PPS.
func encodeTrack(t testing.TB, name string, args ...string) (sets [][]byte, samples []timed) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args = append(append([]string{"-nostdin", "-loglevel", "error", "-y"}, args...), "-movflags", "frag_keyframe+delay_moov+default_base_moof", file)
	if out, err := exec.CommandContext(ctx, FFmpeg(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v: %s", name, err, out)
	}
	f, err := mp4.ReadMP4File(file)
	if err != nil {
		t.Fatal(err)
	}
	mdia := f.Moov.Trak.Mdia
	if hvc := mdia.Minf.Stbl.Stsd.HvcX; hvc != nil {
		for _, array := range hvc.HvcC.NaluArrays {
			if len(array.Nalus) > 0 && len(sets) < 3 {
				sets = append(sets, bytes.Clone(array.Nalus[0]))
			}
		}
	}
	scale := func(n int64) time.Duration {
		return (time.Duration(n) * time.Second / time.Duration(mdia.Mdhd.Timescale)).Round(time.Millisecond)
	}
	for _, s := range f.Segments {
		for _, part := range s.Fragments {
			list, err := part.GetFullSamples(f.Moov.Mvex.Trex)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				samples = append(samples, timed{at: scale(int64(x.DecodeTime)), offset: scale(int64(x.CompositionTimeOffset)), data: x.Data})
			}
		}
	}
	return sets, samples
}
