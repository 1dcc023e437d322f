package local_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/media/speech/local"
	"millrace/internal/media/speech/wire"
)

// asFake has this test's program be a process that speaks as the real one does, and recognises one word in each frame
// of sound: the effort that it was asked for. With any effort but the least it recognises nothing at all, and a frame
// that begins with the sample deadly ends it.
const asFake = "fake-worker"

const deadly = 666

func fake(in io.Reader, out io.Writer) int {
	_, body, err := wire.Read(in, nil)
	var start wire.Start
	if err == nil {
		err = json.Unmarshal(body, &start)
	}
	for err == nil {
		var kind byte
		if kind, body, err = wire.Read(in, body); err != nil {
			break
		}
		first, samples, bad := wire.Sound(body, nil)
		if bad != nil || kind != wire.KindSound || samples[0] == deadly {
			return 3
		}
		if start.Effort > int(speech.Quick) {
			continue
		}
		end := first + int64(len(samples))
		line, _ := json.Marshal(wire.Result{
			Words: []wire.Word{{Text: fmt.Sprint("effort", start.Effort), Start: first, End: end}}, Until: end,
		})
		if _, err = out.Write(append(line, '\n')); err != nil {
			return 4
		}
	}
	return 0
}

func faked(t *testing.T, effort speech.Effort) speech.Stream {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := local.New(local.Options{
		Program: self, Args: []string{asFake}, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 1}),
		Limits: raceDetector, Spare: func() bool { return true },
	})
	s, err := e.Open(t.Context(), speech.Config{Effort: effort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestBehind: an engine that is behind gives up its beams and then has all of the sound, unless that is too much: then
// it has the newest, and what is left out is counted.
func TestBehind(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{7, 60} {
		s := faked(t, speech.Steady)
		for i := range seconds {
			s.Write(time.Duration(i)*time.Second, make([]int16, speech.SampleRate))
		}
		s.End()
		var words []speech.Word
		for r := range s.Results() {
			words = append(words, r.Words...)
		}
		status := s.Status()
		if status.Effort != speech.Quick || status.Restarts != 0 {
			t.Errorf("behind by %d s: %+v", seconds, status)
		}
		if got := time.Duration(len(words))*time.Second + status.LeftOut; got != time.Duration(seconds)*time.Second {
			t.Errorf("of %d s, %d were recognised and %s left out", seconds, len(words), status.LeftOut)
		}
		if seconds == 7 && status.LeftOut > 0 {
			t.Errorf("%s left out of what it can catch up on", status.LeftOut)
		}
		last := time.Duration(seconds) * time.Second
		if len(words) == 0 || words[len(words)-1].End != last || words[0].Text != "effort0" {
			t.Errorf("behind by %d s: %+v", seconds, words)
		}
	}
}

// TestCatchesUp: an engine that gave up its beams gets them back once it has kept up for a while, where nobody speaks,
// and loses no sound by that.
func TestCatchesUp(t *testing.T) {
	t.Parallel()
	s := faked(t, speech.Steady)
	at := time.Duration(0)
	write := func(long time.Duration) {
		s.Write(at, make([]int16, speech.Samples(long)))
		at += long
	}
	heard := time.Duration(0)
	hear := func(until time.Duration) string {
		last := ""
		for heard < until {
			r, ok := <-s.Results()
			if !ok {
				t.Fatal("it ended")
			}
			for _, w := range r.Words {
				heard, last = heard+w.End-w.Start, w.Text
			}
		}
		return last
	}
	for range 7 {
		write(time.Second)
	}
	if got := hear(at); got != "effort0" || s.Status().Effort != speech.Quick {
		t.Errorf("behind: %s, %+v", got, s.Status())
	}
	for range 58 {
		write(time.Second)
		hear(at)
	}
	if s.Status().Effort != speech.Quick {
		t.Errorf("too soon: %+v", s.Status())
	}
	for range 10 {
		if write(time.Second); s.Status().Effort == speech.Steady {
			break
		}
		hear(at)
	}
	if got := s.Status(); got.Effort != speech.Steady || got.Restarts != 0 || got.LeftOut != 0 {
		t.Errorf("in time: %+v", got)
	}
	// Too much again: what the other process was given is given again. The one before it may tell of some first, until
	// it is killed, and what is left is not too much then.
	for range 1000 {
		if write(time.Second); s.Status().Effort == speech.Quick {
			break
		}
	}
	if got := s.Status(); got.Effort != speech.Quick {
		t.Fatalf("it takes as much as comes: %+v", got)
	}
	if got := hear(at); got != "effort0" || s.Status().LeftOut != 0 {
		t.Errorf("behind again: %s, %+v", got, s.Status())
	}
}

// TestDeadlySound: sound that kills one process after the other is left out, what was recognised before is told once,
// and the stream comes to its end.
func TestDeadlySound(t *testing.T) {
	t.Parallel()
	s := faked(t, speech.Quick)
	s.Write(0, make([]int16, speech.SampleRate))
	kills := make([]int16, speech.SampleRate)
	kills[0] = deadly
	s.Write(time.Second, kills)
	s.End()
	words := 0
	for r := range s.Results() {
		words += len(r.Words)
	}
	if got := s.Status(); words != 1 || got.Restarts != 3 || got.LeftOut != time.Second {
		t.Errorf("%d words, %+v", words, got)
	}
}
