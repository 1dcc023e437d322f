// Command hlscheck watches an HLS presentation and says where it departs from RFC 8216bis: hlscheck [-follow 20s] URL.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"millrace/test/hlscheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out io.Writer) int {
	f := flag.NewFlagSet("hlscheck", flag.ContinueOnError)
	f.SetOutput(out)
	o := hlscheck.Options{}
	f.DurationVar(&o.Follow, "follow", 20*time.Second, "how long a live playlist is watched")
	f.IntVar(&o.MaxSegments, "segments", 0, "how many of the newest segments are fetched at first; 0 is all")
	f.BoolVar(&o.LowLatency, "low-latency", false, "demand what a low-latency server offers")
	f.BoolVar(&o.MayStall, "may-stall", false, "the encoder is interrupted on purpose")
	decode := f.Bool("decode", true, "decode the segments with ffmpeg, where it is installed")
	rules := f.Bool("rules", false, "list the rules and end")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if *rules {
		for _, id := range hlscheck.RuleIDs() {
			fmt.Fprintf(out, "%-28s %-24s %s\n", id, hlscheck.Rules[id].Section, hlscheck.Rules[id].Text)
		}
		return 0
	}
	if f.NArg() != 1 {
		fmt.Fprintln(out, "hlscheck: give one URL of a multivariant playlist")
		return 2
	}
	o.URL = f.Arg(0)
	if *decode {
		o.Decoder, _ = exec.LookPath("ffmpeg")
	}
	r, err := hlscheck.Check(ctx, o)
	if r != nil {
		fmt.Fprint(out, r)
	}
	if err != nil {
		fmt.Fprintln(out, "hlscheck:", err)
		return 2
	}
	if len(r.Findings) > 0 {
		return 1
	}
	return 0
}
