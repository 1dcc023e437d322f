package rtmp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/codec/vp9"
	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

// videoState is what is known of the video's parameters.
type videoState struct {
	codec      frame.Codec
	record     []byte   // the sequence header as last sent; nil before
	lengthSize int      // bytes of the NAL unit lengths
	sets       [][]byte // sequence parameter sets that were told, to notice others between the pictures
	header     []byte   // AV1: sequence header OBU, VP9: record, as told; before that: as the sequence header has it
	config     frame.Config
	announced  bool
}

// configure reads a sequence header. It gives a configuration when there is a new one to be told; AV1's and VP9's waits
// for a key frame, as what some encoders send here is made up.
func (v *videoState) configure(codec frame.Codec, record []byte) (*frame.Config, error) {
	if len(record) == 0 || v.record != nil && v.codec == codec && bytes.Equal(record, v.record) {
		return nil, nil //nolint:nilnil // nothing new
	}
	next := videoState{codec: codec, record: record, lengthSize: 4}
	var c frame.Config
	var err error
	switch codec { //nolint:exhaustive // of pictures, and RTMP has no VP8
	case frame.H264:
		var sps, pps [][]byte
		if sps, pps, next.lengthSize, err = h264.ParseAVCC(record); err == nil {
			c, err = next.fromAVC(sps, pps)
		}
	case frame.HEVC:
		var vps, sps, pps [][]byte
		if vps, sps, pps, next.lengthSize, err = hevc.ParseHVCC(record); err == nil {
			c, err = next.fromHEVC(vps, sps, pps)
		}
	case frame.AV1:
		next.header, err = av1.ParseConfig(record)
	case frame.VP9:
		next.header, err = vp9.ParseConfig(record)
	default:
		err = fmt.Errorf("codec %s", codec)
	}
	if err != nil {
		return nil, ingest.Unsupported("video configuration can not be read: " + err.Error())
	}
	*v = next
	if codec == frame.AV1 || codec == frame.VP9 {
		return nil, nil //nolint:nilnil // with the key frame
	}
	return v.announce(c), nil
}

func (v *videoState) announce(c frame.Config) *frame.Config {
	v.config, v.announced = c, true
	return &c
}

func (v *videoState) fromAVC(sps, pps [][]byte) (frame.Config, error) {
	if len(sps) == 0 || len(pps) == 0 {
		return frame.Config{}, fmt.Errorf("%w: no parameter sets, send them in the sequence header", h264.ErrMalformed)
	}
	v.sets = sps
	return h264.TrackConfig(sps[0], pps[0], slices.Concat(sps[1:], pps[1:])...)
}

func (v *videoState) fromHEVC(vps, sps, pps [][]byte) (frame.Config, error) {
	if len(vps) == 0 || len(sps) == 0 || len(pps) == 0 {
		return frame.Config{}, fmt.Errorf("%w: no parameter sets, send them in the sequence header", hevc.ErrMalformed)
	}
	v.sets = sps
	return hevc.TrackConfig(vps[0], sps[0], pps[0], slices.Concat(vps[1:], sps[1:], pps[1:])...)
}

// read turns a coded frame into a sample. It gives a configuration when the frame brings a new one; a frame without any
// before it can not be used and is nil.
func (v *videoState) read(data []byte) (sample []byte, key bool, c *frame.Config, err error) {
	switch v.codec { //nolint:exhaustive // as in configure
	case frame.H264, frame.HEVC:
		return v.readUnits(data)
	case frame.AV1:
		if sample, err = av1.Sample(data); err != nil {
			return nil, false, nil, fmt.Errorf("%w: %w", flv.ErrMalformed, err)
		}
		if key = av1.IsKey(sample); key {
			c, err = v.learnAV1(sample)
		}
	case frame.VP9:
		if sample, key = data, vp9.IsKey(data); key {
			c, err = v.learnVP9(data)
		}
	default:
		return nil, false, nil, nil
	}
	if err != nil || !v.announced {
		return nil, false, nil, err
	}
	return sample, key, c, nil
}

func (v *videoState) readUnits(au []byte) (sample []byte, key bool, c *frame.Config, err error) {
	if v.lengthSize != 4 {
		au = widen(au, v.lengthSize)
	}
	if err = nal.Check(au); err != nil {
		return nil, false, nil, fmt.Errorf("%w: %w", flv.ErrMalformed, err)
	}
	if v.codec == frame.H264 {
		key = h264.HasIDR(au)
	} else {
		key = hevc.IsKey(au)
	}
	if key {
		c, err = v.learnSets(au)
	}
	return au, key, c, err
}

// learnSets notices parameter sets that come with a key frame and are others than the sequence header's: encoders that
// change the picture do not all send that again.
func (v *videoState) learnSets(au []byte) (*frame.Config, error) {
	var vps, sps, pps [][]byte
	for unit := range nal.Units(au, 4) {
		typ := h264.Type(unit)
		if v.codec == frame.HEVC {
			typ = hevc.Type(unit)
		}
		switch {
		case v.codec == frame.H264 && typ == h264.TypeSPS, v.codec == frame.HEVC && typ == hevc.TypeSPS:
			sps = append(sps, unit)
		case v.codec == frame.H264 && typ == h264.TypePPS, v.codec == frame.HEVC && typ == hevc.TypePPS:
			pps = append(pps, unit)
		case v.codec == frame.HEVC && typ == hevc.TypeVPS:
			vps = append(vps, unit)
		}
	}
	known := func(set []byte) bool {
		return slices.ContainsFunc(v.sets, func(s []byte) bool { return bytes.Equal(s, set) })
	}
	if !slices.ContainsFunc(sps, func(s []byte) bool { return !known(s) }) {
		return nil, nil //nolint:nilnil // nothing new
	}
	if len(vps) == 0 {
		vps = [][]byte{v.config.VPS}
	}
	if len(pps) == 0 {
		pps = [][]byte{v.config.PPS}
	}
	var c frame.Config
	var err error
	if v.codec == frame.H264 {
		c, err = v.fromAVC(sps, pps)
	} else {
		c, err = v.fromHEVC(vps, sps, pps)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: parameter sets: %w", flv.ErrMalformed, err)
	}
	return v.announce(c), nil
}

func (v *videoState) learnAV1(sample []byte) (*frame.Config, error) {
	header := av1.SequenceHeader(sample)
	if v.announced && bytes.Equal(header, v.header) {
		return nil, nil //nolint:nilnil // nothing new
	}
	c, err := av1.TrackConfig(header)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", flv.ErrMalformed, err)
	}
	v.header = header
	return v.announce(c), nil
}

func (v *videoState) learnVP9(key []byte) (*frame.Config, error) {
	c, err := vp9.TrackConfig(v.header, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", flv.ErrMalformed, err)
	}
	if v.announced && c.Width == v.config.Width && c.Height == v.config.Height &&
		bytes.Equal(c.Header, v.config.Header) {
		return nil, nil //nolint:nilnil // nothing new
	}
	return v.announce(c), nil
}

// widen rewrites an access unit with 1 or 2 byte lengths to one with 4.
func widen(au []byte, lengthSize int) []byte {
	out := make([]byte, 0, len(au)+64)
	for unit := range nal.Units(au, lengthSize) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(unit)))
		out = append(out, unit...)
	}
	return out
}
