package speech

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// sentences are those of a line of words, each as long as 300 ms; a number between them is a pause in milliseconds.
func sentences(t *testing.T, s *Sentences, line string, from, behind time.Duration) (text string, end time.Duration) {
	t.Helper()
	var words []Word
	end = from
	for part := range strings.FieldsSeq(line) {
		if pause, err := time.ParseDuration(part + "ms"); err == nil {
			end += pause
			continue
		}
		words = append(words, Word{Text: part, Start: end, End: end + 300*time.Millisecond})
		end += 300 * time.Millisecond
	}
	before := slices.Clone(words)
	var out []string
	for i, w := range s.Add(words, end+behind) {
		if w.Start != before[i].Start || w.End != before[i].End {
			t.Errorf("%q was said from %s to %s", w.Text, w.Start, w.End)
		}
		out = append(out, w.Text)
	}
	if !slices.Equal(words, before) {
		t.Error("the words that came were changed")
	}
	return strings.Join(out, " "), end
}

// TestSentences: what pauses, and the words around them, make of a line of words.
func TestSentences(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"good morning everyone":                             "Good morning everyone.",
		"good morning everyone 1000 today":                  "Good morning everyone. Today.",
		"good morning everyone 500 today we talk":           "Good morning everyone. Today we talk.",
		"good morning everyone 300 today we talk":           "Good morning everyone today we talk.",
		"good morning everyone 900 and welcome":             "Good morning everyone and welcome.",
		"yes 500 we do":                                     "Yes we do.",
		"this is the 1500 mayor of 2000 quellimar":          "This is the mayor of quellimar.",
		"i think that 500 it's late 500 that's all":         "I think that it's late. That's all.",
		"the mayor of 3000 well":                            "The mayor of. Well.",
		"we were told 600 it rains":                         "We were told. It rains.",
		"we believe 600 it rains":                           "We believe it rains.",
		"iPhone users 1200 eBay":                            "iPhone users. eBay.",
		"it was Zorvex Inc. 600 nobody knows":               "It was Zorvex Inc. Nobody knows.",
		"it was Zorvex Inc. 100 nobody knows":               "It was Zorvex Inc. nobody knows.",
		"we saw apples, 1100 pears":                         "We saw apples. Pears.",
		"é":                                                 "É.",
		"we went on for 500 that long 450 there was no end": "We went on for that long. There was no end.",
	} {
		if got, _ := sentences(t, &Sentences{}, line, 0, time.Hour); got != want {
			t.Errorf("%q is\n%q, want\n%q", line, got, want)
		}
	}
	if got := (&Sentences{}).Add(nil, time.Hour); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestSentencesLive: where it isn't known yet how long the pause is, no full stop is guessed; the next words show it.
func TestSentencesLive(t *testing.T) {
	t.Parallel()
	s := &Sentences{}
	first, end := sentences(t, s, "good morning everyone", 0, 0)
	second, end := sentences(t, s, "and welcome", end+100*time.Millisecond, 1500*time.Millisecond)
	third, _ := sentences(t, s, "the news", end+1500*time.Millisecond, 0)
	if got := strings.Join([]string{first, second, third}, "|"); got != "Good morning everyone|and welcome.|The news" {
		t.Error(got)
	}
}

// TestSentencesOfEngines: engines that punctuate, and languages that are not English, are left alone.
func TestSentencesOfEngines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engine   Engine
		language string
		want     string
	}{
		"US English":            {able{}, "en-US", "Hello."},
		"German":                {able{}, "de", "hello"},
		"any":                   {able{}, "auto", "hello"},
		"one that punctuates":   {able{can: Abilities{Punctuation: true}}, "en", "hello"},
		"one that is not there": {able{err: ErrNoStreaming}, "en", "hello"},
	} {
		got := NewSentences(tt.engine, tt.language).Add([]Word{{Text: "hello", End: time.Second}}, math.MaxInt64)
		if got[0].Text != tt.want {
			t.Errorf("%s: %q", name, got[0].Text)
		}
	}
}

// able is an engine that has nothing but abilities.
type able struct {
	Engine

	can Abilities
	err error
}

func (a able) Abilities() (Abilities, error) { return a.can, a.err }
