package ondemand

import (
	"fmt"
	"math"
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// sample is one with its times in ticks of media time.
type sample struct {
	dts, pts int64
	long     uint32 // what the fragment says, used for the last sample only
	idr      bool   // audio: always
	sync     bool
	data     []byte
}

// trackBuffer is what has come of one track and is not stored yet.
type trackBuffer struct {
	id        uint32
	rendition timeline.RenditionInfo
	init      timeline.Init
	header    []byte           // the init segment,
	entry     cmaf.InitOptions // and what it is made of
	length    int              // of NAL units' lengths; video only
	filter    *codec.Filter    // video only
	leftOut   int              // samples that it did not let pass

	shift    int64 // to media time
	samples  []sample
	bytes    int64
	placed   bool  // times are media times
	gone     int   // samples taken off,
	ticks    int64 // which last so long,
	head     int64 // and the very first of them so long
	stands   int64 // for how much longer than its own time the very last one is shown
	frame    int64 // audio: how long a frame lasts; 0: unknown
	silence  silence
	fills    bool  // there is silence
	due      int64 // audio: when the next packet begins
	expected int64 // audio: when the next sample is due; 0 before the first

	soon    int64 // video: how long pictures usually wait between decoding and showing
	decoded int64 // video: when the last one is decoded that the cutter knows
	cutter  cutter
	seen    int   // samples that the cutter knows
	cuts    []int // samples that begin segments, counted from the first of all
}

func newVideoBuffer(t cmaf.Track) (*trackBuffer, error) {
	entry, err := bmff.ParseEntry(bmff.SampleEntry{Type: bmff.FourCC([]byte(t.FourCC)), Raw: t.SampleEntry})
	if err != nil {
		return nil, fmt.Errorf("read sample entry: %w", err)
	}
	parW, parH := int(entry.PARWidth), int(entry.PARHeight)
	if info, err := h264.Info(t.Config.SPS); err == nil && (parW <= 0 || parH <= 0) {
		parW, parH = info.PARWidth, info.PARHeight
	}
	w, h := presented(t.Config.Width, t.Config.Height, parW, parH)
	m := newTrackBuffer(t, timeline.MainVideo, cmaf.InitOptions{
		Width:  uint32(w) << 16,
		Height: uint32(h) << 16,
		Matrix: t.Matrix,
	})
	m.length, m.filter = t.LengthSize, codec.NewFilter(t.Config, t.LengthSize)
	if bmff.Sideways(t.Matrix) {
		w, h = h, w
	}
	m.init = timeline.Init{
		Rendition: m.rendition.ID,
		Codec:     codecOf(t.FourCC, t.Config.SPS),
		Width:     w,
		Height:    h,
		FrameRate: math.Round(t.Config.FrameRate*1000) / 1000,
	}
	m.cutter = cutter{
		wanted:   m.at(wanted.Seconds()),
		first:    m.at(soonest.Seconds()),
		limit:    m.at(streamTarget),
		maxBytes: maxVideoBytes,
	}
	return m, nil
}

func newAudioBuffer(t cmaf.Track) (*trackBuffer, error) {
	c, err := aac.Parse(t.Config.ASC)
	if err != nil {
		return nil, fmt.Errorf("read sound configuration: %w", err)
	}
	m := newTrackBuffer(t, timeline.MainAudio, cmaf.InitOptions{})
	m.init = timeline.Init{
		Rendition:  m.rendition.ID,
		Codec:      c.CodecString(),
		SampleRate: c.SampleRate,
		Channels:   c.Channels,
	}
	m.frame = int64(c.SamplesPerFrame) * int64(t.Timescale) / int64(c.SampleRate)
	m.silence, m.fills = silenceOf(t.Config.ASC, t.Timescale)
	return m, nil
}

func newTrackBuffer(t cmaf.Track, id string, o cmaf.InitOptions) *trackBuffer {
	o.Kind, o.SampleEntry, o.Timescale, o.Language = t.Kind, t.SampleEntry, t.Timescale, t.Language
	return &trackBuffer{
		id:        t.ID,
		rendition: timeline.RenditionInfo{ID: id, Kind: t.Kind, Timescale: t.Timescale},
		header:    cmaf.InitFromEntry(o),
		entry:     o,
	}
}

func (t *trackBuffer) scale() float64 { return float64(t.rendition.Timescale) }

func (t *trackBuffer) at(seconds float64) int64 { return int64(math.Round(seconds * t.scale())) }

// add takes in a sample that is decoded and shown at times of the file, in ticks. In place of pictures that are left
// out the one before them stands.
func (t *trackBuffer) add(s cmaf.Sample, dts, pts int64) {
	if t.filter != nil {
		verdict := t.filter.Judge(s.Data, s.Sync, time.Duration(float64(dts)/t.scale()*float64(time.Second)))
		if verdict == codec.Damaged {
			t.leftOut++
		}
		if verdict != codec.Kept {
			return
		}
	}
	x := sample{dts: dts + t.shift, pts: pts + t.shift, long: s.Duration, data: s.Data, sync: s.Sync}
	if t.placed {
		x.dts = max(x.dts, 0)
	}
	if t.rendition.Kind == frame.Video {
		idr, known, _ := h264.IsIDRPrefix(s.Data, t.length)
		x.idr = idr && known
	} else {
		t.steady(&x)
	}
	if n := len(t.samples); n > 0 {
		x.dts = max(x.dts, t.samples[n-1].dts) // never backwards
	}
	t.samples = append(t.samples, x)
	t.bytes += int64(len(s.Data))
}

// steady gives sound the times that its frames have by themselves, where the container only counts in milliseconds.
func (t *trackBuffer) steady(x *sample) {
	x.idr = true
	if t.frame <= 0 {
		return
	}
	x.long = min(x.long, uint32(2*t.frame)) // up to the next one, which may be far away
	const slack = 2.0 / 1000                // seconds
	if d := float64(x.dts - t.expected); t.expected != 0 && math.Abs(d) <= slack*t.scale() {
		x.dts, x.pts = t.expected, x.pts+t.expected-x.dts
	}
	t.expected = x.dts + t.frame
}

// move puts everything, also what is still to come, so many ticks later.
func (t *trackBuffer) move(by int64) {
	t.shift += by
	t.placed = true
	if t.expected != 0 {
		t.expected += by
	}
	for i := range t.samples {
		t.samples[i].dts = max(t.samples[i].dts+by, 0)
		t.samples[i].pts += by
	}
}

// first is when the earliest of what has come is shown.
func (t *trackBuffer) first() int64 {
	at := int64(math.MaxInt64)
	for i := range t.samples[:min(len(t.samples), opening)] {
		at = min(at, t.samples[i].pts)
	}
	return at
}

// rate is how many pictures a second there are at the beginning; 0: unknown.
func (t *trackBuffer) rate() float64 {
	n := min(len(t.samples), opening)
	if n < 2 || t.samples[n-1].dts <= t.samples[0].dts {
		return 0
	}
	return math.Round(float64(n-1)*t.scale()/float64(t.samples[n-1].dts-t.samples[0].dts)*1000) / 1000
}

// shown is how many samples of those taken off come in a second. The first one may stand for a wait, and does not
// count, nor does what the last one stands for.
func (t *trackBuffer) shown() float64 {
	n, long := t.gone, t.ticks-t.stands
	if n > 2 && long > t.head {
		n, long = n-1, long-t.head
	}
	return math.Round(float64(n)*t.scale()/float64(long)*1000) / 1000
}

// span is how many seconds wait.
func (t *trackBuffer) span() float64 {
	if len(t.samples) == 0 {
		return 0
	}
	return float64(t.samples[len(t.samples)-1].dts-t.samples[0].dts) / t.scale()
}

// last is the time, in seconds, of the last sample that has come.
func (t *trackBuffer) last() float64 {
	if len(t.samples) == 0 {
		return math.Inf(-1)
	}
	return float64(t.samples[len(t.samples)-1].dts) / t.scale()
}

// end is where the last sample ends.
func (t *trackBuffer) end() int64 {
	if len(t.samples) == 0 {
		return 0
	}
	s := t.samples[len(t.samples)-1]
	return s.dts + max(int64(s.long), 1)
}

// decide tells the cutter of pictures whose decoding times are known, as those of all are at the end.
func (t *trackBuffer) decide(ended bool) {
	for n := t.gone + len(t.samples); t.seen < n && (ended || n-t.seen > reorder); {
		t.postpone(t.seen - t.gone)
		s := &t.samples[t.seen-t.gone]
		t.cuts = append(t.cuts, t.cutter.next(t.seen, s.dts, int64(len(s.data)), s.sync, s.idr, false)...)
		t.seen++
	}
}

// postpone has a picture behind a pause decoded just before it is shown.
func (t *trackBuffer) postpone(i int) {
	s := &t.samples[i]
	if s.pts-s.dts > t.soon {
		at := latest(i, len(t.samples), func(j int) int64 { return t.samples[j].pts })
		s.dts = postponed(s.dts, at, t.soon, t.rendition.Timescale)
	}
	s.dts = max(s.dts, min(t.decoded+1, s.pts))
	t.decoded = s.dts
}

// cut takes n samples off; the last of them ends at end.
func (t *trackBuffer) cut(n int, end int64) []cmaf.Sample {
	out := t.fragment(n, end)
	for i := range out {
		t.bytes -= int64(len(out[i].Data))
	}
	if t.gone == 0 {
		t.head = int64(out[0].Duration)
	}
	t.due = end
	t.gone += n
	t.ticks += end - t.samples[0].dts
	t.samples = append([]sample(nil), t.samples[n:]...) // lets go of the data
	return out
}

// fragment gives the first n samples as a fragment has them; the last of them ends at end.
func (t *trackBuffer) fragment(n int, end int64) []cmaf.Sample {
	out := make([]cmaf.Sample, n)
	for i, s := range t.samples[:n] {
		until := end
		if i+1 < n {
			until = t.samples[i+1].dts
		}
		out[i] = cmaf.Sample{
			Duration:          uint32(min(max(until-s.dts, 0), math.MaxUint32)),
			CompositionOffset: int32(min(max(s.pts-s.dts, 0), math.MaxInt32)),
			Sync:              s.sync,
			Data:              s.data,
		}
	}
	return out
}

func (t *trackBuffer) gap(from, to float64) timeline.Chunk {
	return timeline.Chunk{Rendition: t.rendition.ID, Time: t.at(from), Duration: max(t.at(to)-t.at(from), 0), Gap: true}
}
