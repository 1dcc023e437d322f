package cmaf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/internal/media/codec"
	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/mp3"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/codec/vp9"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// box is the body of the first box of this type, wherever it stands.
func box(t *testing.T, file []byte, typ string) []byte {
	t.Helper()
	at := bytes.Index(file, []byte(typ))
	if at < 4 {
		t.Fatalf("no %s", typ)
	}
	return file[at+4 : at-4+int(binary.BigEndian.Uint32(file[at-4:]))]
}

var (
	pictures = []string{"-f", "lavfi", "-i", "testsrc2=size=322x180:rate=25:duration=2", "-pix_fmt", "yuv420p"}
	sounds   = []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=2", "-ac", "2"}
)

// peers are the codecs as ffmpeg's encoders and muxer write them, and how their configuration is read back.
var peers = map[string]struct {
	args   []string
	name   string // CODECS
	entry  string // what ffprobe calls it
	config func(t *testing.T, file, first []byte) (frame.Config, error)
	key    func([]byte) bool
}{
	"HEVC": {
		append(slices.Clone(pictures), "-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
			"log-level=none:keyint=25:pools=1"), "hvc1.1.6.L60.90", "hevc hvc1",
		func(t *testing.T, file, _ []byte) (frame.Config, error) {
			vps, sps, pps, _, err := hevc.ParseHVCC(box(t, file, "hvcC"))
			if err != nil {
				return frame.Config{}, err
			}
			return hevc.TrackConfig(vps[0], sps[0], pps[0])
		}, hevc.IsKey,
	},
	"AV1": {
		append(slices.Clone(pictures), "-c:v", "libaom-av1", "-cpu-used", "8", "-g", "25", "-usage", "realtime"),
		"av01.0.00M.08", "av1 av01", func(t *testing.T, file, _ []byte) (frame.Config, error) {
			header, err := av1.ParseConfig(box(t, file, "av1C"))
			if err != nil {
				return frame.Config{}, err
			}
			return av1.TrackConfig(header)
		}, av1.IsKey,
	},
	"VP9": {
		append(slices.Clone(pictures), "-c:v", "libvpx-vp9", "-cpu-used", "8", "-deadline", "realtime", "-g", "25"),
		"vp09.00.11.08", "vp9 vp09", func(t *testing.T, file, first []byte) (frame.Config, error) {
			record, err := vp9.ParseConfig(box(t, file, "vpcC"))
			if err != nil {
				return frame.Config{}, err
			}
			return vp9.TrackConfig(record, first)
		}, vp9.IsKey,
	},
	"Opus": {
		append(slices.Clone(sounds), "-c:a", "libopus"), "opus", "opus Opus",
		func(t *testing.T, file, _ []byte) (frame.Config, error) {
			return opus.TrackConfig(box(t, file, "dOps"))
		}, nil,
	},
	"FLAC": {
		append(slices.Clone(sounds), "-c:a", "flac", "-strict", "-2"), "fLaC", "flac fLaC",
		func(t *testing.T, file, _ []byte) (frame.Config, error) {
			info, err := flac.StreamInfo(box(t, file, "dfLa")[4:])
			if err != nil {
				return frame.Config{}, err
			}
			return flac.TrackConfig(info)
		}, nil,
	},
	"AC-3": {
		append(slices.Clone(sounds), "-c:a", "ac3"), "ac-3", "ac3 ac-3",
		func(_ *testing.T, _, first []byte) (frame.Config, error) {
			return ac3.TrackConfig(first)
		}, nil,
	},
	"MP3": {
		append(slices.Clone(sounds), "-c:a", "libmp3lame"), "mp4a.40.34", "mp3 mp4a",
		func(_ *testing.T, _, first []byte) (frame.Config, error) {
			return mp3.TrackConfig(first)
		}, nil,
	},
	"MP3 at 22 kHz": {
		append(slices.Clone(sounds), "-ar", "22050", "-c:a", "libmp3lame"), "mp4a.40.34", "mp3 mp4a",
		func(_ *testing.T, _, first []byte) (frame.Config, error) {
			return mp3.TrackConfig(first)
		}, nil,
	},
}

// TestEveryCodec puts what ffmpeg encoded into init and media segments of our own and has ffmpeg decode both.
func TestEveryCodec(t *testing.T) {
	t.Parallel()
	for name, tt := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := ffmpeg(t, nil,
				append(slices.Clone(tt.args), "-f", "mp4", "-movflags",
					"+frag_keyframe+empty_moov+default_base_moof+delay_moov", "-use_editlist", "0", "-")...)
			fragments, err := cmaf.ParseFragments(file)
			if err != nil || len(fragments) == 0 {
				t.Fatal(len(fragments), err)
			}
			c, err := tt.config(t, file, fragments[0].Samples[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			if got := codec.Name(c); got != tt.name {
				t.Errorf("named %q, want %q", got, tt.name)
			}
			scale := binary.BigEndian.Uint32(box(t, file, "mdhd")[12:])
			out, err := cmaf.Init(c, scale)
			if err != nil {
				t.Fatal(err)
			}
			clock := codec.ClockOf(c)
			for i, f := range fragments {
				for n, s := range f.Samples {
					if tt.key != nil && tt.key(s.Data) != s.Sync {
						t.Errorf("fragment %d, sample %d: key %v, the muxer says %v", i, n, tt.key(s.Data), s.Sync)
					}
					last := i == len(fragments)-1 && n == len(f.Samples)-1
					if tt.key == nil && !last && clock.Samples(s.Data)*int64(scale) != int64(s.Duration)*clock.Rate {
						t.Errorf("fragment %d, sample %d: %d samples, the muxer says %d ticks of 1/%d s", i, n,
							clock.Samples(s.Data), s.Duration, scale)
					}
				}
				out = cmaf.AppendFragment(out, uint32(i+1), cmaf.TrackID, f.BaseMediaDecodeTime, f.Samples)
			}
			if got, want := frames(t, out, "0:0"), frames(t, file, "0:0"); len(got) < 20 || !slices.Equal(got, want) {
				t.Errorf("%d frames come out, %d went in, or they differ", len(got), len(want))
			}
			if got := probe(t, out); got != tt.entry {
				t.Errorf("ffprobe sees %q", got)
			}
		})
	}
}

func probe(t *testing.T, data []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "in.mp4")
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out := command(t, nil, "ffprobe", "-v", "error", "-show_entries", "stream=codec_name,codec_tag_string", "-of",
		"default=nw=1:nk=1", p)
	return strings.Join(strings.Fields(string(out)), " ")
}

func TestVP8HasNoPlace(t *testing.T) {
	t.Parallel()
	_, err := cmaf.Init(frame.Config{Kind: frame.Video, Codec: frame.VP8, Width: 320, Height: 180}, 90000)
	if !errors.Is(err, cmaf.ErrUnsupported) || !strings.Contains(err.Error(), "choose H.264") {
		t.Error(err)
	}
	for _, c := range []frame.Codec{frame.H264, frame.HEVC, frame.AV1, frame.AAC, "mpeg2"} { // nothing in their headers
		if b, err := cmaf.SampleEntry(frame.Config{Codec: c}); err == nil {
			t.Errorf("%s: %x", c, b)
		}
	}
}
