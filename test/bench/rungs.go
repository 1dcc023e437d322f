package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"millrace/test/bench/viewer"
)

// seeks is how many segments of a cold rung are asked for, far apart.
const seeks = 20

// starts is how many assets are begun to be watched in a rung that nobody has watched before.
const starts = 12

// warmUp is by when the segments that were made ahead for the asset before are there.
const warmUp = 5 * time.Second

// rungs measures how soon a rung plays that nobody has watched before: the 480p rung of 60 minutes of 1080p30, from all
// over the film, the same segments once more, and from the beginning.
func (b *bench) rungs(ctx context.Context) error {
	path, err := b.film(ctx, "H.264", 60)
	if err != nil {
		return err
	}
	o, s, stop, err := b.offering(ctx, path)
	if err != nil {
		return err
	}
	defer stop()
	below, segments, err := s.rung(ctx, o.url, "RESOLUTION=854x480")
	if err != nil {
		return err
	}
	c := viewer.NewClient(s.http)
	defer c.Close()
	fetch := func(name string) (float64, error) { return timed(c, below+name) }
	start, err := fetch(segments[0]) // the init segment
	if err != nil {
		return err
	}
	var cold, warm []float64
	for _, to := range []*[]float64{&cold, &warm} {
		for i := range seeks {
			if err = sleep(ctx, between); err != nil {
				return err
			}
			took, failed := fetch(segments[1+(i*7919)%(len(segments)-1)])
			if failed != nil {
				return failed
			}
			*to = append(*to, took)
		}
	}
	begun, err := b.begun(ctx)
	if err != nil {
		return err
	}
	b.out.begin("Just in time: the 480p rung of 60 minutes of 1080p30, 2 s segments", "-")
	b.out.alone("init segment, cold", "ms", start, "")
	b.out.alone("segment, cold, median", "ms", median(cold), "")
	b.out.alone("segment, cold, p95", "ms", percentile(cold, 0.95), "under 1200")
	b.out.note("cold, one after the other: %.0f", cold)
	b.out.alone("segment, warm, median", "ms", median(warm), "")
	b.out.alone("from the beginning (10 minutes): init segment and first segment, cold, median", "ms", median(begun),
		"")
	b.out.alone(fmt.Sprintf("the same, worst of %d", starts), "ms", percentile(begun, 1), "under 1200")
	return nil
}

// begun is how long it takes each of some assets to give the first that a player needs of their 480p rung.
func (b *bench) begun(ctx context.Context) (took []float64, err error) {
	path, err := b.film(ctx, "H.264", 10)
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
	for range starts {
		below, names, err := s.rung(ctx, o.url, "RESOLUTION=854x480")
		if err != nil {
			return nil, err
		}
		if err = sleep(ctx, warmUp); err != nil {
			return nil, err
		}
		sum := 0.0
		for _, name := range names[:2] {
			one, err := timed(c, below+name)
			if err != nil {
				return nil, err
			}
			sum += one
		}
		took = append(took, sum)
	}
	return took, nil
}

// timed gives how many milliseconds a response took.
func timed(c *viewer.Client, path string) (float64, error) {
	start := time.Now()
	r, _, err := c.Get(path)
	if err == nil && r.Status != 200 {
		err = fmt.Errorf("%s returns %d", path, r.Status)
	}
	return milliseconds(time.Since(start)), err
}

// rung makes an asset and gives the folder of one of its media playlists and what that lists, the init segment first.
func (m *millrace) rung(ctx context.Context, url, mark string) (below string, names []string, err error) {
	s, _, err := m.asset(ctx, assetBody(url))
	if err != nil {
		return "", nil, err
	}
	master, _, _ := strings.Cut(strings.TrimPrefix(s.URL(), "/"), "/")
	s.Close()
	c := viewer.NewClient(m.http)
	defer c.Close()
	text := func(path string) (string, error) {
		r, _, failed := c.Get(path)
		if failed != nil {
			return "", failed
		}
		return string(r.Body), nil
	}
	list, err := text("/" + master + ".m3u8")
	if err != nil {
		return "", nil, err
	}
	_, rest, found := strings.Cut(list, mark)
	lines := strings.SplitN(rest, "\n", 3)
	if !found || len(lines) < 2 {
		return "", nil, fmt.Errorf("no variant with %s in\n%s", mark, list)
	}
	playlist, err := text("/" + lines[1])
	if err != nil {
		return "", nil, err
	}
	for line := range strings.Lines(playlist) {
		line = strings.TrimSpace(line)
		if _, uri, ok := strings.Cut(line, `#EXT-X-MAP:URI="`); ok {
			names = append(names, strings.TrimSuffix(uri, `"`))
		} else if line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	if len(names) < 2 {
		return "", nil, fmt.Errorf("an empty playlist:\n%s", playlist)
	}
	return "/" + lines[1][:strings.LastIndexByte(lines[1], '/')+1], names, nil
}
