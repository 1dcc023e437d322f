package clip

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"golang.org/x/sync/errgroup"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

const (
	// seamless is how many packets are encoded at most to find a place where the recording's own go on without a trace.
	seamless = 48
	// warm is how many packets are encoded in front of the ones that are kept.
	warm = 4
)

// sound cuts a rendition of sound. AAC-LC keeps its packets' grid: of the packet in which the clip begins only what
// belongs to the clip is heard, and a silent one stands in front of it, as decoding needs the one before; the end
// alike. Other codecs are cut between packets.
func (y *renditionCut) sound(ctx context.Context) error {
	all, err := y.packets(ctx)
	if err != nil {
		return err
	}
	from, to := y.ticks(y.from), y.ticks(y.to)
	x := &audioCut{renditionCut: y, all: all}
	x.atStart = y.whole && y.a == 0
	x.atEnd = y.b == len(y.src.Chunks)-1 && y.to >= y.border(y.b+1)-snap
	if err = x.setUp(ctx); err != nil {
		return err
	}
	if x.exact {
		err = x.cutExactly(ctx, from, to)
	} else {
		x.cutBetween(from, to)
	}
	if err != nil {
		return err
	}
	return x.keep(ctx, to)
}

// packets reads the sound around the two ends, in order.
func (y *renditionCut) packets(ctx context.Context) ([]sample, error) {
	var all []sample
	for i := y.a - 1; i <= y.b; i++ {
		if i > y.a+1 && i < y.b-1 { // in the middle
			continue
		}
		if i < y.a && !y.continues(y.a) || y.src.Chunks[i].Gap {
			continue
		}
		got, err := y.read(ctx, i)
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

// audioCut is the sound around the ends of a clip.
type audioCut struct {
	*renditionCut
	all            []sample
	atStart, atEnd bool // nothing is cut there
	exact          bool
	init           []byte
	config         frame.Config
}

// setUp finds out whether packets can be cut into.
func (x *audioCut) setUp(ctx context.Context) error {
	if len(x.all) == 0 {
		return nil
	}
	n := x.src.Chunks[x.all[0].chunk].Init
	for _, s := range x.all {
		if x.src.Chunks[s.chunk].Init != n {
			return nil
		}
	}
	var err error
	if x.init, err = x.Source(x.src).Init(ctx, n); err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	moov := bmff.Find(x.init, "moov", "trak")
	t, err := bmff.ParseTrack(moov)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	c, err := bmff.ParseEntry(t.Entries[0])
	if err != nil {
		return nil //nolint:nilerr // of another codec
	}
	x.config = c.Config
	p, err := aac.Parse(c.Config.ASC)
	usual := aac.LC(p.SampleRate, p.Channels)
	x.exact = err == nil && p.ObjectType == aac.ObjectLC && p.SamplesPerFrame == packet && len(usual) > 0 && bytes.HasPrefix(c.Config.ASC, usual)
	return nil
}

// packet is how many samples a packet of AAC-LC has.
const packet = 1024

// cutBetween keeps the packets whose larger part is heard.
func (x *audioCut) cutBetween(from, to int64) {
	var kept []sample
	for _, s := range x.all {
		middle := s.pts + int64(s.Duration)/2
		if !x.atStart && middle < from || !x.atEnd && middle >= to {
			continue
		}
		kept = append(kept, s)
	}
	x.all = kept
}

func (x *audioCut) cutExactly(ctx context.Context, from, to int64) error {
	first, last := 0, len(x.all)-1
	for first < last && x.all[first].pts+int64(x.all[first].Duration) <= from {
		first++
	}
	for last > first && x.all[last].pts >= to {
		last--
	}
	if len(x.all) == 0 {
		return nil
	}
	front := !x.atStart && x.all[first].pts <= from
	back := !x.atEnd && x.all[last].pts+int64(x.all[last].Duration) > to
	if x.atStart {
		first = 0
	}
	x.all = x.all[:last+1]
	if front && back && last-first < 2*seamless && x.unbroken(first, last) {
		return x.encodeBoth(ctx, first, last, from, to)
	}
	// The two ends are made side by side, and put in place one after the other.
	var begin, end func()
	group, together := errgroup.WithContext(ctx)
	if front {
		group.Go(func() (err error) {
			begin, err = x.encodeFront(together, first, from)
			return err
		})
	}
	if back {
		group.Go(func() (err error) {
			end, err = x.encodeBack(together, last, to)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if back {
		end()
	}
	if front {
		begin()
	} else {
		x.all = x.all[first:]
	}
	return nil
}

// unbroken reports whether the packets [first, last] follow one another.
func (x *audioCut) unbroken(first, last int) bool {
	for i := first + 1; i <= last; i++ {
		if x.all[i].chunk > x.all[i-1].chunk+1 || x.all[i].chunk != x.all[i-1].chunk && !x.continues(x.all[i].chunk) {
			return false
		}
	}
	return true
}

// samples is how many samples of sound there are from the beginning of packet i to a time.
func (x *audioCut) samples(i int, at int64) int {
	n := math.Round(float64(at-x.all[i].pts) * float64(x.config.SampleRate) / float64(x.src.Timescale))
	return int(min(max(n, 0), packet))
}

// encodeFront silences what comes before from in packet `first`, and puts a silent packet in front of it.
func (x *audioCut) encodeFront(ctx context.Context, first int, from int64) (place func(), err error) {
	until := first
	for until < len(x.all)-1 && until < first+seamless+2 && x.unbroken(until, until+1) {
		until++
	}
	ours, err := x.encode(ctx, first, until, x.samples(first, from), none)
	if err != nil {
		return nil, err
	}
	seam := max(until-2, first)
	for j := first; j < seam; j++ {
		if x.alike(j, ours[j-first+1]) {
			seam = j
			break
		}
	}
	return func() {
		x.replace(first, seam, ours[1:])
		x.all = append([]sample{x.silent(first, ours[0])}, x.all[first:]...)
	}, nil
}

// silent is the packet in front of packet `first`.
func (x *audioCut) silent(first int, data []byte) sample {
	s := x.all[first]
	s.pts, s.dts = s.pts-int64(s.Duration), s.dts-int64(s.Duration)
	s.Data, s.changed, s.chunk = data, true, max(s.chunk, x.a)
	return s
}

// encodeBack silences what comes from `to` on in packet `last`.
func (x *audioCut) encodeBack(ctx context.Context, last int, to int64) (place func(), err error) {
	from := last
	for from > 0 && from > last-seamless-warm && x.unbroken(from-1, from) {
		from--
	}
	ours, err := x.encode(ctx, from, last, none, (last-from)*packet+x.samples(last, to))
	if err != nil {
		return nil, err
	}
	seam := max(last-2, from)
	for j := last - 2; j >= from+warm; j-- {
		if x.alike(j, ours[j-from+1]) {
			seam = j
			break
		}
	}
	return func() { x.replace(min(seam+1, last), last, ours[min(seam+1, last)-from+1:]) }, nil
}

// encodeBoth makes all of a short clip.
func (x *audioCut) encodeBoth(ctx context.Context, first, last int, from, to int64) error {
	ours, err := x.encode(ctx, first, last, x.samples(first, from), (last-first)*packet+x.samples(last, to))
	if err != nil {
		return err
	}
	x.replace(first, last, ours[1:])
	x.all = append([]sample{x.silent(first, ours[0])}, x.all[first:last+1]...)
	return nil
}

func (x *audioCut) replace(first, last int, ours [][]byte) {
	for i := first; i <= last; i++ {
		x.all[i].Data, x.all[i].changed = ours[i-first], true
	}
}

// alike reports whether packet i and the one that was made of it fade out in the same way: either can be followed by
// the next of the other.
func (x *audioCut) alike(i int, ours []byte) bool {
	a, ok := aac.WindowOf(x.all[i].Data)
	b, ok2 := aac.WindowOf(ours)
	return ok && ok2 && a == b && a.Long
}

// encode makes the packets [first, last] again, with one in front of them. What is heard is cut at sample `mute` and at
// sample `end`, which count from packet `first`; none: it is not cut there.
func (x *audioCut) encode(ctx context.Context, first, last, mute, end int) ([][]byte, error) {
	lead := 0 // decoded in front: a packet's sound needs the one before
	for lead < 2 && first-lead > 0 && x.unbroken(first-lead-1, first-lead) {
		lead++
	}
	samples := make([]cmaf.Sample, 0, last-first+1+lead)
	for _, s := range x.all[first-lead : last+1] {
		samples = append(samples, s.Sample)
	}
	a := encode.SoundCut{Channels: x.config.Channels, Samples: len(samples) * packet}
	if mute != none {
		a.Mute = mute + lead*packet
	}
	if end != none {
		a.End = end + lead*packet
	}
	fragment := cmaf.AppendFragment(nil, 1, cmaf.TrackID, 0, samples)
	var made [][]byte
	err := x.Encoder.CutSound(ctx, a, func(w io.Writer) error {
		if _, err := w.Write(x.init); err != nil {
			return err // the engine says what was written
		}
		_, err := w.Write(fragment)
		return err
	}, func(r io.Reader) error {
		var err error
		made, err = readADTS(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(made) < len(samples)+1 {
		return nil, fmt.Errorf("the encoder gave %d packets of %d", len(made)-1, len(samples))
	}
	return made[lead : len(samples)+1], nil
}

// maxSound bounds what an encoder gives for a cut, in bytes.
const maxSound = 16 << 20

func readADTS(r io.Reader) ([][]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxSound))
	if err != nil {
		return nil, fmt.Errorf("read encoder: %w", err)
	}
	var out [][]byte
	for len(b) > 0 {
		h, err := aac.ParseADTS(b)
		if err != nil || h.Size > len(b) {
			return nil, fmt.Errorf("read encoder: %w", err)
		}
		out, b = append(out, b[h.Header:h.Size:h.Size]), b[h.Size:]
	}
	return out, nil
}

// keep stores the chunks that differ from the recording's.
func (x *audioCut) keep(ctx context.Context, to int64) error {
	left := map[int][]sample{}
	for _, s := range x.all {
		left[max(s.chunk, x.a)] = append(left[max(s.chunk, x.a)], s)
	}
	for i := x.a; i <= x.b; i++ {
		c := x.src.Chunks[i]
		if i > x.a+1 && i < x.b-1 {
			continue
		}
		if c.Gap {
			x.shortenGap(i, to)
			continue
		}
		if err := x.keepChunk(ctx, i, left[i], to); err != nil {
			return err
		}
	}
	return nil
}

func (x *audioCut) keepChunk(ctx context.Context, i int, kept []sample, to int64) error {
	c := x.src.Chunks[i]
	if len(kept) == 0 {
		c.Gap, c.Size, c.Object, c.From, c.To, c.Lead, c.Init = true, 0, "", 0, 0, 0, 0
		x.made[i] = c
		x.shortenGap(i, to)
		return nil
	}
	last := kept[len(kept)-1]
	end := last.dts + int64(last.Duration)
	if same := kept[0].dts == c.Time && end == c.Time+c.Duration; same {
		for _, s := range kept {
			same = same && !s.changed
		}
		if same {
			return nil
		}
	}
	samples := make([]cmaf.Sample, len(kept))
	for k := range kept {
		samples[k] = kept[k].Sample
	}
	c.Time, c.Duration, c.Independent = kept[0].dts, end-kept[0].dts, true
	return x.store(ctx, i, c, samples)
}

// shortenGap cuts a chunk without sound.
func (x *audioCut) shortenGap(i int, to int64) {
	from, until := int64(none), int64(none)
	if i == x.a {
		from = x.ticks(x.from)
	}
	if i == x.b {
		until = to
	}
	x.shorten(i, from, until)
}
