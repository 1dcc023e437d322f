package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"millrace/test/bench/proc"
)

// manyUploads is how many uploads are under way at once when memory is measured.
const manyUploads = 16

// uploads compares a direct upload with a file that is PUT to nginx and synced, and tells what uploads cost in memory.
func (b *bench) uploads(ctx context.Context) error {
	if b.nginxBinary == "" {
		return errors.New("no nginx to compare with (-nginx)")
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	root, err := os.MkdirTemp(b.dir, "www-")
	if err != nil {
		return fmt.Errorf("make folder for nginx: %w", err)
	}
	b.litter = append(b.litter, root)
	if err = os.Mkdir(filepath.Join(root, "put"), 0o750); err != nil {
		return fmt.Errorf("make folder for nginx: %w", err)
	}
	peer, err := b.startNginx(root)
	if err != nil {
		return err
	}
	defer peer.stop()
	var mine, theirs []float64
	for n := range b.rounds {
		rate, failed := s.takes(ctx, b.uploadBytes)
		if failed != nil {
			return fmt.Errorf("millrace: %w", failed)
		}
		mine = append(mine, rate)
		if rate, failed = peer.takes(ctx, fmt.Sprint(n), b.uploadBytes); failed != nil {
			return fmt.Errorf("nginx: %w", failed)
		}
		theirs = append(theirs, rate)
	}
	b.out.begin(fmt.Sprintf("Uploading %.1f GB, kept on the disk", float64(b.uploadBytes)/1e9), "nginx")
	b.out.pair("one whole PUT, median", "MB/s", median(mine), median(theirs), "at least 0.8 of nginx")
	each, err := s.uploadMemory(ctx)
	if err != nil {
		return err
	}
	b.out.alone(fmt.Sprintf("memory for each of %d uploads at once", manyUploads), "MiB", each, "at most 8")
	return nil
}

// noise is a body without end that no disk or file system makes smaller.
type noise struct{ block []byte }

func newNoise() noise {
	b := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return noise{b}
}

func (n noise) Read(p []byte) (int, error) { return copy(p, n.block), nil }

func put(ctx context.Context, url string, body io.Reader, size int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
	if err != nil {
		return err
	}
	req.ContentLength = size
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode > 299 {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("PUT: status %d: %s", resp.StatusCode, said)
	}
	return nil
}

// newUpload gives the URL of an upload.
func (m *millrace) newUpload() (url string, err error) {
	c := m.client()
	defer c.Close()
	var made struct {
		URL string `json:"url"`
	}
	err = call(c, "POST", "/video/v1/uploads", `{"cors_origin":"*"}`, &made)
	return made.URL, err
}

// takes gives the rate of one upload in MB/s.
func (m *millrace) takes(ctx context.Context, size int64) (float64, error) {
	url, err := m.newUpload()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = put(ctx, url, io.LimitReader(newNoise(), size), size)
	return float64(size) / 1e6 / time.Since(start).Seconds(), err
}

// takes does the same with a file that is synced afterwards, and then removed.
func (n *nginx) takes(ctx context.Context, name string, size int64) (float64, error) {
	start := time.Now()
	if err := put(ctx, "http://"+n.http+"/put/"+name, io.LimitReader(newNoise(), size), size); err != nil {
		return 0, err
	}
	path := filepath.Join(n.root, "put", name)
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("sync file: %w", err)
	}
	err = errors.Join(f.Sync(), f.Close())
	took := time.Since(start)
	return float64(size) / 1e6 / took.Seconds(), errors.Join(err, os.Remove(path))
}

// uploadMemory gives what each of several uploads at once costs, in MiB.
func (m *millrace) uploadMemory(ctx context.Context) (float64, error) {
	before, err := proc.Read(m.p.PID())
	if err != nil {
		return 0, err
	}
	sending, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{}, manyUploads)
	if err = m.upload(sending, manyUploads, 256<<10, ended); err != nil {
		return 0, err
	}
	var most int64
	for range 20 {
		if err = sleep(ctx, 200*time.Millisecond); err != nil {
			return 0, err
		}
		now, err := proc.Read(m.p.PID())
		if err != nil {
			return 0, err
		}
		most = max(most, now.RSS)
	}
	stop()
	for range manyUploads {
		<-ended // they were broken off
	}
	return float64(max(most-before.RSS, 0)) / (1 << 20) / manyUploads, nil
}

// upload begins n uploads, each of which sends so many bytes every twentieth of a second, until ctx ends; each says
// then that it has ended.
func (m *millrace) upload(ctx context.Context, n, bytes int, ended chan<- struct{}) error {
	for range n {
		url, err := m.newUpload()
		if err != nil {
			return err
		}
		go func() {
			_ = put(ctx, url, &paced{ctx: ctx, Reader: newNoise(), bytes: bytes}, 1<<32) // it is broken off
			ended <- struct{}{}
		}()
	}
	return nil
}

// paced gives so many bytes every twentieth of a second.
type paced struct {
	io.Reader
	ctx   context.Context //nolint:containedctx // of the one request
	bytes int
}

func (p *paced) Read(b []byte) (int, error) {
	if err := sleep(p.ctx, 50*time.Millisecond); err != nil {
		return 0, err
	}
	return p.Reader.Read(b[:min(len(b), p.bytes)])
}

// running is a server that goes on after one measurement of it.
type running struct{ server }

func (running) stop() {}

// besideUploads are how many uploads there are beside live streams, and what each sends: 8 Mbit/s.
const (
	besideUploads = 50
	besideBytes   = 50_000
)

// uploadsLive tells by how much uploads delay the parts of live streams.
func (b *bench) uploadsLive(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	encoders, err := gather(ctx, s, sending(s, clip), b.streams, 0)
	if err != nil {
		return err
	}
	defer func() { _ = encoders.disperse() }() // what they say has been measured elsewhere
	if err = sleep(ctx, b.warmup); err != nil {
		return err
	}
	watch := func() (waits, error) {
		return b.wait(ctx, func() (server, error) { return running{s}, nil }, clip, false)
	}
	alone, err := watch()
	if err != nil {
		return err
	}
	uploading, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{}, besideUploads)
	if err = s.upload(uploading, besideUploads, besideBytes, ended); err != nil {
		return err
	}
	if err = sleep(ctx, b.warmup); err != nil {
		return err
	}
	beside, err := watch()
	stop()
	for range besideUploads {
		<-ended // they were broken off
	}
	if err != nil {
		return err
	}
	b.out.begin(fmt.Sprintf("Parts of one of %d live streams, beside %d uploads of 8 Mbit/s", b.streams+1,
		besideUploads), "no uploads")
	for _, q := range []struct {
		name string
		q    float64
		goal string
	}{{"p50", 0.5, ""}, {"p95", 0.95, "at most 2 ms more"}, {"max", 1, ""}} {
		b.out.pair(q.name, "ms", percentile(beside.arrived, q.q), percentile(alone.arrived, q.q), q.goal)
	}
	return nil
}
