package rtmp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bluenviron/gortmplib/pkg/amf0"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/media/rtmpwire"
)

// publishes sends the opening and then b, and gives back the filled sink with its cause.
func publishes(t *testing.T, parts ...[]byte) (*ingesttest.Recorder, *server, error) {
	t.Helper()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	send(t, s.addr, cat(opened(), cat(parts...)))
	cause := sink.Cause(t)
	s.stop()
	return sink, s, cause
}

func dts(frames []frame.Frame) (out []time.Duration) {
	for _, f := range frames {
		out = append(out, f.DTS)
	}
	return out
}

func millis(n []int64) (out []time.Duration) {
	for _, n := range n {
		out = append(out, time.Duration(n)*time.Millisecond)
	}
	return out
}

func TestWaysToEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		last []byte
		want error
	}{
		"FCUnpublish":  {commandBytes("FCUnpublish", key), ingest.ErrEncoderEnded},
		"deleteStream": {commandBytes("deleteStream", 1.0), ingest.ErrEncoderEnded},
		"closeStream":  {commandBytes("closeStream"), ingest.ErrEncoderEnded},
		"hung up":      {nil, io.EOF},
		"in a message": {videoFrame(40)[:20], io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink, _, cause := publishes(t, videoConfig(testAvcC), videoFrame(0), tt.last)
			if !errors.Is(cause, tt.want) {
				t.Errorf("cause %v, want %v", cause, tt.want)
			}
			if len(sink.Of(frame.Video)) != 1 {
				t.Errorf("%d frames", len(sink.Of(frame.Video)))
			}
		})
	}
}

func TestGoodbyeIsNotCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ln, sink := newPipeListener(), ingesttest.NewRecorder()
		s := serveOn(t,
			Options{
				Gate: ingesttest.Gate(func(
					ctx context.Context, _ ingest.Publication,
				) (context.Context, ingest.Sink, error) {
					pub, cancel := context.WithCancel(ctx)
					sink.OnClose = cancel // as a broadcast does whose encoder is gone
					return pub, sink, nil
				}),
			}, ln, nil)
		c, closed := ln.dial()
		if _, err := c.Write(cat(opened(), videoConfig(testAvcC), videoFrame(0),
			commandBytes("FCUnpublish", key))); err != nil {
			t.Fatal(err)
		}
		if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) {
			t.Errorf("cause %v", cause)
		}
		time.Sleep(lingerTime - time.Millisecond)
		// Encoders say FCUnpublish, then deleteStream: a connection closed in between looks like a failure to them.
		select {
		case <-closed:
			t.Error("connection ended before the encoder hung up")
		default:
		}
		if _, err := c.Write(commandBytes("deleteStream", 1.0)); err != nil {
			t.Error(err)
		}
		<-closed // nobody is waited for for ever
		c.Close()
		s.stop()
	})
}

func TestTimestampsWrap(t *testing.T) {
	t.Parallel()
	const base = 1<<32 - 50
	sink, _, _ := publishes(t, videoConfig(testAvcC), audioConfig(),
		videoFrame(base), audioFrame(base+20&0xffffffff), videoFrame(base+33&0xffffffff),
		audioFrame((base+60)&0xffffffff), videoFrame((base+66)&0xffffffff),
		audioFrame(base+45&0xffffffff), videoFrame((base+99)&0xffffffff))
	video, audio := dts(sink.Of(frame.Video)), dts(sink.Of(frame.Audio))
	start := video[0]
	for i := range video {
		video[i] -= start
	}
	for i := range audio {
		audio[i] -= start
	}
	if want := []time.Duration{0, 33e6, 66e6, 99e6}; !slices.Equal(video, want) {
		t.Errorf("video at %v", video)
	}
	if want := []time.Duration{20e6, 60e6, 45e6}; !slices.Equal(audio, want) {
		t.Errorf("audio at %v", audio)
	}
}

func TestChunkHeaders(t *testing.T) {
	t.Parallel()
	body := cat([]byte{0x17, 1, 0, 0, 0}, testIDR)
	n := byte(len(body))
	for name, tt := range map[string]struct {
		raw  []byte
		want []int64 // milliseconds
	}{
		"deltas of format 1, 2 and 3": {cat(
			[]byte{6, 0, 0, 100, 0, 0, n, 9, 1, 0, 0, 0}, body, []byte{0x46, 0, 0, 33, 0, 0, n, 9}, body,
			[]byte{0x86, 0, 0, 34}, body, []byte{0xc6}, body), []int64{100, 133, 167, 201}},
		"format 1 first": {cat([]byte{0x46, 0, 0, 33, 0, 0, n, 9}, body), []int64{33}},
		"format 3 after 0": {
			cat([]byte{6, 0, 0, 100, 0, 0, n, 9, 1, 0, 0, 0}, body, []byte{0xc6}, body), []int64{100, 100},
		},
		"2-byte chunk stream": {cat([]byte{0, 10, 0, 0, 7, 0, 0, n, 9, 1, 0, 0, 0}, body), []int64{7}},
		"3-byte chunk stream": {cat([]byte{1, 10, 2, 0, 0, 7, 0, 0, n, 9, 1, 0, 0, 0}, body), []int64{7}},
		"new message over half": {
			cat([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 8}, []byte{6, 0, 0, 1, 0, 0, n, 9, 1, 0, 0, 0},
				body[:8], []byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 1, 0},
				[]byte{6, 0, 0, 2, 0, 0, n, 9, 1, 0, 0, 0}, body), []int64{2},
		},
		"aborted": {
			cat([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 8}, []byte{6, 0, 0, 1, 0, 0, n, 9, 1, 0, 0, 0},
				body[:8], []byte{2, 0, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 0, 0, 0, 6}, []byte{0xc6}, body[:8], []byte{0xc6},
				body[8:]), []int64{1},
		},
		"interleaved": {
			cat([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 8}, []byte{6, 0, 0, 1, 0, 0, n, 9, 1, 0, 0, 0},
				body[:8],
				[]byte{7, 0, 0, 2, 0, 0, n, 9, 1, 0, 0, 0}, body[:8], []byte{0xc6}, body[8:], []byte{0xc7}, body[8:]),
			[]int64{1, 2},
		},
		"extended, repeated": {
			cat([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 8},
				[]byte{6, 255, 255, 255, 0, 0, n, 9, 1, 0, 0, 0, 1, 0, 0, 0}, body[:8], []byte{0xc6, 1, 0, 0, 0},
				body[8:]), []int64{1 << 24},
		},
		"extended, zero": {
			cat([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 8},
				[]byte{6, 255, 255, 255, 0, 0, n, 9, 1, 0, 0, 0, 1, 0, 0, 0}, body[:8], []byte{0xc6, 0, 0, 0, 0},
				body[8:]), []int64{1 << 24},
		},
		"extended, left out": {
			cat([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 8},
				[]byte{6, 255, 255, 255, 0, 0, n, 9, 1, 0, 0, 0, 1, 0, 0, 0}, body[:8], []byte{0xc6}, body[8:]),
			[]int64{1 << 24},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink, _, cause := publishes(t, videoConfig(testAvcC), tt.raw)
			got := sink.Of(frame.Video)
			if want := millis(tt.want); !slices.Equal(dts(got), want) {
				t.Errorf("frames at %v, want %v (%v)", dts(got), want, cause)
			}
			for _, f := range got {
				if !bytes.Equal(f.Data, testIDR) {
					t.Errorf("data %x", f.Data)
				}
			}
		})
	}
}

func TestFramesOfOddEncoders(t *testing.T) {
	t.Parallel()
	tagBytes := func(kind byte, timestamp byte, body []byte) []byte {
		return cat([]byte{kind, 0, 0, byte(len(body)), 0, 0, timestamp, 0, 0, 0, 0}, body, []byte{
			0, 0, 0, byte(len(body) + 11),
		})
	}
	legacy := cat([]byte{0x17, 1, 0, 0, 0}, testIDR)
	for name, tt := range map[string]struct {
		raw          []byte
		video, audio []int64
		offset       time.Duration
	}{
		"negative composition time": {
			cat(videoConfig(testAvcC), chunk(9, 0, cat([]byte{0x17, 1, 0xff, 0xff, 0xd8}, testIDR)...)),
			[]int64{0},
			nil, -40 * time.Millisecond,
		},
		"largest composition time": {
			cat(videoConfig(testAvcC), chunk(9, 0, cat([]byte{0x17, 1, 0x7f, 0xff, 0xff}, testIDR)...)),
			[]int64{0},
			nil, 8388607 * time.Millisecond,
		},
		"frames before configuration": {
			cat(videoFrame(1), audioFrame(1), videoConfig(testAvcC), audioConfig(), videoFrame(2), audioFrame(3)),
			[]int64{2},
			[]int64{3},
			0,
		},
		"sound first, picture later": {
			cat(audioConfig(), audioFrame(0), audioFrame(2100), videoConfig(testAvcC), videoFrame(2200)),
			[]int64{2200},
			[]int64{0, 2100},
			0,
		},
		"empty messages": {
			cat(videoConfig(testAvcC), chunk(9, 1), chunk(8, 1), videoFrame(2), chunk(9, 3, 0x17, 1, 0, 0, 0),
				chunk(9, 3, 0x17, 2, 0, 0, 0)), []int64{2}, nil, 0,
		},
		"malformed frames": {
			cat(videoConfig(testAvcC), chunk(9, 1, 0x17, 1), chunk(9, 1, 0x17, 1, 0, 0, 0, 0, 0, 0, 99, 1),
				chunk(8, 1, 0xaf), videoFrame(2)), []int64{2}, nil, 0,
		},
		"2-byte lengths": {
			cat(videoConfig(avcC(testSPS, 2)), chunk(9, 2, 0x17, 1, 0, 0, 0, 0, 5, 0x65, 0x88, 0x84, 0, 0x4f)),
			[]int64{2},
			nil, 0,
		},
		"seek command frames": {
			cat(videoConfig(testAvcC), chunk(9, 1, 0x57, 0), videoFrame(2)), []int64{2}, nil, 0,
		},
		"aggregate": {
			cat(videoConfig(testAvcC), audioConfig(),
				chunk(22, 1000,
					cat(tagBytes(9, 50, legacy), tagBytes(8, 60, []byte{0xaf, 1, 9}), tagBytes(18, 0, nil),
						tagBytes(9, 83, legacy))...)), []int64{1000, 1033}, []int64{1010}, 0,
		},
		"broken aggregate": {
			cat(videoConfig(testAvcC), chunk(22, 1000, 9, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 1), videoFrame(2)),
			[]int64{2},
			nil, 0,
		},
		"unknown and AMF3 messages": {
			cat(chunk(16, 0, 1, 2), chunk(17, 0, 0, 5), chunk(15, 0, 0, 5), chunk(19, 0),
				chunk(99, 0, make([]byte, 5000)...), videoConfig(testAvcC), chunk(18, 0, 2, 0), chunk(20, 0),
				videoFrame(2)), []int64{2}, nil, 0,
		},
		"unknown user control, ping": {
			cat([]byte{2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 77, 0, 0, 0, 0},
				[]byte{2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 6, 0, 0, 0, 9},
				[]byte{2, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0}, videoConfig(testAvcC), videoFrame(2)),
			[]int64{2},
			nil,
			0,
		},
		"window of one byte": {
			cat([]byte{2, 0, 0, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, 1}, videoConfig(testAvcC), videoFrame(2)),
			[]int64{2},
			nil, 0,
		},
		"enhanced": {
			cat(chunk(9, 0, cat([]byte{0x90}, []byte("avc1"), testAvcC)...),
				chunk(9, 2, cat([]byte{0x91}, []byte("avc1"), []byte{0, 0, 40}, testIDR)...)),
			[]int64{2},
			nil,
			40 * time.Millisecond,
		},
		"enhanced without offset": {
			cat(chunk(9, 0, cat([]byte{0x90}, []byte("avc1"), testAvcC)...),
				chunk(9, 2, cat([]byte{0x93}, []byte("avc1"), testIDR)...)), []int64{2}, nil, 0,
		},
		"enhanced with modifier": {
			cat(chunk(9, 0, cat([]byte{0x90}, []byte("avc1"), testAvcC)...),
				chunk(9, 2, cat([]byte{0x97, 0, 9, 0x17, 1, 0, 0, 0x13}, []byte("avc1"), testIDR)...)),
			[]int64{2},
			nil,
			0,
		},
		"enhanced multitrack": {
			cat(chunk(9, 0, cat([]byte{0x96, 0x00}, []byte("avc1"), []byte{0}, testAvcC)...),
				chunk(9, 2, cat([]byte{0x96, 0x03}, []byte("avc1"), []byte{0}, testIDR)...),
				chunk(9, 2, cat([]byte{0x96, 0x03}, []byte("avc1"), []byte{1}, testIDR)...)), []int64{2}, nil, 0,
		},
		"enhanced many tracks": {
			cat(videoConfig(testAvcC),
				chunk(9, 2,
					cat([]byte{0x96, 0x13}, []byte("avc1"), []byte{1, 0, 0, 1, 7}, []byte{0, 0, 0, byte(len(testIDR))},
						testIDR)...)), []int64{2}, nil, 0,
		},
		"enhanced many codecs": {
			cat(videoConfig(testAvcC),
				chunk(9, 2,
					cat([]byte{0x96, 0x23}, []byte("hvc1"), []byte{1, 0, 0, 1, 7}, []byte("avc1"),
						[]byte{0, 0, 0, byte(len(testIDR))}, testIDR)...)), []int64{2}, nil, 0,
		},
		"enhanced AAC": {
			cat(chunk(8, 0, cat([]byte{0x90}, []byte("mp4a"), testASC)...),
				chunk(8, 7, cat([]byte{0x91}, []byte("mp4a"), []byte{1, 2})...),
				chunk(8, 7, cat([]byte{0x94}, []byte("mp4a"), []byte{1, 2})...)), nil, []int64{7}, 0,
		},
		"truncated enhanced": {
			cat(videoConfig(testAvcC), chunk(9, 1, 0x90), chunk(9, 1, 0x96), chunk(9, 1, 0x97, 255),
				chunk(9, 1, 0x96, 0x13, 'a', 'v', 'c', '1', 0, 1, 0, 0),
				chunk(9, 1, cat([]byte{0x91}, []byte("avc1"), []byte{1})...), videoFrame(2)), []int64{2}, nil, 0,
		},
		"sequence header in mid-stream": {
			cat(videoConfig(testAvcC), videoFrame(3000000000), videoConfig(testAvcC), videoFrame(3000000033)),
			[]int64{3000000000, 3000000033},
			nil, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink, s, cause := publishes(t, tt.raw)
			video, audio := sink.Of(frame.Video), sink.Of(frame.Audio)
			gotVideo := dts(video)
			if len(gotVideo) > 0 && gotVideo[0] < 0 { // a clock that first said 0 and then more than 2^31
				for i := range gotVideo {
					gotVideo[i] += 1 << 32 * time.Millisecond
				}
			}
			if !slices.Equal(gotVideo, millis(tt.video)) || !slices.Equal(dts(audio), millis(tt.audio)) {
				t.Fatalf("video at %v, audio at %v, want %v and %v: %v\n%s", gotVideo, dts(audio), millis(tt.video),
					millis(tt.audio), cause, s.log)
			}
			for _, f := range video {
				if f.PTS-f.DTS != tt.offset || !f.Key || !bytes.Equal(f.Data, testIDR) {
					t.Errorf("frame %+v", f)
				}
			}
			if !errors.Is(cause, io.EOF) {
				t.Errorf("cause %v", cause)
			}
		})
	}
}

func TestKeyFramesAreIDRs(t *testing.T) {
	t.Parallel()
	sink, _, _ := publishes(t, videoConfig(testAvcC), videoFrame(0),
		chunk(9, 33, cat([]byte{0x17, 1, 0, 0, 0}, testP)...), chunk(9, 66, cat([]byte{0x27, 1, 0, 0, 0}, testIDR)...))
	var keys []bool
	for _, f := range sink.Of(frame.Video) {
		keys = append(keys, f.Key)
	}
	if !slices.Equal(keys, []bool{true, false, true}) {
		t.Errorf("keys %v", keys)
	}
}

func TestNewParameters(t *testing.T) {
	t.Parallel()
	other := slices.Clone(testSPS)
	other[3] = 0x29
	sink, _, _ := publishes(t, videoConfig(testAvcC), videoFrame(0), videoConfig(testAvcC), videoFrame(33),
		videoConfig(avcC(other, 4)), videoFrame(66))
	if c, n := sink.Config(frame.Video); n != 2 || !bytes.Equal(c.SPS, other) {
		t.Errorf("%d configurations, the last with SPS %x", n, c.SPS)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	noTiming := []byte{0x67, 0x42, 0xc0, 0x1e, 0xda, 0x02, 0x80, 0xb4, 0x40}
	body, err := amf0.Data{
		"@setDataFrame", "onMetaData",
		amf0.ECMAArray{{Key: "framerate", Value: 25.0}, {Key: "encoder", Value: "obs-output\n module (v30)"}},
	}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	sink, s, _ := publishes(t, chunk(18, 0, body...), videoConfig(avcC(noTiming, 4)), videoFrame(0))
	if c, n := sink.Config(frame.Video); n != 1 || c.FrameRate != 25 {
		t.Errorf("%d configurations, %+v", n, c)
	}
	if !strings.Contains(s.log.String(), "obs-output module (v30)") {
		t.Errorf("log:\n%s", s.log)
	}
}

func TestUnsupportedIsRefusedWithReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw  []byte
		want string
	}{
		"Sorenson": {
			chunk(9, 0, 0x12, 0), "video codec Sorenson H.263 is not supported, send H.264, HEVC, AV1 or VP9",
		},
		"Screen Video":    {chunk(9, 0, 0x13, 0), "Screen Video"},
		"AV1, unofficial": {chunk(9, 0, 0x1d, 0, 0, 0, 0, 1), "AV1 outside Enhanced RTMP"},
		"unknown video":   {chunk(9, 0, 0x1f, 0), "video codec number 15"},
		"VP8": {
			chunk(9, 0, cat([]byte{0x90}, []byte("vp08"), []byte{1})...), "video codec VP8 is not supported",
		},
		"VP8 frame": {
			chunk(9, 0, cat([]byte{0x91}, []byte("vp08"), []byte{1})...), "video codec VP8 is not supported",
		},
		"VVC":              {chunk(9, 0, cat([]byte{0x90}, []byte("vvc1"), []byte{1})...), "VVC"},
		"unknown code":     {chunk(9, 0, cat([]byte{0x90}, []byte("abcd"), []byte{1})...), "video codec abcd"},
		"unprintable code": {chunk(9, 0, 0x90, 0, 1, 2, 3, 1), "video codec 00010203"},
		"Speex": {
			chunk(8, 0, 0xbf, 1, 2), "audio codec Speex is not supported, send AAC, Opus, FLAC, AC-3 or MP3",
		},
		"Nellymoser":        {chunk(8, 0, 0x6f, 1, 2), "Nellymoser"},
		"A-law":             {chunk(8, 0, 0x7f, 1, 2), "G.711 A-law"},
		"E-AC-3":            {chunk(8, 0, cat([]byte{0x91}, []byte("ec-3"), []byte{1})...), "E-AC-3"},
		"unknown":           {chunk(8, 0, 0xcf, 1, 2), "audio codec number 12"},
		"in mid-way":        {cat(videoConfig(testAvcC), videoFrame(0), chunk(9, 0, 0x12, 0)), "Sorenson"},
		"broken hvcC":       {chunk(9, 0, 0x1c, 0, 0, 0, 0, 1), "video configuration can not be read: malformed HEVC"},
		"broken av1C":       {chunk(9, 0, cat([]byte{0x90}, []byte("av01"), []byte{1})...), "malformed AV1"},
		"broken vpcC":       {chunk(9, 0, cat([]byte{0x90}, []byte("vp09"), []byte{1})...), "malformed VP9"},
		"broken OpusHead":   {chunk(8, 0, cat([]byte{0x90}, []byte("Opus"), []byte{1})...), "malformed Opus"},
		"broken STREAMINFO": {chunk(8, 0, cat([]byte{0x90}, []byte("fLaC"), []byte{1})...), "malformed FLAC"},
		"broken avcC":       {chunk(9, 0, 0x17, 0, 0, 0, 0, 1, 2, 3), "video configuration"},
		"no parameter sets": {chunk(9, 0, 0x17, 0, 0, 0, 0, 1, 0x42, 0, 0x1e, 0xff, 0xe0, 0), "parameter sets"},
		"AAC Main":          {chunk(8, 0, 0xaf, 0, 0x09, 0x90), "audio configuration"},
		"garbage frames": {
			cat(videoConfig(testAvcC), bytes.Repeat(chunk(9, 0, 0x17, 1, 0, 0, 0, 0, 0, 0, 1, 0x65, 9, 9), 150)),
			"can be read",
		},
		"start codes beside sound": {
			cat(videoConfig(testAvcC), audioConfig(), audioFrame(0),
				bytes.Repeat(cat(chunk(9, 0, 0x17, 1, 0, 0, 0, 0, 0, 0, 1, 0x65, 1, 2, 3, 4), audioFrame(0)), 150)),
			"none of the video frames can be read: malformed media message: malformed NAL units: a NAL unit is longer",
		},
		"no sequence header beside sound": {
			cat(audioConfig(), bytes.Repeat(cat(videoFrame(0), audioFrame(0)), maxHeaderless)),
			"no sequence header with the video",
		},
		"no sequence header beside picture": {
			cat(videoConfig(testAvcC), bytes.Repeat(cat(videoFrame(0), audioFrame(0)), maxHeaderless)),
			"no sequence header with the audio",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
			said := send(t, s.addr, cat(opened(), tt.raw))
			if cause := sink.Cause(t); !strings.Contains(cause.Error(), tt.want) {
				t.Errorf("cause %v", cause)
			}
			if !bytes.Contains(said, []byte("NetStream.Publish.Rejected")) || !bytes.Contains(said, []byte(tt.want)) {
				t.Errorf("the encoder is told %q", said[2*rtmpwire.HandshakeSize+1:])
			}
		})
	}
}

func TestKeysInAllPlaces(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		app, tcURL, name string
		want             string
	}{
		"stream name":        {"app", "rtmp://h/app", key, key},
		"live":               {"live", "rtmp://h:1935/live", key, key},
		"query":              {"app", "rtmp://h/app", key + "?token=a/b&c=d", key},
		"query on app":       {"app?x=1", "rtmp://h/app?x=1", key, key},
		"trailing slash":     {"app/", "rtmp://h/app/", "/" + key + "/", key},
		"all in the app":     {"app/" + key, "rtmp://h/app/" + key, "", key},
		"all in the tcUrl":   {"app", "rtmp://h/app/" + key, "", key},
		"app empty":          {"", "rtmp://h/app", key, key},
		"twice":              {"app/" + key, "rtmp://h/app/" + key, key, key},
		"instance":           {"app/_definst_", "rtmp://h/app/_definst_", key, key},
		"quoted":             {"app", "'rtmp://h/app'", key, key},
		"query as name":      {"app/" + key, "rtmp://h/app/" + key, "?a=b", key},
		"no key":             {"app", "rtmp://h/app", "", ""},
		"two parts":          {"app", "rtmp://h/app", "a/b", ""},
		"space":              {"app", "rtmp://h/app", "a b", ""},
		"too long":           {"app", "rtmp://h/app", strings.Repeat("k", maxKey+1), ""},
		"not ours":           {"vod", "rtmp://h/vod", key, ""},
		"not ours but tcUrl": {"vod", "rtmp://h/app", key, key},
	} {
		if got := streamKey(tt.app, tt.tcURL, tt.name); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestGateSeesThePublication(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	var seen ingest.Publication
	s := startServer(t, Options{
		Gate: ingesttest.Gate(func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
			seen = p
			return ctx, sink, nil
		}),
	})
	send(t, s.addr, opened())
	_ = sink.Cause(t)
	s.stop()
	if seen.Protocol != "rtmp" || seen.Key != key || seen.Encoder != "test/1.0" || !seen.Remote.Addr().IsLoopback() ||
		seen.Remote.Port() == 0 {
		t.Errorf("publication %+v", seen)
	}
}
