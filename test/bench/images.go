package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"millrace/test/bench/viewer"
)

// between is how long a viewer looks at a picture before asking for the next: what a program in reserve takes to start
// is not waited for.
const between = 250 * time.Millisecond

// images measures pictures of 60 minutes of 1080p30 that nobody has asked for before, from all over the film, and the
// same once more; and the picture that stands for the whole of an asset, of many.
func (b *bench) images(ctx context.Context) error {
	path, err := b.film(ctx, "H.264", 60)
	if err != nil {
		return err
	}
	o, s, stop, err := b.offering(ctx, path)
	if err != nil {
		return err
	}
	defer stop()
	video, _, err := s.asset(ctx, assetBody(o.url))
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(video.URL(), "/"), "/")
	video.Close()
	c := viewer.NewClient(s.http)
	defer c.Close()
	fetch := func(name string) (float64, error) { return timed(c, "/"+id+"/"+name) }
	if _, err = fetch("thumbnail.jpg?time=1"); err != nil { // the first of all finds no program that waits for it
		return err
	}
	var cold, warm []float64
	for _, to := range []*[]float64{&cold, &warm} {
		for i := range 2 * seeks {
			if err = sleep(ctx, between); err != nil {
				return err
			}
			var took float64
			took, err = fetch(fmt.Sprintf("thumbnail.jpg?width=640&time=%d", 3+(i*7919)%3590))
			if err != nil {
				return err
			}
			*to = append(*to, took)
		}
	}
	board, err := fetch("storyboard.jpg")
	if err != nil {
		return err
	}
	animated, err := fetch("animated.gif?start=100&end=105")
	if err != nil {
		return err
	}
	whole, err := b.posters(ctx)
	if err != nil {
		return err
	}
	b.out.begin("Images of 60 minutes of 1080p30", "-")
	b.out.alone("thumbnail of the whole, cold, median", "ms", median(whole), "")
	b.out.alone("thumbnail of the whole, cold, p95", "ms", percentile(whole, 0.95), "under 150")
	b.out.alone("thumbnail of a moment, cold, median", "ms", median(cold), "")
	b.out.alone("thumbnail of a moment, cold, p95", "ms", percentile(cold, 0.95), "under 150")
	b.out.alone("thumbnail of a moment, warm, median", "ms", median(warm), "")
	b.out.alone("storyboard, cold", "ms", board, "")
	b.out.alone("animated GIF of 5 s, cold", "ms", animated, "")
	return nil
}

// posters is how long it takes each of some assets of a minute to give the picture that stands for it.
func (b *bench) posters(ctx context.Context) (took []float64, err error) {
	path, err := b.film(ctx, "H.264", 1)
	if err != nil {
		return nil, err
	}
	o, s, stop, err := b.offering(ctx, path)
	if err != nil {
		return nil, err
	}
	defer stop()
	c := viewer.NewClient(s.http)
	defer c.Close()
	for range 2 * seeks {
		video, _, err := s.asset(ctx, assetBody(o.url))
		if err != nil {
			return nil, err
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(video.URL(), "/"), "/")
		video.Close()
		if err = sleep(ctx, between); err != nil {
			return nil, err
		}
		one, err := timed(c, "/"+id+"/thumbnail.jpg?width=640")
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}
