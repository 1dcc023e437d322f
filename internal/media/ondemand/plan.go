// Package ondemand makes the segments of a stored MP4 when somebody asks for them, from its byte ranges: nothing is copied and nothing
// re-encoded. It plans the timeline of a file, and reads chunks and init segments of such timelines.
// It must never know HTTP, jobs, resources or where objects are kept. It starts no goroutine.
package ondemand

import (
	"errors"
	"fmt"
	"math"
	"time"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// ErrNothing says that a file has neither video nor audio that can be played.
var ErrNothing = errors.New("the file has no video or audio that can be played")

const (
	wanted  = 4 * time.Second
	longest = 12 * time.Second // a segment ends there without a key frame
	// overhead is about what the boxes of a fragment add: fixed and per sample.
	overhead, perSample = 112, 16
)

// Plan cuts a file into segments: the given video and audio tracks (either may be nil), at the video's IDRs. Presentation times of the
// output are those of the file after its edit list plus timeline.Origin; every video sample is kept, audio from the start of its edit on.
func Plan(video, audio *mp4.Track, idrs []int, object string) (*timeline.Timeline, error) {
	if video == nil && audio == nil {
		return nil, ErrNothing
	}
	t := &timeline.Timeline{}
	var cuts []int
	borders := []float64{0}
	if video != nil {
		cuts = videoCuts(video, idrs)
		borders = bordersOf(video, cuts)
	}
	if audio != nil {
		borders = extend(borders, secondsOf(audio, audio.EditEnd()), end(audio))
	}
	entries := []timeline.Entry{{Target: target(borders)}}
	var lanes []*timeline.Lane
	if video != nil {
		l := &timeline.Lane{Rendition: timeline.Rendition{
			ID: timeline.MainVideo, Kind: frame.Video, Timescale: video.Timescale, Source: &timeline.Source{Object: object, Track: video.ID},
		}, Inits: []timeline.Init{videoInit(video)}}
		l.Chunks = videoChunks(video, cuts, idrs, len(borders)-1, borders)
		lanes = append(lanes, l)
	}
	if audio != nil {
		lanes = append(lanes, Follow(audio, object, timeline.MainAudio, borders, timeline.Origin))
	}
	for _, l := range lanes {
		entries = append(entries, timeline.Entry{Rendition: &l.Rendition}, timeline.Entry{Init: &l.Inits[0]})
	}
	for i := range len(borders) - 1 {
		s := timeline.Segment{MSN: int64(i)}
		for _, l := range lanes {
			s.Chunks = append(s.Chunks, l.Chunks[i])
		}
		entries = append(entries, timeline.Entry{Segment: &s})
	}
	for _, e := range entries {
		if err := t.Apply(e); err != nil {
			return nil, fmt.Errorf("plan segments: %w", err)
		}
	}
	return t, nil
}

// videoCuts picks the samples that start a segment: IDRs about `wanted` apart, and samples in between where key frames are too rare.
func videoCuts(v *mp4.Track, idrs []int) []int {
	cuts := []int{0}
	from := v.DTS(0)
	tooLong := int64(longest.Seconds() * float64(v.Timescale))
	want := int64(wanted.Seconds() * float64(v.Timescale))
	last := from // of the IDR before
	k := 0
	for i := 1; i < v.Len(); i++ {
		for k < len(idrs) && idrs[k] < i {
			k++
		}
		idr := k < len(idrs) && idrs[k] == i
		at := v.DTS(i)
		elapsed := at - from
		if idr && (elapsed+(at-last)/2 >= want || elapsed+(at-last) > tooLong) || elapsed >= tooLong {
			cuts = append(cuts, i)
			from = at
		}
		if idr {
			last = at
		}
	}
	return cuts
}

// bordersOf gives where segments begin and the last one ends, in seconds of presentation: a constant reorder delay after the decoding
// times that playlists count.
func bordersOf(v *mp4.Track, cuts []int) []float64 {
	delay := firstPTS(v) - v.DTS(0)
	out := make([]float64, 0, len(cuts)+1)
	for k, i := range cuts {
		at := secondsOf(v, v.DTS(i)+delay)
		if k == 0 {
			at = min(at, 0) // what is in front of a late first picture belongs to it
		}
		out = append(out, at)
	}
	n := v.Len() - 1
	return append(out, secondsOf(v, v.DTS(n)+int64(v.Sample(n).Duration)+delay))
}

func firstPTS(v *mp4.Track) int64 {
	first := int64(math.MaxInt64)
	for i := range min(v.Len(), 32) {
		first = min(first, v.PTS(i))
	}
	return first
}

func secondsOf(t *mp4.Track, ticks int64) float64 { return float64(ticks) / float64(t.Timescale) }

// end is where the last sample of a track ends, in seconds.
func end(t *mp4.Track) float64 {
	n := t.Len() - 1
	if n < 0 {
		return 0
	}
	return secondsOf(t, t.DTS(n)+int64(t.Sample(n).Duration))
}

// extend adds borders for audio that goes on for more than a second after the video, or stands alone.
func extend(borders []float64, trimmed, end float64) []float64 {
	end = min(end, trimmed)
	last := borders[len(borders)-1]
	if len(borders) > 1 && end < last+1 {
		return borders
	}
	for end-last > 1.5*wanted.Seconds() {
		last += wanted.Seconds()
		borders = append(borders, last)
	}
	return append(borders, max(end, last+0.001))
}

func target(borders []float64) int {
	long := wanted.Seconds()
	for i := 1; i < len(borders); i++ {
		long = max(long, borders[i]-borders[i-1])
	}
	return int(math.Ceil(long - 0.45)) // EXTINF is rounded for the comparison, RFC 8216bis section 4.4.3.1
}

func videoChunks(v *mp4.Track, cuts, idrs []int, n int, borders []float64) []timeline.Chunk {
	shift := int64(timeline.Origin) * int64(v.Timescale)
	isIDR := map[int]bool{}
	for _, i := range idrs {
		isIDR[i] = true
	}
	var out []timeline.Chunk
	for k, from := range cuts {
		to, until := v.Len(), v.DTS(v.Len()-1)+int64(v.Sample(v.Len()-1).Duration)
		if k+1 < len(cuts) {
			to, until = cuts[k+1], v.DTS(cuts[k+1])
		}
		at := v.DTS(from)
		if k == 0 {
			at = startOf(v)
		}
		out = append(out, timeline.Chunk{
			Rendition: timeline.MainVideo, Time: at + shift, Duration: until - at, Size: sizeOf(v, from, to),
			Independent: isIDR[from], From: from, To: to,
		})
	}
	for k := len(out); k < n; k++ { // the audio goes on alone
		out = append(out, gap(timeline.MainVideo, v, borders[k], borders[k+1], timeline.Origin))
	}
	return out
}

// startOf is the decoding time given to the first video sample: one that is presented late is decoded at the beginning, so that the
// playlists of all renditions start together.
func startOf(v *mp4.Track) int64 {
	delay := firstPTS(v) - v.DTS(0)
	return min(v.DTS(0), -delay)
}

func gap(rendition string, t *mp4.Track, from, to, zero float64) timeline.Chunk {
	at, until := int64(math.Round((zero+from)*float64(t.Timescale))), int64(math.Round((zero+to)*float64(t.Timescale)))
	return timeline.Chunk{Rendition: rendition, Time: at, Duration: until - at, Gap: true}
}

func sizeOf(t *mp4.Track, from, to int) int64 {
	n := int64(overhead + perSample*(to-from))
	for i := from; i < to; i++ {
		n += int64(t.Sample(i).Size)
	}
	return n
}

// Follow cuts an audio track where another rendition is cut: borders in seconds of the asset, len(segments)+1 of them, whose second 0 is
// media time zero. Samples before the start of the track's edit (priming) and from its end on are left out.
func Follow(a *mp4.Track, object, id string, borders []float64, zero float64) *timeline.Lane {
	l := &timeline.Lane{
		Rendition: timeline.Rendition{ID: id, Kind: frame.Audio, Timescale: a.Timescale, Source: &timeline.Source{Object: object, Track: a.ID}},
		Inits:     []timeline.Init{audioInit(id, a)},
	}
	shift := int64(math.Round(zero * float64(a.Timescale)))
	i, n := 0, a.Len()
	for i < n && a.PTS(i) < a.EditStart() {
		i++
	}
	for n > i && a.PTS(n-1) >= a.EditEnd() {
		n--
	}
	for k := range len(borders) - 1 {
		from := i
		until := borders[k+1]
		if k == len(borders)-2 {
			until = math.Inf(1)
		}
		for i < n && secondsOf(a, a.PTS(i)) < until {
			i++
		}
		if i == from {
			l.Append(gap(id, a, borders[k], borders[k+1], zero))
			continue
		}
		last := a.DTS(i-1) + int64(a.Sample(i-1).Duration)
		if i < n {
			last = a.DTS(i)
		}
		l.Append(timeline.Chunk{
			Rendition: id, Time: a.DTS(from) + shift, Duration: last - a.DTS(from), Size: sizeOf(a, from, i), Independent: true, From: from, To: i,
		})
	}
	return l
}

func videoInit(v *mp4.Track) timeline.Init {
	in := timeline.Init{Rendition: timeline.MainVideo, Codec: h264.CodecString(v.Config.SPS), Width: v.Width, Height: v.Height}
	if v.PARWidth > 0 && v.PARHeight > 0 {
		in.Width = in.Width * v.PARWidth / v.PARHeight
	}
	if v.Rotation == 90 || v.Rotation == 270 {
		in.Width, in.Height = in.Height, in.Width
	}
	if d := v.Duration(); d > 0 {
		in.FrameRate = math.Round(float64(v.Len())*float64(v.Timescale)/float64(d)*1000) / 1000
	}
	return in
}

func audioInit(id string, a *mp4.Track) timeline.Init {
	return timeline.Init{Rendition: id, Codec: aac.CodecString(a.Config.ASC), SampleRate: a.Config.SampleRate, Channels: a.Config.Channels}
}
