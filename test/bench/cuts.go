package main

import (
	"context"
	"fmt"
	"time"
)

// cuts is how many clips are made, one after the other.
const cuts = 8

// clips measures how soon a clip plays, from the request to its first segment, and to its last one: stretches of 60
// minutes of 1080p30 from all over the film that begin and end between key frames, so that both ends are made.
func (b *bench) clips(ctx context.Context) error {
	path, err := b.film(ctx, "H.264", 60)
	if err != nil {
		return err
	}
	o, s, stop, err := b.offering(ctx, path)
	if err != nil {
		return err
	}
	defer stop()
	source, id, err := s.asset(ctx, assetBody(o.url))
	if err != nil {
		return err
	}
	source.Close()
	if err = sleep(ctx, 2*time.Second); err != nil { // until the file is dealt with
		return err
	}
	var first, whole []float64
	for i := range cuts {
		from := 11.3 + float64(i)*217.77
		start := time.Now()
		video, _, err := s.asset(ctx,
			fmt.Sprintf(
				`{"inputs":[{"url":"mux://assets/%s","start_time":%.2f,"end_time":%.2f}],"playback_policies":["public"]}`, id, from, from+1500.45))
		if err != nil {
			return err
		}
		segments := video.Playlist().Segments
		for _, end := range []struct {
			to *[]float64
			at int
		}{{&first, 0}, {&whole, len(segments) - 1}} {
			if _, err = video.Fetch(segments[end.at].URI); err != nil {
				video.Close()
				return err
			}
			*end.to = append(*end.to, milliseconds(time.Since(start)))
		}
		video.Close()
	}
	b.out.begin("Clips of 25 minutes out of 60 minutes of 1080p30, cut between key frames", "-")
	b.out.alone("from POST to the first segment, median", "ms", median(first), "")
	b.out.alone("from POST to the first segment, worst", "ms", percentile(first, 1), "under 2000")
	b.out.alone("from POST to the last segment, median", "ms", median(whole), "")
	return nil
}
