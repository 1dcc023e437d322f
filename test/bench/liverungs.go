package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

// broadcasts is how many streams a rung of which is started.
const broadcasts = 5

// liveRungs measures the 480p rung of a 720p30 stream in low latency: how soon it plays once somebody asks, how much
// later than the picture as it comes each part is at a viewer, and what it costs.
func (b *bench) liveRungs(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	var lists, segments, parts []float64
	var w lag
	for i := range broadcasts {
		last := i == broadcasts-1
		if err = b.rungOf(ctx, s, clip, func(top, rung string) error {
			list, segment, part, failed := s.begin(rung)
			lists, segments, parts = append(lists, list), append(segments, segment), append(parts, part)
			if failed != nil || !last {
				return failed
			}
			w, failed = b.follow(ctx, s, top, rung)
			return failed
		}); err != nil {
			return err
		}
	}
	b.out.begin("Live: the 480p rung of 720p30, 2 s segments, low latency", "-")
	b.out.alone("asking for the playlist: its response, median", "ms", median(lists), "")
	b.out.alone("asking for the playlist: init and newest segment, worst of 5", "ms", percentile(segments, 1),
		"under 1000")
	b.out.alone("asking for the playlist: first part of the open segment, worst of 5", "ms", percentile(parts, 1),
		"under 1000")
	b.out.alone("a part of the rung behind the same part as it comes, p50", "ms", percentile(w.behind, 0.5), "")
	b.out.alone("a part of the rung behind the same part as it comes, p95", "ms", percentile(w.behind, 0.95),
		"under 50")
	b.out.alone("processor, with the rung less without", "% of a core", 100*(w.with-w.without), "")
	b.out.note("%d parts compared, %d only in one", len(w.behind), w.alone)
	return nil
}

// rungOf publishes a stream and gives the paths of the playlists of its picture as it comes and of its 480p rung.
func (b *bench) rungOf(
	ctx context.Context, s *millrace, clip *encoder.Clip, do func(top, rung string) error,
) (err error) {
	publish, play, err := s.stream("low")
	if err != nil {
		return err
	}
	p, err := encoder.Dial(ctx, publish)
	if err != nil {
		return err
	}
	defer p.Close()
	publishing, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = p.Play(publishing, clip, &encoder.Stamps{}) })
	defer func() {
		stop()
		wg.Wait()
		err = errors.Join(err, failed)
	}()
	tuned, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	streams, err := viewer.Tune(tuned, s.addr(), play, 100*time.Millisecond)
	if err != nil {
		return err
	}
	for _, x := range streams {
		x.Close()
	}
	c := viewer.NewClient(s.http)
	defer c.Close()
	r, at, err := c.Get(play)
	if err != nil {
		return err
	}
	_, rest, found := strings.Cut(string(r.Body), "RESOLUTION=854x480")
	lines := strings.SplitN(rest, "\n", 3)
	if !found || len(lines) < 2 {
		return fmt.Errorf("no rung of 480 lines in\n%s", r.Body)
	}
	return do(streams[0].URL(), viewer.Resolve(at, lines[1]))
}

// begin asks for a rung that nobody watches yet: milliseconds until its playlist, its init and newest segment, and the
// first part of the segment that is open are there.
func (m *millrace) begin(rung string) (list, segment, part float64, err error) {
	c := viewer.NewClient(m.http)
	defer c.Close()
	get := func(path string) ([]byte, error) {
		r, _, failed := c.Get(path)
		if failed == nil && r.Status != 200 {
			failed = fmt.Errorf("%s returns %d", path, r.Status)
		}
		if failed != nil {
			return nil, failed
		}
		return append([]byte(nil), r.Body...), nil
	}
	start := time.Now()
	body, err := get(rung)
	if err != nil {
		return 0, 0, 0, err
	}
	list = milliseconds(time.Since(start))
	p := viewer.ParseMedia(body)
	if len(p.Segments) == 0 {
		return 0, 0, 0, fmt.Errorf("an empty playlist:\n%s", body)
	}
	var wg sync.WaitGroup
	var late error
	wg.Go(func() { // another connection, as a player has
		other := viewer.NewClient(m.http)
		defer other.Close()
		r, _, failed := other.Get(fmt.Sprintf("%s?_HLS_msn=%d&_HLS_part=0", rung, p.NextMSN))
		if failed == nil && r.Status != 200 {
			failed = fmt.Errorf("the next part's playlist: %d", r.Status)
		}
		late, part = failed, milliseconds(time.Since(start))
	})
	_, uri, _ := strings.Cut(string(body), `#EXT-X-MAP:URI="`)
	uri, _, _ = strings.Cut(uri, `"`)
	for _, name := range []string{uri, p.Segments[len(p.Segments)-1].URI} {
		if _, err = get(viewer.Resolve(rung, name)); err != nil {
			break
		}
	}
	segment = milliseconds(time.Since(start))
	wg.Wait()
	return list, segment, part, errors.Join(err, late)
}

// lag is what two viewers side by side found.
type lag struct {
	behind        []float64 // milliseconds, of each part
	alone         int       // parts that one of them has not got
	with, without float64   // cores
}

// follow watches a picture as it comes and a rung of it for half a window, and the first alone for a while after the
// rung's encoder has ended.
func (b *bench) follow(ctx context.Context, s *millrace, top, rung string) (w lag, err error) {
	var wg sync.WaitGroup
	seen := [2]map[string]time.Time{{}, {}}
	cost := func(d time.Duration, urls ...string) (float64, error) {
		watching, enough := context.WithTimeout(ctx, d)
		defer enough()
		before, failed := proc.Read(s.p.PID())
		if failed != nil {
			return 0, failed
		}
		errs := make([]error, len(urls))
		for i, url := range urls {
			wg.Go(func() {
				var v *viewer.Stream
				if v, errs[i] = viewer.Watch(s.http, url); errs[i] != nil {
					return
				}
				defer v.Close()
				v.Skip()
				v.Follow(watching, func(p viewer.Seen) {
					_, name, _ := strings.Cut(p.URI, "/")
					seen[i][name] = p.Arrived
				})
			})
		}
		wg.Wait()
		after, failed := proc.Read(s.p.PID())
		return (after.CPU - before.CPU).Seconds() / d.Seconds(), errors.Join(append(errs, failed)...)
	}
	if w.with, err = cost(b.window/2, top, rung); err != nil {
		return w, err
	}
	for name, at := range seen[1] {
		if first, ok := seen[0][name]; ok {
			w.behind = append(w.behind, milliseconds(at.Sub(first)))
		} else {
			w.alone++
		}
	}
	if w.without, err = cost(23*time.Second, top); err != nil { // the encoder ends meanwhile
		return w, err
	}
	w.without, err = cost(8*time.Second, top)
	return w, err
}
