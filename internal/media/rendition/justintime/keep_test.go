package justintime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/rendition/ladder"
)

// slow is a store whose responses take a while.
type slow struct {
	mu   sync.Mutex
	m    map[string]string
	puts int
}

func (s *slow) Has(_ context.Context, key string) (bool, error) {
	s.mu.Lock()
	_, ok := s.m[key]
	s.mu.Unlock()
	time.Sleep(time.Second)
	return ok, nil
}

// PutNew looks and then stores, as with a storage that can't do it in one step.
func (s *slow) PutNew(ctx context.Context, key string, data []byte) (bool, error) {
	if there, _ := s.Has(ctx, key); there {
		return false, nil
	}
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[key], s.puts = string(data), s.puts+1
	return true, nil
}

func (s *slow) Read(context.Context, string) ([]byte, error) { return nil, errors.New("not asked for") }

// Of what several make of one segment at the same time, one is stored, and the others are told that it is not theirs.
func TestOneIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{m: map[string]string{}}
		m := justintime.New(justintime.Options{Store: s, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		var all sync.WaitGroup
		same := make([]bool, 5)
		for i := range same {
			all.Go(func() {
				var err error
				if same[i], err = m.Keep(t.Context(), "270p/7.m4s", []byte{byte('a' + i)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		i := slices.Index(same, true)
		if i < 0 || slices.Contains(same[i+1:], true) || s.puts != 1 || s.m["270p/7.m4s"] != string(rune('a'+i)) {
			t.Errorf("%v, stored %d times: %v", same, s.puts, s.m)
		}
	})
}

// noReorder is a live rung of a source, with four fragments of a segment.
func (s source) noReorder() *justintime.Work {
	r := ladder.Live([]ladder.Source{{Width: 640, Height: 360, FrameRate: 30}}, ladder.Premium, 1080)[0]
	return &justintime.Work{
		Prefix: "rung", Rung: r, Timeline: s.timeline, Video: s.video, Source: s,
		Parts: func(msn int64) ([]int, bool) {
			n := int(s.video.Chunks[msn-s.timeline.First].Duration * 30 / int64(s.video.Timescale))
			return []int{n / 4, n / 2, n * 3 / 4, n}, false
		},
	}
}

// A segment of which viewers had parts while it was live begins with them, byte for byte, and goes on with a key frame,
// which is no sync sample where playlists say that the part has none, and the source's times, whether it is made by
// itself or in a run of several, of what is at hand or of what is stored.
func TestHeadStays(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	live, made := newMaker(t, engine(t))
	w := src.noReorder()
	if err := live.Segment(t.Context(), w, 2); err != nil {
		t.Fatal(err)
	}
	whole := made.get(w.SegmentKey(2))
	fragments, err := cmaf.ParseFragments(whole)
	if err != nil || len(fragments) != 4 {
		t.Fatalf("%d fragments, %v", len(fragments), err)
	}
	if err := live.Init(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	own := made.get(w.InitKey())
	for name, try := range map[string]struct {
		parts  int
		stored bool
		ahead  bool
		listed bool // all of it, as beginning with a key frame alone
	}{
		"one part, at hand":         {1, false, false, false},
		"three parts, stored":       {3, true, false, false},
		"two parts, run of several": {2, true, true, false},
		"all of them":               {4, true, false, false},
		"one part, all are listed":  {1, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, s := newMaker(t, engine(t))
			w := src.noReorder()
			head := whole[:fragments[try.parts-1].Offset+fragments[try.parts-1].Size]
			if try.stored {
				s.m[w.HeadKey(2)] = head
			} else {
				w.Head = func(msn int64) []byte {
					if msn == 2 {
						return head
					}
					return nil
				}
			}
			if try.listed {
				w.Dependent = func(msn int64, part int) bool { return msn == 2 && part == try.parts }
			}
			if try.ahead {
				if _, err := m.Fill(t.Context(), w, 1); err != nil {
					t.Fatal(err)
				}
			}
			for msn := int64(1); msn < 4; msn++ {
				if err := m.Segment(t.Context(), w, msn); err != nil {
					t.Fatal(err)
				}
			}
			got := s.get(w.SegmentKey(2))
			if !bytes.HasPrefix(got, head) {
				t.Fatal("viewers have other parts")
			}
			again, err := cmaf.ParseFragments(got)
			if err != nil || len(again) != 4 {
				t.Fatalf("%d fragments, %v", len(again), err)
			}
			for k, f := range again {
				if f.BaseMediaDecodeTime != fragments[k].BaseMediaDecodeTime ||
					len(f.Samples) != len(fragments[k].Samples) {
					t.Errorf("fragment %d begins at %d with %d pictures", k, f.BaseMediaDecodeTime, len(f.Samples))
				}
				if first := k == 0 || k == try.parts && !try.listed; f.Samples[0].Sync != first {
					t.Errorf("fragment %d: key frame %v", k, f.Samples[0].Sync)
				}
			}
			if got, want := shown(again), shown(fragments); !slices.Equal(got, want) {
				t.Errorf("shown at %v, not at %v", got, want)
			}
			for msn := int64(1); msn < 4; msn++ {
				decodes(t, append(bytes.Clone(own), s.get(w.SegmentKey(msn))...), w.Rung)
			}
		})
	}
}

// shown is when pictures are, in ticks, with where each fragment ends.
func shown(fragments []cmaf.Fragment) (at []int64) {
	for _, f := range fragments {
		t := int64(f.BaseMediaDecodeTime)
		for _, s := range f.Samples {
			at = append(at, t+int64(s.CompositionOffset))
			t += int64(s.Duration)
		}
		at = append(at, t)
	}
	return at
}

var errNever = errors.New("another node has it")

// What the source may not have for good is not made for good either.
func TestProvisionalIsNotKept(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	m, s := newMaker(t, engine(t))
	w := src.noReorder()
	w.AwaitStored = func(context.Context, int64) error {
		if s.get(w.SegmentKey(1)) != nil {
			t.Error("it is kept before")
		}
		return errNever
	}
	if err := m.Segment(t.Context(), w, 1); !errors.Is(err, errNever) {
		t.Errorf("got %v", err)
	}
	if s.get(w.SegmentKey(1)) != nil {
		t.Error("it is kept")
	}
}
