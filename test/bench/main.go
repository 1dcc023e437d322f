// Command bench measures the real binary against the programs that it is to be compared with, side by side in one run:
// MediaMTX for live streams, nginx for serving files. BENCHMARKS.md says what the figures mean. Everything runs on
// loopback, on the first two cores. Goroutines: encoders and viewers, each ended by the measurement that started it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"millrace/internal/programtest"
)

// bench holds what all measurements share.
type bench struct {
	uploadBytes int64  // of the file that is uploaded
	offers      string // part of the names of what is served
	dir         string // for made media, data folders and configurations
	binary      string // millrace
	peer        string // MediaMTX
	nginxBinary string
	versitygw   string   // S3 server
	before      string   // an earlier millrace, to compare with
	postgres    string   // URL of an administration database
	cert, key   string   // PEM files that servers are started with; empty: without TLS
	litter      []string // folders that go at the end

	streams, rounds int
	counts          []int // how many streams density measures; the first is streams
	warmup, window  time.Duration
	out             *report
}

// measurement is one of the things that are measured.
type measurement struct {
	name string
	run  func(*bench, context.Context) error
}

func measurements() []measurement {
	return []measurement{
		{"density", (*bench).density},
		{"recording", (*bench).recording},
		{"srt", (*bench).srt},
		{"viewers", (*bench).viewers},
		{"latency", (*bench).latency},
		{"startup", (*bench).startup},
		{"active", (*bench).active},
		{"serving", (*bench).serving},
		{"servingtls", (*bench).servingTLS},
		{"signed", (*bench).signed},
		{"drm", (*bench).drm},
		{"create", (*bench).creating},
		{"vod", (*bench).vod},
		{"first", (*bench).first},
		{"rungs", (*bench).rungs},
		{"cost", (*bench).cost},
		{"images", (*bench).images},
		{"clips", (*bench).clips},
		{"liverungs", (*bench).liveRungs},
		{"simulcast", (*bench).simulcast},
		{"slate", (*bench).slate},
		{"speech", (*bench).speech},
		{"reading", (*bench).reading},
		{"webhooks", (*bench).webhooks},
		{"uploads", (*bench).uploads},
		{"uploadplay", (*bench).uploadPlay},
		{"uploadslive", (*bench).uploadsLive},
		{"lists", (*bench).lists},
		{"creates", (*bench).creates},
		{"copies", (*bench).copies},
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	var names []string
	for _, m := range measurements() {
		if (m.name != "reading" || os.Getenv(programtest.ReadingsVariable) != "") && m.name != "creates" &&
			m.name != "copies" {
			names = append(names, m.name)
		}
	}
	b := &bench{}
	only := flag.String("run", strings.Join(names, ","), "what to measure")
	flag.StringVar(&b.dir, "dir", "tmp/bench", "folder for media and data")
	flag.StringVar(&b.binary, "millrace", "bin/millrace", "the binary to measure")
	flag.StringVar(&b.peer, "mediamtx", "", "MediaMTX, to compare live streams with")
	flag.StringVar(&b.before, "before", "", "an earlier millrace, to compare create and creates with")
	flag.StringVar(&b.postgres, "postgres", "",
		"URL of a PostgreSQL database in which others may be created, for creates and copies")
	flag.StringVar(&b.versitygw, "versitygw", "", "S3 server, for copies")
	flag.StringVar(&b.nginxBinary, "nginx", "", "nginx, to compare serving with")
	streams := flag.String("streams", "30", "encoders at once; density measures each of several numbers, as 30,120")
	flag.IntVar(&b.rounds, "rounds", 2, "how often the servers take turns")
	flag.DurationVar(&b.warmup, "warmup", 16*time.Second, "time before each window")
	flag.DurationVar(&b.window, "window", 20*time.Second, "length of each window")
	flag.StringVar(&b.offers, "offers", "", "part of the names of what is served, and of files that first takes")
	flag.Int64Var(&b.uploadBytes, "upload-bytes", 5e9, "length of the file that is uploaded")
	results := flag.String("json", "", "file for the results")
	flag.Parse()
	var err error
	if b.counts, err = numbers(*streams); err != nil {
		return fmt.Errorf("read -streams: %w", err)
	}
	b.streams = b.counts[0]
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return fmt.Errorf("find folder: %w", err)
	}
	if err = os.MkdirAll(b.dir, 0o750); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	b.out = newReport(os.Stdout)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer func() {
		for _, dir := range b.litter {
			_ = os.RemoveAll(dir) // the next run's folders are others
		}
	}()
	var errs []error
	for name := range strings.SplitSeq(*only, ",") {
		if err := b.measure(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if *results != "" {
		errs = append(errs, b.out.save(*results))
	}
	return errors.Join(errs...)
}

// numbers reads whole numbers with commas between them.
func numbers(list string) (out []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number from 1 on", s)
		}
		out = append(out, n)
	}
	return out, nil
}

func (b *bench) measure(ctx context.Context, name string) error {
	for _, m := range measurements() {
		if m.name == name {
			start := time.Now()
			err := m.run(b, ctx)
			fmt.Fprintf(os.Stderr, "(%s took %v)\n", name, time.Since(start).Round(time.Second))
			return err
		}
	}
	return fmt.Errorf("nothing of that name is measured")
}
