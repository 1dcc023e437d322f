package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
	"millrace/test/services"
)

// copying is one window of two nodes, of which one has all encoders and the other one copies. Costs are per stream.
type copying struct {
	owner, copier usage
	metrics       samples // of the owner, in the window
	wall          float64 // seconds
}

// copies measures what it costs two nodes on PostgreSQL and S3 that one copies the other's streams: with live-copies 1
// the lengths of parts and segments, with 2 the media too. They take turns.
func (b *bench) copies(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	s3, err := services.S3(ctx, b.versitygw)
	if err != nil {
		return fmt.Errorf("start S3: %w", err)
	}
	defer s3.Stop()
	if b.postgres == "" {
		server, err := services.Postgres(ctx)
		if err != nil {
			return fmt.Errorf("start PostgreSQL: %w", err)
		}
		defer server.Stop()
		b.postgres = server.URL
		defer func() { b.postgres = "" }()
	}
	got := map[int][]copying{}
	for round := range b.rounds {
		for n := 1; n <= 2; n++ {
			c, err := b.copied(ctx, clip, s3.URL, n)
			if err != nil {
				return fmt.Errorf("live-copies %d: %w", n, err)
			}
			got[n] = append(got[n], c)
			const said = "round %d, live-copies %d: owner %.4f, copier %.4f cores per stream, machine %.2f cores"
			b.out.note(said, round+1, n, c.owner.cores, c.copier.cores, c.owner.machine)
		}
	}
	b.tellCopies(got[2], got[1])
	return nil
}

// tellCopies is a table: the middle of the turns, of times and late parts all of them.
func (b *bench) tellCopies(both, lengths []copying) {
	const title = "%d encoders (720p30 2.5 Mbit/s + AAC, low latency) at one of two nodes: live-copies 2 beside 1"
	b.out.begin(fmt.Sprintf(title, b.streams), "1")
	mid := func(name, unit string, f func(copying) float64) {
		pick := func(of []copying) float64 {
			var v []float64
			for _, c := range of {
				v = append(v, f(c))
			}
			return median(v)
		}
		b.out.pair(name, unit, pick(both), pick(lengths), "")
	}
	mid("CPU of the owner per stream", "cores", func(c copying) float64 { return c.owner.cores })
	mid("CPU of the copier per stream", "cores", func(c copying) float64 { return c.copier.cores })
	mid("resident memory of the owner per stream", "MiB", func(c copying) float64 { return c.owner.rss })
	mid("resident memory of the copier per stream", "MiB", func(c copying) float64 { return c.copier.rss })
	mid("sent to the copier per stream", "Mbit/s", func(c copying) float64 {
		return c.metrics["millrace_live_copy_sent_bytes_total"] * 8 / 1e6 / c.wall / float64(b.streams)
	})
	all := func(of []copying) samples {
		sum := samples{}
		for _, c := range of {
			for name, v := range c.metrics {
				sum[name] += v
			}
		}
		return sum
	}
	two, one := all(both), all(lengths)
	const times = "millrace_live_copy_seconds"
	for _, q := range []float64{0.5, 0.95, 0.99} {
		b.out.pair(fmt.Sprintf("from publication until it is copied, p%.0f: at most", q*100), "ms",
			two.atMost(times, q)*1000, one.atMost(times, q)*1000, "at most 200 with 2")
	}
	const late = "millrace_live_copy_late_total"
	b.out.pair("publications copied", "all", two[times+"_count"], one[times+"_count"], "")
	b.out.pair("late", "all", two[late], one[late], "")
}

// copied starts two nodes, connects all encoders to the first one and measures a window of both.
func (b *bench) copied(ctx context.Context, clip *encoder.Clip, storage string, copies int) (c copying, err error) {
	database, drop, err := b.database(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	secret := rand.Text() + rand.Text()
	storage += "&prefix=bench-" + strings.ToLower(rand.Text())
	key := []byte(rand.Text() + rand.Text())[:32]
	node := func() (*millrace, error) {
		data, failed := b.folder()
		if failed == nil {
			failed = os.WriteFile(filepath.Join(data, "master-key"), []byte(hex.EncodeToString(key)), 0o600)
		}
		if failed != nil {
			return nil, fmt.Errorf("make folder with key: %w", failed)
		}
		return b.serve(data, secret, "--database-url", database, "--storage-url", storage, "--internal-addr",
			"127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--live-copies", strconv.Itoa(copies))
	}
	owner, err := node()
	if err != nil {
		return c, err
	}
	defer owner.stop()
	copier, err := node()
	if err != nil {
		return c, err
	}
	defer copier.stop()
	if err = sleep(ctx, 4*time.Second); err != nil { // until they know each other
		return c, err
	}
	idle, err1 := proc.Read(owner.p.PID())
	other, err2 := proc.Read(copier.p.PID())
	if err = errors.Join(err1, err2); err != nil {
		return c, err
	}
	p, err := gather(ctx, owner, sending(owner, clip), b.streams, 0)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, p.disperse()) }()
	if err = sleep(ctx, b.warmup); err != nil {
		return c, err
	}
	before, err := owner.samples()
	if err != nil {
		return c, err
	}
	begun, measured := time.Now(), make(chan error, 1)
	go func() { measured <- c.copier.measure(ctx, copier, p, b.window, other.RSS, b.streams) }()
	err = c.owner.measure(ctx, owner, p, b.window, idle.RSS, b.streams)
	if err = errors.Join(err, <-measured); err != nil {
		return c, err
	}
	after, err := owner.samples()
	if err != nil {
		return c, err
	}
	c.wall = time.Since(begun).Seconds()
	if n := after["millrace_live_copy_streams_current"]; int(n) != b.streams {
		return c, fmt.Errorf("%.0f of %d streams are copied", n, b.streams)
	}
	c.metrics = after.since(before)
	return c, nil
}

// samples are the metrics of a node, by name with labels.
type samples map[string]float64

func (m *millrace) samples() (samples, error) {
	client := viewer.NewClient(m.metrics)
	defer client.Close()
	r, err := client.Do("GET", "/metrics", "", nil)
	if err != nil {
		return nil, err
	}
	if r.Status != 200 {
		return nil, fmt.Errorf("read metrics: status %d", r.Status)
	}
	return readSamples(string(r.Body)), nil
}

// readSamples reads the text format.
func readSamples(text string) samples {
	s := samples{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(line[end+1:], 64); err == nil {
			s[line[:end]] = v
		}
	}
	return s
}

// since is by how much each has grown.
func (s samples) since(before samples) samples {
	grown := samples{}
	for name, v := range s {
		grown[name] = v - before[name]
	}
	return grown
}

// atMost is the bound of a histogram's bucket in which the quantile q is; 0 while it is empty.
func (s samples) atMost(histogram string, q float64) float64 {
	want, least := q*s[histogram+"_count"], 0.0
	for name, v := range s {
		label, is := strings.CutPrefix(name, histogram+`_bucket{le="`)
		if !is || v < want || want == 0 {
			continue
		}
		bound, err := strconv.ParseFloat(strings.TrimSuffix(label, `"}`), 64) // +Inf too
		if err == nil && (least == 0 || bound < least) {
			least = bound
		}
	}
	return least
}
