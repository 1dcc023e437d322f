package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

// peerPart is the part length of the peer: what millrace chooses at 30 frames a second, so that both make as many
// parts.
const peerPart = 300 * time.Millisecond

// population is a number of encoders on one server, with viewers.
type population struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	plays  []string

	mu    sync.Mutex
	ended []error // encoders that ended before they were told to
	parts int     // that viewers got
	fails int
}

// publishing connects an encoder of a new stream: it gives the path of the stream's playlist, and what sends until its
// context ends.
type publishing func(ctx context.Context) (play string, send func(context.Context) error, err error)

// sending publishes over RTMP.
func sending(s server, clip *encoder.Clip) publishing {
	return func(ctx context.Context) (string, func(context.Context) error, error) {
		publish, play, err := s.stream("low")
		if err != nil {
			return "", nil, err
		}
		p, err := encoder.Dial(ctx, publish)
		if err != nil {
			return "", nil, err
		}
		return play, func(ctx context.Context) error {
			defer p.Close()
			return p.Play(ctx, clip, nil)
		}, nil
	}
}

// gather lets n encoders publish to a server, a tenth of a second apart, each with some LL-HLS viewers.
func gather(ctx context.Context, s server, publish publishing, n, viewers int) (*population, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &population{cancel: cancel}
	for range n {
		play, send, err := publish(ctx)
		if err != nil {
			return nil, errors.Join(err, c.disperse())
		}
		c.plays = append(c.plays, play)
		c.wg.Go(func() {
			if err := send(ctx); err != nil {
				c.mu.Lock()
				c.ended = append(c.ended, err)
				c.mu.Unlock()
			}
		})
		for range viewers {
			c.wg.Go(func() { c.watch(ctx, s.addr(), play) })
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, errors.Join(err, c.disperse())
		}
	}
	return c, nil
}

// watch follows every rendition of a stream.
func (p *population) watch(ctx context.Context, addr, play string) {
	streams, err := viewer.Tune(ctx, addr, play, 250*time.Millisecond)
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	for _, s := range streams {
		wg.Go(func() {
			defer s.Close()
			s.Skip()
			failed := s.Follow(ctx, func(viewer.Seen) {
				p.mu.Lock()
				p.parts++
				p.mu.Unlock()
			})
			p.mu.Lock()
			p.fails += failed
			p.mu.Unlock()
		})
	}
	wg.Wait()
}

// disperse ends all; an encoder that had ended by itself makes the measurement worthless.
func (p *population) disperse() error {
	p.cancel()
	p.wg.Wait()
	return errors.Join(p.ended...)
}

// usage is one window of one server.
type usage struct {
	cores    float64 // CPU seconds per second, per stream
	rss      float64 // MiB above idle, per stream, mean of the window
	harness  float64 // cores of encoders and viewers
	machine  float64 // share of the whole machine that was busy
	playable int
	parts    float64 // per second, that viewers got
}

// usage starts a server, connects publishers and viewers and measures one window.
func (b *bench) usage(
	ctx context.Context, start func() (server, error), by func(server) publishing, n, viewers int,
) (u usage, err error) {
	s, err := start()
	if err != nil {
		return u, err
	}
	defer s.stop()
	if err = sleep(ctx, 2*time.Second); err != nil {
		return u, err
	}
	idle, err := proc.Read(s.process().PID())
	if err != nil {
		return u, err
	}
	c, err := gather(ctx, s, by(s), n, viewers)
	if err != nil {
		return u, fmt.Errorf("%s: %w", s.name(), err)
	}
	defer func() {
		if d := c.disperse(); d != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", s.name(), d))
		}
	}()
	if err = sleep(ctx, b.warmup); err != nil {
		return u, err
	}
	if err = u.measure(ctx, s, c, b.window, idle.RSS, n); err != nil {
		return u, err
	}
	for _, play := range c.plays {
		t, cancel := context.WithTimeout(ctx, 3*time.Second)
		streams, err := watch(t, s, play)
		cancel()
		if err != nil {
			continue
		}
		if parts := streams[0].Playlist().Segments; len(parts) > 0 {
			if body, err := streams[0].Fetch(parts[len(parts)-1].URI); err == nil && len(body) > 10000 {
				u.playable++
			}
		}
		for _, x := range streams {
			x.Close()
		}
	}
	return u, nil
}

func (u *usage) measure(ctx context.Context, s server, c *population, window time.Duration, idle int64, n int) error {
	cost := func() (server, harness proc.Cost, machine time.Duration, err error) {
		server, err1 := proc.Read(s.process().PID())
		harness, err2 := proc.Read(os.Getpid())
		machine, err3 := proc.Machine()
		harness.CPU -= server.CPU // a child of ours
		return server, harness, machine, errors.Join(err1, err2, err3)
	}
	c.mu.Lock()
	parts := c.parts
	c.mu.Unlock()
	before, harness, machine, err := cost()
	if err != nil {
		return err
	}
	start := time.Now()
	var rss, samples int64
	for time.Since(start) < window {
		if err = sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		var now proc.Cost
		if now, err = proc.Read(s.process().PID()); err != nil {
			return err
		}
		rss += now.RSS
		samples++
	}
	after, harness2, machine2, err := cost()
	if err != nil {
		return err
	}
	wall := time.Since(start).Seconds()
	u.cores = (after.CPU - before.CPU).Seconds() / wall / float64(n)
	u.rss = float64(rss/samples-idle) / float64(n) / (1 << 20)
	u.harness = (harness2.CPU - harness.CPU).Seconds() / wall
	u.machine = (machine2 - machine).Seconds() / wall
	c.mu.Lock()
	u.parts = float64(c.parts-parts) / wall
	c.mu.Unlock()
	return nil
}

// density compares many encoders without viewers, at each number of streams that is asked for.
func (b *bench) density(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	by := func(s server) publishing { return sending(s, clip) }
	for _, n := range b.counts {
		peers := []rival{{
			name: "MediaMTX", start: b.live, there: b.peer != "",
			how: "over RTMP into LL-HLS", cpuGoal: "at most 0.5 of the peer", rssGoal: "at most 8",
		}, {
			name: "nginx-rtmp", start: func() (server, error) { return b.startNginxRTMP() }, there: b.nginxBinary != "",
			how: "over RTMP into LL-HLS, nginx into plain HLS", cpuGoal: "a ratio of at most 1", rssGoal: "at most 2",
		}}
		if err := b.compare(ctx, by, peers, n, 0, b.rounds); err != nil {
			return fmt.Errorf("%d streams: %w", n, err)
		}
	}
	return nil
}

// recording compares the same with a peer that does as much: it keeps what comes, too.
func (b *bench) recording(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	by := func(s server) publishing { return sending(s, clip) }
	peer := rival{
		name: "MediaMTX", start: func() (server, error) { return b.mediamtx(peerPart, true) }, there: b.peer != "",
		how: "over RTMP into LL-HLS, both recording",
	}
	return b.compare(ctx, by, []rival{peer}, b.streams, 0, b.rounds)
}

// viewers compares fewer encoders with two viewers each.
func (b *bench) viewers(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	by := func(s server) publishing { return sending(s, clip) }
	peer := rival{name: "MediaMTX", start: b.live, there: b.peer != "", how: "over RTMP into LL-HLS"}
	return b.compare(ctx, by, []rival{peer}, 10, 2, 1)
}

// live is the peer as it comes: it records nothing.
func (b *bench) live() (server, error) { return b.mediamtx(peerPart, false) }

// rival is a peer of live streams.
type rival struct {
	name             string
	start            func() (server, error)
	there            bool   // else it is left out
	how              string // both take what encoders send
	cpuGoal, rssGoal string
}

// compare lets millrace and its peers take turns.
func (b *bench) compare(
	ctx context.Context, by func(server) publishing, peers []rival, n, viewers, rounds int,
) error {
	own := rival{name: "millrace", start: func() (server, error) { return b.millrace() }, there: true}
	all := append([]rival{own}, peers...)
	got := make([][]usage, len(all))
	for range rounds {
		for i, r := range all {
			if !r.there {
				continue
			}
			u, err := b.usage(ctx, r.start, by, n, viewers)
			if err != nil {
				return err
			}
			got[i] = append(got[i], u)
		}
	}
	for i := range peers {
		b.beside(peers[i], got[0], got[1+i], n, viewers)
	}
	for i, r := range all {
		for n, u := range got[i] {
			b.out.note("%s, round %d: %.4f cores, %.1f MiB per stream", r.name, n+1, u.cores, u.rss)
		}
	}
	return nil
}

// beside is a table of what both have used.
func (b *bench) beside(peer rival, own, others []usage, n, viewers int) {
	const what = "%d encoders (720p30 2.5 Mbit/s + AAC) %s, %d viewers each"
	b.out.begin(fmt.Sprintf(what, n, peer.how, viewers), peer.name)
	pick := func(of []usage, f func(usage) float64) float64 {
		var v []float64
		for _, u := range of {
			v = append(v, f(u))
		}
		return median(v)
	}
	pair := func(name, unit, goal string, f func(usage) float64) {
		b.out.pair(name, unit, pick(own, f), pick(others, f), goal)
	}
	pair("CPU per stream", "cores", peer.cpuGoal, func(u usage) float64 { return u.cores })
	pair("resident memory per stream", "MiB", peer.rssGoal, func(u usage) float64 { return u.rss })
	pair("streams playable at the end", fmt.Sprintf("of %d", n), "all", func(u usage) float64 {
		return float64(u.playable)
	})
	if viewers > 0 {
		pair("parts that viewers got", "1/s", "", func(u usage) float64 { return u.parts })
	}
	pair("encoders' and viewers' own CPU", "cores", "", func(u usage) float64 { return u.harness })
	pair("whole machine busy", "cores", "", func(u usage) float64 { return u.machine })
}
