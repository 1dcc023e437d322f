package speech

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// loud recognises one word for each stretch that is not silent.
type loud struct{ fail error }

func (loud) Name() string { return "loud" }

func (loud) Abilities() (Abilities, error) { return Abilities{}, nil }

func (loud) Probe(context.Context) error { return nil }

func (loud) Open(context.Context, Config) (Stream, error) { return nil, ErrNoStreaming }

func (l loud) Transcribe(_ context.Context, pcm io.Reader, _ Config, emit func(Result) error) error {
	data, err := io.ReadAll(pcm)
	if err != nil || l.fail != nil {
		return errors.Join(err, l.fail)
	}
	from := -1
	for i := 0; i+1 < len(data); i += 2 {
		switch on := binary.LittleEndian.Uint16(data[i:]) != 0; {
		case on && from < 0:
			from = i / 2
		case !on && from >= 0:
			w := Word{Text: fmt.Sprint((i/2 - from) / 1600), Start: Duration(int64(from)), End: Duration(int64(i / 2))}
			if err := emit(Result{Words: []Word{w}, Until: w.End, Language: "en", Confidence: 0.5}); err != nil {
				return err
			}
			from = -1
		}
	}
	return nil
}

// TestBatch: long sound is cut where it is silent, so that no word is in two pieces, and words have the times of the
// whole.
func TestBatch(t *testing.T) {
	t.Parallel()
	var pcm []byte
	var want []Word
	for i := range 150 { // 4 s each
		at := Duration(int64(len(pcm) / 2))
		n := SampleRate * (20 + i%17) / 10
		for k := range 4 * SampleRate {
			v := int16(0)
			if k < n {
				v = int16(1000 + 500*math.Sin(float64(k)/10))
			}
			pcm = binary.LittleEndian.AppendUint16(pcm, uint16(v))
		}
		want = append(want, Word{Text: fmt.Sprint(n / 1600), Start: at, End: at + Duration(int64(n))})
	}
	var reports []time.Duration
	progress := func(d time.Duration) error {
		reports = append(reports, d)
		return nil
	}
	got, err := Batch{Engine: loud{}, Most: 3, Progress: progress}.Run(t.Context(), bytes.NewReader(pcm), Config{})
	if err != nil || len(got.Words) != len(want) || got.Language != "en" {
		t.Fatalf("%d words, %q, %v", len(got.Words), got.Language, err)
	}
	for i, w := range want {
		if got.Words[i] != w {
			t.Errorf("word %d is %+v, want %+v", i, got.Words[i], w)
		}
	}
	if n := len(reports); n < 8 || reports[n-1] != 600*time.Second {
		t.Errorf("progress %v", reports)
	}
	broken := errors.New("broken")
	if _, err = (Batch{Engine: loud{fail: broken}}).Run(t.Context(), bytes.NewReader(pcm), Config{}); !errors.Is(err,
		broken) {
		t.Errorf("an engine that fails: %v", err)
	}
}

// halting is an engine that fails in its second piece, and ends the first one only when it is told to.
type halting struct {
	loud
	longest time.Duration

	mu      sync.Mutex
	lengths []time.Duration
}

func (h *halting) Abilities() (Abilities, error) { return Abilities{LongestPiece: h.longest}, nil }

func (h *halting) Transcribe(ctx context.Context, pcm io.Reader, _ Config, _ func(Result) error) error {
	data, err := io.ReadAll(pcm)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.lengths = append(h.lengths, Duration(int64(len(data)/2)))
	h.mu.Unlock()
	if h.fail == nil {
		return nil
	}
	if data[0] == 1 {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.fail
}

// TestBatchFails: the error is that of the piece that failed, not of those that were ended for it.
func TestBatchFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	pcm := make([]byte, 2*120*SampleRate)
	pcm[0] = 1 // the first piece
	engine := &halting{loud: loud{fail: broken}}
	if _, err := (Batch{Engine: engine, Most: 2}).Run(t.Context(), bytes.NewReader(pcm),
		Config{}); !errors.Is(err, broken) || errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestShortPieces: an engine gets no longer pieces than it says, and all of the sound.
func TestShortPieces(t *testing.T) {
	t.Parallel()
	engine := &halting{longest: 20 * time.Second}
	if _, err := (Batch{Engine: engine, Most: 2}).Run(t.Context(), bytes.NewReader(make([]byte, 2*120*SampleRate)),
		Config{}); err != nil {
		t.Fatal(err)
	}
	all := time.Duration(0)
	for _, d := range engine.lengths {
		if all += d; d > engine.longest {
			t.Errorf("a piece of %s", d)
		}
	}
	if all != 2*time.Minute {
		t.Errorf("pieces of %v", engine.lengths)
	}
}

// unhurried is an engine that takes half as long as the sound is.
type unhurried struct {
	loud

	mu      sync.Mutex
	lengths []time.Duration
	left    []time.Duration
}

func (u *unhurried) Transcribe(ctx context.Context, pcm io.Reader, c Config, _ func(Result) error) error {
	data, err := io.ReadAll(pcm)
	if err != nil {
		return err
	}
	long := Duration(int64(len(data) / 2))
	u.mu.Lock()
	u.lengths, u.left = append(u.lengths, long), append(u.left, c.Left)
	u.mu.Unlock()
	work, cancel := context.WithTimeout(ctx, long/2)
	defer cancel()
	<-work.Done()
	return nil
}

// TestShortSoundIsShared: sound of less than two minutes is recognised in pieces side by side, and says how far it is
// in between; each piece knows how much is left of all.
func TestShortSoundIsShared(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{30, 60, 110} {
		synctest.Test(t, func(t *testing.T) {
			e, steps := &unhurried{}, 0
			long, began := time.Duration(seconds)*time.Second, time.Now()
			b := Batch{Engine: e, Most: 2, Length: long, Progress: func(time.Duration) error {
				steps++
				return nil
			}}
			if _, err := b.Run(t.Context(), bytes.NewReader(make([]byte, 2*seconds*SampleRate)), Config{}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > long*35/100 {
				t.Errorf("%s of sound took two processors %s, and one %s", long, took, long/2)
			}
			if n := len(e.left); steps < 2 || e.left[0] != long || n > 2 && e.left[n-1] > long*2/3 {
				t.Errorf("%s: %d steps, with %v left", long, steps, e.left)
			}
		})
	}
}

// TestLongSoundIsInLongPieces: the start of a process for each piece costs little of sound that lasts.
func TestLongSoundIsInLongPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const seconds = 600
		e := &unhurried{}
		b := Batch{Engine: e, Most: 2, Length: seconds * time.Second}
		if _, err := b.Run(t.Context(), bytes.NewReader(make([]byte, 2*seconds*SampleRate)), Config{}); err != nil {
			t.Fatal(err)
		}
		if n := len(e.lengths); n > seconds/45+1 {
			t.Errorf("%d pieces of %d s", n, seconds)
		}
	})
}

// TestNoStub: no piece at the end of sound is much shorter than the others, however long the sound is.
func TestNoStub(t *testing.T) {
	t.Parallel()
	const least, most = 12 * SampleRate, 20 * SampleRate
	for seconds := 21; seconds < 70; seconds++ {
		pcm := make([]byte, 2*seconds*SampleRate)
		c := cutter{in: bytes.NewReader(pcm), least: least, most: most}
		all := 0
		for {
			p, err := c.next()
			n := len(p) / 2
			if all += n; n > most || n < 8*SampleRate {
				t.Errorf("of %d s a piece of %s", seconds, Duration(int64(n)))
			}
			if c.at != int64(all) {
				t.Fatalf("at %d behind %d samples", c.at, all)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if all != len(pcm)/2 {
			t.Errorf("of %d s there are %s", seconds, Duration(int64(all)))
		}
	}
}

// TestLanguageOfMost: the language is that in which most words are, and it is as sure as the engine is of those;
// silence has none.
func TestLanguageOfMost(t *testing.T) {
	t.Parallel()
	words := func(n int) []Word { return make([]Word, n) }
	for _, tt := range []struct {
		pieces   []*piece
		language string
		sure     float64
	}{
		{
			[]*piece{
				{words: words(3), found: Result{Language: "de"}},
				{words: words(2), found: Result{Language: "en", Confidence: 0.9}},
			}, "de", 0,
		},
		{
			[]*piece{
				{words: words(1), found: Result{Language: "de", Confidence: 0.4}},
				{words: words(3), found: Result{Language: "de", Confidence: 0.8}},
			}, "de", 0.7,
		},
		{
			[]*piece{
				{found: Result{Language: "ja", Confidence: 0.99}}, {words: words(1), found: Result{Language: "fr"}},
			}, "fr", 0,
		},
		{[]*piece{{words: words(1)}}, "", 0},
	} {
		if language, sure := mostSpoken(tt.pieces); language != tt.language || sure < tt.sure-0.001 ||
			sure > tt.sure+0.001 {
			t.Errorf("%q, sure by %f; want %q by %f", language, sure, tt.language, tt.sure)
		}
	}
}

// TestBatchOfSentences: words of an engine that gives no more become sentences where the language is English.
func TestBatchOfSentences(t *testing.T) {
	t.Parallel()
	pcm := make([]byte, 8*SampleRate)
	for i := range 2 * SampleRate {
		pcm[2*i] = 1
	}
	for language, want := range map[string]string{"en": "20.", "de": "20"} {
		got, err := Batch{Engine: loud{}, Most: 1}.Run(t.Context(), bytes.NewReader(pcm), Config{Language: language})
		if err != nil || len(got.Words) != 1 || got.Words[0].Text != want {
			t.Errorf("in %s: %+v, %v", language, got.Words, err)
		}
	}
}
