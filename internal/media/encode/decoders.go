package encode

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// decoders are the codecs that ffmpeg can decode, by its names. It is asked once.
type decoders struct {
	mu    sync.Mutex
	known map[string]bool
}

// of asks the program at a path, unless that was done.
func (d *decoders) of(ctx context.Context, ffmpeg string) (map[string]bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known != nil {
		return d.known, nil
	}
	listed, err := ask(ctx, ffmpeg, "-codecs")
	if err != nil {
		return nil, fmt.Errorf("list codecs of ffmpeg: %w", err)
	}
	d.known = decodable(listed)
	return d.known, nil
}

// decodable reads the list that ffmpeg -codecs prints: "DEV.LS h264 H.264 …" is decoded, "..V.L. vvc H.266 …" is not.
func decodable(listed string) map[string]bool {
	known := map[string]bool{}
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); len(fields) > 1 && len(fields[0]) == 6 && fields[0][0] == 'D' {
			known[fields[1]] = true
		}
	}
	return known
}
