// Package crash finds out at start-up whether the previous process crashed, and which job it was running.
//
// Go's runtime writes the trace of a panic or a fatal error to a file, with the labels of the goroutine that caused it;
// everything that a job starts carries the job's label. A process that was killed from outside, or by the kernel for
// lack of memory, leaves no trace. It owns no goroutines.
package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
)

// label marks goroutines that belong to a job.
const label = "millrace_job"

// maxTrace is how much of a trace is looked at: the goroutine that crashed comes first.
const maxTrace = 1 << 20

// Report is the crash of a process.
type Report struct {
	Reason string // its first line
	Job    int64  // 0: none
	Trace  string // the file with all of it
}

// Blame runs work so that a crash in it, or in a goroutine that it starts, is that of the job.
func Blame(ctx context.Context, job int64, work func(context.Context)) {
	pprof.Do(ctx, pprof.Labels(label, strconv.FormatInt(job, 10)), work)
}

// Watch has a crash of this process written to path, and gives that of the process before, if it has left one; its
// trace is kept beside path, until the next crash. There is one such file for a process: the last one that was asked
// for.
func Watch(path string) (before *Report, err error) {
	if before, err = take(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // in the operator's folder
	if err != nil {
		return nil, fmt.Errorf("make file for crashes: %w", err)
	}
	defer func() { _ = f.Close() }() // the runtime has its own descriptor
	if err := writeLabels(); err != nil {
		return nil, fmt.Errorf("have labels written: %w", err)
	}
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return nil, fmt.Errorf("have crashes written: %w", err)
	}
	return before, nil
}

// writeLabels has labels in traces. The setting can't be built in; the runtime heeds a change at once.
func writeLabels() error {
	const variable, setting = "GODEBUG", "tracebacklabels=1"
	old := os.Getenv(variable) //nolint:forbidigo // the runtime's own, not this program's
	if strings.Contains(old, setting) {
		return nil
	}
	return os.Setenv(variable, strings.TrimPrefix(old+","+setting, ","))
}

// take reads what the process before has left and puts it aside.
func take(path string) (*Report, error) {
	f, err := os.Open(path) //nolint:gosec // in the operator's folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nil is "no crash"
	}
	if err != nil {
		return nil, fmt.Errorf("open file of crashes: %w", err)
	}
	text := make([]byte, maxTrace)
	n, _ := f.Read(text) // an empty file ends at once
	if err = f.Close(); err != nil || n == 0 {
		return nil, err
	}
	r := parse(text[:n])
	r.Trace = path + ".last"
	if err := os.Rename(path, r.Trace); err != nil { //nolint:gosec // likewise
		return nil, fmt.Errorf("keep trace of crash: %w", err)
	}
	return &r, nil
}

var (
	firstGoroutine = regexp.MustCompile(`(?m)^goroutine [0-9]+ [^\n]*$`)
	jobLabel       = regexp.MustCompile(`labels:\{[^\n]*"` + label + `": "([0-9]{1,18})"`)
	// a signal that asks for a trace is nobody's crash.
	fromOutside = regexp.MustCompile(`^SIG(QUIT|ABRT|TERM|INT|HUP)\b`)
)

// parse finds reason and job in a trace.
func parse(text []byte) (r Report) {
	first, _, _ := bytes.Cut(bytes.TrimLeft(text, "\n"), []byte("\n"))
	r.Reason = string(bytes.ToValidUTF8(first[:min(len(first), 300)], nil))
	if fromOutside.Match(first) {
		return r
	}
	if m := jobLabel.FindSubmatch(firstGoroutine.Find(text)); m != nil {
		r.Job, _ = strconv.ParseInt(string(m[1]), 10, 64) // at most 18 digits
	}
	return r
}
