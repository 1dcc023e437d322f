package main

import (
	"context"
	"fmt"
	"time"

	"millrace/test/bench/encoder"
)

// covering is a server whose streams show slate, or not.
type covering struct {
	*millrace
	slate bool
}

func (c *covering) stream(string) (publish, play string, err error) {
	client := c.client()
	defer client.Close()
	var s liveStream
	body := fmt.Sprintf(
		`{"playback_policies":["public"],"latency_mode":"standard","reconnect_window":300,"use_slate_for_standard_latency":%t}`, c.slate)
	if err := call(client, "POST", "/video/v1/live-streams", body, &s); err != nil {
		return "", "", err
	}
	return "rtmp://" + c.rtmp + "/app/" + s.StreamKey, "/" + s.PlaybackIDs[0].ID + ".m3u8", nil
}

// leaving is an encoder that goes away before the window begins.
func (b *bench) leaving(s server, clip *encoder.Clip) publishing {
	return func(ctx context.Context) (string, func(context.Context) error, error) {
		play, send, err := sending(s, clip)(ctx)
		return play, func(ctx context.Context) error {
			short, cancel := context.WithTimeout(ctx, b.warmup/2)
			defer cancel()
			return send(short)
		}, err
	}
}

// slate measures what slate costs: while nothing is missing, against the same streams without, and while it shows.
func (b *bench) slate(ctx context.Context) error {
	const encoders = 10
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	runs := []struct {
		name  string
		slate bool
		by    func(server) publishing
	}{
		{"without slate", false, func(s server) publishing { return sending(s, clip) }},
		{"with slate, and nothing is missing", true, func(s server) publishing { return sending(s, clip) }},
		{"while slate shows", true, func(s server) publishing { return b.leaving(s, clip) }},
	}
	got := make([][]usage, len(runs))
	for range b.rounds {
		for i, r := range runs {
			u, err := b.usage(ctx, func() (server, error) {
				m, err := b.millrace()
				return &covering{m, r.slate}, err
			}, r.by, encoders, 0)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			got[i] = append(got[i], u)
		}
	}
	b.out.begin(fmt.Sprintf("%d encoders (720p30 2.5 Mbit/s + AAC), standard latency, windows of %v", encoders,
		b.window.Round(time.Second)), "-")
	for i, r := range runs {
		var cores, memory []float64
		for _, u := range got[i] {
			cores, memory = append(cores, u.cores), append(memory, u.rss)
		}
		b.out.alone("CPU per stream, "+r.name, "cores", median(cores), "")
		b.out.alone("resident memory per stream, "+r.name, "MiB", median(memory), "")
	}
	return nil
}
