package queue

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const childURL = "MILLRACE_TEST_CHILD_URL"

// childMain is the process that TestKill kills: it starts a job and never ends it.
func childMain() {
	url := os.Getenv(childURL)
	if url == "" {
		return
	}
	ctx := context.Background() //nolint:forbidigo // a process of its own
	d, err := db.Open(ctx, db.Options{URL: url})
	if err == nil {
		var q *Queue
		q, err = New(Options{DB: d, Node: "mortal", Handlers: []job.Handler{{Kind: "test.kind", Work: func(context.Context, job.Job) error {
			_, _ = fmt.Fprintln(os.Stdout, "working")
			select {}
		}}}})
		if err == nil {
			err = q.Run(ctx)
		}
	}
	_, _ = fmt.Fprintln(os.Stdout, err)
	os.Exit(1)
}

// TestKill kills a process in the middle of a job; the next one of the same node takes the job up within seconds.
func TestKill(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			d := dbtest.Open(t, url)
			must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), childURL+"="+url)
			out, err := child.StdoutPipe()
			must(t, err)
			must(t, child.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || line != "working\n" {
				t.Fatalf("the child says %q (%v)", line, err)
			}
			must(t, child.Process.Kill())
			_ = child.Wait()
			attempts := make(chan int, 1)
			began := time.Now()
			run(t, d, "mortal", nil, job.Handler{Kind: "test.kind", Work: func(_ context.Context, j job.Job) error {
				attempts <- j.Attempt
				return nil
			}})
			if a := got(t, attempts, "the job of the dead"); a != 2 {
				t.Errorf("attempt %d, want 2", a)
			}
			t.Logf("taken up after %v", time.Since(began))
			ended(t, d, "a")
		})
	}
}
