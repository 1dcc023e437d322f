package rig

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Deliver publishes a transport stream as Transmit does, all of it: srt-live-transmit throws away what it reads before it is connected,
// and what it has not read when it is ended. It fails the test when the program was not let in.
func Deliver(t testing.TB, file, url string) {
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
	for len(stream)%chunk > 0 { // what does not fill its last chunk it keeps; null packets, ISO 13818-1 section 2.4.1, carry nothing
		stream = append(append(stream, 0x47, 0x1f, 0xff, 0x10), bytes.Repeat([]byte{0xff}, 184)...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-loglevel:warning", "-chunk:1316", "-autoreconnect:no", "file://con", url)
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
	connected := func() bool { return strings.Contains(out.String(), "SRT target connected") }
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		defer func() { _ = in.Close() }()
		until(ctx, connected)
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
	if !connected() {
		t.Fatalf("srt-live-transmit: %s", out.String())
	}
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
