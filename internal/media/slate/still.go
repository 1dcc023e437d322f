package slate

import (
	"errors"
	"fmt"
	"io"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// errStill says that an encoder's output is not the closed group of pictures that was asked for.
var errStill = errors.New("no still picture")

// maxStill bounds an encoded still: a key frame, and pictures that say that nothing has changed.
const maxStill = 16 << 20

// Read reads a still as ffmpeg writes it: one video track in fragmented MP4, a key frame first and no other, without reordering.
func Read(r io.Reader, want Shape) (*Still, error) {
	mp4 := cmaf.NewReader(io.LimitReader(r, maxStill), cmaf.ReaderOptions{MaxHeader: 1 << 20, MaxFragment: maxStill})
	tracks, err := mp4.Tracks()
	if err != nil {
		return nil, fmt.Errorf("read still: %w", err)
	}
	if len(tracks) != 1 || tracks[0].Config.Codec != want.Codec || tracks[0].Kind != frame.Video {
		return nil, fmt.Errorf("read still: %w: %d tracks", errStill, len(tracks))
	}
	s := &Still{Config: tracks[0].Config, FPS: want.FPS}
	for {
		fragments, err := mp4.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read still: %w", err)
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
	s.Config.Width, s.Config.Height, s.Config.FrameRate = want.Width, want.Height, want.FPS
	s.Samples[0] = withSets(&s.Config, s.Samples[0])
	return s, nil
}
