package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// creates measures how many live streams a second clients make on PostgreSQL, each with its event, and how long each
// takes. Another binary and this one take turns, each with a database of its own on the same server.
func (b *bench) creates(ctx context.Context) error {
	if b.postgres == "" {
		return errors.New("measure on PostgreSQL: -postgres is needed")
	}
	peer := "-"
	if b.before != "" {
		peer = "before"
	}
	own := b.binary
	defer func() { b.binary = own }()
	for _, clients := range []int{16, 64} {
		took, rates := map[string][]float64{}, map[string][]float64{}
		for range b.rounds {
			for _, binary := range []string{b.before, own} {
				if binary == "" {
					continue
				}
				b.binary = binary
				ms, rate, err := b.create(ctx, clients)
				if err != nil {
					return err
				}
				b.out.note("%s, %d clients: %.0f a second, p50 %.1f ms, p95 %.1f ms", binary, clients, rate,
					median(ms), percentile(ms, 0.95))
				took[binary], rates[binary] = append(took[binary], ms...), append(rates[binary], rate)
			}
		}
		b.out.begin(fmt.Sprintf("Creating live streams: PostgreSQL, %d clients", clients), peer)
		for _, line := range []struct {
			name, unit string
			of         func(binary string) float64
		}{
			{"live streams and events", "1/s", func(binary string) float64 { return median(rates[binary]) }},
			{"response, p50", "ms", func(binary string) float64 { return median(took[binary]) }},
			{"response, p95", "ms", func(binary string) float64 { return percentile(took[binary], 0.95) }},
		} {
			if b.before == "" {
				b.out.alone(line.name, line.unit, line.of(own), "")
			} else {
				b.out.pair(line.name, line.unit, line.of(own), line.of(b.before), "")
			}
		}
	}
	return nil
}

// create has clients create live streams for as long as the window, each one after the other. It gives what each
// response took in milliseconds, and how many there were a second.
func (b *bench) create(ctx context.Context, clients int) (ms []float64, rate float64, err error) {
	database, drop, err := b.database(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	data, err := b.folder()
	if err != nil {
		return nil, 0, err
	}
	m, err := b.serve(data, rand.Text()+rand.Text(), "--database-url", database, "--api-rate-token", "0",
		"--api-rate-address", "0")
	if err != nil {
		return nil, 0, err
	}
	defer m.stop()
	type result struct {
		ms  []float64
		err error
	}
	results, begun := make(chan result, clients), time.Now()
	for range clients {
		go func() {
			var r result
			c := m.client()
			defer c.Close()
			for r.err == nil && time.Since(begun) < b.window {
				at := time.Now()
				r.err = call(c, "POST", "/video/v1/live-streams", `{"playback_policies":["public"]}`, nil)
				r.ms = append(r.ms, milliseconds(time.Since(at)))
			}
			results <- r
		}()
	}
	for range clients {
		r := <-results
		ms, err = append(ms, r.ms...), errors.Join(err, r.err)
	}
	return ms, float64(len(ms)) / time.Since(begun).Seconds(), err
}

// database makes an empty one on the PostgreSQL server, for as long as a round takes.
func (b *bench) database(ctx context.Context) (address string, drop func() error, err error) {
	u, err := url.Parse(b.postgres)
	if err != nil {
		return "", nil, errors.New("the URL of PostgreSQL is not valid") // it has a password
	}
	name := "bench_" + strings.ToLower(rand.Text())
	execute := func(ctx context.Context, statement string) error {
		conn, failed := pgx.Connect(ctx, b.postgres)
		if failed == nil {
			_, failed = conn.Exec(ctx, statement)
			failed = errors.Join(failed, conn.Close(ctx))
		}
		if failed != nil {
			return fmt.Errorf("ask PostgreSQL: %w", failed)
		}
		return nil
	}
	if err = execute(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() error {
		return execute(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}
