package speech

import (
	"strings"
	"testing"
	"time"
)

// TestCorrect: words that sound like a phrase become it, in its time and with the punctuation behind them; others stay.
func TestCorrect(t *testing.T) {
	t.Parallel()
	phrases := []string{"Zorvex", "Quellimar", "Kubernetes", "GmbH", "San Tabrinko", "…"}
	c := NewCorrector(speaker{}, phrases)
	for said, want := range map[string]string{
		"the captain of for vex met":            "the captain of Zorvex met",
		"in kwell a mar, at last":               "in Quellimar, at last",
		"our cooper nettie's cluster":           "our Kubernetes cluster",
		"a gmbh for short":                      "a GmbH for short",
		"to san the brinco.":                    "to San Tabrinko.",
		"ordinary words are for people to read": "ordinary words are for people to read",
		"":                                      "",
	} {
		words := make([]Word, 0, 8)
		for i, w := range strings.Fields(said) {
			words = append(words, Word{
				Text: w, Start: time.Duration(i) * time.Second,
				End: time.Duration(i)*time.Second + 900*time.Millisecond,
			})
		}
		last, texts := time.Duration(0), []string(nil)
		for _, w := range c.Correct(words) {
			if w.Start < last || w.End <= w.Start {
				t.Errorf("%q: %+v behind %s", said, w, last)
			}
			last = w.End
			texts = append(texts, w.Text)
		}
		if got := strings.Join(texts, " "); got != want || len(words) > 0 && last != words[len(words)-1].End {
			t.Errorf("%q becomes %q up to %s, want %q", said, got, last, want)
		}
	}
	if NewCorrector(biased{}, phrases) != nil || NewCorrector(speaker{}, nil) != nil {
		t.Error("there is something to correct")
	}
}

// biased is an engine that is told of phrases.
type biased struct{ loud }

func (biased) Abilities() (Abilities, error) { return Abilities{Bias: PromptBias}, nil }

// TestBatchCorrects: the phrases of a vocabulary are in what is recognised by an engine that takes none.
func TestBatchCorrects(t *testing.T) {
	t.Parallel()
	got, err := Batch{
		Engine: &shutter{},
	}.Run(t.Context(), strings.NewReader(strings.Repeat("\x10\x10", SampleRate)), Config{Phrases: []string{"Vindow"}})
	if err != nil || len(got.Words) != 1 || got.Words[0].Text != "Vindow" {
		t.Errorf("%+v, %v", got, err)
	}
}
