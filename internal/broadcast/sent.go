package broadcast

import (
	"math"
	"sync"

	"millrace/internal/control/asset"
	"millrace/internal/measure"
	"millrace/internal/media/frame"
)

// sent is what the encoder of a broadcast sends: what the API shows as the input of its recording. The last encoder
// counts.
type sent struct {
	mu       sync.Mutex
	protocol string
	configs  [2]*frame.Config
}

// begin forgets the last encoder.
func (s *sent) begin(protocol string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protocol, s.configs = protocol, [2]*frame.Config{}
}

func (s *sent) configure(c frame.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs[c.Kind] = &c
}

// containers are how media come over a protocol.
var containers = map[string]string{ //nolint:gochecknoglobals // a table
	"rtmp": "flv", "rtmps": "flv", "srt": "mpegts", "whip": "rtp",
}

// inputs tells what was found in the encoder's media, which are the first input of the settings, where these have any,
// and then what was asked for of the others; nil before any media have come. tracks are those of the recording.
func (s *sent) inputs(a asset.Asset, tracks []asset.Track) []asset.InputInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := asset.InputFile{ContainerFormat: containers[s.protocol]}
	for kind, c := range s.configs {
		if c == nil {
			continue
		}
		t := asset.InputTrack{
			Type: frame.Kind(kind).String(), Encoding: string(c.Codec), Width: c.Width, Height: c.Height,
			FrameRate: math.Round(c.FrameRate*1000) / 1000, SampleRate: c.SampleRate, Channels: c.Channels,
		}
		for _, is := range tracks {
			if string(is.Type) == t.Type {
				t.Duration = measure.Seconds(is.Duration)
				if t.FrameRate == 0 && frame.Kind(kind) == frame.Video {
					t.FrameRate = is.MaxFrameRate
				}
			}
		}
		file.Tracks = append(file.Tracks, t)
	}
	if len(file.Tracks) == 0 {
		return nil
	}
	all := make([]asset.InputInfo, max(len(a.Options.Inputs), 1))
	for i, in := range a.Options.Inputs {
		all[i].Settings = in
	}
	all[0].File = file
	return all
}
