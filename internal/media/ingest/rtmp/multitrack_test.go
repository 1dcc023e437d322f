package rtmp

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/bluenviron/gortmplib/pkg/amf0"
	"github.com/bluenviron/gortmplib/pkg/bytecounter"
	"github.com/bluenviron/gortmplib/pkg/message"

	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/media/rtmpwire"
)

const (
	oneTrack   = 0x00
	manyTracks = 0x10
	manyCodecs = 0x20
)

// part is one track's share of a multitrack message.
type part struct {
	fourCC string
	id     byte
	body   []byte
}

// tracks is a multitrack message by hand.
func tracks(video bool, at uint32, layout, packetType byte, parts ...part) []byte {
	kind, b := byte(8), []byte{0x95, layout | packetType}
	if video {
		kind, b = 9, []byte{0x96, layout | packetType}
	}
	if layout != manyCodecs {
		b = append(b, parts[0].fourCC...)
	}
	for _, p := range parts {
		if layout == manyCodecs {
			b = append(b, p.fourCC...)
		}
		b = append(b, p.id)
		if layout != oneTrack {
			b = append(b, byte(len(p.body)>>16), byte(len(p.body)>>8), byte(len(p.body)))
		}
		b = append(b, p.body...)
	}
	return chunk(kind, at, b...)
}

func idr(n byte) []byte { return []byte{0, 0, 0, 2, 0x65, n} }

// TestFirstTrackOfEachKindIsKept sends several tracks in each layout. Frames of the one that is to be kept end with 1.
func TestFirstTrackOfEachKindIsKept(t *testing.T) {
	t.Parallel()
	avc := func(id byte) part { return part{"avc1", id, testAvcC} }
	pic := func(id, n byte) part { return part{"avc1", id, idr(n)} }
	plain := chunk(9, 0, cat([]byte{0x93}, []byte("avc1"), idr(1))...)
	for name, tt := range map[string]struct {
		raw    []byte
		frames int
		codec  frame.Codec
	}{
		"plain, then one more": {
			cat(videoConfig(testAvcC), tracks(true, 0, oneTrack, 0, avc(1)), plain,
				tracks(true, 0, oneTrack, 3, pic(1, 2)), plain), 2, frame.H264,
		},
		"one track each": {
			cat(tracks(true, 0, oneTrack, 0, avc(0)), tracks(true, 0, oneTrack, 0, avc(1)),
				tracks(true, 0, oneTrack, 3, pic(0, 1)), tracks(true, 0, oneTrack, 3, pic(1, 2))), 1, frame.H264,
		},
		"no number 0": {
			cat(tracks(true, 0, oneTrack, 0, avc(3)), tracks(true, 0, oneTrack, 0, avc(4)),
				tracks(true, 0, oneTrack, 3, pic(4, 2)), tracks(true, 0, oneTrack, 3, pic(3, 1))), 1, frame.H264,
		},
		"no number 0, then plain": {
			cat(tracks(true, 0, oneTrack, 0, avc(3)), tracks(true, 0, oneTrack, 3, pic(3, 1)), videoConfig(testAvcC),
				videoFrame(0), chunk(9, 0, cat([]byte{0x93}, []byte("avc1"), idr(2))...)), 1, frame.H264,
		},
		"many tracks": {
			cat(tracks(true, 0, manyTracks, 0, avc(1), avc(0)), tracks(true, 0, manyTracks, 3, pic(1, 2), pic(0, 1))),
			1, frame.H264,
		},
		"many tracks, no number 0": {
			cat(tracks(true, 0, manyTracks, 0, avc(2), avc(1)), tracks(true, 0, manyTracks, 3, pic(1, 2), pic(2, 1))),
			1, frame.H264,
		},
		"many codecs, others known": {
			cat(tracks(true, 0, manyCodecs, 0, part{"av01", 1, []byte{1}}, avc(0)),
				tracks(true, 0, manyCodecs, 3, part{"av01", 1, []byte{1}}, pic(0, 1))), 1, frame.H264,
		},
		"many codecs, others not": {
			cat(tracks(true, 0, manyCodecs, 0, avc(0), part{"vp08", 1, []byte{1}}),
				tracks(true, 0, manyCodecs, 3, part{"zzzz", 1, []byte{1}}, pic(0, 1))), 1, frame.H264,
		},
		"modifier before tracks": {
			cat(tracks(true, 0, oneTrack, 0, avc(0)),
				chunk(9, 0, cat([]byte{0x97, 2, 0, 0, 1, 0x06, 0x03}, []byte("avc1"), []byte{0}, idr(1))...)), 1,
			frame.H264,
		},
		"kept track not in message": {
			cat(tracks(true, 0, manyTracks, 0, avc(0)), tracks(true, 0, manyTracks, 3, pic(1, 2)),
				tracks(true, 0, oneTrack, 3, pic(0, 1))), 1, frame.H264,
		},
		"audio": {
			cat(
				tracks(false, 0, manyCodecs, 0, part{"mp4a", 0, testASC}, part{"Opus", 1, []byte("OpusHead")}),
				tracks(false, 0, manyCodecs, 1, part{"Opus", 1, []byte{1, 2}}, part{"mp4a", 0, []byte{9, 1}})), 1,
			frame.AAC,
		},
		"audio that says it itself": {cat(
			tracks(false, 0, oneTrack, 1, part{".mp3", 2, mp3Frame(1)}),
			tracks(false, 0, oneTrack, 1, part{".mp3", 1, mp3Frame(2)}),
			chunk(8, 0, cat([]byte{0x2f}, mp3Frame(2))...),
			tracks(false, 26, oneTrack, 1, part{".mp3", 2, mp3Frame(1)})), 2, frame.MP3},
		"tracks that are cut off": {
			cat(videoConfig(testAvcC), chunk(9, 0, 0x96), chunk(9, 0, 0x96, 0x23, 'a'),
				chunk(9, 0, 0x96, 0x13, 'a', 'v', 'c', '1', 0, 0, 0, 9, 1), chunk(8, 0, 0x95), plain), 1, frame.H264,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink, s, cause := publishes(t, tt.raw)
			got := append(sink.Of(frame.Video), sink.Of(frame.Audio)...)
			if len(got) != tt.frames {
				t.Fatalf("%d frames, want %d: %v\n%s", len(got), tt.frames, cause, s.log)
			}
			for _, f := range got {
				if f.Data[len(f.Data)-1] != 1 {
					t.Errorf("frame of another track: %x", f.Data)
				}
			}
			if c, n := sink.Config(got[0].Kind); n != 1 || c.Codec != tt.codec {
				t.Errorf("%d configurations, %+v", n, c)
			}
		})
	}
}

// mp3Frame is a frame of 104 bytes at 48 kHz that ends with n.
func mp3Frame(n byte) []byte {
	b := make([]byte, 96)
	copy(b, []byte{0xff, 0xfb, 0x14, 0xc0})
	b[95] = n
	return b
}

// TestPacketsBesideFrames sends what says nothing that is needed.
func TestPacketsBesideFrames(t *testing.T) {
	t.Parallel()
	hevc, opus := encode(t, frame.HEVC), encode(t, frame.Opus)
	colours, err := amf0.Data{
		"colorInfo", amf0.Object{{Key: "hdrCll", Value: amf0.Object{{Key: "maxFall", Value: 100.0}}}},
	}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	command := chunk(9, 0, cat([]byte{0xd1}, []byte("hvc1"), []byte{0})...) // frame type 5: a seek begins
	commandAndColours := chunk(9, 0, cat([]byte{0xd4}, []byte("hvc1"), colours)...)
	sink, s, _ := publishes(t,
		hevc.start(), hevc.message(0, exMetadata, colours), command, commandAndColours,
		hevc.message(0, 5, []byte{1, 2, 3}), hevc.message(0, 9), hevc.message(0, 15, []byte{1}),
		opus.start(), opus.message(0, 4, []byte{1, 2, 0, 0, 0, 3}), opus.message(0, 4, []byte{2, 2, 0, 1}),
		opus.message(0, 3), opus.message(0, 15),
		hevc.frame(hevc.samples[0]), opus.frame(opus.samples[0]), hevc.message(1, 2), opus.message(1, 2))
	if v, a := len(sink.Of(frame.Video)), len(sink.Of(frame.Audio)); v != 1 || a != 1 {
		t.Errorf("%d and %d frames\n%s", v, a, s.log)
	}
}

// TestFineTimestamps adds what a modifier says to the message's milliseconds.
func TestFineTimestamps(t *testing.T) {
	t.Parallel()
	opus := encode(t, frame.Opus)
	modified := func(at uint32, modifiers []byte) []byte {
		return chunk(8, at, cat([]byte{0x97}, modifiers, []byte("Opus"), opus.samples[0].data)...)
	}
	big := append([]byte{255, 1, 0x03}, make([]byte, 260)...) // 16-bit size, an unknown type
	sink, _, _ := publishes(t, opus.start(),
		modified(0, []byte{2, 0, 0, 0, 0x01}),
		modified(20, []byte{2, 0x07, 0xa1, 0x20, 0x01}),        // 500 000 ns
		modified(40, []byte{2, 0x0f, 0x42, 0x40, 0x01}),        // a whole millisecond is too much
		modified(60, []byte{0, 9, 0x17, 2, 0, 0, 250, 0x01}),   // behind one of an unknown type
		modified(80, cat(big, []byte{0x17, 2, 0, 0, 1, 0x01})), // a large one first
		chunk(8, 90, 0x97), chunk(8, 90, 0x97, 255, 1), chunk(8, 90, 0x97, 9, 1)) // cut off
	want := []time.Duration{
		0, 20*time.Millisecond + 500*time.Microsecond, 40 * time.Millisecond, 60*time.Millisecond + 250,
		80*time.Millisecond + 1,
	}
	if got := dts(sink.Of(frame.Audio)); !slices.Equal(got, want) {
		t.Errorf("frames at %v, want %v", got, want)
	}
}

// TestUnofficialHEVC sends it under number 12, as encoders do that are older than Enhanced RTMP.
func TestUnofficialHEVC(t *testing.T) {
	t.Parallel()
	hevc := encode(t, frame.HEVC)
	b := chunk(9, 0, cat([]byte{0x1c, 0, 0, 0, 0}, hevc.record)...)
	for _, s := range hevc.samples {
		ms := s.offset.Milliseconds()
		b = append(b,
			chunk(9, uint32(s.at.Milliseconds()),
				cat([]byte{0x2c, 1, byte(ms >> 16), byte(ms >> 8), byte(ms)}, s.data)...)...)
	}
	sink, _, _ := publishes(t, b)
	hevc.check(t, sink)
}

// TestMP3FromFFmpeg is its legacy form, number 2.
func TestMP3FromFFmpeg(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	if out, err := ffmpeg(t, "rtmp://"+s.addr+"/app/"+key,
		join(tone, []string{"-c:a", "libmp3lame", "-ar", "44100", "-ac", "1"})...); err != nil {
		t.Fatalf("ffmpeg: %v\n%s", err, out)
	}
	_ = sink.Cause(t)
	if c, n := sink.Config(frame.Audio); n != 1 || c.Codec != frame.MP3 || c.SampleRate != 44100 || c.Channels != 1 ||
		len(sink.Of(frame.Audio)) < 70 {
		t.Errorf("%d configurations, %+v, %d frames\n%s", n, c, len(sink.Of(frame.Audio)), s.log)
	}
}

// TestSeveralFramesInAMessage takes them apart, each at its own time.
func TestSeveralFramesInAMessage(t *testing.T) {
	t.Parallel()
	ac3 := encode(t, frame.AC3)
	sink, _, _ := publishes(t,
		ac3.message(100*time.Millisecond, exCodedFrames, ac3.samples[0].data, ac3.samples[1].data,
			ac3.samples[2].data[:20]))
	if got := dts(sink.Of(frame.Audio)); !slices.Equal(got, []time.Duration{
		100 * time.Millisecond, 132 * time.Millisecond,
	}) {
		t.Errorf("frames at %v", got)
	}
}

// TestParametersChangeOnTheWay changes codecs and sizes, with a sequence header and within the pictures.
func TestParametersChangeOnTheWay(t *testing.T) {
	t.Parallel()
	hevc, av1, vp9, opus, mp3 := encode(t, frame.HEVC), encode(t, frame.AV1), encode(t, frame.VP9),
		encode(t, frame.Opus), encode(t, frame.MP3)
	sink, _, cause := publishes(t,
		videoConfig(testAvcC), videoFrame(0), hevc.start(), videoFrame(1), hevc.frame(hevc.samples[0]), av1.start(),
		av1.frame(av1.samples[0]),
		vp9.start(), vp9.frame(vp9.samples[0]), hevc.start(), hevc.frame(hevc.samples[0]), hevc.start(),
		audioConfig(), audioFrame(0), opus.start(), opus.frame(opus.samples[0]), mp3.frame(mp3.samples[0]),
		audioConfig(), audioFrame(0))
	var got []frame.Codec
	for _, c := range sink.Configs() {
		got = append(got, c.Codec)
	}
	want := []frame.Codec{
		frame.H264, frame.HEVC, frame.AV1, frame.VP9, frame.HEVC, frame.AAC, frame.Opus, frame.MP3, frame.AAC,
	}
	if !slices.Equal(got, want) || len(sink.Of(frame.Video)) != 5 || len(sink.Of(frame.Audio)) != 4 {
		t.Errorf("configurations %v, %d and %d frames: %v", got, len(sink.Of(frame.Video)), len(sink.Of(frame.Audio)),
			cause)
	}
}

// TestParameterSetsInPictures takes others than the sequence header's as new parameters, and the same ones not.
func TestParameterSetsInPictures(t *testing.T) {
	t.Parallel()
	other := slices.Clone(testSPS)
	other[3] = 0x29
	units := func(list ...[]byte) (b []byte) {
		for _, u := range list {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(u))), u...)
		}
		return cat([]byte{0x17, 1, 0, 0, 0}, b, testIDR)
	}
	sink, _, _ := publishes(t, videoConfig(testAvcC), videoFrame(0), chunk(9, 33, units(testSPS, testPPS)...),
		chunk(9, 66, units(other, testPPS)...), chunk(9, 99, units(other)...), chunk(9, 132, units(testSPS)...))
	if _, n := sink.Config(frame.Video); n != 3 || len(sink.Of(frame.Video)) != 5 ||
		!bytes.Equal(sink.Configs()[1].SPS, other) || !bytes.Equal(sink.Configs()[2].SPS, testSPS) ||
		!bytes.Equal(sink.Configs()[2].PPS, testPPS) {
		t.Errorf("%d configurations, %d frames", n, len(sink.Of(frame.Video)))
	}
}

// TestConnectReturnsEnhancements tells encoders that ask what is taken, and others nothing.
func TestConnectReturnsEnhancements(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fields    []amf0.ObjectEntry
		announced bool
	}{
		"version 1": {[]amf0.ObjectEntry{{Key: "fourCcList", Value: amf0.StrictArray{"hvc1", "av01"}}}, true},
		"version 2": {
			[]amf0.ObjectEntry{
				{Key: "videoFourCcInfoMap", Value: amf0.Object{{Key: "*", Value: 1.0}}}, {Key: "capsEx", Value: 3.0},
			}, true,
		},
		"neither": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
			said := send(t, s.addr, opening("app", "rtmp://host/app", key, tt.fields...))
			r := message.NewReader(bytecounter.NewReader(bytes.NewReader(said[1+2*rtmpwire.HandshakeSize:])),
				bytecounter.NewReader(bytes.NewReader(nil)), nil)
			var properties amf0.Object
			for properties == nil {
				m, err := r.Read()
				if err != nil {
					t.Fatal(err)
				}
				if c, ok := m.(*message.CommandAMF0); ok && c.Name == "_result" {
					properties = c.Arguments[0].(amf0.Object)
				}
			}
			list, _ := properties.Get("fourCcList")
			caps, _ := properties.Get("capsEx")
			video, _ := properties.Get("videoFourCcInfoMap")
			audio, _ := properties.Get("audioFourCcInfoMap")
			if !tt.announced {
				if list != nil || caps != nil {
					t.Errorf("told %v", properties)
				}
				return
			}
			codes, _ := list.(amf0.StrictArray)
			videos, _ := video.(amf0.Object)
			if len(codes) != len(flv.VideoFourCCs)+len(flv.AudioFourCCs) || !slices.Contains(codes, any("hvc1")) ||
				caps != 15.0 || len(videos) != len(flv.VideoFourCCs) || audio == nil {
				t.Errorf("told %v", properties)
			}
		})
	}
}
