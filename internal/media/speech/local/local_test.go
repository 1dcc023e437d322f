package local_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/media/speech/local"
	"millrace/internal/media/speech/worker"
	"millrace/internal/programtest"
)

// asWorker has this test's program be the process that recognises speech.
const asWorker = "speech-worker"

// raceDetector leaves the address space free: the race detector's memory takes terabytes of it.
var raceDetector = encode.Limits{CPU: time.Hour}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asWorker {
		os.Exit(worker.Main(os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == asFake {
		os.Exit(fake(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func engine(t *testing.T) *local.Engine {
	t.Helper()
	programtest.Speech(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return local.New(local.Options{
		Program: self, Args: []string{asWorker, t.Name()}, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}),
		Limits: raceDetector,
	})
}

// TestStreamsHavePlaces: an engine recognises so many live streams at a time and no more, and one that ends makes
// place.
func TestStreamsHavePlaces(t *testing.T) {
	t.Parallel()
	e := local.New(local.Options{Program: "/none", Streams: 2, Limits: raceDetector})
	var open []speech.Stream
	for range 2 {
		s, err := e.Open(t.Context(), speech.Config{})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	if s, err := e.Open(t.Context(), speech.Config{}); !errors.Is(err, speech.ErrNoPlace) {
		t.Fatalf("a third stream: %v, %v", s, err)
	}
	open[0].Close()
	s, err := e.Open(t.Context(), speech.Config{})
	if err != nil {
		t.Fatalf("when one has ended: %v", err)
	}
	s.Close()
	open[1].Close()
}

// said is speech as samples.
func said(t *testing.T, voice, text string) []byte {
	t.Helper()
	path := programtest.SharedMedia(t, "speech.raw",
		append(programtest.SpeechArgs(voice, text), "-ar", "16000", "-ac", "1", "-f", "s16le")...)
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func samples(raw []byte) []int16 {
	out := make([]int16, len(raw)/2)
	for i := range out {
		out[i] = int16(raw[2*i]) | int16(raw[2*i+1])<<8
	}
	return out
}

const news = "good morning everyone and welcome to the weekly news program"

// found is the share of the words of want that are in got.
func found(want, got string) float64 {
	there := map[string]bool{}
	for w := range strings.FieldsSeq(strings.ToLower(got)) {
		there[w] = true
	}
	n, all := 0, 0
	for w := range strings.FieldsSeq(strings.ToLower(want)) {
		all++
		if there[w] {
			n++
		}
	}
	return float64(n) / float64(all)
}

// checked are the words of results, which follow each other.
func checked(t *testing.T, words []string, last *time.Duration, r speech.Result) []string {
	t.Helper()
	for _, w := range r.Words {
		if w.Start < *last-10*time.Millisecond || w.End <= w.Start {
			t.Errorf("word %q from %s to %s behind %s", w.Text, w.Start, w.End, *last)
		}
		*last = w.End
		words = append(words, w.Text)
	}
	return words
}

// heard is what is recognised of sound while it streams.
func heard(t *testing.T, e speech.Engine, pcm []byte, c speech.Config) string {
	t.Helper()
	s, err := e.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Write(0, samples(pcm))
	s.End()
	var words []string
	var last time.Duration
	for r := range s.Results() {
		words = checked(t, words, &last, r)
	}
	return strings.Join(words, " ")
}

func TestTranscribe(t *testing.T) {
	t.Parallel()
	e := engine(t)
	var words []string
	var last time.Duration
	err := e.Transcribe(t.Context(), bytes.NewReader(said(t, "slt", news)), speech.Config{
		Effort: speech.Thorough,
	}, func(r speech.Result) error {
		words = checked(t, words, &last, r)
		return nil
	})
	if got := strings.Join(words, " "); err != nil || found(news, got) < 0.8 {
		t.Errorf("recognised %q, %v", got, err)
	}
}

// TestPhrases: names that no dictionary has are recognised when they are given, and hardly any when not.
func TestPhrases(t *testing.T) {
	t.Parallel()
	e := engine(t)
	names := []string{"Zorvex", "Quellimar", "Tabrinko", "Vandoolia"}
	text := "the captain of zorvex met the mayor of quellimar and then tabrinko sent a letter to vandoolia"
	pcm, all := said(t, "slt", text), strings.Join(names, " ")
	if got := heard(t, e, pcm, speech.Config{Effort: speech.Steady}); found(all, got) > 0.25 {
		t.Errorf("without the vocabulary it knows them: %q", got)
	}
	if got := heard(t, e, pcm, speech.Config{Effort: speech.Steady, Phrases: names}); found(all, got) < 0.7 ||
		!strings.Contains(got, "Zorvex") {
		t.Errorf("with the vocabulary it recognises %q", got)
	}
}

// TestCrash: a process that is killed in the middle is started again, and no word is lost.
func TestCrash(t *testing.T) {
	t.Parallel()
	e := engine(t)
	pcm := samples(said(t, "slt", news))
	s, err := e.Open(t.Context(), speech.Config{Effort: speech.Steady})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pcm = append(make([]int16, 2*speech.SampleRate), pcm...) // in silence it is told at once how far all is known
	half := len(pcm) / 2
	s.Write(0, pcm[:half])
	first, ok := <-s.Results() // it runs
	if !ok {
		t.Fatal("it ended")
	}
	if n := killChildren(t); n == 0 {
		t.Fatal("there is no process to kill")
	}
	s.Write(speech.Duration(int64(half)), pcm[half:])
	s.End()
	var words []string
	add := func(r speech.Result) {
		for _, w := range r.Words {
			words = append(words, w.Text)
		}
	}
	add(first)
	for r := range s.Results() {
		add(r)
	}
	if got := strings.Join(words, " "); found(news, got) < 0.8 || s.Status().Restarts == 0 {
		t.Errorf("recognised %q, %+v", got, s.Status())
	}
}

// killChildren kills the processes of this test's program that recognise speech.
func killChildren(t *testing.T) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(line), "\x00"+asWorker+"\x00"+t.Name()+"\x00") {
			continue // it has ended, or is another
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil &&
			syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}

func TestNotThere(t *testing.T) {
	t.Parallel()
	budget := encode.NewBudget(encode.BudgetOptions{Cores: 1})
	if err := local.New(local.Options{Budget: budget}).Probe(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "millrace-speech") {
		t.Errorf("without the program: %v", err)
	}
	if err := local.New(local.Options{
		Budget: budget, Program: "/bin/true", Model: t.TempDir(),
	}).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "pocketsphinx-en-us") {
		t.Errorf("without the model: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := local.New(local.Options{Budget: budget, Program: "/bin/true"}).Transcribe(ctx,
		bytes.NewReader(make([]byte, 3200)), speech.Config{}, nil); err == nil {
		t.Error("it does what nobody wants any more")
	}
}

// TestStillWanted: it is asked whether sound is still wanted once there is a processor, not before; where it is not, no
// process begins.
func TestStillWanted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone, budget := errors.New("deleted"), encode.NewBudget(encode.BudgetOptions{Cores: 1})
		release, err := budget.Acquire(t.Context(), encode.Background, 1)
		if err != nil {
			t.Fatal(err)
		}
		asked := false
		c := speech.Config{Wanted: func(context.Context) error {
			asked = true
			return gone
		}}
		ended := make(chan error, 1)
		e := local.New(local.Options{Budget: budget, Program: "/nowhere"})
		go func() { ended <- e.Transcribe(t.Context(), bytes.NewReader(make([]byte, 3200)), c, nil) }()
		synctest.Wait()
		if asked {
			t.Error("it is asked before there is a processor")
		}
		release()
		if err := <-ended; !errors.Is(err, gone) {
			t.Error(err)
		}
	})
}

// TestProbeOfABusyMachine: an engine that has not started in time is not said to be missing.
func TestProbeOfABusyMachine(t *testing.T) {
	t.Parallel()
	model := t.TempDir()
	if err := os.WriteFile(filepath.Join(model, "en-us.lm.bin"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := local.New(local.Options{Program: "/bin/true", Model: model})
	over, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if err := e.Probe(over); !errors.Is(err, speech.ErrNotInTime) || strings.Contains(err.Error(), "apt-get") {
		t.Errorf("in no time: %v", err)
	}
	broken := local.New(local.Options{Program: "/bin/false", Model: model})
	if err := broken.Probe(t.Context()); errors.Is(err, speech.ErrNotInTime) || err == nil {
		t.Errorf("a program that does not run: %v", err)
	}
}
