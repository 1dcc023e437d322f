package clip

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// sets are the parameter sets of H.264 by the recording's init segments.
type sets struct{ byInit map[int]*mixed }

// mixed are a recording's parameter sets with those of what is encoded beside it: both have IDs of their own, so one
// init segment serves both and no decoder is set up again.
type mixed struct {
	entry    []byte // the recording's sample entry
	sps, pps [][]byte
	length   int // bytes in front of a NAL unit
	id       int // of the encoder's sets
	ours     []byte
	merged   bool
}

// mostSets is how many SPS there may be.
const mostSets = 32

// of reads a sample entry and finds an ID that its sets leave free.
func (s *sets) of(n int, entry []byte) (*mixed, error) {
	if m := s.byInit[n]; m != nil {
		return m, nil
	}
	m := &mixed{entry: entry}
	var err error
	if m.sps, m.pps, m.length, err = h264.ParseAVCC(avcC(entry)); err != nil {
		return nil, fmt.Errorf("read sample entry: %w", err)
	}
	if len(m.sps) == 0 || len(m.pps) == 0 {
		return nil, fmt.Errorf("%w: its parameter sets are not in the init segment", ErrCodec)
	}
	taken := map[int]bool{}
	for _, set := range slices.Concat(m.sps, m.pps) {
		taken[h264.SetID(set)] = true
	}
	for m.id = 1; taken[m.id] && m.id < mostSets-1; {
		m.id++
	}
	s.byInit[n] = m
	return m, nil
}

func avcC(entry []byte) []byte {
	const head = 8 + 78
	if len(entry) < head {
		return nil
	}
	return bmff.Find(entry[head:], "avcC")
}

// adapt gives the index of the init segment that encoded pictures play with and merged where that is the recording's,
// which then has their parameter sets as well; none: they need one of their own.
func (rc *renditionCut) adapt(ctx context.Context, entry []byte) (n int, merged bool, err error) {
	if rc.format.codec != frame.H264 {
		return none, false, nil
	}
	whole, err := rc.sets.byInit[rc.format.n].merge(rc.format.init, entry)
	if err != nil || whole == nil {
		return none, false, err
	}
	return rc.format.n, true, rc.storeInit(ctx, rc.format.n, whole)
}

// ownInit makes an init segment for encoded pictures alone.
func (rc *renditionCut) ownInit(ctx context.Context, entry []byte) (int, error) {
	own, err := cmaf.WithEntry(rc.format.init, entry)
	if err != nil {
		return 0, fmt.Errorf("make init segment: %w", err)
	}
	in := rc.src.Inits[rc.format.n]
	if name := cmaf.CodecName(entry); name != "" {
		in.Codec = name
	}
	rc.out.Inits = append(rc.out.Inits, in)
	return len(rc.out.Inits) - 1, rc.storeInit(ctx, len(rc.out.Inits)-1, own)
}

// storeInit keeps an init segment in the place of the recording's.
func (rc *renditionCut) storeInit(ctx context.Context, n int, data []byte) error {
	in := &rc.out.Inits[n]
	in.Object, in.Hash = rc.prefix+rc.src.ID+"/init-"+strconv.Itoa(n)+".mp4", ""
	if err := rc.Put(ctx, in.Object, data); err != nil {
		return fmt.Errorf("store init segment: %w", err)
	}
	return nil
}

// merge is the recording's init segment with the encoder's parameter sets; nil when they don't go together.
func (m *mixed) merge(init, entry []byte) ([]byte, error) {
	record := avcC(entry)
	sps, pps, length, err := h264.ParseAVCC(record)
	if err != nil {
		return nil, fmt.Errorf("read encoder's sample entry: %w", err)
	}
	if len(sps) != 1 || len(pps) != 1 || length != m.length || h264.SetID(sps[0]) != m.id ||
		h264.SetID(pps[0]) != m.id {
		return nil, nil
	}
	theirs, mine := m.sps[0], sps[0]
	if mine[1] != theirs[1] || mine[3] > theirs[3] || !sameShape(theirs, mine) ||
		m.merged && !bytes.Equal(m.ours, record) {
		return nil, nil
	}
	all, err := h264.AppendAVCC(nil, theirs, m.pps[0], slices.Concat(m.sps[1:], m.pps[1:], sps, pps)...)
	if err != nil {
		return nil, nil //nolint:nilerr // too many of them: they get an init segment of their own
	}
	whole, err := cmaf.WithAVCC(m.entry, all)
	if err != nil {
		return nil, fmt.Errorf("merge sample entries: %w", err)
	}
	m.ours, m.merged = record, true
	return cmaf.WithEntry(init, whole)
}

// sameShape reports whether pictures of two SPS have the same size and samples.
func sameShape(a, b []byte) bool {
	x, err := h264.Info(a)
	y, err2 := h264.Info(b)
	return err == nil && err2 == nil && x.Width == y.Width && x.Height == y.Height &&
		x.ChromaFormat == y.ChromaFormat &&
		x.BitDepth == y.BitDepth && x.BitDepthChroma == y.BitDepthChroma &&
		x.PARWidth*y.PARHeight == y.PARWidth*x.PARHeight
}
