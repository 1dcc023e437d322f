package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/internal/media/speech"
	"millrace/internal/media/speech/wire"
	"millrace/internal/programtest"
)

// What is read aloud by each of the voices: ordinary speech of several kinds, and names that no dictionary has.
var ordinary = []string{
	"good morning everyone and welcome to the weekly news program. today we will talk about the weather in the north " +
		"of the country. " +
		"heavy rain is expected on monday and the rivers may rise. people who live near the water should listen to " +
		"the radio for more information.",
	"the city council has decided to build a new library near the old market. the work will begin in the spring and " +
		"it will take about two years. " +
		"many people are happy about the plan but some think that it costs too much money.",
	"to make this soup you need two onions, three carrots and a little salt. cut the vegetables into small pieces " +
		"and cook them in butter for ten minutes. " +
		"then add the water and wait until everything is soft.",
	"she opened the door and looked into the dark room. nobody was there, but the window was open and the curtain " +
		"moved in the wind. " +
		"a letter was lying on the table, and she knew the hand that had written it.",
	"in the second half the home team played much better. their captain scored twice within five minutes, and the " +
		"visitors never found an answer. " +
		"after the game the manager said that he was proud of his young players.",
}

const invented = "the captain of zorvex met the mayor of quellimar and then tabrinko sent a letter to vandoolia. " +
	"last year zorvex sold more ships than vandoolia but quellimar has the better harbor."

// voices are those of flite that the engine understands.
var voices = []string{"slt", "rms", "awb", "kal16"}

// recognition gives the words of samples, how late they were, and the processor time that it took in seconds.
type recognition func(b *testing.B, pcm []int16) (words []string, late delays, used float64)

// delays are from the end of words until they are known: of the last one of each result, and of each one.
type delays struct{ last, each []time.Duration }

// BenchmarkRecognise is what the engine makes of generated speech, in one process without anything around it: words
// that are wrong, processor time as a share of the speech's length, and how long after its end the last word of a
// result is known while it streams. Beside it is the engine's own program (Debian's package pocketsphinx), where it is
// installed.
func BenchmarkRecognise(b *testing.B) {
	programtest.Speech(b)
	names := []string{"Zorvex", "Quellimar", "Tabrinko", "Vandoolia"}
	live := wire.Start{Model: programtest.SpeechModel, MaxSamples: 10 * speech.SampleRate, Effort: int(speech.Steady)}
	behind, final := live, live
	behind.Effort = int(speech.Quick)
	final.Effort, final.Whole = int(speech.Thorough), true
	for _, x := range []struct {
		name  string
		start wire.Start
	}{
		{"live", live}, {"behind", behind}, {"final", final},
	} {
		b.Run(x.name+"/read by people", func(b *testing.B) { measure(b, ours(x.start), read(b)) })
		b.Run(x.name+"/ordinary", func(b *testing.B) { measure(b, ours(x.start), generated(b, ordinary...)) })
		b.Run(x.name+"/without a pause", func(b *testing.B) {
			measure(b, ours(x.start), generated(b, breathless(ordinary)...))
		})
		b.Run(x.name+"/names", func(b *testing.B) { measure(b, ours(x.start), generated(b, invented)) })
		x.start.Phrases = names
		b.Run(x.name+"/names with vocabulary", func(b *testing.B) { measure(b, ours(x.start), generated(b, invented)) })
	}
	for _, decibels := range []float64{30, 20, 10} {
		b.Run(fmt.Sprintf("live/ordinary, %g dB above white noise", decibels), func(b *testing.B) {
			measure(b, noisy(ours(live), decibels), generated(b, ordinary...))
		})
	}
	if program, err := exec.LookPath("pocketsphinx_continuous"); err == nil {
		b.Run("its own program/read by people", func(b *testing.B) { measure(b, itsOwn(program), read(b)) })
		b.Run("its own program/ordinary", func(b *testing.B) { measure(b, itsOwn(program), generated(b, ordinary...)) })
		b.Run("its own program/names", func(b *testing.B) { measure(b, itsOwn(program), generated(b, invented)) })
	}
}

// spoken is speech with the words that it has.
type spoken struct {
	words []string
	pcm   []int16
}

// generated are texts as each of the voices reads them.
func generated(b *testing.B, texts ...string) (all []spoken) {
	b.Helper()
	for _, text := range texts {
		for _, voice := range voices {
			all = append(all, spoken{plain(text), aloud(b, voice, text)})
		}
	}
	return all
}

// read are texts as people read them.
func read(b *testing.B) (all []spoken) {
	b.Helper()
	for _, r := range programtest.Readings(b) {
		all = append(all, spoken{r.Words, append(numbers(r.Sound), make([]int16, speech.SampleRate)...)})
	}
	return all
}

func measure(b *testing.B, recognise recognition, said []spoken) {
	b.Helper()
	var last, each []time.Duration
	var long time.Duration
	var used float64
	wrong, all := 0, 0
	for b.Loop() {
		for _, s := range said {
			words, late, took := recognise(b, s.pcm)
			used += took
			long += speech.Duration(int64(len(s.pcm)))
			wrong, all = wrong+programtest.WordErrors(s.words, words), all+len(s.words)
			last, each = append(last, late.last...), append(each, late.each...)
		}
	}
	b.ReportMetric(100*float64(wrong)/float64(all), "%wrong")
	b.ReportMetric(used/long.Seconds(), "cores")
	report := func(delays []time.Duration, prefix string) {
		if slices.Sort(delays); len(delays) > 0 {
			b.ReportMetric(delays[len(delays)/2].Seconds(), prefix+"p50-s")
			b.ReportMetric(delays[len(delays)*95/100].Seconds(), prefix+"p95-s")
		}
	}
	report(last, "")
	report(each, "each-")
	b.ReportMetric(0, "ns/op")
}

// itsOwn is the engine's own program with its defaults, which recognises a file.
func itsOwn(program string) recognition {
	return func(b *testing.B, pcm []int16) (words []string, late delays, used float64) {
		b.Helper()
		path := filepath.Join(b.TempDir(), "speech.raw")
		if err := os.WriteFile(path, raw(pcm), 0o600); err != nil {
			b.Fatal(err)
		}
		model := func(name string) string { return filepath.Join(programtest.SpeechModel, name) }
		cmd := exec.CommandContext(b.Context(), program, "-infile", path, "-logfn", os.DevNull,
			"-hmm", model("en-us"), "-lm", model("en-us.lm.bin"), "-dict", model("cmudict-en-us.dict"))
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		used = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		return strings.Fields(string(out)), delays{}, used
	}
}

// breathless are texts that are read without a pause.
func breathless(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = strings.Join(plain(text), " ")
	}
	return out
}

// noisy adds white noise, which is so many decibels less loud than the whole of the speech.
func noisy(r recognition, decibels float64) recognition {
	return func(b *testing.B, pcm []int16) ([]string, delays, float64) {
		b.Helper()
		sum := 0.0
		for _, s := range pcm {
			sum += float64(s) * float64(s)
		}
		loud := math.Sqrt(sum/float64(len(pcm))) * math.Pow(10, -decibels/20)
		random := rand.New(rand.NewPCG(1, 2)) // noise, each time the same
		out := make([]int16, len(pcm))
		for i, s := range pcm {
			out[i] = int16(max(math.MinInt16, min(math.MaxInt16, float64(s)+random.NormFloat64()*loud)))
		}
		return r(b, out)
	}
}

// plain are the words of a text without its punctuation.
func plain(text string) []string {
	return strings.Fields(strings.NewReplacer(".", "", ",", "").Replace(text))
}

// aloud is a text as samples, with a second of silence behind it.
func aloud(b testing.TB, voice, text string) []int16 {
	b.Helper()
	path := programtest.SharedMedia(b, "speech.raw",
		append(programtest.SpeechArgs(voice, text), "-ar", "16000", "-ac", "1", "-f", "s16le")...)
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		b.Fatal(err)
	}
	return append(numbers(data), make([]int16, speech.SampleRate)...)
}

// numbers are samples of bytes as numbers.
func numbers(data []byte) []int16 {
	pcm := make([]int16, len(data)/2)
	for i := range pcm {
		pcm[i] = int16(data[2*i]) | int16(data[2*i+1])<<8
	}
	return pcm
}

// raw are samples as bytes.
func raw(pcm []int16) []byte {
	out := make([]byte, 0, 2*len(pcm))
	for _, s := range pcm {
		out = append(out, byte(s), byte(uint16(s)>>8))
	}
	return out
}

// ours recognises samples that come a tenth of a second at a time.
func ours(start wire.Start) recognition {
	return func(b *testing.B, pcm []int16) (words []string, late delays, used float64) {
		b.Helper()
		before := processorTime(b)
		var at int64
		d, err := newDecoder(start, func(r wire.Result) error {
			for i, w := range r.Words {
				words = append(words, w.Text)
				late.each = append(late.each, speech.Duration(at-w.End))
				if i == len(r.Words)-1 {
					late.last = append(late.last, speech.Duration(at-w.End))
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; n < len(pcm); n += step {
			end := min(n+step, len(pcm))
			at = int64(end)
			if err = d.feed(int64(n), pcm[n:end]); err != nil {
				b.Fatal(err)
			}
		}
		if err = d.end(); err != nil {
			b.Fatal(err)
		}
		return words, late, processorTime(b) - before
	}
}

func processorTime(b *testing.B) float64 {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

// BenchmarkPieces is what is made of what people read aloud when it has ended, with two processors: in pieces of the
// length for long sound, as where its length is unknown, and in those for its length.
func BenchmarkPieces(b *testing.B) {
	programtest.Speech(b)
	said := read(b)
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprintf("length known %t", known), func(b *testing.B) {
			e := &inProcess{b: b}
			measure(b, func(b *testing.B, pcm []int16) (words []string, late delays, used float64) {
				b.Helper()
				before := processorTime(b)
				batch := speech.Batch{Engine: e, Most: 2}
				if known {
					batch.Length = speech.Duration(int64(len(pcm)))
				}
				got, err := batch.Run(b.Context(), bytes.NewReader(raw(pcm)), speech.Config{})
				if err != nil {
					b.Fatal(err)
				}
				for _, w := range got.Words {
					words = append(words, w.Text)
				}
				return words, delays{}, processorTime(b) - before
			}, said)
			b.ReportMetric(float64(e.pieces)/float64(b.N), "pieces")
		})
	}
}

// inProcess is the engine without a process of its own, one piece at a time.
type inProcess struct {
	speech.Engine

	b      *testing.B
	mu     sync.Mutex
	pieces int
}

func (*inProcess) Abilities() (speech.Abilities, error) { return speech.Abilities{}, nil }

func (i *inProcess) Transcribe(
	_ context.Context, pcm io.Reader, _ speech.Config, emit func(speech.Result) error,
) error {
	data, err := io.ReadAll(pcm)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pieces++
	start := wire.Start{Model: programtest.SpeechModel, Effort: int(speech.Thorough), Whole: true}
	var words []speech.Word
	d, err := newDecoder(start, func(r wire.Result) error {
		for _, w := range r.Words {
			start, end := speech.Duration(w.Start), speech.Duration(w.End)
			words = append(words, speech.Word{Text: w.Text, Start: start, End: end})
		}
		return nil
	})
	if err == nil {
		err = errors.Join(d.feed(0, numbers(data)), d.end())
	}
	return errors.Join(err, emit(speech.Result{Words: words}))
}
