package worker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"millrace/internal/media/speech"
	"millrace/internal/media/speech/wire"
	"millrace/internal/programtest"
)

// loudness is an engine that hears one word wherever sound follows silence.
type loudness struct {
	pieces [][]int16
}

func (l *loudness) startStream()          {}
func (l *loudness) startUtterance() error { return nil }
func (l *loudness) speaking() bool        { return false }
func (l *loudness) soFar() []segment      { return nil }

func (l *loudness) process(samples []int16, _ bool) error {
	l.pieces = append(l.pieces, slices.Clone(samples))
	return nil
}

func (l *loudness) endUtterance() (all []segment) {
	loud := false
	for i, s := range l.pieces[len(l.pieces)-1] {
		if s != 0 && !loud {
			all = append(all, segment{word: "word", first: int32(i / frameSamples), last: int32(i/frameSamples + 9)})
		}
		loud = s != 0
	}
	return all
}

// TestPieces: sound is cut where it is quiet, a gap ends a piece, and each word keeps its time.
func TestPieces(t *testing.T) {
	t.Parallel()
	const second = speech.SampleRate
	pcm := make([]int16, 50*second)
	const gap, behind = 100 * second, 45 * second // the sound behind is so much later
	shift := func(at int) int64 {
		if at >= behind {
			at += gap
		}
		return int64(at)
	}
	var want []int64
	for at := second; at < len(pcm); at += 4 * second { // three seconds of speech, one of silence
		want = append(want, shift(at))
		for i := at; i < min(at+3*second, len(pcm)); i++ {
			pcm[i] = 1000
		}
	}
	e := &loudness{}
	var got []int64
	until := int64(-1)
	d := &wholeDecoder{
		engine: e, report: report{text: func(w string) string { return w }, tell: func(r wire.Result) error {
			if r.Until < until {
				t.Errorf("known up to %d, then %d", until, r.Until)
			}
			until = r.Until
			for _, w := range r.Words {
				got = append(got, w.Start)
			}
			return nil
		}},
	}
	for at := 0; at < len(pcm); at += second / 10 {
		if err := d.feed(shift(at), pcm[at:at+second/10]); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.end(); err != nil {
		t.Fatal(err)
	}
	for i, p := range e.pieces {
		if len(p) > wholeMost || i < len(e.pieces)-2 && (len(p) < wholeLeast || p[len(p)-1] != 0) {
			t.Errorf("piece %d has %d samples, the last is %d", i, len(p), p[len(p)-1])
		}
	}
	if !slices.Equal(got, want) || until != shift(len(pcm)) {
		t.Errorf("words at %v, known up to %d; want %v", got, until, want)
	}
}

// recognised is what is recognised of samples.
func recognised(t *testing.T, start wire.Start, pcm []int16) (words []string) {
	t.Helper()
	d, err := newDecoder(start, func(r wire.Result) error {
		for _, w := range r.Words {
			words = append(words, w.Text)
		}
		return nil
	})
	if err == nil {
		err = errors.Join(d.feed(0, pcm), d.end())
	}
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// TestSecondPass: what has ended is recognised better than what streams, and nothing is heard in silence.
func TestSecondPass(t *testing.T) {
	t.Parallel()
	programtest.Speech(t)
	stream := wire.Start{Model: programtest.SpeechModel, MaxSamples: 4 * speech.SampleRate, Effort: int(speech.Steady)}
	whole := wire.Start{Model: programtest.SpeechModel, Effort: int(speech.Thorough), Whole: true}
	live, final := 0, 0
	for _, voice := range voices[:2] {
		pcm := aloud(t, voice, ordinary[1])
		live += programtest.WordErrors(plain(ordinary[1]), recognised(t, stream, pcm))
		final += programtest.WordErrors(plain(ordinary[1]), recognised(t, whole, pcm))
	}
	t.Logf("%d words are wrong live, %d behind the end", live, final)
	if final >= live {
		t.Errorf("%d words are wrong live, and %d behind the end", live, final)
	}
	if got := recognised(t, whole, make([]int16, 15*speech.SampleRate)); len(got) > 0 {
		t.Errorf("in silence there is %q", strings.Join(got, " "))
	}
}
