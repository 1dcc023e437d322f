package ondemand

import (
	"math"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Follow cuts an audio track where another rendition is cut: borders in seconds of the asset, one more than there are
// segments, where zero is the media time of the asset's second 0. What would be heard behind the last border is left
// out. Where the track has no sound the rendition has silence.
func Follow(a *mp4.Track, object, id string, borders []float64, zero float64) *timeline.Rendition {
	l := &timeline.Rendition{
		RenditionInfo: timeline.RenditionInfo{
			ID: id, Kind: frame.Audio, Timescale: a.Timescale, Source: sourceOf(a, object),
		},
		Inits: []timeline.Init{audioInit(id, a)},
	}
	if len(borders) < 2 {
		return l
	}
	f := newFollower(a, borders)
	shift := int64(math.Round(zero * float64(a.Timescale)))
	for k := range len(borders) - 1 {
		c, ok := f.until(borders[k+1])
		if !ok {
			c = gap(l, borders[k], borders[k+1], zero)
		} else {
			c.Apart = int64(math.Round((float64(c.Time)/float64(a.Timescale) - borders[k]) * 1000))
			c.Rendition, c.Time = id, c.Time+shift
		}
		l.Append(c)
	}
	return l
}

// follower goes through the packets of a track, those of silence among them.
type follower struct {
	a       *mp4.Track
	silence silence
	fills   bool  // there is silence
	last    int64 // when the last segment begins, in ticks,
	end     int64 // and when it ends

	next, to int   // samples that are still to come
	wait     int64 // packets of silence that come before that
	resumes  int64 // when what is behind that silence begins, in ticks
}

func newFollower(a *mp4.Track, borders []float64) *follower {
	f := &follower{a: a, last: ticksOf(a, borders[len(borders)-2]), end: ticksOf(a, borders[len(borders)-1])}
	f.silence, f.fills = silenceFor(a)
	for k := range len(borders) - 1 {
		f.fills = f.fills && borders[k+1]-borders[k] <= longestFill
	}
	start := ticksOf(a, borders[0])
	if a.Len() == 0 {
		f.rest(start)
		return f
	}
	f.next, f.to = sound(a)
	// what is before the beginning with its whole packet
	for f.fills && f.next < f.to && a.DTS(f.next) < start-f.silence.at(2) {
		f.next++
	}
	if f.next == f.to {
		f.rest(start)
		return f
	}
	f.resumes = a.DTS(f.next)
	if f.fills && f.resumes-start > ticksOf(a, late) {
		f.wait = f.silence.within(f.resumes - start)
	}
	return f
}

// until takes what begins before a border into a chunk, whose time is not moved yet; false when that is nothing.
func (f *follower) until(border float64) (c timeline.Chunk, ok bool) {
	c = timeline.Chunk{Independent: true, From: f.next, Time: f.begins()}
	silent := f.hush(border)
	for f.wait == 0 && f.next < f.to && secondsOf(f.a, f.a.PTS(f.next)) < border {
		if f.next == c.From {
			c.Lead = int(silent)
		}
		f.step()
		silent += f.hush(border)
	}
	c.To, c.Duration = f.next, f.begins()-c.Time
	c.Size = sizeOf(f.a, c.From, c.To) + silent*int64(perSample+len(f.silence.packet))
	return c, c.Duration > 0
}

// begins is when the next packet does.
func (f *follower) begins() int64 { return f.resumes - f.silence.at(f.wait) }

// step takes a sample.
func (f *follower) step() {
	at := f.a.DTS(f.next)
	if f.next++; f.next == f.to {
		f.rest(at + lastLong(f.a, f.next-1))
		return
	}
	f.resumes = f.a.DTS(f.next)
	if f.fills {
		f.wait = f.silence.missing(f.resumes - at)
	}
}

// rest is silence from a time to the end, unless the two are as good as together.
func (f *follower) rest(from int64) {
	if f.fills && (f.end-from > ticksOf(f.a, together.Seconds()) || from <= f.last) {
		f.wait = f.silence.within(f.end - from)
	}
	f.resumes = from + f.silence.at(f.wait)
}

// hush takes the silence that begins before a border, and says how many packets that is.
func (f *follower) hush(border float64) (n int64) {
	for f.wait > 0 && secondsOf(f.a, f.resumes-f.silence.at(f.wait)) < border {
		f.wait--
		n++
	}
	return n
}

// sound gives the samples [from, to) of an audio track that are heard: not those that end before the edit begins
// (priming), nor those from its end on.
func sound(a *mp4.Track) (from, to int) {
	n := a.Len()
	for to = n; to > 0 && a.PTS(to-1) >= a.EditEnd(); {
		to--
	}
	if to == 0 { // an edit that lets nothing be heard is a mistake
		to = n
	}
	for from < to && a.PTS(from)+int64(a.Sample(from).Duration) <= a.EditStart() {
		from++
	}
	if from == to {
		from = 0
	}
	return from, to
}

// soundEnd is where the last sample that is heard ends, in seconds.
func soundEnd(a *mp4.Track) float64 {
	_, to := sound(a)
	return min(secondsOf(a, a.PTS(to-1)+lastLong(a, to-1)), secondsOf(a, a.EditEnd()))
}

// lastLong is how long the last sample lasts, in ticks: no longer than two of its packets, whatever the file says.
func lastLong(a *mp4.Track, i int) int64 {
	long := int64(a.Sample(i).Duration)
	if s, ok := silenceFor(a); ok {
		long = min(long, s.at(2))
	}
	return long
}

func audioInit(id string, a *mp4.Track) timeline.Init {
	return timeline.Init{
		Rendition:  id,
		Codec:      aac.CodecString(a.Config.ASC),
		SampleRate: a.Config.SampleRate,
		Channels:   a.Config.Channels,
	}
}
