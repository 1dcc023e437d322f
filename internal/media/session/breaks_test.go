package session

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// restless is an encoder whose pictures are all key frames, which says something new of itself, or whose clock jumps,
// again and again.
type restless struct {
	every  time.Duration // between two pictures
	change int           // pictures between two changes, at first
	calmer int           // and after the first twenty; 0: no other
	jumps  time.Duration // of the clock; 0: new parameters
	sound  bool          // sound instead of pictures
}

// publish sends for so long, and gives how many changes there were and why it ended.
func (r restless) publish(s *Session, from, long time.Duration) (changes int, err error) {
	config, kind := withRate(0), frame.Video
	if r.sound {
		config, kind = audio48, frame.Audio
	}
	if err := s.Configure(config); err != nil {
		return 0, err
	}
	clock, last := time.Duration(0), 0
	for n := 0; time.Duration(n)*r.every < long; n++ {
		gap := r.change
		if changes >= 20 && r.calmer > 0 {
			gap = r.calmer
		}
		if n-last == gap {
			last = n
			changes++
			clock += r.jumps
			if r.jumps == 0 {
				config.PPS = []byte{0x68, byte(changes >> 8), byte(changes)}
				config.Channels = 1 + changes%2
				if err := s.Configure(config); err != nil {
					return changes, err
				}
			}
		}
		f := frame.Frame{
			Kind: kind, DTS: clock, PTS: clock, Key: true, Data: []byte{1, 2, 3},
			Received: epoch.Add(from + time.Duration(n)*r.every),
		}
		clock += r.every
		if err := s.Write(f); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// TestRestlessEncoders: who breaks off all the time is not recorded in as many segments, and is told why; who does it
// now and then goes on.
func TestRestlessEncoders(t *testing.T) {
	t.Parallel()
	const some, minute, hour = breaksAtOnce + 5, time.Minute, time.Hour
	for name, tt := range map[string]struct {
		restless
		long  time.Duration
		most  int  // discontinuities
		ended bool // by an UnsteadyError
	}{
		"parameters, 200 a second":      {restless{every: 5 * ms, change: 1}, minute, breaksAtOnce, true},
		"parameters, 5 a second":        {restless{every: 40 * ms, change: 5}, minute, some, true},
		"clock, 5 a second":             {restless{every: 40 * ms, change: 5, jumps: hour}, minute, some, true},
		"clock, back, 5 a second":       {restless{every: 40 * ms, change: 5, jumps: -hour}, minute, some, true},
		"sound, 5 a second":             {restless{every: 21 * ms, change: 9, sound: true}, minute, some, true},
		"parameters, each second":       {restless{every: 40 * ms, change: 25}, hour, 2*breaksAtOnce + 1, true},
		"twenty at once, then a few":    {restless{every: 40 * ms, change: 2, calmer: 60}, hour, 2000, false},
		"parameters, every two seconds": {restless{every: 40 * ms, change: 50}, hour, 1800, false},
		"clock, every four seconds":     {restless{every: 40 * ms, change: 100, jumps: hour}, hour, 900, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			out := &checker{t: t, quiet: true}
			s := New(Options{Output: out, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			changes, err := tt.publish(s, 0, tt.long)
			s.Close(err)
			if _, unsteady := errors.AsType[UnsteadyError](err); unsteady != tt.ended || err != nil && !unsteady {
				t.Errorf("after %d changes: %v", changes, err)
			}
			if n := len(out.breaks); n > tt.most || n < min(changes-2, breaksAtOnce-2) {
				t.Errorf("%d discontinuities of %d changes, want %d at most", n, changes, tt.most)
			}
			if n := strings.Count(log.String(), "\n"); n > tt.most {
				t.Errorf("%d lines in the log, want %d at most", n, tt.most)
			}
		})
	}
}

// TestBreaksOfABroadcast: who connects again begins no new account, and has one again after a while.
func TestBreaksOfABroadcast(t *testing.T) {
	t.Parallel()
	breaks, all := NewBreaks(), 0
	again := func(from time.Duration) error {
		out := &checker{t: t, quiet: true}
		s := New(Options{Output: out, Logger: slog.New(slog.DiscardHandler), Breaks: breaks})
		_, err := restless{every: 40 * ms, change: 5}.publish(s, from, 4*time.Second)
		s.Close(err)
		all += len(out.breaks)
		return err
	}
	for n := range 100 {
		err := again(time.Duration(n) * 100 * ms)
		if _, unsteady := errors.AsType[UnsteadyError](err); unsteady != (n > 0) {
			t.Errorf("connection %d: %v", n, err)
		}
	}
	if most := breaksAtOnce + 7; all > most {
		t.Errorf("%d discontinuities of a hundred connections in 14 s, want %d at most", all, most)
	}
	if err := again(2 * time.Minute); err != nil {
		t.Error(err)
	}
}
