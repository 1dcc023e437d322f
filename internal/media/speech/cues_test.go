package speech

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// spoken are words of a text, each as long as its letters, with a pause behind every mark of punctuation.
func spoken(text string) []Word {
	var words []Word
	at := time.Second
	for w := range strings.FieldsSeq(text) {
		long := time.Duration(len(w)) * 70 * time.Millisecond
		words = append(words, Word{Text: w, Start: at, End: at + long})
		at += long + 20*time.Millisecond
		if strings.ContainsAny(w, ".") {
			at += time.Second
		}
	}
	return words
}

func whole(words []Word) []Cue {
	var c Cues
	out := c.Add(words, 0)
	return append(out, c.Flush()...)
}

func TestCues(t *testing.T) {
	t.Parallel()
	got := whole(spoken("good morning everyone and welcome to the weekly news program. hello."))
	want := []string{"good morning everyone and welcome\nto the weekly news program.", "hello."}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i, w := range want {
		if got[i].Text != w {
			t.Errorf("cue %d is %q, want %q", i, got[i].Text, w)
		}
	}
	if long := got[1].End - got[1].Start; long < time.Second {
		t.Errorf("a short word is shown for %s", long)
	}
}

// TestCueRules: whatever is said, cues keep to their form, overlap nowhere and lose no word, and come out alike when
// words come one by one.
func TestCueRules(t *testing.T) {
	t.Parallel()
	vocabulary := strings.Fields("a the of to in and we programme internationalisation streaming, yes. no! player I " +
		"captions viewers naturally")
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var words []Word
		at := time.Duration(r.IntN(3000)) * time.Millisecond
		for range 1 + r.IntN(120) {
			w := vocabulary[r.IntN(len(vocabulary))]
			long := time.Duration(len(w)*(30+r.IntN(90))) * time.Millisecond
			words = append(words, Word{Text: w, Start: at, End: at + long})
			at += long + time.Duration(r.IntN(200))*time.Millisecond
			if r.IntN(9) == 0 {
				at += time.Duration(r.IntN(5000)) * time.Millisecond
			}
		}
		cues := whole(words)
		checkCues(t, words, cues)
		var c Cues
		var steps []Cue
		for _, w := range words {
			steps = append(steps, c.Add([]Word{w}, w.End)...)
		}
		checkCues(t, words, append(steps, c.Flush()...))
	}
}

// TestCueForm: the bounds of a cue's length, each where it decides. The last word is behind what is asked about.
func TestCueForm(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	word := func(text string, from, to time.Duration) Word { return Word{Text: text, Start: from, End: to} }
	for name, tt := range map[string]struct {
		words []Word
		want  time.Duration // how long the first cue is shown
	}{
		"a short word": {
			[]Word{word("no", 0, 200*ms), word("later", 9*time.Second, 10*time.Second)}, shortestCue,
		},
		"until the next": {
			[]Word{word("no.", 0, 200*ms), word("later", 900*ms, 2*time.Second)}, 900*ms - cueGap,
		},
		"longer than it is said": {
			[]Word{word("some time", 0, 2*time.Second), word("later", 9*time.Second, 10*time.Second)},
			2*time.Second + linger/2,
		},
		"as long as it takes": {
			[]Word{word(strings.Repeat("x", 40), 0, time.Second), word("later", 9*time.Second, 10*time.Second)},
			2 * time.Second,
		},
		"no longer than seven": {
			[]Word{word("slow", 0, 6800*ms), word("later", 20*time.Second, 21*time.Second)}, longestCue,
		},
		"one word that takes longer": {
			[]Word{word("slooow", 0, 9*time.Second), word("later", 20*time.Second, 21*time.Second)}, 9 * time.Second,
		},
	} {
		cues := whole(tt.words)
		if got := cues[0].End - cues[0].Start; got != tt.want {
			t.Errorf("%s: %q is shown for %s, want %s", name, cues[0].Text, got, tt.want)
		}
		checkLength(t, cues)
	}
}

// TestLiveCues: live, words that come one by one are in the draft until a cue is whole, which waits for nothing else;
// those of a draft that was taken are in no other cue.
func TestLiveCues(t *testing.T) {
	t.Parallel()
	const said = "we have been talking about the weather in the north of the country and about the rivers. hello."
	for _, taken := range []int{0, 1, 5, 12} { // after so many words each
		words := spoken(said)
		c := Cues{Live: true}
		var cues []Cue
		for i, w := range words {
			cues = append(cues, c.Add([]Word{w}, w.End)...)
			draft, ok := c.Draft()
			all := cues
			if ok {
				all = append(slices.Clone(cues), draft)
			}
			if got, want := joined(all), text(words[:i+1]); got != want {
				t.Fatalf("there is %q, not %q", got, want)
			}
			if last := all[len(all)-1]; last.End < w.End || last.End > w.End+linger {
				t.Errorf("%q ends at %s, its last word at %s", last.Text, last.End, w.End)
			}
			if known := c.Known(w.End); known != w.End {
				t.Errorf("a cue may begin at %s", known)
			}
			if ok && taken > 0 && i%taken == 0 {
				c.TakeDraft()
				cues = append(cues, draft)
			}
		}
		if cues = append(cues, c.Flush()...); joined(cues) != text(words) {
			t.Errorf("said %q, not %q", joined(cues), text(words))
		}
		if n := len(cues); taken == 0 && n > 4 {
			t.Errorf("%d cues", n)
		}
	}
}

// TestLateFullStop: that a sentence has ended is known by the next word only; the word before gets its full stop while
// it is in no cue.
func TestLateFullStop(t *testing.T) {
	t.Parallel()
	c, s := Cues{Live: true}, &Sentences{}
	var cues []Cue
	add := func(text string, from, to int) {
		start, end := time.Duration(from)*time.Millisecond, time.Duration(to)*time.Millisecond
		words := s.Add([]Word{{Text: text, Start: start, End: end}}, end)
		if s.Ended() {
			c.EndSentence()
		}
		cues = append(cues, c.Add(words, end)...)
	}
	add("good", 0, 300)
	add("morning", 300, 700)
	add("everyone", 700, 1200)
	add("we", 1650, 1800)
	add("begin", 1800, 2200)
	if got := joined(append(cues, c.Flush()...)); got != "Good morning everyone. We begin" {
		t.Errorf("%q", got)
	}
}

func joined(cues []Cue) string {
	var said []string
	for _, c := range cues {
		said = append(said, strings.Fields(c.Text)...)
	}
	return strings.Join(said, " ")
}

func checkCues(t *testing.T, words []Word, cues []Cue) {
	t.Helper()
	var said []string
	for i, c := range cues {
		said = append(said, strings.Fields(c.Text)...)
		rows := strings.Split(c.Text, "\n")
		if len(rows) > lines {
			t.Errorf("%q has %d lines", c.Text, len(rows))
		}
		for _, row := range rows {
			if utf8.RuneCountInString(row) > lineLength {
				t.Errorf("%q is too long", row)
			}
		}
		checkLength(t, cues[i:])
		if i == 0 {
			continue
		}
		if before := cues[i-1]; before.End > c.Start {
			t.Errorf("%q ends at %s, and %q begins at %s", before.Text, before.End, c.Text, c.Start)
		}
	}
	if got, want := strings.Join(said, " "), text(words); got != want {
		t.Errorf("said %q\n was %q", got, want)
	}
}

// checkLength: the first cue is shown for 1 s to 7 s, and not for less than it takes to read it, 20 characters a
// second, unless the next one begins sooner. One word may be longer than 7 s.
func checkLength(t *testing.T, cues []Cue) {
	t.Helper()
	c := cues[0]
	long := c.End - c.Start
	if long <= 0 || long > longestCue && len(strings.Fields(c.Text)) > 1 {
		t.Errorf("%q from %s to %s", c.Text, c.Start, c.End)
	}
	read := time.Duration(utf8.RuneCountInString(c.Text)) * time.Second / readingRate
	if least := max(shortestCue, read); long < least && (len(cues) == 1 || cues[1].Start-c.End > cueGap) {
		t.Errorf("%q is shown for %s, and could be for %s", c.Text, long, least)
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, 15999, 16000, 12 * 3600 * SampleRate} {
		if got := Samples(Duration(n) + time.Nanosecond*40); got != n {
			t.Errorf("%d samples are %d", n, got)
		}
	}
}
