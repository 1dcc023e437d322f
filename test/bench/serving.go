package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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
	name  string
	gzip  bool
	file  string // how the file is called
	moves bool   // millrace's goes on while it is asked for
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
		{"live playlist", false, "live.m3u8", true, fixed(video.URL())},
		{"live playlist, gzip", true, "live-packed.m3u8", true, fixed(video.URL())},
		{"live part in memory", false, "part.m4s", false, newest},
		{"sealed segment in the folder", false, "segment.m4s", false, fixed(sealed)},
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
	middle := viewer.Resolve(video.URL(), segments[len(segments)/2].URI)
	return []offer{
		{"on-demand playlist of 1 h", false, "vod.m3u8", false, fixed(video.URL())},
		{"on-demand playlist of 1 h, gzip", true, "vod-packed.m3u8", false, fixed(video.URL())},
		{"on-demand segment, made of an MP4", false, "vod.m4s", false, fixed(middle)},
	}, nil
}

// contest lets both serve in turn. The turn with the median ratio counts: the newest part is larger in one turn than in
// another.
func (b *bench) contest(ctx context.Context, s *millrace, peer *nginx, o offer, conns int) error {
	var all []turn
	for tries := 0; len(all) < turns; tries++ {
		t, err := serveInTurn(ctx, s, peer, o, conns)
		switch {
		case errors.Is(err, errMoved) && tries < 4*turns:
			continue // the playlist became another one meanwhile
		case err != nil:
			return err
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.ratio(), b.ratio()) })
	mid := all[turns/2]
	name := fmt.Sprintf("%s, %d conn", o.name, conns)
	b.out.pair(name, "req/s", mid.rate[0], mid.rate[1], "at least 0.8")
	b.out.pair(name, "MB/s", mid.flow[0], mid.flow[1], "at least 0.8")
	b.out.pair(name, "µs CPU/req", mid.cpu[0], mid.cpu[1], "")
	return nil
}

// serveInTurn has both asked for the same bytes, millrace first.
func serveInTurn(ctx context.Context, s *millrace, peer *nginx, o offer, conns int) (t turn, err error) {
	path, err := o.pick()
	if err != nil {
		return t, err
	}
	copied, length, err := mirror(s, peer, path, o)
	if err != nil {
		return t, err
	}
	for i, side := range []struct {
		addr, path string
		pid        int
	}{{s.http, path, s.p.PID()}, {peer.http, copied, peer.p.PID()}} {
		if err := ctx.Err(); err != nil {
			return t, err
		}
		before, err1 := proc.Read(side.pid)
		r, err2 := load.Run(load.Target{Addr: side.addr, Path: side.path, Gzip: o.gzip, Conns: conns}, slot)
		after, err3 := proc.Read(side.pid)
		if err := errors.Join(err1, err2, err3, even(r, length, o.moves && i == 0)); err != nil {
			return t, fmt.Errorf("%s: %w", side.path, err)
		}
		t.rate[i] = r.Rate()
		t.flow[i] = float64(r.Bytes) / r.Elapsed.Seconds() / 1e6
		t.cpu[i] = float64((after.CPU - before.CPU).Microseconds()) / float64(r.Requests)
	}
	return t, nil
}

// errMoved says that a live playlist has grown or shrunk while it was asked for.
var errMoved = errors.New("the two servers did not send as much")

// even is an error unless every response had as many bytes as what both are compared by. One that moves may be a
// twentieth longer or shorter on average: its last part has come meanwhile.
func even(r load.Result, length int64, moves bool) error {
	switch {
	case r.Requests == 0:
		return errors.New("nothing was asked for")
	case moves:
		if mean := float64(r.Bytes) / float64(r.Requests); math.Abs(mean-float64(length)) > float64(length)/20 {
			return fmt.Errorf("%w: %.0f bytes, not %d", errMoved, mean, length)
		}
	case r.Shortest != length || r.Longest != length:
		return fmt.Errorf("responses of %d to %d bytes, not %d", r.Shortest, r.Longest, length)
	}
	return nil
}

// mirror puts what millrace serves into nginx's folder and looks that nginx sends the same bytes. It gives their path
// there, which is a new one each time: nginx keeps files open, and would go on to send what had that name before.
func mirror(s *millrace, peer *nginx, path string, o offer) (copied string, length int64, err error) {
	body, err := fetch(s.http, path, o.gzip)
	if err != nil {
		return "", 0, err
	}
	peer.files++
	copied = fmt.Sprintf("/%d-%s", peer.files, o.file)
	file := filepath.Join(peer.root, copied)
	if o.gzip {
		file += ".gz"
	}
	if err = os.WriteFile(file, body, 0o644); err != nil {
		return "", 0, fmt.Errorf("copy for nginx: %w", err)
	}
	same, err := fetch(peer.http, copied, o.gzip)
	if err == nil && !bytes.Equal(same, body) {
		err = fmt.Errorf("nginx sends %d other bytes than the %d of %s", len(same), len(body), path)
	}
	return copied, int64(len(body)), err
}

// fetch reads what a server sends, as it comes.
func fetch(addr, path string, packed bool) ([]byte, error) {
	c := viewer.NewClient(addr)
	defer c.Close()
	c.Packed = packed
	r, _, err := c.Get(path)
	if err != nil {
		return nil, err
	}
	if r.Status != 200 || len(r.Body) == 0 {
		return nil, fmt.Errorf("%s: status %d, %d bytes", path, r.Status, len(r.Body))
	}
	return slices.Clone(r.Body), nil
}
