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

	"millrace/test/bench/proc"
)

// creating measures how many live streams a second 16 clients make on SQLite, each with its event, how long each takes
// and what it costs. Another binary and this one take turns.
func (b *bench) creating(ctx context.Context) error {
	none := func(context.Context) (string, func() error, error) { return "", func() error { return nil }, nil }
	return b.compareCreates(ctx, "SQLite", none, 16)
}

// creates measures the same on PostgreSQL, with 16 and 64 clients. Each binary has databases of its own on one server.
func (b *bench) creates(ctx context.Context) error {
	if b.postgres == "" {
		return errors.New("measure on PostgreSQL: -postgres is needed")
	}
	return b.compareCreates(ctx, "PostgreSQL", b.database, 16, 64)
}

// emptyDatabase makes one, and gives its URL and what drops it; without a URL it is SQLite in the data folder.
type emptyDatabase func(context.Context) (address string, drop func() error, err error)

// created is what came of one turn.
type created struct {
	ms        []float64 // each response
	rate, cpu float64   // a second; milliseconds each
}

func (b *bench) compareCreates(ctx context.Context, on string, database emptyDatabase, counts ...int) error {
	own := b.binary
	defer func() { b.binary = own }()
	for _, clients := range counts {
		all := map[string][]created{}
		for range b.rounds {
			for _, binary := range []string{b.before, own} {
				if binary == "" {
					continue
				}
				b.binary = binary
				c, err := b.create(ctx, database, clients)
				if err != nil {
					return err
				}
				const said = "%s, %d clients: %.0f a second, p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, %.3f ms of CPU each"
				b.out.note(said, binary, clients, c.rate, median(c.ms), percentile(c.ms, 0.95), percentile(c.ms, 0.99),
					c.cpu)
				all[binary] = append(all[binary], c)
			}
		}
		b.tellCreates(fmt.Sprintf("Creating live streams: %s, %d clients", on, clients), all[own], all[b.before])
	}
	return nil
}

// tellCreates is a table: of rates and costs the median of the turns, of responses all of them.
func (b *bench) tellCreates(section string, now, before []created) {
	each := func(f func(created) float64) func([]created) float64 {
		return func(all []created) float64 {
			var v []float64
			for _, c := range all {
				v = append(v, f(c))
			}
			return median(v)
		}
	}
	responses := func(q float64) func([]created) float64 {
		return func(all []created) float64 {
			var ms []float64
			for _, c := range all {
				ms = append(ms, c.ms...)
			}
			return percentile(ms, q)
		}
	}
	peer := "-"
	if before != nil {
		peer = "before"
	}
	b.out.begin(section, peer)
	for _, line := range []struct {
		name, unit string
		of         func([]created) float64
	}{
		{"live streams and events", "1/s", each(func(c created) float64 { return c.rate })},
		{"CPU of the service for each", "ms", each(func(c created) float64 { return c.cpu })},
		{"response, p50", "ms", responses(0.5)},
		{"response, p95", "ms", responses(0.95)},
		{"response, p99", "ms", responses(0.99)},
		{"response, longest", "ms", responses(1)},
	} {
		if before == nil {
			b.out.alone(line.name, line.unit, line.of(now), "")
		} else {
			b.out.pair(line.name, line.unit, line.of(now), line.of(before), "")
		}
	}
}

// create has clients create live streams for as long as the window, each one after the other.
func (b *bench) create(ctx context.Context, database emptyDatabase, clients int) (c created, err error) {
	address, drop, err := database(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	data, err := b.folder()
	if err != nil {
		return c, err
	}
	settings := []string{"--api-rate-token", "0", "--api-rate-address", "0"} // all of them are one token at one address
	if address != "" {
		settings = append(settings, "--database-url", address)
	}
	m, err := b.serve(data, rand.Text()+rand.Text(), settings...)
	if err != nil {
		return c, err
	}
	defer m.stop()
	before, err := proc.Read(m.p.PID())
	if err != nil {
		return c, err
	}
	type result struct {
		ms  []float64
		err error
	}
	results, begun := make(chan result, clients), time.Now()
	for range clients {
		go func() {
			var r result
			client := m.client()
			defer client.Close()
			for r.err == nil && ctx.Err() == nil && time.Since(begun) < b.window {
				at := time.Now()
				r.err = call(client, "POST", "/video/v1/live-streams", fmt.Sprintf(createBody, "low"), nil)
				r.ms = append(r.ms, milliseconds(time.Since(at)))
			}
			results <- r
		}()
	}
	for range clients {
		r := <-results
		c.ms, err = append(c.ms, r.ms...), errors.Join(err, r.err)
	}
	c.rate = float64(len(c.ms)) / time.Since(begun).Seconds()
	after, failed := proc.Read(m.p.PID())
	c.cpu = milliseconds(after.CPU-before.CPU) / float64(max(len(c.ms), 1))
	return c, errors.Join(err, failed)
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
