package slate

import (
	"errors"
	"fmt"
	"io"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/vp9"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// errStill says that an encoder's output is not the closed group of pictures that was asked for.
var errStill = errors.New("no still picture")

// maxStill bounds an encoded still: a key frame, and pictures that say that nothing has changed.
const maxStill = 16 << 20

// Read reads a still as ffmpeg writes it: one video track in fragmented MP4, a key frame first and no other, without
// reordering.
func Read(r io.Reader, want Shape) (*Still, error) {
	mp4 := cmaf.NewReader(io.LimitReader(r, maxStill), cmaf.ReaderOptions{MaxHeader: 1 << 20, MaxFragment: maxStill})
	tracks, err := mp4.Tracks()
	if err != nil {
		return nil, fmt.Errorf("read still: %w", err)
	}
	if len(tracks) != 1 || tracks[0].Kind != frame.Video {
		return nil, fmt.Errorf("read still: %w: %d tracks", errStill, len(tracks))
	}
	s := &Still{FPS: want.FPS}
	for {
		fragments, failed := mp4.Next()
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed != nil {
			return nil, fmt.Errorf("read still: %w", failed)
		}
		for _, f := range fragments {
			for _, sample := range f.Samples {
				if sample.Sync != (len(s.Samples) == 0) || sample.CompositionOffset != 0 {
					return nil, fmt.Errorf("read still: %w: picture %d", errStill, len(s.Samples))
				}
				s.Samples = append(s.Samples, sample.Data)
			}
		}
	}
	if len(s.Samples) == 0 {
		return nil, fmt.Errorf("read still: %w: nothing in it", errStill)
	}
	if s.Config, err = parameters(&tracks[0], s.Samples[0]); err != nil {
		return nil, fmt.Errorf("read still: %w", err)
	}
	if s.Config.Codec != want.Codec {
		return nil, fmt.Errorf("read still: %w: it is %q", errStill, s.Config.Codec)
	}
	s.Config.Width, s.Config.Height, s.Config.FrameRate = want.Width, want.Height, want.FPS
	s.Samples[0] = withSets(&s.Config, s.Samples[0])
	return s, nil
}

// parameters is the configuration of a track whose first picture is key: from its sample entry, or from the picture
// where the codec has it there.
func parameters(t *cmaf.Track, key []byte) (frame.Config, error) {
	const fields = 8 + 78 // ISO 14496-12 section 12.1.3: what is before the boxes of a picture's sample entry
	if t.Config.Codec != "" || len(t.SampleEntry) < fields {
		return t.Config, nil
	}
	boxes := t.SampleEntry[fields:]
	switch t.FourCC {
	case "hvc1", "hev1":
		vps, sps, pps, _, err := hevc.ParseHVCC(bmff.Find(boxes, "hvcC"))
		if err != nil {
			return frame.Config{}, err //nolint:wrapcheck // says what it is
		}
		if len(vps) == 0 || len(sps) == 0 || len(pps) == 0 {
			return frame.Config{}, fmt.Errorf("%w: no parameter sets", errStill)
		}
		return hevc.TrackConfig(vps[0], sps[0], pps[0]) //nolint:wrapcheck // says what it is
	case "av01":
		header := av1.SequenceHeader(key)
		if header == nil {
			return frame.Config{}, fmt.Errorf("%w: no sequence header", errStill)
		}
		return av1.TrackConfig(header) //nolint:wrapcheck // says what it is
	case "vp09":
		record, err := vp9.ParseConfig(bmff.Find(boxes, "vpcC"))
		if err != nil {
			return frame.Config{}, err //nolint:wrapcheck // says what it is
		}
		return vp9.TrackConfig(record, key) //nolint:wrapcheck // says what it is
	}
	return frame.Config{}, fmt.Errorf("%w: a track of %q", errStill, t.FourCC)
}
