package encode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watched is a pipe whose writer has to say something now and then. Time that the reader takes does not count, nor does
// what the writer waits for a processor.
type watched struct {
	file    *os.File
	stall   time.Duration
	stalled func(why error)
	effort  func() effort // of the writer
	ended   bool

	silent time.Duration // that counts
	worked time.Duration // that the writer has run meanwhile, all its threads, since the first look
	before effort        // at the last look
}

// watch makes a pipe of the child's watched; it may be silent for as long as it wants.
func (r *run) watch(file *os.File) *watched {
	return &watched{
		file: file, stalled: func(why error) { r.cancel(why) },
		effort: func() effort { return effortOf(r.cmd.Process.Pid) },
	}
}

// Read implements io.Reader.
func (w *watched) Read(b []byte) (int, error) {
	w.silent, w.worked = 0, 0
	for {
		if w.stall > 0 {
			_ = w.file.SetReadDeadline(time.Now().Add(w.stall / 2))
		}
		n, err := w.file.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			w.ended = w.ended || errors.Is(err, io.EOF)
			return n, err // io.EOF has to stay as it is
		}
		if w.look(); w.silent >= w.stall {
			why := w.reason()
			w.stalled(why)
			return n, why
		}
	}
}

// reason tells who was busy all the time and has nothing to show for it from who was not. At least half of the silence
// lies behind the first look: of that it has to have run the half.
func (w *watched) reason() error {
	if w.worked >= w.stall/4 {
		return ErrStalled
	}
	return ErrIdle
}

// look adds half of stall to the silence, or the part of it for which the writer was let run if it was ready to for
// most of it.
func (w *watched) look() {
	half, now := w.stall/2, w.effort()
	ran, waited := now.ran-w.before.ran, now.waited-w.before.waited
	if first := w.silent == 0; !first {
		w.worked += ran
		if ran+waited > half/2 {
			half = time.Duration(float64(half) * float64(ran) / float64(ran+waited))
		}
	}
	w.silent, w.before = w.silent+half, now
}

// effort is how long all threads of a process together have run, and have waited for a processor while they were ready
// to.
type effort struct{ ran, waited time.Duration }

// effortOf reads what the system says of pid and its threads; nothing where it does not.
func effortOf(pid int) (all effort) {
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	if err != nil {
		return all
	}
	for _, name := range threads {
		data, err := os.ReadFile(name) //nolint:gosec // of the system's
		if err != nil {
			continue // it has ended
		}
		var one effort
		if _, err := fmt.Sscan(string(data), (*int64)(&one.ran), (*int64)(&one.waited)); err == nil { // nanoseconds
			all.ran, all.waited = all.ran+one.ran, all.waited+one.waited
		}
	}
	if ran, ok := processorTime(pid); ok {
		all.ran = ran // with that of threads that have ended
	}
	return all
}

// processorTime is what the clock of a process says, clock_getcpuclockid(3).
func processorTime(pid int) (time.Duration, bool) {
	const ofProcess, scheduled = 3, 2 // bits of the number, and which of its clocks, as the kernel numbers them
	if pid <= 0 {
		return 0, false
	}
	var t unix.Timespec
	clock := int32(^pid<<ofProcess | scheduled)
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
