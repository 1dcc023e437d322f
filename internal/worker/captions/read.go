package captions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/captions"
	"millrace/internal/media/closedcaptions"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/download"
	"millrace/internal/media/frame"
)

// names are the channels.
func names() []string { return []string{"cc1", "cc2", "cc3", "cc4"} }

// channels are the captions of a video by channel. It implements closedcaptions.Texts.
type channels struct {
	video bool // there is one
	cues  map[string][]captions.Cue
	many  bool // there are more than a track may have
}

// Publish implements closedcaptions.Texts.
func (c *channels) Publish(channel string, cue captions.Cue) bool {
	if len(c.cues[channel]) >= captions.MaxCues {
		c.many = true
		return false
	}
	c.cues[channel] = append(c.cues[channel], cue)
	return true
}

// read reads the captions of the picture, in times of the presentation. It holds one segment at a time.
func read(ctx context.Context, f download.Footage) (*channels, error) {
	found := &channels{cues: map[string][]captions.Cue{}}
	all := map[string]string{}
	for _, name := range names() {
		all[name] = name
	}
	for _, l := range f.Renditions {
		if l.Kind != frame.Video {
			continue
		}
		found.video = true
		p := pictures{
			from:   l,
			init:   -1,
			reader: closedcaptions.New(time.Duration(math.Round(f.Zero*float64(time.Second))), found, all, nil),
		}
		if err := p.read(ctx); err != nil {
			return nil, err
		}
		break
	}
	return found, found.err()
}

// err says that there are too many.
func (c *channels) err() error {
	if c.many {
		return fault.New(fault.Invalid, "the file's video has more than %d captions", captions.MaxCues)
	}
	return nil
}

// pictures reads the pictures of a rendition.
type pictures struct {
	from   download.Rendition
	reader *closedcaptions.Reader

	init   int // of the segment that was read last; -1: none
	head   []byte
	codec  frame.Codec
	length int    // bytes in front of a NAL unit
	buf    []byte // of the segment, used again
	unit   []byte // of the picture, likewise
}

func (p *pictures) read(ctx context.Context) error {
	end := time.Duration(0)
	for i, c := range p.from.Chunks {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if c.Gap {
			p.reader.Reset(ticks(c.Time, p.from.Timescale))
			continue
		}
		end = ticks(c.Time+c.Duration, p.from.Timescale)
		if err := p.prepare(ctx, c.Init); err != nil {
			return err
		}
		if p.codec == "" {
			continue
		}
		if err := p.segment(ctx, p.from.First+int64(i)); err != nil {
			return err
		}
	}
	p.reader.Reset(end)
	return nil
}

// prepare reads an initialization segment.
func (p *pictures) prepare(ctx context.Context, n int) (err error) {
	if n == p.init {
		return nil
	}
	if p.head, err = p.from.Source.Init(ctx, n); err != nil {
		return fmt.Errorf("read initialization segment: %w", err)
	}
	tracks, err := cmaf.NewReader(bytes.NewReader(p.head), cmaf.ReaderOptions{}).Tracks()
	if err != nil {
		return fmt.Errorf("read initialization segment: %w", err)
	}
	p.init, p.codec, p.length = n, "", 4
	if len(tracks) != 1 {
		return nil
	}
	switch tracks[0].FourCC {
	case "avc1", "avc3":
		p.codec, p.length = frame.H264, tracks[0].LengthSize
	case "hvc1", "hev1":
		p.codec = frame.HEVC
	case "av01":
		p.codec = frame.AV1
	}
	return nil
}

func (p *pictures) segment(ctx context.Context, msn int64) error {
	body, err := p.from.Source.Segment(ctx, msn)
	data := body.Data
	if err == nil && body.Reader != nil {
		data, err = body.Read(p.buf)
		p.buf = data
	}
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	r := cmaf.NewReader(io.MultiReader(bytes.NewReader(p.head), bytes.NewReader(data)), cmaf.ReaderOptions{
		MaxFragment: delivered.MaxSize,
	})
	tracks, err := r.Tracks()
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	for {
		fragments, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read segment: %w", err)
		}
		for _, f := range fragments {
			p.fragment(f, tracks[0].Timescale)
		}
	}
}

func (p *pictures) fragment(f cmaf.Fragment, scale uint32) {
	at := int64(f.BaseMediaDecodeTime)
	for _, s := range f.Samples {
		data := s.Data
		if p.length != 4 {
			p.unit = p.unit[:0]
			for unit := range nal.Units(data, p.length) {
				p.unit = nal.Append(p.unit, unit)
			}
			data = p.unit
		}
		// That a picture is a key frame is left out: the decoding times, which are never behind those of presentation,
		// tell the order.
		p.reader.Picture(p.codec, &frame.Frame{
			Kind: frame.Video,
			DTS:  ticks(at, scale),
			PTS:  ticks(at+int64(s.CompositionOffset), scale),
			Data: data,
		})
		at += int64(s.Duration)
	}
}

// ticks is a time of a timescale.
func ticks(n int64, scale uint32) time.Duration {
	per := int64(max(scale, 1))
	return time.Duration(n/per)*time.Second + time.Duration(n%per)*time.Second/time.Duration(per)
}
