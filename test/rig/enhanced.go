package rig

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
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
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/opus"
)

// Clips are a picture and its sound, encoded by ffmpeg, to be sent over RTMP by an encoder of the test's own: Debian's
// ffmpeg does not speak Enhanced RTMP yet, and none tells lies about its clock. In the middle of each second the
// picture is white for three frames and a beep is heard, so that a cut at a second, where the key frames are, cuts no
// flash.
type Clips struct {
	video, audio []timed
}

// timed is a sample and when it is decoded; it is presented by offset later.
type timed struct {
	at, offset time.Duration
	key        bool
	data       []byte
	track      *gortmplib.Track
}

// encoders are options of ffmpeg's: small pictures of one size and one kind have one set of parameters.
var encoders = map[string][]string{ //nolint:gochecknoglobals // a table
	"libx264": {"-preset", "ultrafast", "-bf", "2", "-sc_threshold", "0"},
	"libx265": {
		"-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params", "log-level=none:keyint=30:open-gop=0:pools=1",
	},
	"libaom-av1": {"-cpu-used", "8", "-usage", "realtime"},
	"aac":        nil,
	"libopus":    nil,
}

// Record makes a clip with two of ffmpeg's encoders.
func Record(t testing.TB, video, audio, size string, seconds int) *Clips {
	t.Helper()
	picture := fmt.Sprintf(
		"testsrc2=size=%s:rate=30:duration=%d,drawbox=x=0:y=0:w=iw:h=ih:color=white:t=fill:enable='between(mod(n,30),15,17)'", size, seconds)
	sound := fmt.Sprintf("aevalsrc='0.8*sin(2*PI*1000*t)*between(mod(t,1),0.5,0.6)':s=48000:d=%d", seconds)
	return &Clips{
		video: encodeTrack(t,
			append([]string{
				"-f", "lavfi", "-i", picture, "-c:v", video, "-pix_fmt", "yuv420p", "-g", "30", "-b:v", "300k",
			}, encoders[video]...)),
		audio: encodeTrack(t,
			append([]string{"-f", "lavfi", "-i", sound, "-c:a", audio, "-ac", "2"}, encoders[audio]...)),
	}
}

// Wire is an RTMP connection that publishes.
type Wire struct {
	client *gortmplib.Client
}

// Dial connects to rtmp(s)://host:port/app and publishes on a key.
func Dial(ctx context.Context, server, key string) (*Wire, error) {
	u, err := url.Parse(server + "/app#" + key)
	if err != nil {
		return nil, fmt.Errorf("read URL: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	w := &Wire{&gortmplib.Client{URL: u, Publish: true, TLSConfig: &tls.Config{InsecureSkipVerify: true}}}
	if err := w.client.Initialize(ctx); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return w, nil
}

// Play sends what a clip has from one second on for some time, in real time, its parameters first. clock is what the
// encoder's clock says at the beginning, lag is by how many seconds the picture begins later than the sound.
func (w *Wire) Play(clips *Clips, from, lag int, long, clock time.Duration) error {
	var all []timed
	begin := time.Duration(from) * time.Second
	first, end := begin+time.Duration(lag)*time.Second, begin+long
	open := false
	for _, s := range clips.video {
		at := s.at + s.offset
		if s.key { // a group that begins in time is sent, up to the end
			open = at >= first
		}
		if open && at < end {
			all = append(all, s)
		}
	}
	for _, s := range clips.audio {
		if s.at >= begin && s.at < end {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return errors.New("nothing to play")
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	out := &gortmplib.Writer{Conn: w.client, Tracks: []*gortmplib.Track{clips.video[0].track, clips.audio[0].track}}
	if err := out.Initialize(); err != nil {
		return err
	}
	began := time.Now()
	for _, s := range all {
		Pause(time.Until(began.Add(s.at - begin)))
		s.at += clock - begin
		if err := sendOne(out, s); err != nil {
			return err
		}
	}
	Pause(time.Until(began.Add(long)))
	return nil
}

// Sent is how many bytes the connection has carried.
func (w *Wire) Sent() int64 { return int64(w.client.BytesSent()) }

// Bye ends the stream as encoders do.
func (w *Wire) Bye() error {
	err := w.client.Write(&message.CommandAMF0{ChunkStreamID: 3, Name: "deleteStream", Arguments: amf0.Data{nil, 1.0}})
	w.client.Close()
	return err
}

// Drop resets the connection.
func (w *Wire) Drop() {
	if c, ok := w.client.NetConn().(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	w.client.Close()
}

// PublishEnhanced sends picture and Opus to rtmp(s)://host:port/app and a key, says goodbye, and gives what went wrong.
func PublishEnhanced(t testing.TB, server, key, video string, seconds int) <-chan error {
	t.Helper()
	clips := Record(t, video, "libopus", "320x180", seconds)
	w, err := Dial(t.Context(), server, key)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		defer w.client.Close()
		done <- errors.Join(w.Play(clips, 0, 0, time.Duration(seconds)*time.Second, time.Second), w.Bye())
	}()
	t.Cleanup(w.client.Close)
	return done
}

func sendOne(w *gortmplib.Writer, s timed) error {
	switch s.track.Codec.(type) {
	case *codecs.H264:
		var au h264.AVCC
		if err := au.Unmarshal(s.data); err != nil {
			return err
		}
		return w.WriteH264(s.track, s.at+s.offset, s.at, au)
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
	case *codecs.MPEG4Audio:
		return w.WriteMPEG4Audio(s.track, s.at, s.data)
	}
	return w.WriteOpus(s.track, s.at, s.data)
}

// encodeTrack has ffmpeg encode one track and gives its samples.
func encodeTrack(t testing.TB, args []string) (samples []timed) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "track.mp4")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args = append(append([]string{"-nostdin", "-loglevel", "error", "-y"}, args...), "-movflags",
		"frag_keyframe+delay_moov+default_base_moof", file)
	if out, err := exec.CommandContext(ctx, FFmpeg(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("make track: %v: %s", err, out)
	}
	f, err := mp4.ReadMP4File(file)
	if err != nil {
		t.Fatal(err)
	}
	trak := f.Moov.Trak
	track := &gortmplib.Track{Codec: parameters(trak)}
	lead := int64(0) // what is decoded before second 0 is presented
	if trak.Edts != nil && len(trak.Edts.Elst) > 0 && len(trak.Edts.Elst[0].Entries) > 0 {
		lead = max(trak.Edts.Elst[0].Entries[0].MediaTime, 0)
	}
	scale := func(n int64) time.Duration {
		return (time.Duration(n) * time.Second / time.Duration(trak.Mdia.Mdhd.Timescale)).Round(time.Millisecond)
	}
	for _, s := range f.Segments {
		for _, part := range s.Fragments {
			list, err := part.GetFullSamples(f.Moov.Mvex.Trex)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				at := scale(int64(x.DecodeTime) - lead)
				samples = append(samples, timed{
					at: at, offset: scale(int64(x.DecodeTime)-lead+int64(x.CompositionTimeOffset)) - at,
					key: x.IsSync(), data: x.Data, track: track,
				})
			}
		}
	}
	return samples
}

// parameters are those of a track that an encoder of the table made.
func parameters(trak *mp4.TrakBox) codecs.Codec {
	switch stsd := trak.Mdia.Minf.Stbl.Stsd; {
	case stsd.AvcX != nil:
		return &codecs.H264{SPS: bytes.Clone(stsd.AvcX.AvcC.SPSnalus[0]), PPS: bytes.Clone(stsd.AvcX.AvcC.PPSnalus[0])}
	case stsd.HvcX != nil:
		var sets [][]byte
		for _, array := range stsd.HvcX.HvcC.NaluArrays {
			if len(array.Nalus) > 0 && len(sets) < 3 {
				sets = append(sets, bytes.Clone(array.Nalus[0]))
			}
		}
		return &codecs.H265{VPS: sets[0], SPS: sets[1], PPS: sets[2]}
	case stsd.Av01 != nil:
		return &codecs.AV1{}
	case stsd.Mp4a != nil:
		return &codecs.MPEG4Audio{
			Config: &mpeg4audio.AudioSpecificConfig{
				Type: mpeg4audio.ObjectTypeAACLC, SampleRate: 48000, ChannelConfig: 2,
			},
		}
	default:
		return &codecs.Opus{IDHeader: &opus.IDHeader{Version: 1, ChannelCount: 2, PreSkip: 312, InputSampleRate: 48000}}
	}
}
