package encode

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLeastShare: a child that yields is raised when it gets less than a twentieth of a processor in ten seconds, until
// it has had that; what it had before then, and what it waits for otherwise, is no claim.
func TestLeastShare(t *testing.T) {
	t.Parallel()
	const ready, waits = true, false
	type look struct {
		ran    time.Duration
		ready  bool
		times  int
		raised int // at how many of these looks, a second apart
	}
	for name, looks := range map[string][]look{
		"has enough":  {{50 * time.Millisecond, ready, 1000, 0}},
		"has nothing": {{0, ready, 10, 0}, {0, ready, 100, 100}},
		"has half":    {{25 * time.Millisecond, ready, 20, 0}, {25 * time.Millisecond, ready, 10, 10}},
		"gets it when it is raised": {
			{0, ready, 11, 1}, {300 * time.Millisecond, ready, 1, 0}, {0, ready, 4, 0}, {0, ready, 1, 1},
		},
		"had much once":          {{4 * time.Second, ready, 60, 0}, {0, ready, 10, 0}, {0, ready, 1, 1}},
		"was behind for long":    {{0, ready, 1000, 990}, {550 * time.Millisecond, ready, 1, 0}},
		"waits for a disk":       {{0, waits, 1000, 0}},
		"waits, and hardly runs": {{time.Millisecond, waits, 1000, 0}, {0, ready, 10, 0}, {0, ready, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twentieth()
			was := false
			for i, l := range looks {
				raised := 0
				for range l.times {
					raise, changed := s.look(l.ran, l.ready, time.Second)
					if changed != (raise != was) {
						t.Fatalf("part %d: raised %t after %t, and changed is %t", i, raise, was, changed)
					}
					if was = raise; raise {
						raised++
					}
				}
				if raised != l.raised {
					t.Errorf("part %d: raised at %d looks, want %d", i, raised, l.raised)
				}
			}
		})
	}
}

// TestYieldingGetsOn has a child that yields share one processor with another that never ends: it gets its share, by
// the processor time that the other one takes until it is done.
func TestYieldingGetsOn(t *testing.T) {
	t.Parallel()
	if !MayRaise() {
		t.Skip("the system does not let a child be raised again")
	}
	other, ended := make(chan int, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	opts := fakeOptions(t, "told-spin-there")
	opts.Priority = OnDemand // whatever the tests run as
	opts.Output = func(_ context.Context, r io.Reader) error {
		var pid int
		if _, err := fmt.Fscan(r, &pid); err != nil {
			return fmt.Errorf("read number: %w", err)
		}
		other <- pid
		return nil
	}
	go func() { ended <- NewProcess(opts).Run(ctx) }()
	pid := <-other
	for _, p := range []Priority{Background, Ingest} {
		var took time.Duration
		opts = fakeOptions(t, "work-there")
		opts.Priority = p
		opts.Input = func(_ context.Context, w io.Writer) error {
			_, err := fmt.Fprint(w, pid)
			return err
		}
		opts.Output = func(_ context.Context, r io.Reader) error {
			_, err := fmt.Fscan(r, (*int64)(&took))
			return err
		}
		process := NewProcess(opts)
		process.least.every, process.least.window = 20*time.Millisecond, 200*time.Millisecond
		process.least.had = 0
		if err := process.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A twentieth is 2 s of it. What only yields has one part of 448.
		if took > 5*time.Second {
			t.Errorf("priority %d: 0.1 s of work was done beside %s of what it yields to", p, took)
		}
		if took == 0 {
			t.Error("nothing has run beside it")
		}
	}
	cancel()
	<-ended
}

// TestMayRaise: whether a thread comes back from the lowest priority is tried; without the right it does not. The
// thread that tries it is never SCHED_IDLE, or it would hold up all others where the machine is busy.
func TestMayRaise(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give up the right for the test")
	}
	type outcome struct {
		may           bool
		before, after *unix.SchedAttr
	}
	try := func(setUp func()) outcome {
		tried := make(chan outcome)
		go onOwnThread(func() {
			setUp()
			o := outcome{}
			o.before, _ = unix.SchedGetAttr(0, 0)
			o.may = comesBack()
			o.after, _ = unix.SchedGetAttr(0, 0)
			tried <- o
		})
		return <-tried
	}
	giveUp := func() {
		head, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capset(&head, &none[0]); err != nil {
			t.Error(err)
		}
	}
	for _, nice := range []int{0, niceRaised, 12, niceLowest} {
		lower := func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice) }
		if o := try(lower); !o.may || *o.after != *o.before {
			t.Errorf("at niceness %d it comes back: %t, from %+v as %+v", nice, o.may, o.before, o.after)
		}
		if o := try(func() { lower(); giveUp() }); o.may || o.after.Policy == unix.SCHED_IDLE {
			t.Errorf("at niceness %d, without CAP_SYS_NICE it comes back: %t, as %+v", nice, o.may, o.after)
		}
	}
	if as := yielding(false); as.Policy != unix.SCHED_BATCH || as.Nice != niceLowest {
		t.Errorf("then a child that yields runs by %+v", as)
	}
}
