package rtmp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Eyevinn/mp4ff/mp4"
	"github.com/bluenviron/gortmplib"
	"github.com/bluenviron/gortmplib/pkg/amf0"
	"github.com/bluenviron/gortmplib/pkg/codecs"
	"github.com/bluenviron/gortmplib/pkg/message"
	libav1 "github.com/bluenviron/mediacommon/v2/pkg/codecs/av1"
	libflac "github.com/bluenviron/mediacommon/v2/pkg/codecs/flac"
	libopus "github.com/bluenviron/mediacommon/v2/pkg/codecs/opus"

	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest/ingesttest"
)

// Packet types of Enhanced RTMP version 2, VideoPacketType and AudioPacketType.
const (
	exSequenceStart = 0
	exCodedFrames   = 1
	exFramesX       = 3
	exMetadata      = 4
)

// coded is a track as ffmpeg wrote it into an MP4 file, which is the form that frames have here, too.
type coded struct {
	codec   frame.Codec
	fourCC  string
	record  []byte // what a sequence header has; nil for codecs without
	samples []sample
}

type sample struct {
	at, offset time.Duration
	data       []byte
}

func (c coded) kind() frame.Kind {
	if slices.Contains([]frame.Codec{frame.HEVC, frame.AV1, frame.VP9, frame.H264}, c.codec) {
		return frame.Video
	}
	return frame.Audio
}

var (
	encodings = map[frame.Codec][]string{
		frame.HEVC: join(picture, []string{
			"-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-x265-params",
			"log-level=error:keyint=15:bframes=2:pools=1", "-tag:v", "hvc1",
		}),
		frame.AV1: join(picture, []string{
			"-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-g", "15", "-b:v", "300k",
		}),
		frame.VP9: join(picture, []string{
			"-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "15", "-b:v", "300k",
		}),
		frame.Opus: join(tone, []string{"-c:a", "libopus", "-ac", "2"}),
		frame.FLAC: join(tone, []string{"-c:a", "flac", "-ac", "2", "-strict", "-2"}),
		frame.AC3:  join(tone, []string{"-c:a", "ac3", "-ac", "2"}),
		frame.MP3:  join(tone, []string{"-c:a", "libmp3lame", "-ac", "2", "-ar", "44100"}),
	}
	codes = map[frame.Codec]string{
		frame.HEVC: "hvc1", frame.AV1: "av01", frame.VP9: "vp09", frame.Opus: "Opus", frame.FLAC: "fLaC",
		frame.AC3: "ac-3", frame.MP3: ".mp3",
	}
	encoded sync.Map // by codec: once per run
)

// encode gives two seconds of a codec, encoded by ffmpeg.
func encode(t *testing.T, codec frame.Codec) coded {
	t.Helper()
	if c, ok := encoded.Load(codec); ok {
		return c.(coded)
	}
	file := filepath.Join(t.TempDir(), "x.mp4")
	if out, err := runFFmpeg(t,
		join(encodings[codec], []string{
			"-movflags", "frag_keyframe+delay_moov+default_base_moof", file,
		})...); err != nil {
		t.Fatalf("ffmpeg: %v\n%s", err, out)
	}
	f, err := mp4.ReadMP4File(file)
	if err != nil {
		t.Fatal(err)
	}
	c := coded{codec: codec, fourCC: codes[codec], record: record(t, f.Moov.Trak.Mdia.Minf.Stbl.Stsd)}
	scale := func(n int64) time.Duration {
		return time.Duration(n) * time.Second / time.Duration(f.Moov.Trak.Mdia.Mdhd.Timescale)
	}
	for _, s := range f.Segments {
		for _, part := range s.Fragments {
			samples, err := part.GetFullSamples(f.Moov.Mvex.Trex)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range samples {
				c.samples = append(c.samples, sample{
					scale(int64(x.DecodeTime)).Round(time.Millisecond),
					scale(int64(x.CompositionTimeOffset)).Round(time.Millisecond), x.Data,
				})
			}
		}
	}
	if len(c.samples) < 20 {
		t.Fatalf("%d samples of %s", len(c.samples), codec)
	}
	encoded.Store(codec, c)
	return c
}

// record gives the body of the codec's box, or what a sequence header has in its place.
func record(t *testing.T, stsd *mp4.StsdBox) []byte {
	t.Helper()
	var children []mp4.Box
	switch e := stsd.Children[0].(type) {
	case *mp4.VisualSampleEntryBox:
		children = e.Children
	case *mp4.AudioSampleEntryBox:
		children = e.Children
	}
	for _, box := range children {
		var b bytes.Buffer
		if err := box.Encode(&b); err != nil {
			t.Fatal(err)
		}
		body := b.Bytes()[8:]
		switch box.Type() {
		case "hvcC", "av1C", "vpcC":
			return body
		case "dfLa": // version and flags, then metadata blocks
			return append([]byte("fLaC"), body[4:]...)
		case "dOps": // big-endian here, little-endian there
			be, head := binary.BigEndian, append([]byte("OpusHead\x01"), body[1])
			head = binary.LittleEndian.AppendUint16(head, be.Uint16(body[2:]))
			head = binary.LittleEndian.AppendUint32(head, be.Uint32(body[4:]))
			head = binary.LittleEndian.AppendUint16(head, be.Uint16(body[8:]))
			return append(head, body[10:]...)
		}
	}
	return nil
}

// message is one extended message by hand, after the specification's tables.
func (c coded) message(at time.Duration, packetType byte, body ...[]byte) []byte {
	kind, head := byte(8), byte(0x90)|packetType
	if c.kind() == frame.Video {
		kind, head = 9, 0x90|packetType
	}
	return chunk(kind, uint32(at.Milliseconds()), cat([]byte{head}, []byte(c.fourCC), cat(body...))...)
}

func (c coded) start() []byte {
	if c.codec == frame.MP3 || c.codec == frame.AC3 {
		return nil
	}
	return c.message(0, exSequenceStart, c.record)
}

func (c coded) frame(s sample) []byte {
	switch {
	case c.codec == frame.HEVC && s.offset == 0:
		return c.message(s.at, exFramesX, s.data)
	case c.codec == frame.HEVC:
		ms := s.offset.Milliseconds()
		return c.message(s.at, exCodedFrames, []byte{byte(ms >> 16), byte(ms >> 8), byte(ms)}, s.data)
	case c.codec == frame.AV1: // with what a container leaves out
		return c.message(s.at, exCodedFrames, []byte{0x12, 0}, s.data)
	}
	return c.message(s.at, exCodedFrames, s.data)
}

// whole is everything of a track.
func (c coded) whole() []byte {
	b := c.start()
	for _, s := range c.samples {
		b = append(b, c.frame(s)...)
	}
	return b
}

// check holds what a sink got against what was encoded.
func (c coded) check(t *testing.T, sink *ingesttest.Recorder) {
	t.Helper()
	got := sink.Of(c.kind())
	if len(got) != len(c.samples) {
		t.Fatalf("%d frames of %s, want %d", len(got), c.codec, len(c.samples))
	}
	keys := 0
	for i, f := range got {
		want := c.samples[i]
		if f.DTS-got[0].DTS != want.at-c.samples[0].at || f.PTS-f.DTS != want.offset ||
			!bytes.Equal(f.Data, want.data) {
			t.Fatalf("frame %d of %s: at %v and %v with %d bytes, want %v and %v with %d", i, c.codec, f.DTS,
				f.PTS-f.DTS, len(f.Data), want.at, want.offset, len(want.data))
		}
		if f.Key {
			keys++
		}
	}
	config, n := sink.Config(c.kind())
	if n != 1 || config.Codec != c.codec {
		t.Fatalf("%d configurations of %s, the last %+v", n, c.codec, config)
	}
	switch {
	case c.kind() == frame.Video:
		if config.Width != 320 || config.Height != 180 || keys != 4 || !got[0].Key {
			t.Errorf("%s: %dx%d, %d key frames", c.codec, config.Width, config.Height, keys)
		}
	case config.Channels != 2 || config.SampleRate != 48000 && (c.codec != frame.MP3 || config.SampleRate != 44100):
		t.Errorf("%s: %d channels at %d Hz", c.codec, config.Channels, config.SampleRate)
	}
	if c.codec == frame.Opus &&
		binary.BigEndian.Uint16(config.Header[2:]) != binary.LittleEndian.Uint16(c.record[10:]) {
		t.Errorf("header %x of %x", config.Header, c.record)
	}
	if c.codec == frame.HEVC && !bytes.Contains(c.record, config.VPS) {
		t.Errorf("VPS %x", config.VPS)
	}
}

var pairs = map[string][2]frame.Codec{
	"HEVC and Opus": {frame.HEVC, frame.Opus},
	"AV1 and FLAC":  {frame.AV1, frame.FLAC},
	"VP9 and AC-3":  {frame.VP9, frame.AC3},
	"HEVC and MP3":  {frame.HEVC, frame.MP3},
}

// TestEnhancedByTheBook publishes each codec with bytes made after the specification.
func TestEnhancedByTheBook(t *testing.T) {
	t.Parallel()
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			video, audio := encode(t, pair[0]), encode(t, pair[1])
			sink, _, _ := publishes(t, video.whole(), audio.whole())
			video.check(t, sink)
			audio.check(t, sink)
		})
	}
}

// TestEnhancedFromGortmplib publishes the same with a client of other people's making, and a second track of each kind
// that is not kept.
func TestEnhancedFromGortmplib(t *testing.T) {
	t.Parallel()
	for name, pair := range pairs {
		for _, tracks := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d of each", name, tracks), func(t *testing.T) {
				t.Parallel()
				video, audio := encode(t, pair[0]), encode(t, pair[1])
				sink := ingesttest.NewRecorder()
				s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
				u, err := url.Parse("rtmp://" + s.addr + "/live#" + key)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), ingesttest.Patience)
				defer cancel()
				c := &gortmplib.Client{URL: u, Publish: true}
				if err := c.Initialize(ctx); err != nil {
					t.Fatal(err)
				}
				w := &gortmplib.Writer{Conn: c}
				for _, x := range []coded{video, audio} {
					for range tracks {
						w.Tracks = append(w.Tracks, &gortmplib.Track{Codec: x.library(t)})
					}
				}
				if err := w.Initialize(); err != nil {
					t.Fatal(err)
				}
				for n, x := range []coded{video, audio} {
					for _, s := range x.samples {
						for i := range tracks {
							if err := x.write(w, w.Tracks[n*tracks+i], s); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				if err := c.Write(&message.CommandAMF0{
					ChunkStreamID: 3, Name: "deleteStream", Arguments: amf0.Data{nil, 1.0},
				}); err != nil {
					t.Fatal(err)
				}
				c.Close()
				t.Log(sink.Cause(t))
				video.check(t, sink)
				audio.check(t, sink)
			})
		}
	}
}

// library is the track as gortmplib describes it.
func (c coded) library(t *testing.T) codecs.Codec {
	t.Helper()
	switch c.codec {
	case frame.HEVC:
		vps, sps, pps, _, err := hevc.ParseHVCC(c.record)
		if err != nil {
			t.Fatal(err)
		}
		return &codecs.H265{VPS: vps[0], SPS: sps[0], PPS: pps[0]}
	case frame.AV1:
		return &codecs.AV1{}
	case frame.VP9:
		return &codecs.VP9{}
	case frame.Opus:
		le := binary.LittleEndian
		return &codecs.Opus{
			IDHeader: &libopus.IDHeader{
				Version: 1, ChannelCount: c.record[9], PreSkip: le.Uint16(c.record[10:]),
				InputSampleRate: le.Uint32(c.record[12:]),
			},
		}
	case frame.FLAC:
		var info libflac.StreamInfo
		if err := info.Unmarshal(c.record[8:]); err != nil {
			t.Fatal(err)
		}
		return &codecs.FLAC{StreamInfo: &info}
	case frame.AC3:
		return &codecs.AC3{SampleRate: 48000, ChannelCount: 2}
	}
	return &codecs.MPEG1Audio{}
}

func (c coded) write(w *gortmplib.Writer, track *gortmplib.Track, s sample) error {
	switch c.codec {
	case frame.HEVC:
		return w.WriteH265(track, s.at+s.offset, s.at, slices.Collect(nal.Units(s.data, 4)))
	case frame.AV1:
		var obus libav1.Bitstream
		if err := obus.Unmarshal(s.data); err != nil {
			return err
		}
		return w.WriteAV1(track, s.at, obus)
	case frame.VP9:
		return w.WriteVP9(track, s.at, s.data)
	case frame.Opus:
		return w.WriteOpus(track, s.at, s.data)
	case frame.FLAC:
		return w.WriteFLAC(track, s.at, s.data)
	case frame.AC3:
		return w.WriteAC3(track, s.at, s.data)
	}
	return w.WriteMPEG1Audio(track, s.at, s.data)
}
