package filter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/media/speech/filter"
	"millrace/internal/programtest"
)

// asFFmpeg has this test's program be an ffmpeg that writes what the file beside the model says, and that has the
// filter.
const asFFmpeg = "as-ffmpeg"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asFFmpeg {
		os.Exit(fake(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// fake does what ffmpeg 8 does, as far as it is asked to: it loads the model, takes all sound, writes phrases and ends.
func fake(args []string) int {
	graph := args[slices.Index(args, "-af")+1]
	options := map[string]string{}
	for o := range strings.SplitSeq(strings.TrimPrefix(graph, "whisper="), ":") {
		name, value, _ := strings.Cut(o, "=")
		options[name] = value
	}
	model, err := os.ReadFile(options["model"])
	if err != nil {
		fmt.Fprintf(os.Stderr, "Failed to initialize whisper context from model: %s\n", options["model"])
		return 187
	}
	n, err := io.Copy(io.Discard, os.Stdin)
	if err != nil || options["format"] != "json" || options["destination"] != "-" {
		return 1
	}
	what, _, _ := strings.Cut(string(model), "\n")
	switch what {
	case "old":
		fmt.Fprintln(os.Stderr, "[AVFilterGraph @ 0x55] No such filter: 'whisper'")
		return 1
	case "endless":
		for {
			fmt.Fprintln(os.Stdout, `{"start":0,"end":10,"text":"again"}`)
		}
	}
	fmt.Fprint(os.Stdout,
		strings.NewReplacer("$language", options["language"], "$bytes", fmt.Sprint(n)).Replace(string(model)))
	return 0
}

func engine(t *testing.T, name, model string) *filter.Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err = os.WriteFile(path, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	return filter.New(filter.Options{
		FFmpeg: self, Model: path, Args: []string{asFFmpeg}, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}),
	})
}

func transcribe(
	ctx context.Context, e *filter.Engine, long time.Duration, c speech.Config,
) (out speech.Result, err error) {
	err = e.Transcribe(ctx, bytes.NewReader(make([]byte, 2*speech.Samples(long))), c, func(r speech.Result) error {
		out = r
		return nil
	})
	return out, err
}

// TestPhrases: quotes in a text, which the filter leaves as they are, what is no speech, and times outside of the
// sound.
func TestPhrases(t *testing.T) {
	t.Parallel()
	e := engine(t, "ggml-base.bin", `{"start":0,"end":2000,"text":" He said "no", $language"}
{"start":2000,"end":3000,"text":"[BLANK_AUDIO]"}
{"start":3000,"end":30000,"text":" $bytes  bytes"}
`)
	r, err := transcribe(t.Context(), e, 4*time.Second, speech.Config{Language: "de-CH"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range r.Words {
		got = append(got, w.Text)
	}
	if want := []string{"He", "said", `"no",`, "de", "128000", "bytes"}; !slices.Equal(got, want) ||
		r.Until != 4*time.Second {
		t.Errorf("%q until %v, want %q", got, r.Until, want)
	}
	last := time.Duration(0)
	for _, w := range r.Words {
		if w.Start < last || w.End < w.Start || w.End > 4*time.Second {
			t.Errorf("%+v", w)
		}
		last = w.Start
	}
	if w := r.Words[3]; w.End != 2*time.Second {
		t.Errorf("the last word of the first phrase: %+v", w)
	}
}

// TestLive: windows of a stream are recognised one by one, in the stream's time.
func TestLive(t *testing.T) {
	t.Parallel()
	e := engine(t, "ggml-base.bin", `{"start":0,"end":500,"text":"word"}`+"\n")
	s, err := e.Open(t.Context(), speech.Config{Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	loud := make([]int16, speech.SampleRate)
	for i := range loud {
		loud[i] = int16(i%2*4000 - 2000)
	}
	for second := range 4 {
		s.Write(time.Duration(10+second)*time.Second, loud)
	}
	s.End()
	var words []speech.Word
	for r := range s.Results() {
		words = append(words, r.Words...)
	}
	if len(words) != 1 || words[0].Start != 10*time.Second {
		t.Errorf("%+v, %+v", words, s.Status())
	}
}

func TestAbilities(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes, not string
	}{"ggml-base.bin": {"de", "auto"}, "ggml-base.en.bin": {"en-US", "de"}} {
		can, err := engine(t, name, "").Abilities()
		if err != nil || !can.Speaks(tt.takes) || can.Speaks(tt.not) {
			t.Errorf("%s: %+v, %v", name, can, err)
		}
	}
	if _, err := filter.New(filter.Options{Model: t.TempDir()}).Abilities(); err == nil {
		t.Error("a folder is a model")
	}
	if _, err := filter.New(filter.Options{Model: filepath.Join(t.TempDir(), "none")}).Abilities(); err == nil {
		t.Error("a model is there that is not")
	}
}

// TestProbe says to an operator what is missing.
func TestProbe(t *testing.T) {
	t.Parallel()
	if err := engine(t, "m", "").Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if err := engine(t, "m", "old").Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "version 8") {
		t.Error(err)
	}
}

// TestBadOutput: what is no phrase, too long or too much is an error, never words.
func TestBadOutput(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]string{
		"no phrase": "hello\n", "cut off": `{"start":0,"end":10,"text":"he`,
		"no number": `{"start":x,"end":10,"text":"he"}` + "\n",
		"too long":  `{"start":0,"end":10,"text":"` + strings.Repeat("he ", 30_000) + `"}` + "\n",
		"too many":  "endless",
	} {
		if r, err := transcribe(t.Context(), engine(t, "m", model), time.Second, speech.Config{
			Language: "en",
		}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if _, err := transcribe(t.Context(), engine(t, "m", ""), time.Minute, speech.Config{}); err == nil {
		t.Error("a minute of sound is taken as one piece")
	}
}

// TestEscape has ffmpeg read the path of a model out of a filter graph: another filter's file takes its place.
func TestEscape(t *testing.T) {
	t.Parallel()
	ffmpeg := programtest.Path(t, "ffmpeg")
	path := filepath.Join(t.TempDir(), `a:b'c,d;e[f]g\h i=j`)
	out, err := exec.CommandContext(t.Context(), ffmpeg, "-v", "error", "-f", "lavfi", "-i", "sine=duration=1",
		"-af", "ametadata=mode=add:key=a:value=b,ametadata=mode=print:file="+filter.Escape(path), "-f", "null",
		"-").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err = os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestStillWanted: where sound is not wanted any more once there is a processor, no process begins.
func TestStillWanted(t *testing.T) {
	t.Parallel()
	gone := errors.New("deleted")
	e := filter.New(filter.Options{FFmpeg: "/nowhere", Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2})})
	c := speech.Config{Wanted: func(context.Context) error { return gone }}
	if err := e.Transcribe(t.Context(), bytes.NewReader(make([]byte, 3200)), c, nil); !errors.Is(err, gone) {
		t.Error(err)
	}
}
