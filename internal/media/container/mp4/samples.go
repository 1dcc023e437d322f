package mp4

import "math"

// samples is a struct of arrays: 12 bytes for a sample at a constant rate without reordering, 24 at most.
type samples struct {
	offsets []int64
	sizes   []uint32
	dts     []int64 // nil when they are first + i*step
	first   int64
	step    uint32
	last    uint32   // duration of the last sample
	cts     []int32  // nil when all are 0
	sync    []uint64 // a bit each; nil when all are sync samples
}

func (s *samples) dtsAt(i int) int64 {
	if s.dts == nil {
		return s.first + int64(i)*int64(s.step)
	}
	return s.dts[i]
}

func (s *samples) ctsAt(i int) int32 {
	if s.cts == nil {
		return 0
	}
	return s.cts[i]
}

func (s *samples) syncAt(i int) bool { return s.sync == nil || s.sync[i/64]>>(i%64)&1 == 1 }

func (s *samples) duration(i int) uint32 {
	if i == len(s.sizes)-1 {
		return s.last
	}
	return uint32(min(s.dtsAt(i+1)-s.dtsAt(i), math.MaxUint32))
}

// noSync makes the bit set, all bits clear.
func (s *samples) noSync(n int) { s.sync = make([]uint64, (n+63)/64) }

func (s *samples) setSync(i int) {
	for i/64 >= len(s.sync) {
		s.sync = append(s.sync, 0)
	}
	s.sync[i/64] |= 1 << (i % 64)
}

// compact gives back what a regular track does not need.
func (s *samples) compact() {
	if !s.regular() {
		return
	}
	if len(s.dts) > 0 {
		s.first, s.step = s.dts[0], s.last
	}
	if len(s.dts) > 1 {
		s.step = uint32(s.dts[1] - s.dts[0])
	}
	s.dts = nil
}

func (s *samples) regular() bool {
	if len(s.dts) < 2 {
		return true
	}
	step := s.dts[1] - s.dts[0]
	if step < 0 || step > math.MaxUint32 {
		return false
	}
	for i := 2; i < len(s.dts); i++ {
		if s.dts[i]-s.dts[i-1] != step {
			return false
		}
	}
	return true
}
