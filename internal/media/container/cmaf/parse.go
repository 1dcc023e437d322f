package cmaf

import (
	"fmt"
	"math"

	"millrace/internal/media/container/bmff"
)

// Fragment is one track's samples of one movie fragment.
type Fragment struct {
	TrackID uint32
	// BaseMediaDecodeTime is the first sample's DTS, Duration the sum of the samples', both in ticks of the track.
	BaseMediaDecodeTime, Duration uint64
	// Samples share the memory that was parsed.
	Samples []Sample
	// Offset of the moof box and Size of moof and mdat together, in bytes.
	Offset, Size int
}

// maxFragmentSamples bounds what one moof may claim: a minute of audio frames has 3000 samples.
const maxFragmentSamples = 1 << 20

// Whole returns how many bytes of what was parsed end with a whole fragment.
func Whole(fragments []Fragment) int {
	if len(fragments) == 0 {
		return 0
	}
	last := fragments[len(fragments)-1]
	return last.Offset + last.Size
}

// ParseFragments reads the movie fragments in b; boxes of other kinds between them are passed over, the defaults of a
// moov are heeded. A tail that is cut off is no error: what stands whole before it is returned, and Whole tells where
// it ends. Bytes that are no fragments are bmff.ErrMalformed, and the fragments before them are returned with it.
// Several tracks in one moof give as many fragments with the same place.
func ParseFragments(b []byte) ([]Fragment, error) {
	p := parser{data: b, next: map[uint32]uint64{}}
	for len(b)-p.at >= 8 {
		h, err := bmff.ParseHeader(b[p.at:])
		if err != nil && len(b)-p.at >= 16 {
			return p.out, fmt.Errorf("at byte %d: %w", p.at, err)
		}
		if err != nil || h.Size == 0 || h.Size > uint64(len(b)-p.at) {
			if h.Size == 0 && h.Type == (bmff.FourCC{}) && err == nil {
				return p.out, bmff.Malformed("zeros from byte %d on", p.at)
			}
			return p.out, nil // a cut tail; a box "to the end" is one too, nobody knows its end
		}
		if err := p.box(h); err != nil {
			return p.out, fmt.Errorf("at byte %d: %w", p.at, err)
		}
		p.at += int(h.Size)
	}
	return p.out, nil
}

type parser struct {
	data     []byte
	at       int
	moof     int // where the last moof began, valid with hasMoof
	moofBody []byte
	hasMoof  bool
	defaults map[uint32]bmff.Defaults
	next     map[uint32]uint64 // decode time after each track's last sample
	out      []Fragment
}

func (p *parser) box(h bmff.Header) error {
	body := p.data[p.at+h.Len : p.at+int(h.Size)]
	switch {
	case h.Type.Is("moov"):
		p.defaults = bmff.ParseDefaults(bmff.Find(body, "mvex"))
	case h.Type.Is("moof"):
		p.moof, p.moofBody, p.hasMoof = p.at, body, true
	case h.Type.Is("mdat") && p.hasMoof:
		p.hasMoof = false
		end := p.at + int(h.Size)
		m := bmff.Moof{
			Body:       p.moofBody,
			Start:      int64(p.moof),
			MaxSamples: min(end-p.moof, maxFragmentSamples),
			Defaults:   p.defaults,
		}
		fragments, err := cut(m, p.data[p.moof:end], int64(p.moof), p.next)
		if err != nil {
			return err
		}
		for i := range fragments {
			fragments[i].Offset, fragments[i].Size = p.moof, end-p.moof
		}
		p.out = append(p.out, fragments...)
	}
	return nil
}

// cut makes fragments from a moof and the bytes its samples lie in. data begins at byte start of the file or stream.
func cut(m bmff.Moof, data []byte, start int64, next map[uint32]uint64) ([]Fragment, error) {
	runs, err := m.Runs()
	if err != nil {
		return nil, err
	}
	out := make([]Fragment, 0, len(runs))
	for _, run := range runs {
		if run.BaseTime < 0 {
			return nil, bmff.Malformed("track %d: decode time out of range", run.TrackID)
		}
		f := Fragment{TrackID: run.TrackID, Samples: make([]Sample, len(run.Samples))}
		f.BaseMediaDecodeTime = uint64(run.BaseTime)
		if !run.HasTime {
			f.BaseMediaDecodeTime = next[run.TrackID]
		}
		for i, s := range run.Samples {
			from, to := s.Offset-start, s.Offset-start+int64(s.Size)
			if from < 0 || to > int64(len(data)) {
				return nil, bmff.Malformed("track %d: sample %d of a fragment lies outside of it", run.TrackID, i)
			}
			f.Samples[i] = Sample{
				Duration:          s.Duration,
				CompositionOffset: s.CompositionOffset,
				Sync:              s.Sync,
				Data:              data[from:to:to],
			}
			f.Duration += uint64(s.Duration)
		}
		if f.BaseMediaDecodeTime+f.Duration > math.MaxInt64 {
			return nil, bmff.Malformed("track %d: decode time out of range", run.TrackID)
		}
		if _, known := next[run.TrackID]; known || len(next) < maxTracks {
			next[run.TrackID] = f.BaseMediaDecodeTime + f.Duration
		}
		out = append(out, f)
	}
	return out, nil
}
