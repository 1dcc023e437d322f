package queue

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/crash"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const (
	childURL   = "MILLRACE_TEST_CHILD_URL"
	childCrash = "MILLRACE_TEST_CHILD_CRASH" // the file of crashes of one that crashes
)

// childMain is the process that TestKill kills: it starts jobs and never ends them, unless it is the one of TestCrash.
func childMain() {
	url := os.Getenv(childURL)
	if url == "" {
		return
	}
	ctx := context.Background() //nolint:forbidigo // a process of its own
	d, err := db.Open(ctx, db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
	if err == nil {
		var q *Queue
		q, err = New(Options{
			DB: d, Node: "mortal", Classes: testClasses(),
			Handlers: everyKind(func(_ context.Context, j job.Job) error {
				_, _ = fmt.Fprintln(os.Stdout, "working on", j.Kind)
				if file := os.Getenv(childCrash); file != "" {
					_, _ = crash.Watch(file)
					go func() { panic("boo") }()
				}
				select {}
			}),
		})
		if err == nil {
			err = q.Run(ctx)
		}
	}
	_, _ = fmt.Fprintln(os.Stdout, err)
	os.Exit(1)
}

// TestKill kills a process in the middle of jobs, one of each queue; the next one of the same node takes them up within
// seconds.
func TestKill(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		kinds := testKinds()
		for _, kind := range kinds {
			must(t, d.Enqueue(t.Context(), newJob(kind, "a")))
		}
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childURL+"="+url)
		out, err := child.StdoutPipe()
		must(t, err)
		must(t, child.Start())
		lines, begun := bufio.NewReader(out), map[string]bool{}
		for len(begun) < len(kinds) {
			line, err := lines.ReadString('\n')
			kind, ok := strings.CutPrefix(strings.TrimSpace(line), "working on ")
			if err != nil || !ok || begun[kind] {
				t.Fatalf("the child says %q (%v)", line, err)
			}
			begun[kind] = true
		}
		must(t, child.Process.Kill())
		_ = child.Wait()
		attempts := make(chan job.Job, len(kinds))
		began := time.Now()
		run(t, d, "mortal", nil, everyKind(func(_ context.Context, j job.Job) error {
			attempts <- j
			return nil
		})...)
		for range kinds {
			if j := got(t, attempts, "a job of the dead"); j.Attempt != 1 {
				t.Errorf("attempt %d of %s, want 1: what was broken off is none", j.Attempt, j.Kind)
			}
		}
		t.Logf("taken up after %v", time.Since(began))
		for _, kind := range kinds {
			ended(t, d, kind, "a")
		}
	})
}

// TestDeaths of its process end no job that is not to blame, and are no attempts of it.
func TestDeaths(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
		over := make(chan struct{})
		defer close(over)
		taken, log := endless(t, d, over)
		for n := range 2*defaultAttempts + 1 {
			if j := got(t, taken, "the job"); j.Attempt != 1 || j.Crashes != 0 || j.Last() || j.Deadly() {
				t.Fatalf("after %d deaths: %+v", n, j)
			}
			_, err := d.ReleaseJobs(t.Context(), "mortal") // as the process that finds it dead does
			must(t, err)
		}
		if strings.Contains(log.String(), "final=true") {
			t.Errorf("it gave up:\n%s", log.String())
		}
	})
}

// TestCrashes of its process that a job caused: it is handed over once more for its end, and if that fails too, not
// again.
func TestCrashes(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
		over := make(chan struct{})
		defer close(over)
		taken, log := endless(t, d, over)
		for n := range job.MaxCrashes + 1 {
			j := got(t, taken, "the job")
			if j.Crashes != n || j.Deadly() != (n == job.MaxCrashes) {
				t.Fatalf("after %d crashes: %+v", n, j)
			}
			must(t, d.BlameJob(t.Context(), j.ID))
			_, err := d.ReleaseJobs(t.Context(), "mortal")
			must(t, err)
		}
		ended(t, d, "test.kind", "a")
		if !strings.Contains(log.String(), "its process died of it too often") {
			t.Errorf("it says\n%s", log.String())
		}
	})
}

// endless works on a job for ever, each time that it is handed over.
func endless(t *testing.T, d *db.DB, over chan struct{}) (taken chan job.Job, log *buffer) {
	t.Helper()
	taken, log = make(chan job.Job, 1), &buffer{}
	h := job.Handler{Kind: "test.kind", Work: func(ctx context.Context, j job.Job) error {
		taken <- j
		select {
		case <-ctx.Done():
		case <-over:
		}
		return nil
	}}
	q, err := New(Options{
		DB: d, Node: "mortal", Workers: 32, Classes: testClasses(), Handlers: []job.Handler{h},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	must(t, err)
	runQueue(t, q)
	return taken, log
}

// TestCrash of a process is its job's, from a goroutine that the job has started to the next run of the job.
func TestCrash(t *testing.T) {
	t.Parallel()
	url, file := dbtest.SQLite(t), filepath.Join(t.TempDir(), "crash")
	d := dbtest.Open(t, url)
	must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childURL+"="+url, childCrash+"="+file)
	if out, err := child.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: boo") {
		t.Fatalf("the child ends with %v:\n%s", err, out)
	}
	report, err := crash.Watch(file)
	must(t, err)
	if report == nil || report.Job == 0 {
		t.Fatalf("got %+v", report)
	}
	taken := make(chan job.Job, 1)
	h := job.Handler{Kind: "test.kind", Work: func(_ context.Context, j job.Job) error {
		taken <- j
		return nil
	}}
	q, err := New(Options{DB: d, Node: "mortal", Died: report.Job, Classes: testClasses(), Handlers: []job.Handler{h}})
	must(t, err)
	runQueue(t, q)
	if j := got(t, taken, "the job"); j.ID != report.Job || j.Crashes != 1 || j.Attempt != 1 {
		t.Errorf("got %+v", j)
	}
	ended(t, d, "test.kind", "a")
}
