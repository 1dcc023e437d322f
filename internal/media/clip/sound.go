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
func (rc *renditionCut) sound(ctx context.Context) error {
	all, err := rc.packets(ctx)
	if err != nil {
		return err
	}
	from, to := rc.ticks(rc.from), rc.ticks(rc.to)
	x := &audioCut{renditionCut: rc, all: all}
	x.atStart = rc.whole && rc.a == 0
	x.atEnd = rc.b == len(rc.src.Chunks)-1 && rc.to >= rc.border(rc.b+1)-snap
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
func (rc *renditionCut) packets(ctx context.Context) ([]sample, error) {
	var all []sample
	for i := rc.a - 1; i <= rc.b; i++ {
		if i > rc.a+1 && i < rc.b-1 { // in the middle
			continue
		}
		if i < rc.a && !rc.continues(rc.a) || rc.src.Chunks[i].Gap {
			continue
		}
		got, err := rc.read(ctx, i)
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
func (ac *audioCut) setUp(ctx context.Context) error {
	if len(ac.all) == 0 {
		return nil
	}
	n := ac.src.Chunks[ac.all[0].chunk].Init
	for _, s := range ac.all {
		if ac.src.Chunks[s.chunk].Init != n {
			return nil
		}
	}
	var err error
	if ac.init, err = ac.Source(ac.src).Init(ctx, n); err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	moov := bmff.Find(ac.init, "moov", "trak")
	t, err := bmff.ParseTrack(moov)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	c, err := bmff.ParseEntry(t.Entries[0])
	if err != nil {
		return nil //nolint:nilerr // of another codec
	}
	ac.config = c.Config
	p, err := aac.Parse(c.Config.ASC)
	usual := aac.LC(p.SampleRate, p.Channels)
	ac.exact = err == nil && p.ObjectType == aac.ObjectLC && p.SamplesPerFrame == packet && len(usual) > 0 &&
		bytes.HasPrefix(c.Config.ASC, usual)
	return nil
}

// packet is how many samples a packet of AAC-LC has.
const packet = 1024

// cutBetween keeps the packets whose larger part is heard.
func (ac *audioCut) cutBetween(from, to int64) {
	var kept []sample
	for _, s := range ac.all {
		middle := s.pts + int64(s.Duration)/2
		if !ac.atStart && middle < from || !ac.atEnd && middle >= to {
			continue
		}
		kept = append(kept, s)
	}
	ac.all = kept
}

func (ac *audioCut) cutExactly(ctx context.Context, from, to int64) error {
	first, last := 0, len(ac.all)-1
	for first < last && ac.all[first].pts+int64(ac.all[first].Duration) <= from {
		first++
	}
	for last > first && ac.all[last].pts >= to {
		last--
	}
	if len(ac.all) == 0 {
		return nil
	}
	front := !ac.atStart && ac.all[first].pts <= from
	back := !ac.atEnd && ac.all[last].pts+int64(ac.all[last].Duration) > to
	if ac.atStart {
		first = 0
	}
	ac.all = ac.all[:last+1]
	if front && back && last-first < 2*seamless && ac.unbroken(first, last) {
		return ac.encodeBoth(ctx, first, last, from, to)
	}
	// The two ends are made side by side, and put in place one after the other.
	var begin, end func()
	group, together := errgroup.WithContext(ctx)
	if front {
		group.Go(func() (err error) {
			begin, err = ac.encodeFront(together, first, from)
			return err
		})
	}
	if back {
		group.Go(func() (err error) {
			end, err = ac.encodeBack(together, last, to)
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
		ac.all = ac.all[first:]
	}
	return nil
}

// unbroken reports whether the packets [first, last] follow one another.
func (ac *audioCut) unbroken(first, last int) bool {
	for i := first + 1; i <= last; i++ {
		if ac.all[i].chunk > ac.all[i-1].chunk+1 ||
			ac.all[i].chunk != ac.all[i-1].chunk && !ac.continues(ac.all[i].chunk) {
			return false
		}
	}
	return true
}

// samples is how many samples of sound there are from the beginning of packet i to a time.
func (ac *audioCut) samples(i int, at int64) int {
	n := math.Round(float64(at-ac.all[i].pts) * float64(ac.config.SampleRate) / float64(ac.src.Timescale))
	return int(min(max(n, 0), packet))
}

// encodeFront silences what comes before from in packet `first`, and puts a silent packet in front of it.
func (ac *audioCut) encodeFront(ctx context.Context, first int, from int64) (place func(), err error) {
	until := first
	for until < len(ac.all)-1 && until < first+seamless+2 && ac.unbroken(until, until+1) {
		until++
	}
	ours, err := ac.encode(ctx, first, until, ac.samples(first, from), none)
	if err != nil {
		return nil, err
	}
	seam := max(until-2, first)
	for j := first; j < seam; j++ {
		if ac.alike(j, ours[j-first+1]) {
			seam = j
			break
		}
	}
	return func() {
		ac.replace(first, seam, ours[1:])
		ac.all = append([]sample{ac.silent(first, ours[0])}, ac.all[first:]...)
	}, nil
}

// silent is the packet in front of packet `first`.
func (ac *audioCut) silent(first int, data []byte) sample {
	s := ac.all[first]
	s.pts, s.dts = s.pts-int64(s.Duration), s.dts-int64(s.Duration)
	s.Data, s.changed, s.chunk = data, true, max(s.chunk, ac.a)
	return s
}

// encodeBack silences what comes from `to` on in packet `last`.
func (ac *audioCut) encodeBack(ctx context.Context, last int, to int64) (place func(), err error) {
	from := last
	for from > 0 && from > last-seamless-warm && ac.unbroken(from-1, from) {
		from--
	}
	ours, err := ac.encode(ctx, from, last, none, (last-from)*packet+ac.samples(last, to))
	if err != nil {
		return nil, err
	}
	seam := max(last-2, from)
	for j := last - 2; j >= from+warm; j-- {
		if ac.alike(j, ours[j-from+1]) {
			seam = j
			break
		}
	}
	return func() { ac.replace(min(seam+1, last), last, ours[min(seam+1, last)-from+1:]) }, nil
}

// encodeBoth makes all of a short clip.
func (ac *audioCut) encodeBoth(ctx context.Context, first, last int, from, to int64) error {
	ours, err := ac.encode(ctx, first, last, ac.samples(first, from), (last-first)*packet+ac.samples(last, to))
	if err != nil {
		return err
	}
	ac.replace(first, last, ours[1:])
	ac.all = append([]sample{ac.silent(first, ours[0])}, ac.all[first:last+1]...)
	return nil
}

func (ac *audioCut) replace(first, last int, ours [][]byte) {
	for i := first; i <= last; i++ {
		ac.all[i].Data, ac.all[i].changed = ours[i-first], true
	}
}

// alike reports whether packet i and the one that was made of it fade out in the same way: either can be followed by
// the next of the other.
func (ac *audioCut) alike(i int, ours []byte) bool {
	a, ok := aac.WindowOf(ac.all[i].Data)
	b, ok2 := aac.WindowOf(ours)
	return ok && ok2 && a == b && a.Long
}

// encode makes the packets [first, last] again, with one in front of them. What is heard is cut at sample `mute` and at
// sample `end`, which count from packet `first`; none: it is not cut there.
func (ac *audioCut) encode(ctx context.Context, first, last, mute, end int) ([][]byte, error) {
	lead := 0 // decoded in front: a packet's sound needs the one before
	for lead < 2 && first-lead > 0 && ac.unbroken(first-lead-1, first-lead) {
		lead++
	}
	samples := make([]cmaf.Sample, 0, last-first+1+lead)
	for _, s := range ac.all[first-lead : last+1] {
		samples = append(samples, s.Sample)
	}
	a := encode.SoundCut{Channels: ac.config.Channels, Samples: len(samples) * packet}
	if mute != none {
		a.Mute = mute + lead*packet
	}
	if end != none {
		a.End = end + lead*packet
	}
	fragment := cmaf.AppendFragment(nil, 1, cmaf.TrackID, 0, samples)
	var made [][]byte
	err := ac.Encoder.CutSound(ctx, a, func(w io.Writer) error {
		if _, err := w.Write(ac.init); err != nil {
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
func (ac *audioCut) keep(ctx context.Context, to int64) error {
	left := map[int][]sample{}
	for _, s := range ac.all {
		left[max(s.chunk, ac.a)] = append(left[max(s.chunk, ac.a)], s)
	}
	for i := ac.a; i <= ac.b; i++ {
		c := ac.src.Chunks[i]
		if i > ac.a+1 && i < ac.b-1 {
			continue
		}
		if c.Gap {
			ac.shortenGap(i, to)
			continue
		}
		if err := ac.keepChunk(ctx, i, left[i], to); err != nil {
			return err
		}
	}
	return nil
}

func (ac *audioCut) keepChunk(ctx context.Context, i int, kept []sample, to int64) error {
	c := ac.src.Chunks[i]
	if len(kept) == 0 {
		c.Gap, c.Size, c.Object, c.From, c.To, c.Lead, c.Init = true, 0, "", 0, 0, 0, 0
		ac.made[i] = c
		ac.shortenGap(i, to)
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
	return ac.store(ctx, i, c, samples)
}

// shortenGap cuts a chunk without sound.
func (ac *audioCut) shortenGap(i int, to int64) {
	from, until := int64(none), int64(none)
	if i == ac.a {
		from = ac.ticks(ac.from)
	}
	if i == ac.b {
		until = to
	}
	ac.shorten(i, from, until)
}
