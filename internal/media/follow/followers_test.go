package follow_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/media/delivered"
	"millrace/internal/media/follow"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// followsAt has the owner's address and how many follow it, with how many viewers each, in a process of followers.
const followsAt = "MILLRACE_TEST_FOLLOWS_AT"

// followers follows the owner until standard input ends.
func followers(at string) {
	var address string
	var nodes, viewers int
	if _, err := fmt.Sscan(at, &address, &nodes, &viewers); err != nil {
		panic(err)
	}
	ctx, end := context.WithCancel(context.Background()) //nolint:forbidigo // it is the root of a process
	var all sync.WaitGroup
	for range nodes {
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		w := wired{&http.Transport{Protocols: &protocols}, address}
		f := follow.New(follow.Options{Peer: w, Directory: w, Bytes: 64 << 20, Now: time.Now, Logger: quiet()})
		b, err := f.Watched(ctx, stream)
		if err != nil {
			panic(err)
		}
		for range viewers {
			all.Go(func() { watch(ctx, b.View(playback.Watch{})) })
		}
	}
	_, _ = os.Stdout.WriteString("following\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	end()
	all.Wait()
}

// watch waits for each part of the video and reads it.
func watch(ctx context.Context, v playback.Live) {
	for r := (playback.Reload{MSN: 4, Part: 0}); ctx.Err() == nil; {
		if _, err := v.Playlist(ctx, timeline.MainVideo, r, true); err != nil {
			continue
		}
		part := newest(&studio{msn: int(r.MSN), part: r.Part + 1})
		if _, err := delivered.Bytes(v.Chunk(ctx, timeline.MainVideo, part)); err != nil && ctx.Err() == nil {
			panic(err)
		}
		if r.Part++; r.Part == 4 {
			r.MSN, r.Part = r.MSN+1, 0
		}
	}
}

// BenchmarkFollowers is what a part of 60 kB costs its owner, the making left out, with so many nodes that follow it
// and so many viewers at each: it grows with the nodes, not with the viewers.
func BenchmarkFollowers(b *testing.B) {
	for _, n := range []struct{ nodes, viewers int }{{0, 0}, {1, 1}, {1, 100}, {10, 1}, {10, 10}, {50, 1}, {50, 4}} {
		b.Run(fmt.Sprintf("nodes=%d/viewers=%d", n.nodes, n.viewers), func(b *testing.B) {
			s := newStudio(true, 0)
			s.padding = strings.Repeat("x", 60_000)
			s.publish(16)
			followed(b, s, n.nodes, n.viewers)
			began, parts := used(b), 0
			for b.Loop() {
				s.publish(1)
				parts++
				<-time.After(50 * time.Millisecond)
			}
			b.ReportMetric(float64((used(b)-began).Microseconds())/1000/float64(parts), "owner-cpu-ms/part")
		})
	}
}

// followed has the studio followed by nodes in a process of their own, for as long as the benchmark runs.
func followed(b *testing.B, s *studio, nodes, viewers int) {
	b.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: newNode("run", s), Protocols: &protocols}
	ln, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(ln) }()
	b.Cleanup(func() { _ = server.Close() })
	other := exec.CommandContext(b.Context(), os.Args[0])
	other.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", followsAt, ln.Addr(), nodes, viewers))
	in, err := other.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err = other.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = other.Wait()
	})
	if _, err = out.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
}
