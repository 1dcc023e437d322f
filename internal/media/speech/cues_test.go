package speech

import (
	"math/rand/v2"
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

// TestCueRules: whatever is said, cues keep to their form, overlap nowhere and lose no word, and come out alike when words come one by one.
func TestCueRules(t *testing.T) {
	t.Parallel()
	vocabulary := strings.Fields("a the of to in and we programme internationalisation streaming, yes. no! player I captions viewers naturally")
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
		"a short word":               {[]Word{word("no", 0, 200*ms), word("later", 9*time.Second, 10*time.Second)}, shortestCue},
		"until the next":             {[]Word{word("no.", 0, 200*ms), word("later", 900*ms, 2*time.Second)}, 900*ms - cueGap},
		"longer than it is said":     {[]Word{word("some time", 0, 2*time.Second), word("later", 9*time.Second, 10*time.Second)}, 2*time.Second + hold/2},
		"as long as it takes":        {[]Word{word(strings.Repeat("x", 40), 0, time.Second), word("later", 9*time.Second, 10*time.Second)}, 2 * time.Second},
		"no longer than seven":       {[]Word{word("slow", 0, 6800*ms), word("later", 20*time.Second, 21*time.Second)}, longestCue},
		"one word that takes longer": {[]Word{word("slooow", 0, 9*time.Second), word("later", 20*time.Second, 21*time.Second)}, 9 * time.Second},
	} {
		cues := whole(tt.words)
		if got := cues[0].End - cues[0].Start; got != tt.want {
			t.Errorf("%s: %q is shown for %s, want %s", name, cues[0].Text, got, tt.want)
		}
		checkLength(t, cues)
	}
}

// TestCuesAtOnce: live, the words of a result are in cues as soon as it is there, whatever may follow, and stay in them.
func TestCuesAtOnce(t *testing.T) {
	t.Parallel()
	words := spoken("we have been talking about the weather in the north of the country and about the rivers. hello.")
	c := Cues{Live: true}
	var cues []Cue
	for len(words) > 0 {
		n := min(5, len(words))
		got := c.Add(words[:n], words[n-1].Start)
		if len(got) == 0 || got[len(got)-1].End < words[n-1].End {
			t.Fatalf("behind %q there is %v", text(words[:n]), got)
		}
		if known := c.Known(words[n-1].Start); known != words[n-1].Start {
			t.Errorf("a cue may begin at %s", known)
		}
		for _, g := range got {
			if g.End > words[n-1].End+hold {
				t.Errorf("%q ends at %s, its last word at %s", g.Text, g.End, words[n-1].End)
			}
		}
		cues, words = append(cues, got...), words[n:]
	}
	if got := text(spoken("we have been talking about the weather in the north of the country and about the rivers. hello.")); joined(cues) != got {
		t.Errorf("said %q, not %q", joined(cues), got)
	}
	if rest := c.Flush(); rest != nil {
		t.Errorf("left over: %v", rest)
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

// checkLength: the first cue is shown for 1 s to 7 s, and not for less than it takes to read it, 20 characters a second, unless the next one begins
// sooner. One word may be longer than 7 s.
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
