package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts/codecs"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts/substructs"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/frame"
)

// tsStart is where the transport stream's clock begins, so that the program's clock, which runs ahead of it, is never
// negative.
const tsStart = time.Second

// errTracks ends a link whose tracks have changed: a receiver takes a transport stream's tracks from its first tables.
var errTracks = errors.New("the tracks have changed")

// tsCarries says why a track can not go into a transport stream.
func tsCarries(c frame.Config) error {
	switch c.Codec {
	case frame.H264, frame.HEVC, frame.AAC, frame.Opus, frame.AC3, frame.MP3:
		return nil
	case frame.AV1, frame.VP9, frame.VP8, frame.FLAC:
	}
	return impossible("a transport stream does not carry %s of codec %q", c.Kind, c.Codec)
}

// tsWriter muxes frames into a transport stream and writes it in SRT packets.
type tsWriter struct {
	out     io.Writer
	buf     []byte
	mux     *mpegts.Writer
	configs [2]*frame.Config
	tracks  [2]*mpegts.Track
}

func newTSWriter(out io.Writer, configs []frame.Config) (*tsWriter, error) {
	w := &tsWriter{out: out}
	var tracks []*mpegts.Track
	for _, c := range configs {
		codec, err := tsCodec(c)
		if err != nil {
			return nil, err
		}
		t := &mpegts.Track{Codec: codec}
		w.configs[c.Kind], w.tracks[c.Kind] = &c, t
		tracks = append(tracks, t)
	}
	w.mux = &mpegts.Writer{W: packets{w}, Tracks: tracks}
	if err := w.mux.Initialize(); err != nil {
		return nil, fmt.Errorf("begin transport stream: %w", err)
	}
	return w, nil
}

func tsCodec(c frame.Config) (codecs.Codec, error) {
	switch c.Codec {
	case frame.H264:
		return &codecs.H264{}, nil
	case frame.HEVC:
		return &codecs.H265{}, nil
	case frame.AAC:
		var asc mpeg4audio.AudioSpecificConfig
		if err := asc.Unmarshal(c.ASC); err != nil {
			return nil, impossible("the sound's parameters can not be written: %s", err)
		}
		if asc.Type != mpeg4audio.ObjectTypeAACLC {
			return nil, impossible("ADTS carries AAC-LC alone, the sound is of object type %d", asc.Type)
		}
		return &codecs.MPEG4Audio{Config: asc}, nil
	case frame.Opus:
		return &codecs.Opus{Desc: &substructs.OpusAudioDescriptor{ChannelConfigCode: uint8(c.Channels)}}, nil
	case frame.AC3:
		return &codecs.AC3{SampleRate: c.SampleRate, ChannelCount: c.Channels}, nil
	case frame.MP3:
		return &codecs.MPEG1Audio{}, nil
	case frame.AV1, frame.VP9, frame.VP8, frame.FLAC:
	}
	return nil, tsCarries(c)
}

// configure takes a track's parameters. New parameter sets of a picture go in front of its next key frame; whatever
// else changes is another stream.
func (tw *tsWriter) configure(c frame.Config) error {
	if err := tsCarries(c); err != nil {
		return err
	}
	old := tw.configs[c.Kind]
	if old == nil || old.Codec != c.Codec || !bytes.Equal(old.ASC, c.ASC) || !bytes.Equal(old.Header, c.Header) {
		return errTracks
	}
	tw.configs[c.Kind] = &c
	return nil
}

func (tw *tsWriter) write(f frame.Frame) error {
	t, c := tw.tracks[f.Kind], tw.configs[f.Kind]
	if t == nil || len(f.Data) == 0 {
		return nil
	}
	pts, dts := ticks(f.PTS), ticks(f.DTS)
	var err error
	switch c.Codec {
	case frame.H264:
		err = tw.mux.WriteH264(t, pts, dts,
			tw.units(f, func(u []byte) bool { k := h264.Type(u); return k == h264.TypeSPS || k == h264.TypePPS }, c.SPS,
				c.PPS))
	case frame.HEVC:
		err = tw.mux.WriteH265(t, pts, dts, tw.units(f, hevc.IsSet, c.VPS, c.SPS, c.PPS))
	case frame.AAC:
		err = tw.mux.WriteMPEG4Audio(t, pts, [][]byte{f.Data})
	case frame.Opus:
		err = tw.mux.WriteOpus(t, pts, [][]byte{f.Data})
	case frame.AC3:
		err = tw.mux.WriteAC3(t, pts, f.Data)
	case frame.MP3:
		err = tw.mux.WriteMPEG1Audio(t, pts, [][]byte{f.Data})
	case frame.AV1, frame.VP9, frame.VP8, frame.FLAC:
	}
	if err != nil {
		return err
	}
	return tw.flush()
}

// units splits an access unit; parameter sets stand in front of each key frame, once.
func (tw *tsWriter) units(f frame.Frame, isSet func([]byte) bool, sets ...[]byte) [][]byte {
	var all [][]byte
	if f.Key {
		all = append(all, sets...)
	}
	for u := range h264.NALs(f.Data, 4) {
		if len(u) > 0 && (!f.Key || !isSet(u)) {
			all = append(all, u)
		}
	}
	return all
}

// ticks is a time of the relay's clock in 1/90000 s.
func ticks(t time.Duration) int64 {
	return (int64(t+tsStart)*9 + 50_000) / 100_000
}

func (tw *tsWriter) flush() error {
	defer func() { tw.buf = tw.buf[:0] }()
	for b := tw.buf; len(b) > 0; {
		n := min(len(b), srtPayload)
		if _, err := tw.out.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// packets collects what the muxer writes.
type packets struct{ w *tsWriter }

func (p packets) Write(b []byte) (int, error) {
	p.w.buf = append(p.w.buf, b...)
	return len(b), nil
}
