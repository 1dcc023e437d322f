package speech

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// pieceMost is how long the pieces of long sound are at most, where the engine takes them, and pieceShort those of
	// short sound: each costs the start of a process.
	pieceMost, pieceShort = 75 * SampleRate, 20 * SampleRate
	// piecesEach is how many pieces of short sound there are for each that is recognised at once: with fewer, some
	// would have none to do at the end, and progress would have no steps.
	piecesEach  = 2
	quietWindow = SampleRate / 5 // of which the loudness is looked at
)

// pieces gives the lengths that pieces have at least and at most: they are cut at the quietest moment between the two.
func (b Batch) pieces() (least, most int) {
	most = pieceMost
	if b.Length > 0 {
		most = min(max(int(Samples(b.Length))/(piecesEach*max(1, b.Most)), pieceShort), pieceMost)
	}
	if can, err := b.Engine.Abilities(); err == nil && can.LongestPiece > 0 {
		most = min(most, int(Samples(can.LongestPiece)))
	}
	return most * 3 / 5, most
}

// Batch recognises sound that has ended, in pieces side by side.
type Batch struct {
	Engine Engine
	Most   int // pieces at once; each waits for a processor by itself
	// Length is that of all sound, about; 0: unknown.
	Length time.Duration
	// Progress is told how much was recognised; nil: nobody wants to know. An error ends it.
	Progress func(done time.Duration) error
}

// Transcript is what was said.
type Transcript struct {
	Words      []Word
	Language   string  // that was found in most of it; empty where the engine does not say
	Confidence float64 // how sure that is; 0 where the engine does not say
}

// piece is one stretch of sound and what was recognised in it.
type piece struct {
	from  int64
	pcm   []byte
	words []Word
	found Result // with a language
}

// Run recognises samples as bytes, least significant first.
func (b Batch) Run(ctx context.Context, pcm io.Reader, c Config) (Transcript, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var all []*piece
	var done time.Duration
	places := make(chan struct{}, max(1, b.Most))
	cut := cutter{in: pcm}
	cut.least, cut.most = b.pieces()
	var readErr error
	for readErr == nil && ctx.Err() == nil {
		p := &piece{from: cut.at}
		if p.pcm, readErr = cut.next(); len(p.pcm) == 0 {
			break
		}
		all = append(all, p)
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		part := c
		mu.Lock()
		part.Left = b.left(done)
		mu.Unlock()
		wait.Go(func() {
			defer func() { <-places }()
			if err := p.recognise(ctx, b.Engine, part); err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if done += Duration(int64(len(p.pcm) / 2)); b.Progress != nil {
				if err := b.Progress(done); err != nil {
					cancel(err)
				}
			}
			p.pcm = nil
		})
	}
	wait.Wait()
	if readErr != nil && !errors.Is(readErr, io.EOF) {
		return Transcript{}, fmt.Errorf("read sound: %w", readErr)
	}
	var t Transcript
	if ctx.Err() != nil { // by the first piece that failed, or from outside; other pieces' errors only follow from that
		return Transcript{}, fmt.Errorf("recognise speech: %w", context.Cause(ctx))
	}
	corrector := NewCorrector(b.Engine, c.Phrases)
	for _, p := range all {
		t.Words = append(t.Words, corrector.Correct(p.words)...)
	}
	t.Words = NewSentences(b.Engine, c.Language).Add(t.Words, math.MaxInt64) // nothing follows
	t.Language, t.Confidence = mostSpoken(all)
	return t, nil
}

// left is how much of the sound is left when so much is recognised; 0: nobody knows.
func (b Batch) left(done time.Duration) time.Duration {
	if b.Length <= 0 {
		return 0
	}
	return max(b.Length-done, time.Second)
}

// mostSpoken is the language of most words. What is found in a piece without words means nothing.
func mostSpoken(all []*piece) (language string, confidence float64) {
	words, sure := map[string]int{}, map[string]float64{}
	for _, p := range all {
		if l := p.found.Language; l != "" && len(p.words) > 0 {
			words[l] += len(p.words)
			sure[l] += p.found.Confidence * float64(len(p.words))
		}
	}
	most := 0
	for l, n := range words {
		if n > most || n == most && l < language {
			language, confidence, most = l, sure[l]/float64(n), n
		}
	}
	return language, confidence
}

func (p *piece) recognise(ctx context.Context, e Engine, c Config) error {
	from := Duration(p.from)
	return e.Transcribe(ctx, bytes.NewReader(p.pcm), c, func(r Result) error {
		for _, w := range r.Words {
			w.Start, w.End = w.Start+from, w.End+from
			p.words = append(p.words, w)
		}
		if r.Language != "" {
			p.found = r
		}
		return nil
	})
}

// cutter cuts sound where it is quiet.
type cutter struct {
	in          io.Reader
	least, most int    // samples of a piece
	ahead       []byte // that were read
	at          int64  // sample that comes next
}

// next is the next piece. io.EOF comes with the last one. What is left at the end for two pieces is cut in its middle,
// so that the last one is no stub: few words are recognised worse.
func (c *cutter) next() ([]byte, error) {
	full := 2 * (c.most + c.least)
	have := len(c.ahead)
	c.ahead = slices.Grow(c.ahead, full-have)[:full]
	n, err := io.ReadFull(c.in, c.ahead[have:])
	c.ahead = c.ahead[:(have+n)/2*2]
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	samples := len(c.ahead) / 2
	from, to := c.least, c.most
	switch {
	case errors.Is(err, io.EOF) && samples > c.most:
		from, to = samples*2/5, samples*3/5
	case err != nil:
		return c.take(samples), err
	}
	return c.take(quietest(to, from, func(i int) int16 {
		return int16(c.ahead[2*i]) | int16(c.ahead[2*i+1])<<8
	})), nil
}

// take takes samples from those that were read ahead.
func (c *cutter) take(samples int) []byte {
	piece := bytes.Clone(c.ahead[:2*samples])
	c.ahead = c.ahead[:copy(c.ahead, c.ahead[2*samples:])]
	c.at += int64(samples)
	return piece
}

// quietest is the middle of the quietest moment among n samples, behind a number of them.
func quietest(n, behind int, sample func(i int) int16) int {
	best, least := n, -1.0
	for from := behind; from+quietWindow <= n; from += quietWindow / 2 {
		sum := 0.0
		for i := from; i < from+quietWindow; i++ {
			s := float64(sample(i))
			sum += s * s
		}
		if least < 0 || sum < least {
			best, least = from+quietWindow/2, sum
		}
	}
	return best
}
