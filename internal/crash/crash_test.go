package crash

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

const childOf, childDoes = "MILLRACE_TEST_CRASH_FILE", "MILLRACE_TEST_CRASH"

// TestMain is also the process that crashes.
func TestMain(m *testing.M) {
	if path := os.Getenv(childOf); path != "" {
		if _, err := Watch(path); err != nil {
			panic(err)
		}
		die(os.Getenv(childDoes))
	}
	os.Exit(m.Run())
}

func die(of string) {
	ctx := context.Background() //nolint:forbidigo // a process of its own
	switch of {
	case "panic of a goroutine of the job":
		Blame(ctx, 4711, func(context.Context) {
			go func() { panic("boo") }()
			select {}
		})
	case "fatal error of the job":
		debug.SetMaxStack(1 << 20)
		Blame(ctx, 4711, func(context.Context) {
			var deep func(int) int
			deep = func(n int) int { return deep(n+1) + n }
			deep(0)
		})
	case "panic beside the job":
		go Blame(ctx, 4711, func(context.Context) { select {} })
		panic("boo")
	case "end":
		os.Exit(0)
	case "killed":
		go Blame(ctx, 4711, func(context.Context) { select {} })
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
}

// TestWatch crashes a process in each way and reads of what.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		reason string
		job    int64
	}{
		"panic of a goroutine of the job": {"panic: boo", 4711},
		"fatal error of the job":          {"runtime stack:", 4711},
		"panic beside the job":            {"panic: boo", 0},
		"end":                             {},
		"killed":                          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "crash")
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), childOf+"="+path, childDoes+"="+name)
			_ = child.Run() // it is to fail
			for range 2 {
				got, err := take(path)
				if err != nil {
					t.Fatal(err)
				}
				if (got != nil) != (want.reason != "") {
					t.Fatalf("got %+v", got)
				}
				if got == nil {
					break
				}
				if got.Job != want.job || !strings.HasPrefix(got.Reason, want.reason) {
					t.Errorf("got %+v", got)
				}
				if trace, err := os.ReadFile(got.Trace); err != nil || len(trace) == 0 {
					t.Errorf("the trace: %v", err)
				}
				want.reason = "" // told once
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, job := range map[string]int64{
		"": 0,
		"panic: x\n\ngoroutine 7 [running labels:{\"a\": \"b\", \"millrace_job\": \"12\"}]:\nmain.main()\n":            12,
		"fatal error: x\n\ngoroutine 7 gp=0x1 m=3 mp=0x2 [running labels:{\"millrace_job\": \"12\"}]:\n":               12,
		"panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\ngoroutine 7 [select labels:{\"millrace_job\": \"12\"}]:\n": 0,
		"SIGQUIT: quit\nPC=0x1\n\ngoroutine 7 [running labels:{\"millrace_job\": \"12\"}]:\n":                          0,
		"panic: x\n\ngoroutine 7 [running labels:{\"millrace_job\": \"99999999999999999999999\"}]:\n":                  0,
		"panic: labels:{\"millrace_job\": \"12\"}\n\ngoroutine 1 [running]:\n":                                         0,
	} {
		if got := parse([]byte(text)); got.Job != job {
			t.Errorf("%q: %+v, want job %d", text, got, job)
		}
	}
}
