package mpegts_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/frame"
)

const tick = 3600 // of 25 pictures per second, in 90 kHz

// stream writes n pictures at 25 per second with a key frame every ten, and two frames of sound with each.
func (m *mux) stream(from, n int, start int64) {
	for i := from; i < from+n; i++ {
		at := (start + int64(i)*tick) & (1<<33 - 1)
		m.pes(videoPID, 0xe0, at, at, h264Unit(i%10 == 0, 700))
		m.pes(audioPID, 0xc0, at, at, adtsFrames(2, 100))
	}
}

func (m *mux) tables() {
	m.pat(0, 1, mapPID)
	m.pmt(mapPID, 1, 0, es{0x1b, videoPID, ""}, es{0x0f, audioPID, ""})
}

func usual(n int, start int64) *mux {
	m := newMux()
	m.tables()
	m.stream(0, n, start)
	return m
}

// drop takes packets out by their number.
func drop(b []byte, numbers ...int) (out []byte) {
	for i, p := range slices.Collect(slices.Chunk(b, mpegts.PacketSize)) {
		if !slices.Contains(numbers, i) {
			out = append(out, p...)
		}
	}
	return out
}

// find gives the numbers of a stream's packets; start: only those in which something starts.
func find(b []byte, pid uint16, start bool) (numbers []int) {
	for i, p := range slices.Collect(slices.Chunk(b, mpegts.PacketSize)) {
		if uint16(p[1]&31)<<8|uint16(p[2]) == pid && (!start || p[1]&0x40 != 0) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

func times(frames []frame.Frame) (out []time.Duration) {
	for _, f := range frames {
		out = append(out, f.DTS)
	}
	return out
}

func TestWrap(t *testing.T) {
	t.Parallel()
	r, d := demux(t, usual(40, 1<<33-15*tick).b)
	for kind, frames := range r.frames {
		for i, f := range frames[1:] {
			if step := f.DTS - frames[i].DTS; step <= 0 || step > 41*time.Millisecond {
				t.Errorf("%v %d comes %v after the one before", kind, i+1, step)
			}
		}
	}
	if len(r.frames[frame.Video]) != 40 || len(r.frames[frame.Audio]) != 80 {
		t.Errorf("%+v", d.Stats())
	}
	if first := r.frames[frame.Video][0].DTS; first != ticks(1<<33-15*tick) {
		t.Errorf("begins at %v", first)
	}
}

// TestClocksApart: one stream that jumps about must not take the other along, however often it does.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.tables()
	for i := range int64(40) {
		m.pes(videoPID, 0xe0, i*tick, i*tick, h264Unit(i%10 == 0, 50))
		m.pes(audioPID, 0xc0, i%2<<32+i*tick, i%2<<32+i*tick, adtsFrames(2, 100))
	}
	r, _ := demux(t, m.b)
	for i, f := range r.frames[frame.Video] {
		if f.DTS != time.Duration(i)*40*time.Millisecond {
			t.Fatalf("picture %d at %v", i, f.DTS)
		}
	}
}

func TestLostPackets(t *testing.T) {
	t.Parallel()
	whole := usual(30, 0).b
	video, audio := find(whole, videoPID, true), find(whole, audioPID, true)
	for name, tt := range map[string]struct {
		drop         []int
		video, audio int
		missing      []int // pictures
		lost         int
	}{
		"nothing":               {nil, 30, 60, nil, 0},
		"start of a picture":    {[]int{video[15]}, 29, 60, []int{15}, 1},
		"middle of a picture":   {[]int{video[15] + 1}, 29, 60, []int{15}, 1},
		"end of a picture":      {[]int{video[15] + 3}, 29, 60, []int{15}, 1},
		"a key frame":           {[]int{video[10] + 1}, 29, 60, nil, 1},   // another one takes its place
		"a key frame's start":   {[]int{video[10]}, 29, 60, []int{10}, 1}, // nobody knows that it was one
		"the last before a key": {[]int{video[19] + 2}, 29, 60, []int{19}, 1},
		"start of sound":        {[]int{audio[5]}, 30, 58, nil, 1},
		"end of sound":          {[]int{audio[5] + 1}, 30, 59, nil, 1},
		"from picture to sound": {[]int{video[15] + 3, audio[15]}, 29, 58, []int{15}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, d := demux(t, drop(whole, tt.drop...))
			s := d.Stats()
			if s.Lost != tt.lost || s.Malformed != 0 || s.Video != tt.video || s.Audio != tt.audio {
				t.Errorf("%+v", s)
			}
			var want []time.Duration
			for i := range 30 {
				if !slices.Contains(tt.missing, i) {
					want = append(want, time.Duration(i)*40*time.Millisecond)
				}
			}
			if got := times(r.frames[frame.Video]); !slices.Equal(got, want) {
				t.Errorf("pictures at %v", got)
			}
			if n := 30 - tt.video; s.Waiting > 0 || s.Broken < n-1 { // nothing came of one whose start is lost
				t.Errorf("%d pictures missing, %+v", n, s)
			}
		})
	}
}

// TestSoundAroundHole: of a long PES packet only the frames that were hit are missing, and those behind the hole are
// where they belong.
func TestSoundAroundHole(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.tables()
	const n = 20
	step := 1024 * time.Second / 48000
	for i := range int64(5) {
		m.pes(audioPID, 0xc0, i*n*1920, i*n*1920, adtsFrames(n, 150))
	}
	whole, _ := demux(t, m.b)
	all := whole.frames[frame.Audio]
	starts := find(m.b, audioPID, true)
	for gone := starts[1]; gone < starts[3]; gone++ {
		r, d := demux(t, drop(m.b, gone))
		frames := r.frames[frame.Audio]
		if lost := len(all) - len(frames); lost > 4 && !slices.Contains(starts, gone) || lost > n {
			t.Errorf("without packet %d, %d frames are missing", gone, lost)
		}
		for _, f := range frames {
			i := slices.IndexFunc(all, func(w frame.Frame) bool { return (w.DTS - f.DTS).Abs() < step/4 })
			if i < 0 || !bytes.Equal(all[i].Data, f.Data) {
				t.Fatalf("without packet %d: the frame at %v is none of the stream's", gone, f.DTS)
			}
		}
		if d.Stats().Lost != 1 {
			t.Errorf("%+v", d.Stats())
		}
	}
}

// TestMissing: a loss that the continuity counters do not show.
func TestMissing(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.tables()
	m.pes(videoPID, 0xe0, 0, 0, h264Unit(true, 10))
	m.pes(videoPID, 0xe0, tick, tick, h264Unit(false, 184*20))
	m.pes(videoPID, 0xe0, 2*tick, 2*tick, h264Unit(false, 10))
	m.pes(videoPID, 0xe0, 3*tick, 3*tick, h264Unit(true, 10))
	at := (find(m.b, videoPID, true)[1] + 2) * mpegts.PacketSize
	const size = 16 * mpegts.PacketSize
	r := newRecorder()
	d := mpegts.NewDemuxer(r)
	err := d.Write(m.b[:at], time.Time{})
	d.Missing(size)
	err = errors.Join(err, d.Write(m.b[at+size:], time.Time{}), d.Flush())
	if got := times(r.frames[frame.Video]); err != nil ||
		!slices.Equal(got, []time.Duration{0, ticks(2 * tick), ticks(3 * tick)}) {
		t.Errorf("%v, pictures at %v, %+v", err, got, d.Stats())
	}
}

func TestDuplicatesScrambledDamaged(t *testing.T) {
	t.Parallel()
	whole := usual(30, 0).b
	var twice []byte
	for p := range slices.Chunk(whole, mpegts.PacketSize) {
		twice = append(append(twice, p...), p...)
	}
	want, _ := demux(t, whole)
	r, d := demux(t, twice)
	if !reflect.DeepEqual(r, want) || d.Stats().Duplicates == 0 || d.Stats().Lost != 0 {
		t.Errorf("sent twice: %+v", d.Stats())
	}

	scrambled := bytes.Clone(whole)
	for _, i := range find(whole, videoPID, false) {
		if i >= find(whole, videoPID, true)[12] && i < find(whole, videoPID, true)[16] {
			scrambled[i*mpegts.PacketSize+3] |= 0x80
		}
	}
	r, d = demux(t, scrambled)
	if len(r.frames[frame.Video]) != 26 || len(r.frames[frame.Audio]) != 60 || d.Stats().Scrambled == 0 ||
		d.Stats().Malformed != 0 {
		t.Errorf("scrambled: %d pictures, %+v", len(r.frames[frame.Video]), d.Stats())
	}

	damaged := bytes.Clone(whole)
	damaged[find(whole, videoPID, true)[15]*mpegts.PacketSize+1] |= 0x80
	r, d = demux(t, damaged)
	if len(r.frames[frame.Video]) != 29 || d.Stats().Damaged != 1 || d.Stats().Lost != 1 {
		t.Errorf("damaged: %d pictures, %+v", len(r.frames[frame.Video]), d.Stats())
	}
}

func TestGarbageBetween(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	whole := usual(40, 0).b
	for size := range 400 {
		garbage := make([]byte, size)
		for i := range garbage {
			garbage[i] = byte(random.Uint32())
			if i%7 == 0 {
				garbage[i] = 0x47
			}
		}
		at := find(whole, videoPID, true)[20] * mpegts.PacketSize
		b := slices.Concat(whole[:at], garbage, whole[at:])
		r, d := demux(t, b)
		if n := len(r.frames[frame.Video]); n != 40 && size%mpegts.PacketSize != 0 && n < 29 ||
			d.Stats().Skipped > size+mpegts.PacketSize {
			t.Fatalf("%d bytes of garbage: %d pictures, %+v", size, n, d.Stats())
		}
	}
}

func TestMapChanges(t *testing.T) {
	t.Parallel()
	t.Run("other streams", func(t *testing.T) {
		t.Parallel()
		m := usual(10, 0)
		m.pmt(mapPID, 1, 1, es{0x1b, 0x200, ""}, es{0x0f, audioPID, ""})
		for i := range int64(10) {
			at := (10 + i) * tick
			m.pes(0x200, 0xe0, at, at, bytes.Replace(h264Unit(i == 0, 300), testSPS, smallSPS, 1))
			m.pes(videoPID, 0xe0, at, at, h264Unit(true, 300)) // is nobody's any more
			m.pes(audioPID, 0xc0, at, at, adtsFrames(2, 100))
		}
		r, d := demux(t, m.b)
		c := r.configs[frame.Video]
		if len(c) != 2 || c[0].Height != 720 || c[1].Height != 240 || len(r.configs[frame.Audio]) != 1 {
			t.Errorf("configurations %+v", c)
		}
		if len(r.frames[frame.Video]) != 20 || len(r.frames[frame.Audio]) != 40 || d.Stats().Broken != 0 {
			t.Errorf("%d pictures, %+v", len(r.frames[frame.Video]), d.Stats())
		}
	})
	t.Run("the first sound stays", func(t *testing.T) {
		t.Parallel()
		m := newMux()
		m.pat(0, 1, mapPID)
		m.pmt(mapPID, 1, 0, es{0x87, 0x90, ""}, es{0x1b, videoPID, ""}, es{0x0f, audioPID, ""}, es{0x0f, 0x102, ""})
		m.stream(0, 5, 0)
		m.pmt(mapPID, 1, 1, es{0x0f, 0x102, ""}, es{0x1b, videoPID, ""}, es{0x0f, audioPID, ""})
		m.stream(5, 5, 0)
		m.pmt(mapPID, 1, 2, es{0x1b, videoPID, ""}, es{0x0f, 0x102, ""})
		m.pes(0x102, 0xc0, 10*tick, 10*tick, adtsFrames(3, 100))
		r, d := demux(t, m.b)
		if len(r.frames[frame.Audio]) != 23 || len(r.frames[frame.Video]) != 10 {
			t.Errorf("%+v", d.Stats())
		}
		if got := d.Ignored(); len(got) != 0 {
			t.Errorf("ignored %v", got)
		}
	})
	t.Run("another program", func(t *testing.T) {
		t.Parallel()
		m := newMux()
		m.pat(0, 0, 0x10, 1, 0x500, 2, mapPID)
		m.pmt(0x500, 1, 0, es{0x06, 0x90, ""})
		m.pmt(mapPID, 2, 0, es{0x1b, videoPID, ""}, es{0x0f, audioPID, ""}, es{0x86, 0x91, ""})
		m.stream(0, 10, 0)
		m.pat(1, 3, 0x600)
		m.pmt(0x600, 3, 0, es{0x1b, videoPID, ""}, es{0x0f, audioPID, ""})
		m.stream(10, 10, 0)
		r, d := demux(t, m.b)
		if len(r.frames[frame.Video]) != 20 || len(r.frames[frame.Audio]) != 40 {
			t.Errorf("%+v", d.Stats())
		}
	})
	t.Run("not in force, other table, wrong checksum", func(t *testing.T) {
		t.Parallel()
		m := usual(5, 0)
		next := programMap(1, 1, es{0x1b, 0x200, ""})
		for _, change := range []func(b []byte){
			func(b []byte) { b[5] &^= 1 }, func(b []byte) { b[0] = 0x42 }, func(b []byte) { b[10] ^= 1 },
		} {
			s := bytes.Clone(next)
			change(s)
			m.split(mapPID, append([]byte{0}, s...))
		}
		m.stream(5, 5, 0)
		r, d := demux(t, m.b)
		// the change of a flag breaks the checksum too
		if len(r.frames[frame.Video]) != 10 || d.Stats().Malformed != 2 {
			t.Errorf("%+v", d.Stats())
		}
	})
}

// TestSections: several in one packet, one over many packets, one that begins where the last one ends.
func TestSections(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.pat(0, 7, 0x700, 1, mapPID)
	long := programMap(7, 0, es{0x06, 0x90, strings.Repeat("x", 200)}, es{0x05, 0x92, strings.Repeat("y", 200)})
	second := programMap(1, 0, es{0x1b, videoPID, ""}, es{0x0f, audioPID, ""})
	m.counters[0x700] = 0
	// both programs on one PID
	m.pat(1, 7, mapPID, 1, mapPID)
	both := append(append([]byte{0}, long...), second...)
	m.packet(mapPID, true, both[:184])
	m.packet(mapPID, false, both[184:368])
	rest := both[368:]
	border := len(long) + 1 - 368
	m.packet(mapPID, true, append([]byte{byte(border)}, rest...))
	m.stream(0, 5, 0)
	r, d := demux(t, m.b)
	if len(r.frames[frame.Video]) != 5 || d.Stats().Malformed != 0 {
		t.Errorf("%+v", d.Stats())
	}
}

func TestParameterSetsChange(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.tables()
	small := bytes.Replace(h264Unit(true, 50), testSPS, smallSPS, 1)
	for i, unit := range [][]byte{
		h264Unit(false, 50), h264Unit(true, 50), h264Unit(false, 50), h264Unit(true, 50), small, h264Unit(false, 50),
		small,
	} {
		m.pes(videoPID, 0xe0, int64(i)*tick, int64(i)*tick, unit)
	}
	r, _ := demux(t, m.b)
	c := r.configs[frame.Video]
	if len(c) != 2 || c[0].Width != 1280 || c[1].Width != 320 || !bytes.Equal(c[1].SPS, smallSPS) {
		t.Errorf("%+v", c)
	}
	if n := len(r.frames[frame.Video]); n != 6 { // what comes before the first set can not be decoded
		t.Errorf("%d pictures", n)
	}
}

func TestSeveralUnitsInOnePES(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.tables()
	m.pes(videoPID, 0xe0, 0, 0, h264Unit(true, 50))
	m.pes(videoPID, 0xe0, tick, tick, slices.Concat(h264Unit(false, 50), h264Unit(false, 60), h264Unit(false, 70)))
	m.pes(videoPID, 0xe0, -1, -1, h264Unit(false, 50)) // has no time of its own
	r, _ := demux(t, m.b)
	if got := times(r.frames[frame.Video]); !slices.Equal(got, []time.Duration{
		0, ticks(tick), ticks(2 * tick), ticks(3 * tick), ticks(4 * tick),
	}) {
		t.Errorf("pictures at %v", got)
	}
}

// TestUnitsInPairs: where each PES packet has two access units, two fields perhaps, the second one's time is between
// two timestamps.
func TestUnitsInPairs(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.tables()
	for i := range int64(10) {
		m.pes(videoPID, 0xe0, 2*i*tick, 2*i*tick, slices.Concat(h264Unit(i == 0, 50), h264Unit(false, 60)))
	}
	r, _ := demux(t, m.b)
	got := times(r.frames[frame.Video])
	if len(got) != 20 {
		t.Fatalf("%d pictures", len(got))
	}
	for i, at := range got {
		if at != ticks(int64(i)*tick) {
			t.Errorf("picture %d at %v", i, at)
		}
	}
}

// TestLastPictureIsWhole: a connection that ends in the midst of a picture does not leave half of one behind, if the
// encoder is known to mark their ends.
func TestLastPictureIsWhole(t *testing.T) {
	t.Parallel()
	m := usual(20, 0)
	m.pes(videoPID, 0xe0, 20*tick, 20*tick, h264Unit(false, 700))
	for packets, want := range map[int]int{0: 21, 1: 20, 3: 20} {
		r, d := demux(t, m.b[:len(m.b)-packets*mpegts.PacketSize])
		if n := len(r.frames[frame.Video]); n != want || d.Stats().Malformed != 0 {
			t.Errorf("without the last %d packets: %d pictures, want %d, %+v", packets, n, want, d.Stats())
		}
	}
}

// TestFramesOverPES: frames of sound that begin in one PES packet and end in the next.
func TestFramesOverPES(t *testing.T) {
	t.Parallel()
	m := newMux()
	m.tables()
	all := adtsFrames(12, 100)
	m.pes(audioPID, 0xc0, 0, 0, all[:450])
	m.pes(audioPID, 0xc0, 5*1920, 5*1920, all[450:850]) // of the first that begins in it, the sixth
	m.pes(audioPID, 0xc0, -1, -1, all[850:])
	r, d := demux(t, m.b)
	frames := r.frames[frame.Audio]
	if len(frames) != 12 || d.Stats().Malformed != 0 {
		t.Fatalf("%d frames, %+v", len(frames), d.Stats())
	}
	for i, f := range frames {
		if want := ticks(int64(i) * 1920); (f.DTS-want).Abs() > time.Microsecond ||
			!bytes.Equal(f.Data, all[i*100+7:i*100+100]) {
			t.Errorf("frame %d at %v, want %v", i, f.DTS, want)
		}
	}
}

// TestLostKeyFrames: the one before takes its place, wherever it is known that it was one; where none can, pictures are
// dropped up to one that needs no other, or for a while.
func TestLostKeyFrames(t *testing.T) {
	t.Parallel()
	stream := func(n, gop, change int) *mux { // from picture `change` on it has other parameters
		m := newMux()
		m.tables()
		for i := range n {
			unit := h264Unit(i%gop == 0, 300+i)
			if i >= change {
				unit = bytes.Replace(unit, testSPS, smallSPS, 1)
			}
			m.pes(videoPID, 0xe0, int64(i)*tick, int64(i)*tick, unit)
		}
		return m
	}
	regular, changed := stream(60, 10, 60).b, stream(60, 10, 20).b
	starts := find(regular, videoPID, true)
	recovers := newMux()
	recovers.tables()
	for i := range int64(60) {
		unit := h264Unit(i == 0 || i == 20, 300)
		if i == 40 {
			unit = slices.Concat([]byte{0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 6, 6, 1, 0xc4, 0x80}, unit[6:])
		}
		if i == 20 { // of other parameters
			unit = bytes.Replace(unit, testSPS, smallSPS, 1)
		}
		recovers.pes(videoPID, 0xe0, i*tick, i*tick, unit)
	}
	long := stream(200, 1000, 200)
	for name, tt := range map[string]struct {
		ts                          []byte
		drop                        []int
		pictures, replaced, waiting int
	}{
		"a part of one":                {regular, []int{starts[20] + 1}, 60, 1, 0},
		"its start, where one was due": {regular, []int{starts[30]}, 60, 1, 0},
		"all of it, and more": {
			regular, []int{starts[29] + 1, starts[30], starts[30] + 1, starts[30] + 2}, 59, 1, 0,
		},
		"two in a row":                           {regular, []int{starts[20] + 1, starts[30] + 1}, 60, 2, 0},
		"the first":                              {regular, []int{starts[0] + 1}, 50, 0, 0},
		"a picture beside the place":             {regular, []int{starts[31]}, 59, 0, 0},
		"one with other parameters":              {changed, []int{find(changed, videoPID, true)[20] + 1}, 50, 0, 9},
		"an encoder without, and one was enough": {long.b, []int{find(long.b, videoPID, true)[20]}, 199, 0, 0},
		"other parameters, and a recovery point": {
			recovers.b, []int{find(recovers.b, videoPID, true)[20] + 1}, 40, 0, 19,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, d := demux(t, drop(tt.ts, tt.drop...))
			frames, s := r.frames[frame.Video], d.Stats()
			if len(frames) != tt.pictures || s.Replaced != tt.replaced || s.Waiting != tt.waiting {
				t.Errorf("%d pictures, %+v", len(frames), s)
			}
			for i := 1; i < len(frames); i++ {
				if frames[i].DTS <= frames[i-1].DTS {
					t.Errorf("picture %d at %v after %v", i, frames[i].DTS, frames[i-1].DTS)
				}
			}
			keys := 0
			for _, f := range frames {
				if f.Key && f.DTS%ticks(10*tick) == 0 {
					keys++
				}
			}
			if tt.replaced > 0 && keys != 6 {
				t.Errorf("%d key frames in their places", keys)
			}
		})
	}
}

// TestLostKeyFramesAreNoFlood: a large key frame does not come out again for each packet that looks like the rest of
// one.
func TestLostKeyFramesAreNoFlood(t *testing.T) {
	t.Parallel()
	const large, packet = 1 << 20, mpegts.PacketSize - 4 - 14
	m := newMux()
	m.tables()
	m.pes(videoPID, 0xe0, 0, 0, h264Unit(true, large))
	for i := range int64(8000) {
		m.pes(videoPID, 0xe0, (i+1)*tick, (i+1)*tick, h264Unit(true, packet-len(h264Unit(true, 0))))
		m.counters[videoPID] = (m.counters[videoPID] + 1) & 15
	}
	r, d := demux(t, m.b)
	total := 0
	for _, f := range r.frames[frame.Video] {
		total += len(f.Data)
	}
	if s := d.Stats(); s.Replaced == 0 || s.Broken < 7000 || total > 2*len(m.b) {
		t.Errorf("%d bytes of pictures out of %d, %+v", total, len(m.b), s)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	sink := newRecorder()
	d := mpegts.NewDemuxer(sink)
	m := newMux()
	m.pat(0, 1, mapPID)
	m.pmt(mapPID, 1, 0, es{0x02, 0x90, ""}, es{0x87, 0x91, ""})
	err := d.Write(m.b, time.Time{})
	if !errors.Is(err, mpegts.ErrUnsupported) || !strings.Contains(err.Error(), "MPEG-2 video, E-AC-3") {
		t.Errorf("%v", err)
	}
	if again := d.Write(m.b, time.Time{}); !errors.Is(again, mpegts.ErrUnsupported) {
		t.Errorf("%v", again)
	}
	d = mpegts.NewDemuxer(sink)
	junk := bytes.Repeat([]byte{1, 2, 0x47, 4}, 1<<18)
	for range 40 {
		err = d.Write(junk, time.Time{})
	}
	if !errors.Is(err, mpegts.ErrNotTS) {
		t.Errorf("%v", err)
	}
}

// layer2 are n frames of MPEG audio of layer II, 48 kHz stereo at 192 kbit/s.
func layer2(n int) []byte {
	frame := append([]byte{0xff, 0xfd, 0xa4, 0x04}, bytes.Repeat([]byte{0x55, 0xff, 0x12}, 572/3+1)...)[:576]
	return bytes.Repeat(frame, n)
}

// TestSoundThatIsNotWhatTheMapSays: a stream of which nothing can be read is named, its pictures go on, another one
// takes its place, and what has nothing else is refused.
func TestSoundThatIsNotWhatTheMapSays(t *testing.T) {
	t.Parallel()
	const second = audioPID + 1
	aacMain := adtsFrames(5, 100)
	for i := 0; i < len(aacMain); i += 100 {
		aacMain[i+2] &= 0x3f
	}
	for name, tt := range map[string]struct {
		maps         []es
		sound        []byte
		video, audio int
		ignored      string
		refused      bool
	}{
		"layer II": {
			[]es{{0x1b, videoPID, ""}, {0x03, audioPID, ""}}, layer2(5), 40, 0, "MPEG audio other than MP3", false,
		},
		"layer II of MPEG-2's type": {
			[]es{{0x1b, videoPID, ""}, {0x04, audioPID, ""}}, layer2(5), 40, 0, "MPEG audio other than MP3", false,
		},
		"AAC Main": {
			[]es{{0x1b, videoPID, ""}, {0x0f, audioPID, ""}}, aacMain, 40, 0, "AAC other than AAC-LC", false,
		},
		"layer II, and AAC behind it": {
			[]es{{0x1b, videoPID, ""}, {0x03, audioPID, ""}, {0x0f, second, ""}},
			layer2(5), 40, 66,
			"MPEG audio other than MP3", false,
		},
		"layer II alone": {[]es{{0x03, audioPID, ""}}, layer2(5), 0, 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMux()
			m.pat(0, 1, mapPID)
			m.pmt(mapPID, 1, 0, tt.maps...)
			for i := range int64(40) {
				if tt.maps[0].pid == videoPID {
					m.pes(videoPID, 0xe0, i*tick, i*tick, h264Unit(i%10 == 0, 300))
				}
				m.pes(audioPID, 0xc0, i*tick, i*tick, tt.sound)
				m.pes(second, 0xc1, i*tick, i*tick, adtsFrames(2, 100))
			}
			sink := newRecorder()
			d := mpegts.NewDemuxer(sink)
			err := errors.Join(d.Write(m.b, time.Time{}), d.Flush())
			if refused := errors.Is(err, mpegts.ErrUnsupported) &&
				strings.Contains(err.Error(), "MPEG audio other than MP3"); refused != tt.refused {
				t.Fatalf("%v", err)
			}
			if v, a := len(sink.frames[frame.Video]), len(sink.frames[frame.Audio]); v != tt.video || a != tt.audio ||
				!tt.refused && strings.Join(d.Ignored(), ", ") != tt.ignored {
				t.Errorf("%d pictures, %d frames of sound, ignored %q", v, a, d.Ignored())
			}
		})
	}
}

// TestOutputErrorsEnd shows that an output's error comes back and is for good.
func TestOutputErrorsEnd(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	for _, out := range []mpegts.Output{failing{configure: full}, failing{write: full}} {
		d := mpegts.NewDemuxer(out)
		if err := errors.Join(d.Write(usual(5, 0).b, time.Time{}), d.Flush()); !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
	}
}

type failing struct{ configure, write error }

func (f failing) Configure(frame.Config) error { return f.configure }
func (f failing) Write(frame.Frame) error      { return f.write }

// TestBounds: PES packets without an end, and frames that announce more than there is, do not grow without a bound.
func TestBounds(t *testing.T) {
	t.Parallel()
	m := usual(1, 0)
	m.pes(videoPID, 0xe0, 0, 0, bytes.Repeat([]byte{7}, 20<<20))
	m.pes(audioPID, 0xc0, 0, 0, adtsFrames(1, 100)[:50])
	r, d := demux(t, m.b)
	if len(r.frames[frame.Video]) != 1 || d.Stats().Malformed != 1 {
		t.Errorf("%+v", d.Stats())
	}
}

// order writes down what comes, as letters: V and A configurations, v and a frames.
type order struct{ b strings.Builder }

func (o *order) Configure(c frame.Config) error {
	o.b.WriteByte("VA"[c.Kind])
	return nil
}

func (o *order) Write(f frame.Frame) error {
	o.b.WriteByte("va"[f.Kind])
	return nil
}

// TestSoundComesLater: pictures wait for the sound that the program has, for a second at most.
func TestSoundComesLater(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sound int // with which picture the first sound comes; 0 never
		maps  []es
		want  string
	}{
		"soon":           {5, []es{{0x1b, videoPID, ""}, {0x0f, audioPID, ""}}, "AVvvvvvaavav"},
		"never":          {0, []es{{0x1b, videoPID, ""}, {0x0f, audioPID, ""}}, "V" + strings.Repeat("v", 30)},
		"not in the map": {0, []es{{0x1b, videoPID, ""}}, "V" + strings.Repeat("v", 30)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMux()
			m.pat(0, 1, mapPID)
			m.pmt(mapPID, 1, 0, tt.maps...)
			n := len(tt.want) - 1
			if tt.sound > 0 {
				n = 7
			}
			for i := range int64(n) {
				m.pes(videoPID, 0xe0, i*tick, i*tick, h264Unit(i == 0, 50))
				if i == int64(tt.sound)-1 {
					m.pes(audioPID, 0xc0, 0, 0, adtsFrames(2, 50))
				} else if tt.sound > 0 && i >= int64(tt.sound) {
					m.pes(audioPID, 0xc0, i*tick, i*tick, adtsFrames(1, 50))
				}
			}
			var o order
			d := mpegts.NewDemuxer(&o)
			if err := d.Write(m.b, time.Time{}); err != nil {
				t.Fatal(err)
			}
			held := strings.Count(o.b.String(), "v")
			if err := d.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := o.b.String(); got != tt.want && tt.sound == 0 ||
				tt.sound > 0 &&
					(!strings.HasPrefix(got, "AVvvvv") || strings.Count(got, "v") != 7 ||
						strings.Count(got, "a") != 4) {
				t.Errorf("%s, %d before the end", got, held)
			}
			if tt.sound == 0 && held < 26 {
				t.Errorf("%d of 30 pictures were given out before the end", held)
			}
		})
	}
}
