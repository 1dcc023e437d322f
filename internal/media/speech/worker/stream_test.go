package worker

import (
	"fmt"
	"slices"
	"testing"

	"millrace/internal/media/speech"
	"millrace/internal/media/speech/wire"
)

// The words of chatter: one every half a second, four tenths long. A sample says in which tenth of a second it is.
const (
	tenth     = speech.SampleRate / 10
	wordEvery = 5 * tenth
	wordLong  = 4 * tenth
)

// chatter is an engine that hears somebody who never pauses. Of a word that an utterance has a piece of, it hears
// something else.
type chatter struct {
	pauses []int // the words behind which a pause is heard that is none to the one who looks whether somebody speaks

	stream     int // sample at which the stream began, of the whole sound
	from, to   int // the utterance
	begun      bool
	utterances int
}

func (c *chatter) startStream()   { c.begun = false }
func (c *chatter) speaking() bool { return true }

func (c *chatter) startUtterance() error {
	c.utterances++
	c.from = c.to
	return nil
}

func (c *chatter) process(samples []int16, _ bool) error {
	at := int(samples[0]) * tenth
	if !c.begun {
		c.begun, c.stream, c.from = true, at, at
	}
	c.to = at + len(samples)
	return nil
}

func (c *chatter) endUtterance() (all []segment) {
	frame := func(sample int) int32 { return int32((sample - c.stream) / frameSamples) }
	for i := c.from / wordEvery; i*wordEvery < c.to; i++ {
		start, end := i*wordEvery, i*wordEvery+wordLong
		word := fmt.Sprint("w", i)
		if start < c.from || end > c.to {
			word, start, end = fmt.Sprint("torn", i), max(start, c.from), min(end, c.to)
		}
		if end <= c.from {
			continue
		}
		all = append(all, segment{word: word, first: frame(start), last: frame(end) - 1})
		if slices.Contains(c.pauses, i) && end+tenth <= c.to {
			all = append(all, segment{word: "<sil>", first: frame(end), last: frame(end+tenth) - 1})
		}
	}
	return all
}

// soFar is what chatter has heard so far: it is not sure of a word that ended less than half a second ago, and of each
// seventh one for longer.
func (c *chatter) soFar() []segment {
	all := c.endUtterance()
	for i, s := range all {
		ended := (c.to-c.stream)/frameSamples - int(s.last)
		var n int
		if _, err := fmt.Sscanf(s.word, "w%d", &n); err == nil && (ended < 50 || n%7 == 0 && ended < 160) {
			all[i].word = fmt.Sprint("unsure", c.to)
		}
	}
	return all
}

// TestCutWithRewind: speech without a pause is told while it goes on, and cut so that each word is told once, whole, at
// its time, and soon enough.
func TestCutWithRewind(t *testing.T) {
	t.Parallel()
	for name, pauses := range map[string][]int{"no pause": nil, "pauses": {3, 9, 10, 20, 33}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seconds, base = 40, 1000 * tenth // the stream begins anywhere
			e := &chatter{pauses: pauses}
			var got []string
			at := int64(0)
			late := map[bool]int64{}
			d := &streamDecoder{engine: e, longest: 10 * speech.SampleRate, report: report{
				text: func(w string) string { return w },
				tell: func(r wire.Result) error {
					for _, w := range r.Words {
						got = append(got, w.Text)
						if want := fmt.Sprint("w", w.Start/wordEvery); w.Text != want || w.Start%wordEvery != 0 ||
							w.End-w.Start != wordLong {
							t.Errorf("%s from %d to %d", w.Text, w.Start, w.End)
						}
						unsure := (w.Start/wordEvery)%7 == 0 || (w.Start/wordEvery)%7 == 1
						late[unsure] = max(late[unsure], at-w.End)
					}
					return nil
				},
			}}
			for n := range int64(seconds * 10) {
				first := base + n*tenth
				at = first + tenth
				if err := d.feed(first, slices.Repeat([]int16{int16(first / tenth)}, tenth)); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.end(); err != nil {
				t.Fatal(err)
			}
			var want []string
			for i := base / wordEvery; i < (base+seconds*speech.SampleRate)/wordEvery; i++ {
				want = append(want, fmt.Sprint("w", i))
			}
			if !slices.Equal(got, want) || e.utterances < seconds/10 {
				t.Errorf("in %d utterances there are %v", e.utterances, got)
			}
			if late[false] > 15*tenth || late[true] > 20*tenth {
				t.Errorf("words are told %d samples late, unsure ones %d", late[false], late[true])
			}
		})
	}
}

// TestCutAt: speech is cut at its last pause that is long and old enough, or else behind the last word that has ended
// for sure.
func TestCutAt(t *testing.T) {
	t.Parallel()
	word := func(first, last int32) segment { return segment{word: "w", first: first, last: last} }
	still := func(first, last int32) segment { return segment{word: "<sil>", first: first, last: last} }
	for name, tt := range map[string]struct {
		all  []segment
		end  int32
		want int
	}{
		"nothing": {nil, 400, 0},
		"the last pause": {
			[]segment{word(0, 90), word(91, 120), still(121, 140), word(141, 200), still(201, 220), word(221, 390)},
			400, 4,
		},
		"a pause too late": {[]segment{word(0, 90), word(91, 200), still(375, 395), word(396, 400)}, 400, 2},
		"a pause too short": {
			[]segment{word(0, 90), word(91, 120), still(121, 126), word(127, 250), word(251, 400)}, 400, 4,
		},
		"one at the start": {[]segment{still(0, 50), word(51, 400)}, 400, 0},
		"no word for sure": {[]segment{word(0, 350), word(351, 400)}, 400, 0},
	} {
		if got := cutAt(tt.all, tt.end); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
