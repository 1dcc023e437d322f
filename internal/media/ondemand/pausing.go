package ondemand

import (
	"math"
	"slices"
	"strconv"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/timeline"
)

// remember keeps the pictures from the last key frame on, of which the last one may have to be held: the first n of
// what waits follow those before.
func (s *streamer) remember(samples []cmaf.Sample) {
	for k, x := range slices.Backward(s.video.samples[:len(samples)]) {
		if x.idr {
			s.group = append([]cmaf.Sample(nil), samples[k:]...)
			return
		}
	}
	if len(s.group) == 0 {
		return
	}
	s.group = append(s.group, samples...)
	size := 0
	for i := range s.group {
		size += len(s.group[i].Data)
	}
	if size > maxVideoBytes {
		s.group = nil
	}
}

// pausesAt is where a segment of the first n pictures ends, the next one being decoded at `until`: before that where a
// pause would make it too long, so that the last picture is held.
func (s *streamer) pausesAt(n int, until int64) int64 {
	v := s.video
	first, last := v.samples[0], v.samples[n-1]
	if s.freeze == nil || !first.idr || float64(until-first.dts) <= s.longest*v.scale() {
		return until
	}
	long, shown := v.at(1.0/25), last.pts
	if n > 1 {
		long = min(last.dts-v.samples[n-2].dts, v.at(1))
	}
	for _, x := range v.samples[:n] {
		shown = max(shown, x.pts)
	}
	stop := max(last.dts+long, shown-s.delay+long, first.dts+v.at(wanted.Seconds()))
	if until-stop < v.at(eager) {
		return until
	}
	return stop
}

// freezeUntil has the last picture stand from one decoding time to another, in segments of equal length. The last of
// them ends at border, in seconds.
func (s *streamer) freezeUntil(from, until int64, border float64) error {
	v := s.video
	held, err := s.freeze.last(v.entry, v.init, s.group, s.delay)
	if err != nil {
		return err
	}
	n := len(s.timeline.Rendition(v.rendition.ID).Inits)
	key := s.prefix + v.rendition.ID + "/held-" + strconv.Itoa(n)
	held.init.Object = key + ".mp4"
	s.objects = append(s.objects, Object{held.init.Object, held.header}, Object{key + ".m4s", held.fragment})
	s.pending = append(s.pending, timeline.Entry{Init: &held.init})
	count := max(int64(math.Ceil(float64(until-from)/v.scale()/wanted.Seconds()-1e-6)), 1)
	for k := range count {
		at, to := from+(until-from)*k/count, from+(until-from)*(k+1)/count
		end := float64(to+s.delay) / v.scale()
		if k+1 == count {
			end = border
		}
		chunks := []timeline.Chunk{held.chunk(v.rendition.ID, n, key+".m4s", at, to)}
		if s.audio != nil {
			chunks = append(chunks, s.soundUpTo(end))
		}
		if err := s.out(end, chunks); err != nil {
			return err
		}
	}
	return nil
}
