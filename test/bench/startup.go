package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/viewer"
)

// begun is how long a viewer that was there first waits after the encoder's first frame, in milliseconds.
type begun struct{ playlist, media float64 }

// startup compares how soon a stream can be watched.
func (b *bench) startup(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	mine, err := b.millrace()
	if err != nil {
		return err
	}
	defer mine.stop()
	servers := []server{mine}
	if b.peer != "" {
		theirs, err := b.mediamtx(peerPart, false)
		if err != nil {
			return err
		}
		defer theirs.stop()
		servers = append(servers, theirs)
	}
	var playlist, media [2][]float64
	for range max(3, b.rounds) {
		for i, s := range servers {
			g, err := b.begin(ctx, s, clip)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name(), err)
			}
			playlist[i] = append(playlist[i], g.playlist)
			media[i] = append(media[i], g.media)
		}
	}
	b.out.begin("Start: from the encoder's first frame on (GOP 2 s)", "MediaMTX")
	b.out.pair("first playable playlist, median", "ms", median(playlist[0]), median(playlist[1]), "")
	b.out.pair("first media with a key frame, median", "ms", median(media[0]), median(media[1]), "at most GOP + 1 s")
	b.out.pair("first media with a key frame, worst", "ms", percentile(media[0], 1), percentile(media[1], 1), "")
	return nil
}

func (b *bench) begin(ctx context.Context, s server, clip *encoder.Clip) (g begun, err error) {
	publish, play, err := s.stream("low")
	if err != nil {
		return g, err
	}
	p, err := encoder.Dial(ctx, publish)
	if err != nil {
		return g, err
	}
	defer p.Close()
	publishing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- p.Play(publishing, clip, nil) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	tuned, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	streams, err := viewer.Tune(tuned, s.addr(), play, 20*time.Millisecond)
	if err != nil {
		return g, err
	}
	g.playlist = milliseconds(time.Since(start))
	for _, x := range streams {
		defer x.Close()
	}
	list := streams[0].Playlist()
	first := append(list.Segments, list.Parts...)[0] //nolint:gocritic // neither is used afterwards
	body, err := streams[0].Fetch(first.URI)
	if err != nil {
		return g, err
	}
	g.media = milliseconds(time.Since(start))
	if len(body) < 10000 {
		err = fmt.Errorf("first media of %d bytes only", len(body))
	}
	return g, err
}
