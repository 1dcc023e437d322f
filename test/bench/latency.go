package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/viewer"
)

// waits is what a viewer that reads each part at once found, in milliseconds from the moment the part's last frame of
// video was handed to the encoder's socket.
type waits struct {
	listed  []float64 // until the playlist with it was read
	arrived []float64 // until its last byte was read
	missed  int       // parts without a frame that is known, and failed requests
}

// latency compares how long a frame takes from the encoder to a viewer.
func (b *bench) latency(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	b.out.begin("Latency: encoder's last byte of a frame to its part at a viewer", "MediaMTX")
	for _, v := range []struct {
		name  string
		clip  *encoder.Clip
		hints bool
		goal  string
	}{
		{"constant rate, blocking reload then part", clip, false, "p95 at most 10 ms"},
		{"constant rate, preload hint", clip, true, "p95 at most 10 ms"},
		{"variable rate, blocking reload then part", clip.Uneven(), false, "p95 at most half of MediaMTX's"},
	} {
		mine, err := b.wait(ctx, func() (server, error) { return b.millrace() }, v.clip, v.hints)
		if err != nil {
			return err
		}
		var theirs waits
		if b.peer != "" {
			if theirs, err = b.wait(ctx, b.live, v.clip, v.hints); err != nil {
				return err
			}
		}
		for _, q := range []struct {
			name string
			q    float64
			goal string
		}{{"p50", 0.5, ""}, {"p95", 0.95, v.goal}, {"max", 1, ""}} {
			b.out.pair(v.name+", "+q.name, "ms", percentile(mine.arrived, q.q), percentile(theirs.arrived, q.q), q.goal)
		}
		b.out.note("parts %d and %d, missed %d and %d; listed after %.1f and %.1f ms (p50)", len(mine.arrived),
			len(theirs.arrived),
			mine.missed, theirs.missed, median(mine.listed), median(theirs.listed))
	}
	return nil
}

// wait watches one stream for half a window.
func (b *bench) wait(
	ctx context.Context, start func() (server, error), clip *encoder.Clip, hints bool,
) (w waits, err error) {
	s, err := start()
	if err != nil {
		return w, err
	}
	defer s.stop()
	publish, play, err := s.stream("low")
	if err != nil {
		return w, err
	}
	p, err := encoder.Dial(ctx, publish)
	if err != nil {
		return w, err
	}
	defer p.Close()
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	var stamps encoder.Stamps
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = p.Play(publishing, clip, &stamps) })
	defer func() {
		stop()
		wg.Wait()
		err = errors.Join(err, failed)
	}()
	tuned, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	streams, err := viewer.Tune(tuned, s.addr(), play, 100*time.Millisecond)
	if err != nil {
		return w, fmt.Errorf("%s: %w", s.name(), err)
	}
	for _, x := range streams {
		defer x.Close()
	}
	video := streams[0]
	video.Skip()
	show := func(seen viewer.Seen) {
		sent, ok := stamps.Last(seen.Body)
		if !ok {
			w.missed++
			return
		}
		w.listed = append(w.listed, milliseconds(seen.Listed.Sub(sent)))
		w.arrived = append(w.arrived, milliseconds(seen.Arrived.Sub(sent)))
	}
	watching, enough := context.WithTimeout(ctx, b.window/2)
	defer enough()
	follow := video.Follow
	if hints {
		follow = video.FollowHints
	}
	w.missed += follow(watching, show)
	return w, nil
}
