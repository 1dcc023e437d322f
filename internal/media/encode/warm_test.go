package encode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/fault"
)

// shell is a program that is a script, as an operator's may be: a script may start what the system has.
func shell(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec /bin/sh \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// shells are shells that wait for what they are to do on standard input: spares that need no ffmpeg.
func shells(t *testing.T, script string, keep int) (*Warm, func()) {
	t.Helper()
	program := shell(t)
	e, err := NewEngine(Options{FFmpeg: program, FFprobe: program, Budget: NewBudget(BudgetOptions{Cores: 2})})
	if err != nil {
		t.Fatal(err)
	}
	w := NewWarm(e, []string{"-c", script}, keep)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx) // ends with ctx
	}()
	end := sync.OnceFunc(func() {
		cancel(errEnough)
		<-done
	})
	t.Cleanup(end)
	return w, end
}

// echo sends a text through a child.
func echo(ctx context.Context, w *Warm, text string) (string, error) {
	var b bytes.Buffer
	err := w.Do(ctx, ImageJob{
		Input: func(_ context.Context, in io.Writer) error {
			_, err := io.WriteString(in, text)
			return err
		},
		Output: func(r io.Reader) error {
			_, err := b.ReadFrom(r)
			return err
		},
	})
	return b.String(), err
}

func (w *Warm) spares() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ready)
}

// Each job has a child of its own; as many as are wanted wait for the next ones, and none before the first nor after
// the end.
func TestWarm(t *testing.T) {
	t.Parallel()
	w, end := shells(t, "cat", 2)
	if w.spares() != 0 {
		t.Error("children before the first job")
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			text := strings.Repeat("x", i)
			if got, err := echo(t.Context(), w, text); err != nil || got != text {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := w.spares(); n != 2 {
		t.Errorf("%d children are ready", n)
	}
	end()
	if n := w.spares(); n != 0 {
		t.Errorf("%d children are left", n)
	}
	if _, err := echo(t.Context(), w, "x"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("after the end: %v", err)
	}
}

// A child that was ended while it waited costs nobody a job.
func TestWarmChildIsGone(t *testing.T) {
	t.Parallel()
	w, _ := shells(t, "cat", 1)
	if _, err := echo(t.Context(), w, "x"); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.ready[0].cancel(errEnough)
	w.mu.Unlock()
	if got, err := echo(t.Context(), w, "y"); err != nil || got != "y" {
		t.Errorf("%q, %v", got, err)
	}
}

// What a child says is the file's fault; who goes away ends it.
func TestWarmErrors(t *testing.T) {
	t.Parallel()
	w, _ := shells(t, "read x; echo broken >&2; exit 1", 1)
	for range 3 { // the end of the output is all that was wanted, and how the child ended counts
		if got, err := echo(t.Context(), w, "x\n"); fault.KindOf(err) != fault.Invalid || got != "" {
			t.Errorf("%q, %v", got, err)
		}
	}
	fails := func(r io.Reader) error {
		_, err := io.ReadFull(r, make([]byte, 1))
		return err
	}
	err := w.Do(t.Context(), ImageJob{Input: func(_ context.Context, in io.Writer) error {
		_, err := io.WriteString(in, "x\n")
		return err
	}, Output: fails})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v", err)
	}
	slow, _ := shells(t, "sleep 60", 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errEnough) })
	if _, err := echo(ctx, slow, "x"); !errors.Is(err, errEnough) {
		t.Errorf("%v", err)
	}
}

// A reserve gives nobody a child with other arguments, and has no more of them than it may, the oldest making room.
func TestReserve(t *testing.T) {
	t.Parallel()
	v, program := NewReserve(3), shell(t)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = v.Run(ctx) // ends with ctx
	}()
	t.Cleanup(func() {
		cancel(errEnough)
		<-done
	})
	say := func(word string, keep int) {
		var b bytes.Buffer
		err := v.do(t.Context(), ProcessOptions{
			Program: program, Args: []string{"-c", "cat; echo " + word},
		}, keep, ImageJob{
			Input: func(_ context.Context, in io.Writer) error {
				_, err := io.WriteString(in, "say ")
				return err
			},
			Output: func(r io.Reader) error {
				_, err := b.ReadFrom(r)
				return err
			},
		})
		if got := b.String(); err != nil || got != "say "+word+"\n" {
			t.Errorf("%s: %q, %v", word, got, err)
		}
	}
	kinds := func() (words []string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, s := range v.ready {
			words = append(words, s.kind[strings.LastIndexByte(s.kind, ' ')+1:])
		}
		return words
	}
	for _, step := range []struct {
		word string
		keep int
		want []string
	}{
		{"a", 2, []string{"a", "a"}},
		{"a", 2, []string{"a", "a"}},
		{"b", 1, []string{"a", "a", "b"}},
		{"b", 2, []string{"a", "b", "b"}},
		{"a", 1, []string{"b", "b", "a"}},
		{"c", 9, []string{"c", "c", "c"}},
	} {
		say(step.word, step.keep)
		if got := kinds(); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %v, want %v", step.word, got, step.want)
		}
	}
}
