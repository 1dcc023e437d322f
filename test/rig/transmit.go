package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Transmit publishes a transport stream with libsrt's own program, in real time, and gives what it said and whether it
// was let in. The query of url is as srt-live-transmit has it. All of the stream is sent: the program throws away what
// it reads before it is connected, and what it has not read when it is ended.
func Transmit(t testing.TB, file, url string) (said string, connected bool) {
	t.Helper()
	bin, err := exec.LookPath("srt-live-transmit")
	if err != nil {
		Missing(t, "srt-live-transmit is not installed")
	}
	stream, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const chunk = 7 * 188
	// what does not fill its last chunk it keeps; null packets, ISO 13818-1 section 2.4.1, carry nothing
	for len(stream)%chunk > 0 {
		stream = append(append(stream, 0x47, 0x1f, 0xff, 0x10), bytes.Repeat([]byte{0xff}, 184)...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-loglevel:warning", fmt.Sprintf("-chunk:%d", chunk), "-autoreconnect:no",
		"file://con", url)
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	taken, in, err := os.Pipe()
	if err != nil {
		t.Fatalf("start srt-live-transmit: %v", err)
	}
	cmd.Stdin = taken
	err = cmd.Start()
	_ = taken.Close()
	if err != nil {
		_ = in.Close()
		t.Fatalf("start srt-live-transmit: %v", err)
	}
	letIn := func() bool { return strings.Contains(out.String(), "SRT target connected") }
	refused := func() bool { return strings.Contains(out.String(), "REJECT reported from HS processing") }
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		defer func() { _ = in.Close() }()
		until(ctx, func() bool { return letIn() || refused() })
		if refused() { // it does not always end by itself then
			_ = cmd.Process.Kill()
			return
		}
		pace(ctx, in, stream)
		until(ctx, func() bool { return waiting(in) == 0 })
		select { // for what it has read to be sent; it does not notice the end of its input
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
			_ = cmd.Process.Signal(syscall.SIGINT)
		}
	}()
	_ = cmd.Wait() // its exit code tells nothing
	cancel()
	<-fed
	return out.String(), letIn()
}

// pace writes a transport stream as fast as its clock runs: it reads the program clock references, ISO 13818-1 section
// 2.4.3.5.
func pace(ctx context.Context, w io.Writer, b []byte) {
	const packet = 188
	begin, last, clock := time.Now(), -1.0, 0.0
	sent := 0
	for at := 0; at+packet <= len(b); at += packet {
		p := b[at : at+packet]
		if p[3]&0x20 == 0 || p[4] < 7 || p[5]&0x10 == 0 {
			continue
		}
		now := float64(uint64(p[6])<<25|uint64(p[7])<<17|uint64(p[8])<<9|uint64(p[9])<<1|uint64(p[10])>>7) / 90000
		if step := now - last; last >= 0 && step > 0 && step < 1 { // what jumps takes no time
			clock += step
		}
		last = now
		select {
		case <-time.After(time.Until(begin.Add(time.Duration(clock * float64(time.Second))))):
		case <-ctx.Done():
			return
		}
		if _, err := w.Write(b[sent : at+packet]); err != nil {
			return
		}
		sent = at + packet
	}
	_, _ = w.Write(b[sent:])
}

// until waits for a condition or the end of ctx.
func until(ctx context.Context, ok func() bool) {
	for ctx.Err() == nil && !ok() {
		Pause(20 * time.Millisecond)
	}
}

// waiting is how many bytes of a pipe nobody has read.
func waiting(pipe *os.File) (n int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	if err != nil {
		return 0
	}
	return n
}
