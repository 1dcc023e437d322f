package mp4

import (
	"fmt"

	"millrace/internal/media/container/bmff"
)

// fragments collects a track's samples from moofs.
type fragments struct {
	track   *Track
	next    int64 // decoding time after the last sample
	allSync bool
}

// newFragments goes on behind the samples, if any, that the moov has.
func newFragments(t *Track) *fragments {
	f := &fragments{track: t, allSync: t.samples.sync == nil}
	s := &t.samples
	n := len(s.sizes)
	if n > 0 {
		f.next = s.dtsAt(n-1) + int64(s.last)
	}
	if s.dts == nil { // unpack what compact packed
		for i := range n {
			s.dts = append(s.dts, s.first+int64(i)*int64(s.step))
		}
	}
	return f
}

// fragment reads a moof; it is taken in when it is known how far its data may reach.
func (ix *indexer) fragment(h bmff.Header, at, body int64, cut bool) error {
	if ix.fragments == nil {
		if ix.hasMoov {
			return nil
		}
		return bmff.Malformed("it begins with a fragment, its header is missing")
	}
	if cut {
		ix.file.Truncated = true
		return nil
	}
	if err := ix.addMoof(at, false); err != nil {
		return err
	}
	if ix.moofTotal += body; body > maxMoof || ix.moofTotal > maxMoofTotal {
		return fmt.Errorf("%w: its fragments' headers are too large", ErrUnsupported)
	}
	b, err := ix.bytes(at+int64(h.Len), body)
	ix.moof, ix.moofAt = b, at
	return err
}

// addMoof adds the samples of the moof that was read last; the next one begins at end. A last fragment that the file
// does not hold whole is left out.
func (ix *indexer) addMoof(end int64, last bool) error {
	if ix.moof == nil {
		return nil
	}
	m := bmff.Moof{
		Body:       ix.moof,
		Start:      ix.moofAt,
		MaxSamples: int(min(end-ix.moofAt, int64(ix.left))),
		Defaults:   ix.defaults,
	}
	ix.moof = nil
	runs, err := m.Runs()
	if err != nil {
		return fmt.Errorf("fragment at byte %d: %w", ix.moofAt, err)
	}
	for _, run := range runs {
		for i, s := range run.Samples {
			if s.Offset >= 0 && s.Offset+int64(s.Size) <= ix.size {
				continue
			}
			if last {
				ix.file.Truncated = true
				return nil
			}
			return fmt.Errorf("%w: fragment at byte %d, track %d: sample %d would lie beyond its end", ErrTruncated,
				ix.moofAt, run.TrackID, i+1)
		}
	}
	for _, run := range runs {
		f := ix.fragments[run.TrackID]
		if f == nil {
			continue
		}
		ix.left -= len(run.Samples)
		if err := f.add(run); err != nil {
			return fmt.Errorf("fragment at byte %d: track %d: %w", ix.moofAt, run.TrackID, err)
		}
	}
	return nil
}

func (f *fragments) add(run bmff.TrackRun) error {
	if len(run.Samples) == 0 {
		return nil
	}
	if run.Description != 0 && run.Description != f.track.description {
		return fmt.Errorf(
			"%w: its samples have several descriptions, the codec's parameters change inside of the track",
			ErrUnsupported)
	}
	s := &f.track.samples
	now := f.next
	if run.HasTime {
		now = run.BaseTime
	}
	if n := len(s.dts); n > 0 && now < s.dts[n-1] {
		return bmff.Malformed("decoding times go backwards")
	}
	for _, x := range run.Samples {
		i := len(s.sizes)
		s.offsets, s.sizes, s.dts = append(s.offsets, x.Offset), append(s.sizes, x.Size), append(s.dts, now)
		if s.cts == nil && x.CompositionOffset != 0 {
			s.cts = make([]int32, i, cap(s.sizes))
		}
		if s.cts != nil {
			s.cts = append(s.cts, x.CompositionOffset)
		}
		if f.allSync && !x.Sync {
			f.allSync = false
			s.noSync(i)
			for k := range i {
				s.setSync(k)
			}
		}
		if !f.allSync && x.Sync {
			s.setSync(i)
		}
		now += int64(x.Duration)
		s.last = x.Duration
	}
	f.next = now
	return nil
}

func (f *fragments) finish() {
	s := &f.track.samples
	if !f.allSync {
		for (len(s.sizes)+63)/64 > len(s.sync) {
			s.sync = append(s.sync, 0)
		}
	}
	s.compact()
}
