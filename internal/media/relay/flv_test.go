package relay

import (
	"bytes"
	"encoding/hex"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/bluenviron/gortmplib"
	"github.com/bluenviron/gortmplib/pkg/message"

	"millrace/internal/media/codec/opus"
	"millrace/internal/media/frame"
)

// FLAC's STREAMINFO of 48 kHz stereo with 16 bits.
var streamInfo = []byte{
	0x10, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x0b, 0xb8, 0x02, 0xf0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0,
}

// Parameter sets of x265, 322x180, and a sequence header of libaom.
var (
	hevcConfig = frame.Config{
		Kind: frame.Video, Codec: frame.HEVC, VPS: unhex("40010c01ffff01600000030090000003000003003c959409"),
		SPS: unhex("42010101600000030090000003000003003ca00a880c1c44f965654a4c2f016808000003000800000300c840"),
		PPS: unhex("4401c073c189"),
	}
	av1Config = frame.Config{Kind: frame.Video, Codec: frame.AV1, Header: unhex("0a0b000000043d06cc02f80040")}
	vp9Config = frame.Config{Kind: frame.Video, Codec: frame.VP9, Header: []byte{0, 31, 0x80, 2, 2, 2, 0, 0}}
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// TestIndependentServerReadsEveryCodec publishes to the library's server connection.
func TestIndependentServerReadsEveryCodec(t *testing.T) {
	t.Parallel()
	box, err := opus.Header(2)
	if err != nil {
		t.Fatal(err)
	}
	audio := func(c frame.Codec, header []byte) frame.Config {
		return frame.Config{Kind: frame.Audio, Codec: c, Header: header, SampleRate: 48000, Channels: 2}
	}
	for name, tt := range map[string]struct {
		video, audio frame.Config
		enhanced     bool
	}{
		"H.264 and AAC":  {h264Config, aacConfig, false},
		"H.264 and MP3":  {h264Config, audio(frame.MP3, nil), false},
		"HEVC and Opus":  {hevcConfig, audio(frame.Opus, box), true},
		"AV1 and AC-3":   {av1Config, audio(frame.AC3, nil), true},
		"VP9 and FLAC":   {vp9Config, audio(frame.FLAC, streamInfo), true},
		"H.264 and Opus": {h264Config, audio(frame.Opus, box), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln := listen(t)
			defer ln.Close()
			got := make(chan []message.Message, 1)
			go func() { got <- takeAll(t, ln, tt.enhanced) }()
			w := start(t, Options{
				Dial:    loopback,
				Targets: []Target{{ID: "a", URL: "rtmp://" + ln.Addr().String() + "/live2/x?backup=1", Key: streamKey}},
			})
			p := w.Join("rtmp")
			p.Configure(tt.video)
			p.Configure(tt.audio)
			for n := range 30 {
				p.Write(picture(n))
				p.Write(sound(n))
			}
			w.await("a", Up, 1)
			p.Close()
			w.stop()
			checkMessages(t, <-got, tt.video, tt.audio)
		})
	}
}

// takeAll serves one publisher until it ends its stream, and gives what it sent.
func takeAll(t *testing.T, ln net.Listener, enhanced bool) (all []message.Message) {
	t.Helper()
	nc, err := ln.Accept()
	if err != nil {
		t.Error(err)
		return nil
	}
	defer nc.Close()
	c := &gortmplib.ServerConn{RW: nc}
	if err := c.Initialize(); err != nil {
		t.Error(err)
		return nil
	}
	if (len(c.FourCcList) > 0) != enhanced {
		t.Errorf("codecs announced: %v", c.FourCcList)
	}
	if err := c.AcceptConn(); err != nil {
		t.Error(err)
		return nil
	}
	if err := c.AcceptAction(); err != nil {
		t.Error(err)
		return nil
	}
	if u := c.URL.String(); !c.Publish ||
		u != "rtmp://"+ln.Addr().String()+"/live2/x?backup=1/"+streamKey &&
			u != "rtmp://"+ln.Addr().String()+"/live2/x/"+streamKey+"?backup=1" {
		t.Errorf("publish %v to %s", c.Publish, u)
	}
	_ = nc.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for {
		m, err := c.Read()
		if err != nil {
			t.Errorf("after %d messages: %v", len(all), err)
			return all
		}
		if cmd, ok := m.(*message.CommandAMF0); ok && cmd.Name == "deleteStream" {
			return all
		}
		all = append(all, m)
	}
}

func checkMessages(t *testing.T, all []message.Message, video, audio frame.Config) {
	t.Helper()
	pictures, sounds, farewell := 0, 0, false
	for _, m := range all {
		switch m := m.(type) {
		case *message.DataAMF0:
		case *message.CommandAMF0:
			farewell = farewell || m.Name == "FCUnpublish"
		case *message.Video:
			if m.Type == message.VideoTypeAU {
				wantPicture(t, m.DTS, m.PTSDelta, m.IsKeyFrame, m.AU, pictures)
				pictures++
			}
		case *message.VideoExSequenceStart:
			if video.Codec == frame.VP9 && (m.VP9Config.Level != 31 || m.VP9Config.BitDepth != 8) ||
				video.Codec == frame.HEVC && len(m.HEVCConfig.NaluArrays) != 3 ||
				video.Codec == frame.AV1 && !bytes.Contains(m.AV1Config.ConfigOBUs, av1Config.Header) {
				t.Errorf("sequence header %+v", m)
			}
		case *message.VideoExCodedFrames:
			pictures++
		case *message.Audio:
			if m.Codec == message.CodecMPEG1Audio || m.AACType == message.AudioAACTypeAU {
				if want := sound(sounds); !slices.Equal(m.AU, want.Data) || m.DTS != want.DTS {
					t.Errorf("sound %d: %q at %v", sounds, m.AU, m.DTS)
				}
				sounds++
			}
		case *message.AudioExSequenceStart:
			if audio.Codec == frame.Opus && (m.OpusConfig == nil || m.OpusConfig.ChannelCount != 2) {
				// FLAC's has a signature in front, by the specification, which the library takes for parameters
				t.Errorf("sequence header %+v", m)
			}
		case *message.AudioExCodedFrames:
			if want := sound(sounds); !slices.Equal(m.Payload, want.Data) || m.DTS != want.DTS {
				t.Errorf("sound %d: %q at %v", sounds, m.Payload, m.DTS)
			}
			sounds++
		default:
			t.Errorf("unexpected %T", m)
		}
	}
	if pictures != 30 || sounds != 30 || !farewell {
		t.Errorf("%d pictures, %d sounds, farewell %v", pictures, sounds, farewell)
	}
}

func wantPicture(t *testing.T, dts, offset time.Duration, key bool, data []byte, n int) {
	t.Helper()
	want := picture(n)
	if dts != want.DTS || offset != want.PTS-want.DTS || key != want.Key || !bytes.Equal(data, want.Data) {
		t.Errorf("picture %d: %q at %v + %v, key %v", n, data, dts, offset, key)
	}
}
