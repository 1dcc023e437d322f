package flv_test

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"

	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// FLAC's STREAMINFO of 48 kHz stereo with 16 bits, and an AV1 sequence header of libaom.
var (
	streamInfo = unhex("10001000000000000000" + "0bb802f0" + "0000000000000000000000000000000000000000")
	av1Header  = unhex("0a0b000000043d06cc02f80040")
)

// TestWhatIsWrittenIsRead: frames and parameters of every codec are read as they were written.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	box, err := opus.Header(2)
	if err != nil {
		t.Fatal(err)
	}
	sps, pps := unhex("67640016acd941e08fea100000030010000003032071622d96"), unhex("68ebe3cb22c0")
	for _, c := range []frame.Config{
		{Codec: frame.H264, SPS: sps, PPS: pps},
		{
			Codec: frame.HEVC, VPS: unhex("40010c01ffff01600000030090000003000003003c959409"),
			PPS: unhex("4401c073c189"),
			SPS: unhex("42010101600000030090000003000003003ca00a880c1c44f965654a4c2f016808000003000800000300c840"),
		},
		{Codec: frame.AV1, Header: av1Header},
		{Codec: frame.VP9, Header: unhex("001f800202020000")},
		{Kind: frame.Audio, Codec: frame.AAC, ASC: unhex("1190")},
		{Kind: frame.Audio, Codec: frame.MP3},
		{Kind: frame.Audio, Codec: frame.Opus, Header: box},
		{Kind: frame.Audio, Codec: frame.FLAC, Header: streamInfo},
		{Kind: frame.Audio, Codec: frame.AC3},
	} {
		parse := flv.ParseVideo
		if c.Kind == frame.Audio {
			parse = flv.ParseAudio
		}
		ms := time.Millisecond
		f := frame.Frame{Kind: c.Kind, DTS: 1000 * ms, PTS: 1080 * ms, Key: true, Data: []byte("data")}
		got, err := parse(append(flv.AppendHead(nil, c, f), f.Data...), flv.AnyTrack)
		if c.Kind == frame.Video && (c.Codec == frame.H264 || c.Codec == frame.HEVC) && got.Offset != 80*ms {
			t.Errorf("%s: composition time %v", c.Codec, got.Offset)
		}
		if err != nil || got.Content != flv.MediaFrame || got.Codec != c.Codec || !bytes.Equal(got.Data, f.Data) {
			t.Errorf("%s: %+v, %v", c.Codec, got, err)
		}
		head, err := flv.SequenceHeader(c)
		if err != nil || (head == nil) != (c.Codec == frame.MP3 || c.Codec == frame.AC3) {
			t.Errorf("%s: sequence header %x, %v", c.Codec, head, err)
		}
		if got, err := parse(head, flv.AnyTrack); head != nil &&
			(err != nil || got.Content != flv.Configuration || got.Codec != c.Codec) {
			t.Errorf("%s: sequence header %+v, %v", c.Codec, got, err)
		}
		if !flv.Carries(c.Codec) || flv.CodecID(c.Codec) <= 0 {
			t.Errorf("%s is not carried", c.Codec)
		}
	}
	if flv.Carries(frame.VP8) {
		t.Error("VP8 is carried")
	}
}

// TestParametersOfSound: FLAC's and Opus' are in another form than in a sample entry.
func TestParametersOfSound(t *testing.T) {
	t.Parallel()
	head := func(c frame.Codec, header []byte) []byte {
		b, err := flv.SequenceHeader(frame.Config{Kind: frame.Audio, Codec: c, Header: header})
		if err != nil {
			t.Fatal(err)
		}
		return b[5:]
	}
	if got, err := flac.StreamInfo(head(frame.FLAC, streamInfo)); err != nil || !bytes.Equal(got, streamInfo) {
		t.Errorf("STREAMINFO becomes %x, %v", got, err)
	}
	box, err := opus.Header(2)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := opus.FromHead(head(frame.Opus, box)); err != nil || !bytes.Equal(got, box) {
		t.Errorf("%x becomes %x, %v", box, got, err)
	}
	if _, err := flv.SequenceHeader(frame.Config{Kind: frame.Audio, Codec: frame.Opus, Header: box[:5]}); err == nil {
		t.Error("a short box is taken")
	}
}
