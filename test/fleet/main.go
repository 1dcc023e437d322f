// Command fleet runs the control plane of many nodes in one process, with live streams and viewers that are made up, on
// a PostgreSQL of its own, and says what they cost the database and how many it carries. What asks the database is the
// product's own code; media is a few bytes for each frame, and is stored nowhere. docs/scaling.md says what came of it.
// Goroutines: the services of nodes, their encoders and viewers, each ended by fleet.stop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"millrace/test/services"
)

// plan is what is to be measured.
type plan struct {
	nodes   int
	streams int // at most
	viewers int // of each stream
	first   int // streams of the first step; each step has twice as many as the one before
	spread  int // nodes on which the viewers of a stream are
	rest    time.Duration
	window  time.Duration
	bound   time.Duration
	idle    bool // the nodes' rows alone
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	p := plan{}
	flag.IntVar(&p.nodes, "nodes", 4, "nodes")
	flag.IntVar(&p.streams, "streams", 10_000, "live streams at most")
	flag.IntVar(&p.first, "first", 250, "live streams of the first step; each step has twice as many")
	flag.IntVar(&p.viewers, "viewers", 10, "viewers of each live stream")
	flag.IntVar(&p.spread, "spread", 2, "nodes on which the viewers of a live stream are")
	flag.DurationVar(&p.rest, "rest", 12*time.Second, "time between the last encoder of a step and its window")
	flag.DurationVar(&p.window, "window", 20*time.Second, "length of each window")
	flag.DurationVar(&p.bound, "bound", 250*time.Millisecond, "99 of 100 statements are to take less")
	flag.BoolVar(&p.idle, "rows", false, "measure the renewals of the nodes' rows alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := services.Postgres(ctx)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer server.Stop()
	_, err = p.measure(ctx, server.URL, os.Stdout)
	return err
}

// step is what was measured with a number of streams.
type step struct {
	Nodes, Streams, Viewers int
	Cost                    cost
	Timing                  map[string]quantiles
	Late                    time.Duration // the largest delay of an encoder or a viewer
	Puts                    int64         // objects stored
	Window                  time.Duration
	Over                    []string // what was over the bound
}

// measure has more and more streams until something takes longer than the bound.
func (p plan) measure(ctx context.Context, url string, out io.Writer) (steps []step, err error) {
	f, err := start(ctx, p, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	fmt.Fprintln(out, header)
	for streams := min(p.first, p.streams); ; streams = min(2*streams, p.streams) {
		if p.idle {
			streams = 0
		}
		if err = f.connect(ctx, streams); err != nil {
			return steps, err
		}
		if err = pause(ctx, p.rest); err != nil {
			return steps, err
		}
		s, err := f.window(ctx)
		if err != nil {
			return steps, err
		}
		steps = append(steps, s)
		fmt.Fprintln(out, s)
		if len(s.Over) > 0 {
			fmt.Fprintf(out, "the knee is below %d streams: %s\n", streams, strings.Join(s.Over, ", "))
			return steps, nil
		}
		if streams >= p.streams || p.idle {
			return steps, nil
		}
	}
}

// window measures for a while.
func (f *fleet) window(ctx context.Context) (step, error) {
	before, err := f.costs.read(ctx)
	if err != nil {
		return step{}, err
	}
	f.times.reset()
	puts, began := f.puts.Load(), time.Now()
	if err = pause(ctx, f.plan.window); err != nil {
		return step{}, err
	}
	after, err := f.costs.read(ctx)
	if err != nil {
		return step{}, err
	}
	s := step{
		Nodes: len(f.nodes), Streams: len(f.streams), Viewers: f.plan.viewers * len(f.streams),
		Cost: after.since(before), Timing: f.times.all(), Late: f.times.late(), Puts: f.puts.Load() - puts,
		Window: time.Since(began),
	}
	for name, q := range s.Timing {
		if q.P99 > f.plan.bound {
			s.Over = append(s.Over, fmt.Sprintf("%s: 99 %% within %s", name, q.P99.Round(time.Millisecond)))
		}
	}
	if s.Late > time.Second {
		s.Over = append(s.Over, fmt.Sprintf("encoders and viewers are %s late", s.Late.Round(time.Millisecond)))
	}
	slices.Sort(s.Over)
	return s, nil
}

const header = "streams viewers | PostgreSQL's cores, transactions/s, rows written/s, WAL KB/s | " +
	"cores of the nodes | objects/s | 99 % within"

func (s step) String() string {
	var times []string
	for name, q := range s.Timing {
		times = append(times, fmt.Sprintf("%s %s of %d", name, q.P99.Round(100*time.Microsecond), q.Count))
	}
	slices.Sort(times)
	each := s.Window.Seconds()
	return fmt.Sprintf("%d %d | %.4f, %.1f, %.1f, %.1f | %.2f | %.1f | %s; late %s", s.Streams, s.Viewers,
		s.Cost.Postgres.Seconds()/each, float64(s.Cost.Transactions)/each, float64(s.Cost.Written)/each,
		float64(s.Cost.WAL)/1e3/each, s.Cost.Nodes.Seconds()/each, float64(s.Puts)/each, strings.Join(times, ", "),
		s.Late.Round(time.Millisecond))
}

// pause waits.
func pause(ctx context.Context, long time.Duration) error {
	t := time.NewTimer(long)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
