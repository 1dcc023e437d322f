package worker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/media/speech"
	"millrace/internal/media/speech/wire"
	"millrace/internal/programtest"
)

// What is read aloud by each of the voices: ordinary speech of several kinds, and names that no dictionary has.
var ordinary = []string{
	"good morning everyone and welcome to the weekly news program. today we will talk about the weather in the north of the country. " +
		"heavy rain is expected on monday and the rivers may rise. people who live near the water should listen to the radio for more information.",
	"the city council has decided to build a new library near the old market. the work will begin in the spring and it will take about two years. " +
		"many people are happy about the plan but some think that it costs too much money.",
	"to make this soup you need two onions, three carrots and a little salt. cut the vegetables into small pieces and cook them in butter for ten minutes. " +
		"then add the water and wait until everything is soft.",
	"she opened the door and looked into the dark room. nobody was there, but the window was open and the curtain moved in the wind. " +
		"a letter was lying on the table, and she knew the hand that had written it.",
	"in the second half the home team played much better. their captain scored twice within five minutes, and the visitors never found an answer. " +
		"after the game the manager said that he was proud of his young players.",
}

const invented = "the captain of zorvex met the mayor of quellimar and then tabrinko sent a letter to vandoolia. " +
	"last year zorvex sold more ships than vandoolia but quellimar has the better harbor."

// voices are those of flite that the engine understands.
var voices = []string{"slt", "rms", "awb", "kal16"}

// recognition gives the words of samples, how late the last one of each result was, and the processor time that it took in seconds.
type recognition func(b *testing.B, pcm []int16) (words []string, late []time.Duration, used float64)

// BenchmarkRecognise is what the engine makes of generated speech, in one process without anything around it: words that are wrong, processor time as
// a share of the speech's length, and how long after its end the last word of a result is known while it streams. Beside it is the engine's own
// program (Debian's package pocketsphinx), where it is installed.
func BenchmarkRecognise(b *testing.B) {
	programtest.Speech(b)
	names := []string{"Zorvex", "Quellimar", "Tabrinko", "Vandoolia"}
	live := wire.Start{Model: programtest.SpeechModel, MaxSamples: 4 * speech.SampleRate, Effort: int(speech.Steady)}
	behind, final, early, latest := live, live, live, live
	behind.Effort = int(speech.Quick)
	final.Effort, final.Whole = int(speech.Thorough), true
	early.MaxSamples = 3 * speech.SampleRate
	latest.MaxSamples = 6 * speech.SampleRate
	for _, x := range []struct {
		name  string
		start wire.Start
	}{
		{"live", live}, {"live, cut at 3 s", early}, {"live, cut at 6 s", latest}, {"behind", behind}, {"final", final},
	} {
		b.Run(x.name+"/ordinary", func(b *testing.B) { measure(b, ours(x.start), ordinary...) })
		b.Run(x.name+"/without a pause", func(b *testing.B) { measure(b, ours(x.start), breathless(ordinary)...) })
		b.Run(x.name+"/names", func(b *testing.B) { measure(b, ours(x.start), invented) })
		x.start.Phrases = names
		b.Run(x.name+"/names with vocabulary", func(b *testing.B) { measure(b, ours(x.start), invented) })
	}
	for _, decibels := range []float64{30, 20, 10} {
		b.Run(fmt.Sprintf("live/ordinary, %g dB above white noise", decibels), func(b *testing.B) {
			measure(b, noisy(ours(live), decibels), ordinary...)
		})
	}
	if program, err := exec.LookPath("pocketsphinx_continuous"); err == nil {
		b.Run("its own program/ordinary", func(b *testing.B) { measure(b, itsOwn(program), ordinary...) })
		b.Run("its own program/names", func(b *testing.B) { measure(b, itsOwn(program), invented) })
	}
}

func measure(b *testing.B, recognise recognition, texts ...string) {
	b.Helper()
	var delays []time.Duration
	var long time.Duration
	var used float64
	wrong, all := 0, 0
	for b.Loop() {
		for _, text := range texts {
			want := plain(text)
			for _, voice := range voices {
				pcm := aloud(b, voice, text)
				words, late, took := recognise(b, pcm)
				used += took
				long += speech.Duration(int64(len(pcm)))
				wrong, all, delays = wrong+wordErrors(want, words), all+len(want), append(delays, late...)
			}
		}
	}
	b.ReportMetric(100*float64(wrong)/float64(all), "%wrong")
	b.ReportMetric(used/long.Seconds(), "cores")
	if slices.Sort(delays); len(delays) > 0 {
		b.ReportMetric(delays[len(delays)/2].Seconds(), "p50-s")
		b.ReportMetric(delays[len(delays)*95/100].Seconds(), "p95-s")
	}
	b.ReportMetric(0, "ns/op")
}

// itsOwn is the engine's own program with its defaults, which recognises a file.
func itsOwn(program string) recognition {
	return func(b *testing.B, pcm []int16) ([]string, []time.Duration, float64) {
		b.Helper()
		raw := make([]byte, 0, 2*len(pcm))
		for _, s := range pcm {
			raw = append(raw, byte(s), byte(uint16(s)>>8))
		}
		path := filepath.Join(b.TempDir(), "speech.raw")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			b.Fatal(err)
		}
		model := func(name string) string { return filepath.Join(programtest.SpeechModel, name) }
		cmd := exec.CommandContext(b.Context(), program, "-infile", path, "-logfn", os.DevNull,
			"-hmm", model("en-us"), "-lm", model("en-us.lm.bin"), "-dict", model("cmudict-en-us.dict"))
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		return strings.Fields(string(out)), nil, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
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
	return func(b *testing.B, pcm []int16) ([]string, []time.Duration, float64) {
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
	path := programtest.SharedMedia(b, "speech.raw", append(programtest.SpeechArgs(voice, text), "-ar", "16000", "-ac", "1", "-f", "s16le")...)
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		b.Fatal(err)
	}
	pcm := make([]int16, len(raw)/2+speech.SampleRate)
	for i := range len(raw) / 2 {
		pcm[i] = int16(raw[2*i]) | int16(raw[2*i+1])<<8
	}
	return pcm
}

// ours recognises samples that come a tenth of a second at a time.
func ours(start wire.Start) recognition {
	return func(b *testing.B, pcm []int16) (words []string, late []time.Duration, used float64) {
		b.Helper()
		before := processorTime(b)
		var at int64
		d, err := newDecoder(start, func(r wire.Result) error {
			for _, w := range r.Words {
				words = append(words, w.Text)
			}
			if n := len(r.Words); n > 0 {
				late = append(late, speech.Duration(at-r.Words[n-1].End))
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

// wordErrors is how many words have to be put in, taken out or changed: the word error rate's numerator.
func wordErrors(want, got []string) int {
	row := make([]int, len(got)+1)
	for j := range row {
		row[j] = j
	}
	for i, w := range want {
		diagonal := row[0]
		row[0] = i + 1
		for j, g := range got {
			same := 1
			if strings.EqualFold(w, g) {
				same = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+same)
		}
	}
	return row[len(got)]
}
