package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// forwarding is a server whose streams have simulcast targets on another one.
type forwarding struct {
	*millrace
	to      *millrace
	targets int // of each stream
}

func (f *forwarding) stop() {
	f.millrace.stop()
	f.to.stop()
}

func (f *forwarding) stream(latency string) (publish, play string, err error) {
	type target struct {
		URL string `json:"url"`
		Key string `json:"stream_key"`
	}
	targets := make([]target, 0, f.targets)
	for range f.targets {
		s, cerr := f.to.create("standard")
		if cerr != nil {
			return "", "", fmt.Errorf("make destination: %w", cerr)
		}
		targets = append(targets, target{URL: "rtmp://" + f.to.rtmp + "/app", Key: s.StreamKey})
	}
	list, err := json.Marshal(targets)
	if err != nil {
		return "", "", fmt.Errorf("write targets: %w", err)
	}
	c := f.client()
	defer c.Close()
	var s liveStream
	body := fmt.Sprintf(`{"playback_policies":["public"],"latency_mode":%q,"simulcast_targets":%s}`, latency, list)
	if err := call(c, "POST", "/video/v1/live-streams", body, &s); err != nil {
		return "", "", err
	}
	return "rtmp://" + f.rtmp + "/app/" + s.StreamKey, "/" + s.PlaybackIDs[0].ID + ".m3u8", nil
}

// simulcast measures what forwarding costs: the same streams without targets, with one and with six.
func (b *bench) simulcast(ctx context.Context) error {
	const encoders = 5
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	counts := []int{0, 1, 6}
	got := map[int][]usage{}
	for range b.rounds {
		for _, n := range counts {
			u, err := b.usage(ctx, func() (server, error) { return b.forwarding(n) },
				func(s server) publishing { return sending(s, clip) }, encoders, 0)
			if err != nil {
				return err
			}
			got[n] = append(got[n], u)
		}
	}
	pick := func(n int, f func(usage) float64) float64 {
		var v []float64
		for _, u := range got[n] {
			v = append(v, f(u))
		}
		return median(v)
	}
	cores, memory := func(u usage) float64 { return u.cores }, func(u usage) float64 { return u.rss }
	b.out.begin(fmt.Sprintf("%d encoders (720p30 2.5 Mbit/s + AAC), forwarded over RTMP to another millrace", encoders),
		"-")
	for _, n := range counts {
		b.out.alone(fmt.Sprintf("CPU per stream, targets: %d", n), "cores", pick(n, cores), "")
	}
	b.out.alone("CPU per target", "cores", (pick(6, cores)-pick(0, cores))/6, "")
	b.out.alone("resident memory per target", "MiB", (pick(6, memory)-pick(0, memory))/6, "")
	b.out.alone("whole machine busy with 6 targets", "cores", pick(6, func(u usage) float64 { return u.machine }), "")
	return nil
}

func (b *bench) forwarding(targets int) (server, error) {
	to, err := b.millrace()
	if err != nil {
		return nil, err
	}
	from, err := b.millrace()
	if err != nil {
		to.stop()
		return nil, errors.Join(errors.New("start the forwarding server"), err)
	}
	return &forwarding{millrace: from, to: to, targets: targets}, nil
}
