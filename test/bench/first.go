package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// first measures how soon a file can be watched after it was asked for, by its length and by whether its pictures pass
// through.
func (b *bench) first(ctx context.Context) error {
	b.out.begin("From POST to the first segment: 1080p30 of 4 Mbit/s, fetched over loopback", "-")
	for _, codec := range []string{"H.264", "HEVC"} {
		for _, minutes := range []int{1, 10, 60} {
			name := fmt.Sprintf("%s, %d min", codec, minutes)
			if !strings.Contains(name, b.offers) {
				continue
			}
			path, err := b.film(ctx, codec, minutes)
			if err != nil {
				return err
			}
			var took []float64
			for range max(3, b.rounds) {
				ms, err := b.firstOf(ctx, path)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				took = append(took, ms)
			}
			b.out.alone(name+", median", "ms", median(took), "")
			b.out.alone(name+", worst", "ms", percentile(took, 1), "")
		}
	}
	return nil
}

// firstOf has a service of its own fetch a file: what is encoded behind the first segment disturbs nobody.
func (b *bench) firstOf(ctx context.Context, path string) (float64, error) {
	o, s, stop, err := b.offering(ctx, path)
	if err != nil {
		return 0, err
	}
	defer stop()
	start := time.Now()
	got, err := s.firstSegment(ctx, o.url)
	return milliseconds(got.Sub(start)), err
}
