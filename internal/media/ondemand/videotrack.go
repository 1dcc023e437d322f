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
func (r *videoTrack) origin() int64 { return int64(timeline.Origin) * int64(r.t.Timescale) }

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
func (r *videoTrack) measure(start int64) bool {
	r.first, r.hidden, r.pre, r.lead = math.MaxInt64, 0, 0, 0
	for i := range r.to {
		pts := r.t.PTS(i)
		r.lead = max(r.lead, r.t.DTS(i)-pts)
		if pts >= start {
			r.first = min(r.first, pts)
			continue
		}
		r.hidden++
		r.pre = i + 1
	}
	return r.first != math.MaxInt64
}

// postpone finds the pictures that are decoded later than the file says.
func (r *videoTrack) postpone() {
	last, soon := int64(math.MinInt64), usual(r.delay, r.t.Timescale)
	for i := r.pre; i < r.to; i++ {
		nominal := r.nominal(i)
		at := nominal
		if r.t.PTS(i)-nominal > soon {
			at = postponed(nominal, latest(i, r.to, r.t.PTS), soon, r.t.Timescale)
		}
		if at = max(at, min(last+1, r.t.PTS(i))); at != nominal {
			r.moved = append(r.moved, moved{i, at})
		}
		last = at
	}
}

// rank orders the hidden pictures.
func (r *videoTrack) rank() {
	if r.hidden == 0 {
		return
	}
	order := make([]int, 0, r.hidden)
	for i := range r.pre {
		if r.t.PTS(i) < r.first {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(r.t.PTS(a) - r.t.PTS(b)) })
	r.ranks = make([]int32, r.pre)
	for k, i := range order {
		r.ranks[i] = int32(len(order) - k)
	}
}

// check refuses times that a fragment can't hold.
func (r *videoTrack) check() error {
	for i := range r.to {
		from, until := r.dts(i), r.end()
		if i == 0 {
			from = r.start()
		}
		if i+1 < r.to {
			until = r.dts(i + 1)
		}
		if d := until - from; d < 0 || d > math.MaxUint32 {
			return fmt.Errorf("%w: picture %d lasts %d ticks", mp4.ErrMalformed, i+1, d)
		}
		if offset := r.pts(i) - from; offset < 0 || offset > math.MaxInt32 {
			return fmt.Errorf("%w: picture %d is shown %d ticks after it is decoded", mp4.ErrMalformed, i+1, offset)
		}
	}
	return nil
}

func (r *videoTrack) nominal(i int) int64 { return r.t.DTS(i) - r.lead }

// planned is nominal, but for what is postponed.
func (r *videoTrack) planned(i int) int64 {
	k, found := slices.BinarySearchFunc(r.moved, i, func(m moved, i int) int { return m.sample - i })
	if found {
		return r.moved[k].at
	}
	return r.nominal(i)
}

// dts is not before media time 0: pictures that wait for longer than timeline.Origin, as in a slide show with
// reordering, are decoded later.
func (r *videoTrack) dts(i int) int64 {
	at := r.planned(i)
	if i < r.pre {
		base := r.first - int64(r.hidden)
		if r.pre < r.to {
			base = min(base, r.planned(r.pre))
		}
		at = base - int64(r.pre-i)
	}
	return max(at, int64(i)-r.origin())
}

func (r *videoTrack) pts(i int) int64 {
	if i < r.pre && r.ranks[i] > 0 {
		return r.first - int64(r.ranks[i])
	}
	if i == 0 && r.t.PTS(0) == r.first && secondsOf(r.t, r.first) > late {
		return 0
	}
	return r.t.PTS(i)
}

// start is when the first sample is decoded.
func (r *videoTrack) start() int64 { return max(min(r.dts(0), -r.delay), -r.origin()) }

// end is where the last sample ends, in decoding times. One that lasts no time at all gets the time of the one before.
func (r *videoTrack) end() int64 {
	n := r.to - 1
	long := int64(r.t.Sample(n).Duration)
	if long == 0 && n > 0 {
		long = r.dts(n) - r.dts(n-1)
	}
	if long <= 0 {
		long = max(int64(r.t.Timescale)/25, 1)
	}
	return r.dts(n) + long
}

// shownAt is where, in seconds, a segment begins that starts with sample i.
func (r *videoTrack) shownAt(i int, idr bool) float64 {
	if idr && i >= r.pre {
		return secondsOf(r.t, r.pts(i))
	}
	return secondsOf(r.t, r.dts(i)+r.delay)
}

// fit gives the samples of a chunk their times.
func (r *videoTrack) fit(c timeline.Chunk, samples []cmaf.Sample) error {
	at := c.Time - r.origin() // the first sample of all may be decoded before its time
	for k := range samples {
		i := c.From + k
		until := c.Time + c.Duration - r.origin() // the last sample of all may stand for longer
		if i+1 < c.To {
			until = r.dts(i + 1)
		}
		if until < at {
			return fmt.Errorf("%w: chunk ends at %d, before sample %d at %d", mp4.ErrMalformed, until, i, at)
		}
		samples[k].Duration = uint32(until - at)
		samples[k].CompositionOffset = int32(r.pts(i) - at)
		at = until
	}
	return nil
}

// describe is the track for playlists.
func (r *videoTrack) describe() (timeline.Init, error) {
	t := r.t
	in := timeline.Init{Rendition: timeline.MainVideo, Codec: codecOf(t.FourCC, t.Config.SPS), Width: t.Width, Height: t.Height}
	if in.Codec == "" {
		return in, fmt.Errorf("%w: its H.264 parameter sets are only inside of the pictures (%s)", mp4.ErrUnsupported, t.FourCC)
	}
	in.Width, in.Height = presented(t.Width, t.Height, t.PARWidth, t.PARHeight)
	if t.Sideways {
		in.Width, in.Height = in.Height, in.Width
	}
	in.FrameRate = r.rate()
	return in, nil
}

// rate is how many pictures are shown in a second. The first one may stand longer than the others, where a muxer
// without edit list puts the wait for the sound, and does not count.
func (r *videoTrack) rate() float64 {
	from := min(r.hidden, r.to-1)
	if r.to-from > 2 {
		from++
	}
	long := r.end() - r.dts(from)
	if long <= 0 {
		return 0
	}
	return math.Round(float64(r.to-from)*float64(r.t.Timescale)/float64(long)*1000) / 1000
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
