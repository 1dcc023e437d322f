package speech

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// shutter is an engine that hears one word in each window, as long as it. It waits for open, if there is one, and fails
// where fail is set.
type shutter struct {
	loud
	open chan struct{}
	all  []int16 // what it was given
}

func (s *shutter) Transcribe(ctx context.Context, pcm io.Reader, _ Config, emit func(Result) error) error {
	data, err := io.ReadAll(pcm)
	if err != nil {
		return err
	}
	if s.open != nil {
		select {
		case <-s.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i := 0; i < len(data); i += 2 {
		s.all = append(s.all, int16(binary.LittleEndian.Uint16(data[i:])))
	}
	if s.fail != nil {
		return s.fail
	}
	end := Duration(int64(len(data) / 2))
	return emit(Result{Words: []Word{{Text: "window", End: end}}, Until: end})
}

// tones is sound of so many seconds each, of a loudness each.
func tones(parts ...[2]float64) (out []int16) {
	for _, p := range parts {
		for i := range int(p[0] * SampleRate) {
			v := int16(p[1])
			if i%2 == 0 {
				v = -v
			}
			out = append(out, v)
		}
	}
	return out
}

// blockwise writes sound in blocks of a tenth of a second, as it comes from a decoder: slower than an engine that keeps
// up.
func blockwise(s Stream, at time.Duration, sound []int16) {
	n := int64(0)
	for part := range slices.Chunk(sound, SampleRate/10) {
		s.Write(at+Duration(n), part)
		synctest.Wait()
		n += int64(len(part))
	}
}

// TestWindows: where windows begin and end, in seconds.
func TestWindows(t *testing.T) {
	t.Parallel()
	const latency = 4 * time.Second
	for name, tt := range map[string]struct {
		sound [][]int16 // each a minute behind the one before
		want  [][2]float64
	}{
		"silence":                 {[][]int16{tones([2]float64{20, 0})}, nil},
		"noise that is not heard": {[][]int16{tones([2]float64{20, 30})}, nil},
		"a pause ends one": {
			[][]int16{tones([2]float64{3.2, 5000}, [2]float64{2, 0}, [2]float64{1, 5000})},
			[][2]float64{{0, 3.7}, {4.2, 6.2}},
		},
		"a short pause is in it": {
			[][]int16{tones([2]float64{1, 5000}, [2]float64{0.6, 0}, [2]float64{1.5, 5000}, [2]float64{1, 0})},
			[][2]float64{{0, 3.6}},
		},
		"cut where it is quietest": {
			[][]int16{tones([2]float64{2.9, 5000}, [2]float64{0.2, 500}, [2]float64{2.9, 5000})},
			[][2]float64{{0, 3}, {3, 6}},
		},
		"speech without a pause": {[][]int16{tones([2]float64{8, 5000})}, [][2]float64{{0, 2.1}, {2.1, 4.2}, {4.2, 8}}},
		"a gap ends one": {
			[][]int16{tones([2]float64{1, 5000}), tones([2]float64{2, 5000})}, [][2]float64{{0, 1}, {60, 62}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				engine := &shutter{}
				s := Windowed(t.Context(), engine, Config{MaxLatency: latency})
				var whole []int16
				end := time.Duration(0)
				for i, sound := range tt.sound {
					at := time.Duration(i) * time.Minute
					blockwise(s, at, sound)
					whole, end = append(whole, sound...), at+Duration(int64(len(sound)))
				}
				s.End()
				var got [][2]float64
				until, last := time.Duration(0), time.Duration(0)
				for r := range s.Results() {
					if r.Until < until {
						t.Errorf("known up to %s, then to %s", until, r.Until)
					}
					until = r.Until
					for _, w := range r.Words {
						if w.Start < last || w.End-w.Start > latency {
							t.Errorf("a window from %s to %s behind %s", w.Start, w.End, last)
						}
						last = w.End
						got = append(got, [2]float64{w.Start.Seconds(), w.End.Seconds()})
					}
				}
				if !slices.EqualFunc(got, tt.want, func(a, b [2]float64) bool {
					return max(a[0]-b[0], b[0]-a[0], a[1]-b[1], b[1]-a[1]) < 0.05
				}) {
					t.Errorf("windows %v, want %v", got, tt.want)
				}
				if len(tt.want) > 0 && tt.want[0][0] == 0 && len(got) > 0 &&
					!slices.Equal(engine.all[:SampleRate], whole[:SampleRate]) {
					t.Error("the sound is another")
				}
				if until < end-time.Second {
					t.Errorf("known up to %s of %s", until, end)
				}
			})
		})
	}
}

// TestWindowsAreWhole: in speech without a pause, each sample is in one window.
func TestWindowsAreWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &shutter{}
		s := Windowed(t.Context(), engine, Config{MaxLatency: 4 * time.Second})
		sound := make([]int16, 18*SampleRate)
		for i := range sound {
			sound[i] = int16(1000 + i%20000)
		}
		blockwise(s, 0, sound)
		s.End()
		for range s.Results() {
		}
		if !slices.Equal(engine.all, sound) {
			t.Errorf("of %d samples %d were given, or others", len(sound), len(engine.all))
		}
	})
}

// TestWindowsBehind: of what an engine that is behind has not begun with, the newest is kept and the rest is left out
// and said so: it goes on at the live edge. Close does not wait for it.
func TestWindowsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &shutter{open: make(chan struct{})}
		s := Windowed(t.Context(), engine, Config{MaxLatency: 4 * time.Second})
		blockwise(s, 0, tones([2]float64{4.1, 5000})) // the engine is busy with that
		synctest.Wait()
		blockwise(s, 4100*time.Millisecond, tones([2]float64{56, 5000}))
		status := s.Status()
		if held := 60*time.Second - status.LeftOut; status.Behind > 6*time.Second || held > 14*time.Second {
			t.Errorf("%+v", status)
		}
		engine.open <- struct{}{}
		if r := <-s.Results(); len(r.Words) != 1 || r.Words[0].Start != 0 {
			t.Errorf("first: %+v", r)
		}
		close(engine.open)
		for {
			r, ok := <-s.Results()
			if !ok {
				t.Fatal("nothing was recognised at the live edge")
			}
			if len(r.Words) > 0 {
				if r.Words[0].Start < 50*time.Second {
					t.Errorf("it goes on at %s", r.Words[0].Start)
				}
				break
			}
		}
		s.Close()
	})
}

// TestWindowsFail: a window that can't be recognised is counted, and those behind it are recognised.
func TestWindowsFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &shutter{loud: loud{fail: errors.New("status 500")}}
		s := Windowed(t.Context(), engine, Config{MaxLatency: 4 * time.Second})
		blockwise(s, 0, tones([2]float64{3.2, 5000}, [2]float64{1, 0}))
		if r := <-s.Results(); len(r.Words) > 0 || r.Until < 3*time.Second {
			t.Errorf("%+v", r)
		}
		if left := s.Status().LeftOut; left < 3*time.Second || left > 4*time.Second {
			t.Errorf("left out: %s", left)
		}
		engine.fail = nil
		blockwise(s, 4200*time.Millisecond, tones([2]float64{3.2, 5000}, [2]float64{1, 0}))
		s.End()
		words := 0
		for r := range s.Results() {
			words += len(r.Words)
		}
		if words != 1 {
			t.Errorf("%d words behind that", words)
		}
	})
}
