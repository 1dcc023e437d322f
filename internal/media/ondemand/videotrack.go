package ondemand

import (
	"fmt"
	"math"
	"slices"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/timeline"
)

// videoTrack is a video track as it is played: what of it is kept, and when each sample is decoded and shown, in ticks
// of the track counted from the asset's second 0. It follows from the track alone, so that a plan and the chunks made
// of it later agree.
//
// Pictures are shown when the file says, but the first one from the beginning on, so that the playlists of all
// renditions begin together and no player waits for it. Three things are done to decoding times, which nobody sees:
// they come earlier where offsets to presentation would be negative; behind a pause they come later; and pictures in
// front of the edit, which are there only to decode others, are squeezed into the ticks before the first one that is
// shown, since a fragment can't say that a picture is not to be shown.
type videoTrack struct {
	t    *mp4.Track
	to   int   // samples [0, to) are kept: the others would be shown behind the end of the edit
	lead int64 // by how much decoding comes earlier

	first  int64   // when the first picture is shown
	delay  int64   // from decoding to showing, for pictures in order
	hidden int     // pictures in front of the edit,
	pre    int     // all of them among samples [0, pre)
	ranks  []int32 // of samples [0, pre): how many ticks before the first picture it comes; 0: it is shown in its time
	moved  []moved // samples that are decoded later than the file says, in order
}

// moved is when a sample is decoded, in ticks.
type moved struct {
	sample int
	at     int64
}

// origin is the asset's second 0 in ticks of media time.
func (v *videoTrack) origin() int64 { return int64(timeline.Origin) * int64(v.t.Timescale) }

func newVideoTrack(t *mp4.Track) (*videoTrack, error) {
	r := &videoTrack{t: t, to: t.Len()}
	if end := t.EditEnd(); end != math.MaxInt64 {
		for r.to > 0 && t.PTS(r.to-1) >= end {
			r.to--
		}
		if r.to == 0 { // an edit that shows nothing is a mistake
			r.to = t.Len()
		}
	}
	start := int64(math.MinInt64)
	if t.MediaTime > 0 {
		start = t.EditStart()
	}
	if !r.measure(start) {
		r.measure(math.MinInt64)
	}
	r.delay = max(r.first-r.nominal(min(r.hidden, r.to-1)), 0)
	r.postpone()
	r.delay = max(r.first-r.planned(min(r.hidden, r.to-1)), 0)
	r.rank()
	return r, r.check()
}

// measure finds the first picture from start on, and what lies in front of it; false when there is none.
func (v *videoTrack) measure(start int64) bool {
	v.first, v.hidden, v.pre, v.lead = math.MaxInt64, 0, 0, 0
	for i := range v.to {
		pts := v.t.PTS(i)
		v.lead = max(v.lead, v.t.DTS(i)-pts)
		if pts >= start {
			v.first = min(v.first, pts)
			continue
		}
		v.hidden++
		v.pre = i + 1
	}
	return v.first != math.MaxInt64
}

// postpone finds the pictures that are decoded later than the file says.
func (v *videoTrack) postpone() {
	last, soon := int64(math.MinInt64), usual(v.delay, v.t.Timescale)
	for i := v.pre; i < v.to; i++ {
		nominal := v.nominal(i)
		at := nominal
		if v.t.PTS(i)-nominal > soon {
			at = postponed(nominal, latest(i, v.to, v.t.PTS), soon, v.t.Timescale)
		}
		if at = max(at, min(last+1, v.t.PTS(i))); at != nominal {
			v.moved = append(v.moved, moved{i, at})
		}
		last = at
	}
}

// rank orders the hidden pictures.
func (v *videoTrack) rank() {
	if v.hidden == 0 {
		return
	}
	order := make([]int, 0, v.hidden)
	for i := range v.pre {
		if v.t.PTS(i) < v.first {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(v.t.PTS(a) - v.t.PTS(b)) })
	v.ranks = make([]int32, v.pre)
	for k, i := range order {
		v.ranks[i] = int32(len(order) - k)
	}
}

// check refuses times that a fragment can't hold.
func (v *videoTrack) check() error {
	for i := range v.to {
		from, until := v.dts(i), v.end()
		if i == 0 {
			from = v.start()
		}
		if i+1 < v.to {
			until = v.dts(i + 1)
		}
		if d := until - from; d < 0 || d > math.MaxUint32 {
			return fmt.Errorf("%w: picture %d lasts %d ticks", mp4.ErrMalformed, i+1, d)
		}
		if offset := v.pts(i) - from; offset < 0 || offset > math.MaxInt32 {
			return fmt.Errorf("%w: picture %d is shown %d ticks after it is decoded", mp4.ErrMalformed, i+1, offset)
		}
	}
	return nil
}

func (v *videoTrack) nominal(i int) int64 { return v.t.DTS(i) - v.lead }

// planned is nominal, but for what is postponed.
func (v *videoTrack) planned(i int) int64 {
	k, found := slices.BinarySearchFunc(v.moved, i, func(m moved, i int) int { return m.sample - i })
	if found {
		return v.moved[k].at
	}
	return v.nominal(i)
}

// dts is not before media time 0: pictures that wait for longer than timeline.Origin, as in a slide show with
// reordering, are decoded later.
func (v *videoTrack) dts(i int) int64 {
	at := v.planned(i)
	if i < v.pre {
		base := v.first - int64(v.hidden)
		if v.pre < v.to {
			base = min(base, v.planned(v.pre))
		}
		at = base - int64(v.pre-i)
	}
	return max(at, int64(i)-v.origin())
}

func (v *videoTrack) pts(i int) int64 {
	if i < v.pre && v.ranks[i] > 0 {
		return v.first - int64(v.ranks[i])
	}
	if i == 0 && v.t.PTS(0) == v.first && secondsOf(v.t, v.first) > late {
		return 0
	}
	return v.t.PTS(i)
}

// start is when the first sample is decoded.
func (v *videoTrack) start() int64 { return max(min(v.dts(0), -v.delay), -v.origin()) }

// end is where the last sample ends, in decoding times. One that lasts no time at all gets the time of the one before.
func (v *videoTrack) end() int64 {
	n := v.to - 1
	long := int64(v.t.Sample(n).Duration)
	if long == 0 && n > 0 {
		long = v.dts(n) - v.dts(n-1)
	}
	if long <= 0 {
		long = max(int64(v.t.Timescale)/25, 1)
	}
	return v.dts(n) + long
}

// shownAt is where, in seconds, a segment begins that starts with sample i.
func (v *videoTrack) shownAt(i int, idr bool) float64 {
	if idr && i >= v.pre {
		return secondsOf(v.t, v.pts(i))
	}
	return secondsOf(v.t, v.dts(i)+v.delay)
}

// fit gives the samples of a chunk their times.
func (v *videoTrack) fit(c timeline.Chunk, samples []cmaf.Sample) error {
	at := c.Time - v.origin() // the first sample of all may be decoded before its time
	for k := range samples {
		i := c.From + k
		until := c.Time + c.Duration - v.origin() // the last sample of all may stand for longer
		if i+1 < c.To {
			until = v.dts(i + 1)
		}
		if until < at {
			return fmt.Errorf("%w: chunk ends at %d, before sample %d at %d", mp4.ErrMalformed, until, i, at)
		}
		samples[k].Duration = uint32(until - at)
		samples[k].CompositionOffset = int32(v.pts(i) - at)
		at = until
	}
	return nil
}

// describe is the track for playlists.
func (v *videoTrack) describe() (timeline.Init, error) {
	t := v.t
	in := timeline.Init{
		Rendition: timeline.MainVideo,
		Codec:     codecOf(t.FourCC, t.Config.SPS),
		Width:     t.Width,
		Height:    t.Height,
	}
	if in.Codec == "" {
		return in, fmt.Errorf("%w: its H.264 parameter sets are only inside of the pictures (%s)", mp4.ErrUnsupported,
			t.FourCC)
	}
	in.Width, in.Height = presented(t.Width, t.Height, t.PARWidth, t.PARHeight)
	if t.Sideways {
		in.Width, in.Height = in.Height, in.Width
	}
	in.FrameRate = v.rate()
	return in, nil
}

// rate is how many pictures are shown in a second. The first one may stand longer than the others, where a muxer
// without edit list puts the wait for the sound, and does not count.
func (v *videoTrack) rate() float64 {
	from := min(v.hidden, v.to-1)
	if v.to-from > 2 {
		from++
	}
	long := v.end() - v.dts(from)
	if long <= 0 {
		return 0
	}
	return math.Round(float64(v.to-from)*float64(v.t.Timescale)/float64(long)*1000) / 1000
}

// codecOf is the RFC 6381 name of a track of H.264; "" when its parameter sets are not known.
func codecOf(fourCC string, sps []byte) string {
	codec := h264.CodecString(sps)
	if fourCC == "avc3" && codec != "" {
		return "avc3" + codec[4:]
	}
	return codec
}

// presented is the size of the picture with square pixels.
func presented(w, h, parW, parH int) (int, int) {
	if parW <= 0 || parH <= 0 {
		return w, h
	}
	wide := (int64(w)*int64(parW) + int64(parH)/2) / int64(parH)
	if wide <= 0 || wide > 1<<16 {
		return w, h
	}
	return int(wide), h
}
