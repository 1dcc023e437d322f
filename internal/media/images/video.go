package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"millrace/internal/fault"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Video is what pictures are taken from.
type Video struct {
	// Name is what tells videos apart; Prefix is where what is made of it is kept, empty when it still grows: then
	// nothing is.
	Name, Prefix string
	Timeline     *timeline.Timeline
	Source       delivered.Source // its video
	// Chosen is the time of the picture that stands for the whole, in seconds; nil: the middle.
	Chosen *float64
	// Newest is the newest key frame of what is live now: which init segment it has, and the segment that begins with
	// it, which may be cut off. nil: it is not live. Short says that the newest picture stands for the whole.
	Newest func(context.Context) (init int, segment []byte, err error)
	Short  bool
}

// rendition is the video; nil: there is none.
func (v *Video) video() *timeline.Rendition { return v.Timeline.Rendition(timeline.MainVideo) }

// check says why there can't be pictures.
func (v *Video) check() error {
	if len(v.Timeline.Marks) == 0 {
		return fault.New(fault.NotReady, "there is no picture yet: ask again in a moment")
	}
	if v.video() == nil {
		return fault.New(fault.NotFound, "there is no video to take a picture from")
	}
	return nil
}

// seconds is the length of the video.
func (v *Video) seconds() float64 {
	spans := v.Timeline.Spans()
	return spans[len(spans)-1]
}

// at is the segment that is shown at a time, or the nearest one that has pictures; -1: none has.
func (v *Video) at(t float64) int {
	spans, l := v.Timeline.Spans(), v.video()
	i := min(max(0, sort.Search(len(spans), func(k int) bool { return spans[k] > t+slack })-1), len(l.Chunks)-1)
	for j := i; j >= 0; j-- {
		if !l.Chunks[j].Gap {
			return j
		}
	}
	for j := i + 1; j < len(l.Chunks); j++ {
		if !l.Chunks[j].Gap {
			return j
		}
	}
	return -1
}

// program is the video's time at a time of the wall clock, in seconds since 1970.
func (v *Video) program(name string, t float64) (float64, error) {
	spans := v.Timeline.Spans()
	for i, m := range v.Timeline.Marks {
		if m.Start.IsZero() {
			continue
		}
		start, long := float64(m.Start.UnixMilli())/1000, spans[i+1]-spans[i]
		if t >= start-slack && t < start+long+slack {
			return spans[i] + max(0, t-start), nil
		}
	}
	return 0, nothing(name)
}

func nothing(name string) error {
	return fault.New(fault.Invalid, "%s: there is nothing of that moment", name)
}

// since is where what came at a time of the wall clock, or next after it, begins in the video.
func (v *Video) since(name string, t float64) (float64, error) {
	spans := v.Timeline.Spans()
	for i, m := range v.Timeline.Marks {
		start := float64(m.Start.UnixMilli()) / 1000
		if !m.Start.IsZero() && t < start+spans[i+1]-spans[i]-slack {
			return spans[i] + max(0, t-start), nil
		}
	}
	return 0, nothing(name)
}

// until is where what came before a time of the wall clock ends in the video.
func (v *Video) until(name string, t float64) (float64, error) {
	spans := v.Timeline.Spans()
	for i, m := range slices.Backward(v.Timeline.Marks) {
		start := float64(m.Start.UnixMilli()) / 1000
		if !m.Start.IsZero() && t > start+slack {
			return min(spans[i]+t-start, spans[i+1]), nil
		}
	}
	return 0, nothing(name)
}

// moment is the time of the wall clock at which what is in front of a time of the video ends, in seconds since 1970.
func (v *Video) moment(at float64) float64 {
	spans := v.Timeline.Spans()
	for i, m := range slices.Backward(v.Timeline.Marks) {
		if !m.Start.IsZero() && at > spans[i]+slack {
			return milliseconds(float64(m.Start.UnixMilli())/1000 + at - spans[i])
		}
	}
	return math.Inf(1)
}

// unknown stands for the bytes of a segment that are not known.
const unknown = 8 << 20

// cost is about how many bytes it takes to make something: coded pictures, as they are read and as they are fed to a
// decoder; a decoded one, the same in the size and form that is asked for, and what that is encoded to.
func (v *Video) cost(p *Plan) int64 {
	l := v.video()
	at := p.at
	if p.Kind != Thumbnail {
		at = p.Start
	} else if math.IsNaN(at) {
		at = v.seconds()
	}
	coded, picture := int64(unknown), int64(4*encode.MaxSide*encode.MaxSide*9/16)
	if i := v.at(at); i >= 0 {
		c := &l.Chunks[i]
		if c.Size > 0 {
			coded = c.Size
		}
		if in := l.Inits[c.Init]; in.Width > 0 && in.Height > 0 {
			picture = min(4*int64(in.Width)*int64(in.Height), 4*encode.MaxSide*encode.MaxSide)
		}
	}
	switch p.Kind {
	case Animated:
		coded *= 1 + int64(p.length/max(v.Timeline.Duration().Seconds()/float64(len(l.Chunks)), 0.1))
		return 2*min(coded, 2*maxClip) + picture + maxImage/4
	case Storyboard:
		return picture + unknown + 3*4*tileSide*tileSide*manyTiles
	case Thumbnail:
	}
	return 2*coded + 3*picture
}

// sample is a picture in coded form, in ticks.
type sample struct {
	dts, pts int64
	cmaf.Sample

	idr      bool // of a key frame: nothing behind it refers to what is in front of it
	recovery int  // of another key frame: so many samples behind it pictures are as they should be
}

// samples are all pictures of a segment, in the order of decoding.
func (v *Video) samples(ctx context.Context, i int) ([]sample, error) {
	data, err := delivered.Bytes(v.Source.Segment(ctx, v.Timeline.First+int64(i)))
	if err != nil {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	fragments, err := cmaf.ParseFragments(data)
	if err != nil {
		return nil, fmt.Errorf("parse segment: %w", err)
	}
	var out []sample
	for _, x := range fragments {
		at := int64(x.BaseMediaDecodeTime)
		for _, s := range x.Samples {
			out = append(out, sample{dts: at, pts: at + int64(s.CompositionOffset), Sample: s})
			at += int64(s.Duration)
		}
	}
	return out, v.keys(ctx, i, out)
}

// head is the first picture of a segment; no more than that is read.
func (v *Video) head(ctx context.Context, i int) (cmaf.Sample, error) {
	b, err := v.Source.Segment(ctx, v.Timeline.First+int64(i))
	if err != nil {
		return cmaf.Sample{}, fmt.Errorf("open segment: %w", err)
	}
	r, _ := b.Open()
	defer func() { _ = r.Close() }() // it was only read
	return firstSample(r)
}

// maxHead bounds a moof box, maxPicture a coded picture, in bytes.
const maxHead, maxPicture = 16 << 20, 32 << 20

var errNoPicture = errors.New("the segment holds no picture")

// firstSample reads a segment up to the end of its first picture.
func firstSample(r io.Reader) (cmaf.Sample, error) {
	var moof []byte
	start := int64(0) // of the moof box
	for at := int64(0); ; {
		var head [16]byte
		if _, err := io.ReadFull(r, head[:8]); err != nil {
			return cmaf.Sample{}, fmt.Errorf("%w: %w", errNoPicture, err)
		}
		n := 8
		if head[3] == 1 && head[0]|head[1]|head[2] == 0 { // the size is in 64 bits
			n = 16
			if _, err := io.ReadFull(r, head[8:]); err != nil {
				return cmaf.Sample{}, fmt.Errorf("%w: %w", errNoPicture, err)
			}
		}
		h, err := bmff.ParseHeader(head[:n])
		if err != nil || h.Size < uint64(n) || !h.Type.Is("mdat") && h.Size > maxHead {
			return cmaf.Sample{}, fmt.Errorf("%w: %w", errNoPicture, err)
		}
		body := int64(h.Size) - int64(n)
		switch {
		case h.Type.Is("mdat"):
			return sampleIn(r, moof, start, at+int64(n))
		case h.Type.Is("moof"):
			moof, start = make([]byte, body), at
			_, err = io.ReadFull(r, moof)
		default:
			_, err = io.CopyN(io.Discard, r, body)
		}
		if err != nil {
			return cmaf.Sample{}, fmt.Errorf("%w: %w", errNoPicture, err)
		}
		at += int64(h.Size)
	}
}

// sampleIn reads the first picture that a moof box tells of; r is at the byte `at`, where its data begins.
func sampleIn(r io.Reader, moof []byte, start, at int64) (cmaf.Sample, error) {
	runs, err := bmff.Moof{Body: moof, Start: start, MaxSamples: max(len(moof), 1<<12)}.Runs()
	if err != nil || len(runs) == 0 || len(runs[0].Samples) == 0 {
		return cmaf.Sample{}, fmt.Errorf("%w: %w", errNoPicture, err)
	}
	s := runs[0].Samples[0]
	if s.Offset < at || s.Offset-at > delivered.MaxSize || int64(s.Size) > maxPicture || s.Size == 0 {
		return cmaf.Sample{}, errNoPicture
	}
	if _, err := io.CopyN(io.Discard, r, s.Offset-at); err != nil {
		return cmaf.Sample{}, fmt.Errorf("%w: %w", errNoPicture, err)
	}
	data := make([]byte, s.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		return cmaf.Sample{}, fmt.Errorf("%w: %w", errNoPicture, err)
	}
	return cmaf.Sample{Sync: s.Sync, Data: data}, nil
}

// clip is what a decoder is fed: an init segment, and pictures behind it.
type clip struct{ init, pictures []byte }

func (c clip) write(_ context.Context, w io.Writer) error {
	_, err := io.Copy(w, io.MultiReader(bytes.NewReader(c.init), bytes.NewReader(c.pictures)))
	return err
}

// single is a clip of one picture.
func single(head []byte, s cmaf.Sample, timescale uint32) clip {
	s.Duration, s.CompositionOffset = timescale, 0
	return clip{head, cmaf.AppendFragment(nil, 1, cmaf.TrackID, encode.ShownFrom*uint64(timescale), []cmaf.Sample{s})}
}

// videoRange is that of the pictures with an init segment.
func videoRange(init []byte) frame.VideoRange {
	tracks, err := cmaf.NewReader(bytes.NewReader(init), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 {
		return frame.SDR // the decoder says what is wrong with it
	}
	return tracks[0].VideoRange()
}

// near is the key frame that is nearest to a time, in the segment that is shown then; where that has none, whatever is
// shown then.
func (v *Video) near(ctx context.Context, t float64) (clip, error) {
	i, l := v.at(t), v.video()
	if i < 0 {
		return clip{}, fault.New(fault.NotFound, "there is no picture at all")
	}
	all, err := v.samples(ctx, i)
	if err != nil {
		return clip{}, err
	}
	k := nearestKey(all, v.ticks(t))
	if k < 0 {
		return v.exact(ctx, t)
	}
	head, err := v.Source.Init(ctx, l.Chunks[i].Init)
	if err != nil {
		return clip{}, fmt.Errorf("read init segment: %w", err)
	}
	return single(head, all[k].Sample, l.Timescale), nil
}

const (
	// reach bounds what is decoded for the sake of one picture, in pixels: eight seconds of 1080p30.
	reach = 1920 * 1080 * 240
	// furthestBack is how many segments are looked at for a key frame before one that has none.
	furthestBack = 10
	// early is by how much a picture may be asked for too early, in seconds: times are rounded to milliseconds.
	early = 0.001
)

// exact is the picture that is shown at a time with those that it takes to decode it. Where those are too many, it is
// the nearest key frame instead.
func (v *Video) exact(ctx context.Context, t float64) (clip, error) {
	i, l := v.at(t), v.video()
	if i < 0 {
		return clip{}, fault.New(fault.NotFound, "there is no picture at all")
	}
	all, err := v.samples(ctx, i)
	if err != nil {
		return clip{}, err
	}
	for back := i; ; back-- {
		_, k := pick(all, v.ticks(t))
		if k >= 0 || back == 0 || i-back == furthestBack || l.Chunks[back-1].Gap ||
			l.Chunks[back-1].Init != l.Chunks[i].Init {
			break
		}
		var before []sample
		if before, err = v.samples(ctx, back-1); err != nil {
			return clip{}, err
		}
		all = append(before, all...)
	}
	head, err := v.Source.Init(ctx, l.Chunks[i].Init)
	if err != nil {
		return clip{}, fmt.Errorf("read init segment: %w", err)
	}
	target, k := pick(all, v.ticks(t))
	if target < 0 {
		return clip{}, errNoPicture
	}
	needed := unitsOf(head).needs(all[max(k, 0) : target+1])
	in := l.Inits[l.Chunks[i].Init]
	if most := max(reach/max(in.Width*in.Height, 1), 1); k < 0 || len(needed) > most {
		needed = needed[max(len(needed)-most, 0):]
		if key := nearestKey(all, v.ticks(t)); key >= 0 {
			needed = all[key : key+1]
		}
	}
	return clip{head, fragment(needed, needed[len(needed)-1].pts, l.Timescale)}, nil
}

// ticks is a time of the video in ticks of its track: the last one that has begun by then.
func (v *Video) ticks(t float64) int64 {
	return int64(math.Floor((t + early + v.Timeline.ZeroTime()) * float64(v.video().Timescale)))
}

// pick finds the picture that is shown at a time, and the key frame from which on it can be decoded; -1: there is none.
func pick(all []sample, at int64) (target, key int) {
	target, key = -1, -1
	for i := range all {
		if target < 0 || better(all[i].pts, all[target].pts, at) {
			target = i
		}
	}
	for i := 0; i <= target; i++ {
		if k := &all[i]; k.idr || k.Sync && k.pts <= all[target].pts && target-i >= k.recovery {
			key = i
		}
	}
	return target, key
}

// better reports whether a picture of time a is rather the one that is shown at a time than that of time b: the last
// one that has begun, or where none has, the first one.
func better(a, b, at int64) bool {
	if (a <= at) != (b <= at) {
		return a <= at
	}
	if a <= at {
		return a > b
	}
	return a < b
}

func nearestKey(all []sample, at int64) int {
	key := -1
	for i := range all {
		if all[i].Sync && all[i].recovery == 0 && (key < 0 || abs(all[i].pts-at) < abs(all[key].pts-at)) {
			key = i
		}
	}
	return key
}

func abs(v int64) int64 { return max(v, -v) }

// fragment writes pictures with such times that those from shown on are shown from encode.ShownFrom on.
func fragment(pictures []sample, shown int64, timescale uint32) []byte {
	lift := int64(0) // by how much decoding has to come earlier, so that no picture is shown before it is decoded
	for _, p := range pictures {
		lift = max(lift, p.dts-p.pts)
	}
	base := encode.ShownFrom*int64(timescale) - shown - lift
	out := make([]cmaf.Sample, len(pictures))
	for i, p := range pictures {
		long := int64(p.Duration)
		if i+1 < len(pictures) {
			long = pictures[i+1].dts - p.dts
		}
		out[i] = cmaf.Sample{
			Duration:          uint32(min(max(long, 0), math.MaxUint32)),
			CompositionOffset: int32(min(p.pts-p.dts+lift, math.MaxInt32)),
			Sync:              p.Sync, Data: p.Data,
		}
	}
	return cmaf.AppendFragment(nil, 1, cmaf.TrackID, uint64(max(0, pictures[0].dts+base)), out)
}

// clip is what is shown from a time on for so many seconds, with what it takes to decode it; it ends before that where
// another init segment begins or media is missing.
func (v *Video) clip(ctx context.Context, from, length float64) (clip, error) {
	l := v.video()
	i := v.at(from)
	if i < 0 {
		return clip{}, fault.New(fault.NotFound, "there is no picture at all")
	}
	head, err := v.Source.Init(ctx, l.Chunks[i].Init)
	if err != nil {
		return clip{}, fmt.Errorf("read init segment: %w", err)
	}
	first := i
	for !l.Chunks[first].Independent && first > 0 && i-first < furthestBack && !l.Chunks[first-1].Gap &&
		l.Chunks[first-1].Init == l.Chunks[i].Init {
		first--
	}
	end := v.ticks(from + length)
	var all []sample
	bytes := 0
	for j := first; j < len(l.Chunks) && !l.Chunks[j].Gap && l.Chunks[j].Init == l.Chunks[i].Init &&
		l.Chunks[j].Time < end && bytes < maxClip; j++ {
		more, err := v.samples(ctx, j)
		if err != nil {
			return clip{}, err
		}
		for _, s := range more {
			bytes += len(s.Data)
		}
		all = append(all, more...)
	}
	target, k := pick(all, v.ticks(from))
	if target < 0 {
		return clip{}, errNoPicture
	}
	all = all[max(k, 0):]
	last := slices.IndexFunc(all, func(s sample) bool { return s.dts >= end })
	if last > 0 {
		all = all[:last]
	}
	shown := all[target-max(k, 0)].pts
	return clip{head, fragment(all, shown, l.Timescale)}, nil
}

// maxClip bounds the bytes that are decoded for an animation.
const maxClip = 64 << 20
