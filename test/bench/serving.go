package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/load"
	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

// offer is one thing that both servers serve: millrace from where it has it, nginx from a file with the same bytes.
type offer struct {
	name string
	gzip bool
	file string // how the file is called
	// pick gives the path to ask millrace for now; what is newest moves on.
	pick func() (string, error)
}

// slot is how long one server is asked before the other's turn, turns how often.
const (
	slot  = 500 * time.Millisecond
	turns = 5
)

// turn is what each of the two made of the same bytes, one after the other.
type turn struct{ rate, flow, cpu [2]float64 }

func (t turn) ratio() float64 { return t.rate[0] / t.rate[1] }

// serving compares requests and bytes per second.
func (b *bench) serving(ctx context.Context) (err error) {
	if b.nginxBinary == "" {
		return errors.New("no nginx to compare with (-nginx)")
	}
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	root := filepath.Join(b.dir, "www")
	if err = errors.Join(os.RemoveAll(root), os.MkdirAll(root, 0o755)); err != nil {
		return fmt.Errorf("make folder for nginx: %w", err)
	}
	peer, err := b.startNginx(root)
	if err != nil {
		return err
	}
	defer peer.stop()

	publish, play, err := s.stream("low")
	if err != nil {
		return err
	}
	end, err := onAir(ctx, publish, clip)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	b.out.begin("Serving the same bytes, keep-alive", "nginx")
	var vod []offer
	if b.wanted("on-demand") {
		vod, err = b.vodOffers(ctx, s)
	}
	if err != nil {
		b.out.note("no figures for on-demand assets: %v", err)
	}
	live, err := b.liveOffers(ctx, s, play)
	if err != nil {
		return err
	}
	for _, o := range append(vod, live...) {
		if !b.wanted(o.name) {
			continue
		}
		for _, conns := range []int{1, 64} {
			if err := b.contest(ctx, s, peer, o, conns); err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
		}
	}
	return nil
}

// wanted reports whether an offer with such a name is to be measured.
func (b *bench) wanted(name string) bool {
	return strings.Contains(name, b.offers) || strings.HasPrefix(b.offers, name)
}

// onAir publishes until end is called.
func onAir(ctx context.Context, publish string, clip *encoder.Clip) (end func() error, err error) {
	p, err := encoder.Dial(ctx, publish)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = p.Play(ctx, clip, nil) })
	return func() error {
		stop()
		wg.Wait()
		p.Close()
		return failed
	}, nil
}

func (b *bench) liveOffers(ctx context.Context, s *millrace, play string) ([]offer, error) {
	tuned, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	streams, err := viewer.Tune(tuned, s.http, play, 100*time.Millisecond)
	if err != nil {
		return nil, err
	}
	for _, x := range streams[1:] {
		x.Close()
	}
	video := streams[0]
	sealed := viewer.Resolve(video.URL(), video.Playlist().Segments[0].URI)
	if err := sleep(ctx, 12*time.Second); err != nil { // now it is no longer in memory
		return nil, err
	}
	newest := func() (string, error) {
		if err := video.Reload(); err != nil {
			return "", err
		}
		parts := video.Playlist().Parts
		return viewer.Resolve(video.URL(), parts[len(parts)-1].URI), nil
	}
	fixed := func(path string) func() (string, error) { return func() (string, error) { return path, nil } }
	return []offer{
		{"live playlist", false, "live.m3u8", fixed(video.URL())},
		{"live playlist, gzip", true, "live-packed.m3u8", fixed(video.URL())},
		{"live part in memory", false, "part.m4s", newest},
		{"sealed segment in the folder", false, "segment.m4s", fixed(sealed)},
	}, nil
}

func (b *bench) vodOffers(ctx context.Context, s *millrace) ([]offer, error) {
	path, err := b.hour(ctx)
	if err != nil {
		return nil, err
	}
	o, err := serveFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer o.stop()
	video, _, err := s.asset(ctx, assetBody(o.url))
	if err != nil {
		return nil, err
	}
	defer video.Close()
	fixed := func(path string) func() (string, error) { return func() (string, error) { return path, nil } }
	segments := video.Playlist().Segments
	return []offer{
		{"on-demand playlist of 1 h", false, "vod.m3u8", fixed(video.URL())},
		{"on-demand playlist of 1 h, gzip", true, "vod-packed.m3u8", fixed(video.URL())},
		{"on-demand segment, made of an MP4", false, "vod.m4s", fixed(viewer.Resolve(video.URL(), segments[len(segments)/2].URI))},
	}, nil
}

// contest lets both serve in turn. The turn with the median ratio counts: the newest part is larger in one turn than in another.
func (b *bench) contest(ctx context.Context, s *millrace, peer *nginx, o offer, conns int) error {
	all := make([]turn, turns)
	for n := range all {
		path, err := o.pick()
		if err != nil {
			return err
		}
		if err := mirror(s, path, filepath.Join(peer.root, o.file), o.gzip); err != nil {
			return err
		}
		for i, t := range []struct {
			addr, path string
			pid        int
		}{{s.http, path, s.p.PID()}, {peer.http, "/" + o.file, peer.p.PID()}} {
			if err := ctx.Err(); err != nil {
				return err
			}
			before, err1 := proc.Read(t.pid)
			r, err2 := load.Run(load.Target{Addr: t.addr, Path: t.path, Gzip: o.gzip, Conns: conns}, slot)
			after, err3 := proc.Read(t.pid)
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			all[n].rate[i] = r.Rate()
			all[n].flow[i] = float64(r.Bytes) / r.Elapsed.Seconds() / 1e6
			all[n].cpu[i] = float64((after.CPU - before.CPU).Microseconds()) / float64(r.Requests)
		}
	}
	slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.ratio(), b.ratio()) })
	mid := all[turns/2]
	name := fmt.Sprintf("%s, %d conn", o.name, conns)
	b.out.pair(name, "req/s", mid.rate[0], mid.rate[1], "at least 0.8")
	b.out.pair(name, "MB/s", mid.flow[0], mid.flow[1], "at least 0.8")
	b.out.pair(name, "µs CPU/req", mid.cpu[0], mid.cpu[1], "")
	return nil
}

// mirror puts what millrace serves into nginx's folder.
func mirror(s *millrace, path, file string, packed bool) error {
	c := viewer.NewClient(s.http)
	defer c.Close()
	c.Packed = packed
	if packed {
		file += ".gz"
	}
	r, _, err := c.Get(path)
	if err != nil {
		return err
	}
	if r.Status != 200 || len(r.Body) == 0 {
		return fmt.Errorf("%s: status %d, %d bytes", path, r.Status, len(r.Body))
	}
	tmp := file + ".new"
	if err := os.WriteFile(tmp, r.Body, 0o644); err != nil {
		return fmt.Errorf("copy for nginx: %w", err)
	}
	return os.Rename(tmp, file)
}
