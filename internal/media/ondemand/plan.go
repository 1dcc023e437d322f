// Package ondemand makes segments of a stored MP4 on request, from its byte ranges: nothing is copied or re-encoded in
// advance. It plans the timeline of a file, and reads chunks and init segments of such timelines. Streams of fragments
// are cut by the same rules into segments to be stored. It must never know HTTP, jobs, resources or where objects are
// kept. It starts no goroutine.
package ondemand

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// The errors of planning; their text is fit for the person who sent the file.
var (
	// ErrNothing says that there is neither video nor audio that can be played.
	ErrNothing = errors.New("the file has no video or audio that can be played")
	// ErrTooLong says that it would last longer than MaxDuration.
	ErrTooLong = errors.New("the file lasts longer than 12 hours, which is the most that an asset may")
)

// MaxDuration is the longest asset.
const MaxDuration = 12 * time.Hour

const (
	// wanted is how long a segment is where key frames allow. One of a smaller size is encoded as a whole before its
	// viewer has any of it.
	wanted = 2 * time.Second
	// soonest is how long the first segment is at least; those behind it may be as long as all before them, up to
	// `wanted`.
	soonest = time.Second
	// longest is a segment that waits for the next IDR of a stored file.
	longest = 20 * time.Second
	// maxVideoBytes bounds the bytes of a segment of video, and with it the memory of a request.
	maxVideoBytes = 48 << 20
	// standing is for how long the last picture is shown when the sound goes on. Behind that there are segments in
	// which it is held.
	standing = wanted
	// together is by how much sound and picture may end apart without anything being done about it.
	together = time.Second
	// maxSeconds leaves room for a last frame.
	maxSeconds = float64(MaxDuration/time.Second) + 1
	// mostSegments bounds what a hostile file can ask for: twelve hours have 21,600 at the usual length.
	mostSegments = 100_000
	// overhead is about what the boxes of a fragment add: fixed and per sample.
	overhead, perSample = 112, 16
)

// Plan cuts a file into segments: the given video and audio tracks (either may be nil), at the video's IDRs, which are
// given in order. Presentation times of the output are those of the file after its edit list, counted from the tracks'
// Start, plus timeline.Origin. Every video sample is kept that is shown or needed to decode one that is, and all sound
// from the start to the end of its edit.
func Plan(video, audio *mp4.Track, idrs []int, object string) (*timeline.Timeline, error) {
	var renditions []*timeline.Rendition
	borders := []float64{0}
	if video != nil && video.Len() > 0 {
		r, err := newVideoTrack(video)
		if err != nil {
			return nil, err
		}
		var rendition *timeline.Rendition
		if rendition, borders, err = planVideo(r, audio, idrs, object); err != nil {
			return nil, err
		}
		renditions = append(renditions, rendition)
	} else if audio != nil && audio.Len() > 0 {
		if soundEnd(audio) > maxSeconds {
			return nil, ErrTooLong
		}
		borders = split(borders, 0, soundEnd(audio))
	}
	if audio != nil && audio.Len() > 0 {
		renditions = append(renditions, Follow(audio, object, timeline.MainAudio, borders, timeline.Origin))
	}
	if len(renditions) == 0 {
		return nil, ErrNothing
	}
	return assemble(renditions, len(borders)-1)
}

// assemble makes a timeline of renditions of n chunks each.
func assemble(renditions []*timeline.Rendition, n int) (*timeline.Timeline, error) {
	if n > mostSegments {
		return nil, fmt.Errorf("%w: it would have %d segments", mp4.ErrMalformed, n)
	}
	entries := []timeline.Entry{{Target: target(renditions)}}
	for _, l := range renditions {
		entries = append(entries, timeline.Entry{Rendition: &l.RenditionInfo}, timeline.Entry{Init: &l.Inits[0]})
	}
	for i := range n {
		s := timeline.Segment{MSN: int64(i)}
		for _, l := range renditions {
			s.Chunks = append(s.Chunks, l.Chunks[i])
		}
		entries = append(entries, timeline.Entry{Segment: &s})
	}
	t, err := timeline.Build(entries)
	if err != nil {
		return nil, fmt.Errorf("plan segments: %w", err)
	}
	return t, nil
}

// target is EXT-X-TARGETDURATION: no EXTINF, rounded to the nearest integer, is above it (RFC 8216bis section 4.4.3.1).
func target(renditions []*timeline.Rendition) int {
	long := 1.0
	for _, l := range renditions {
		for i := range l.Chunks {
			long = max(long, l.Seconds(i))
		}
	}
	return int(math.Round(long))
}

// planVideo plans the video, and where all renditions are cut: in seconds of presentation, one more than there are
// segments.
func planVideo(r *videoTrack, audio *mp4.Track, idrs []int, object string) (*timeline.Rendition, []float64, error) {
	in, err := r.describe()
	if err != nil {
		return nil, nil, err
	}
	l := &timeline.Rendition{RenditionInfo: timeline.RenditionInfo{
		ID: timeline.MainVideo, Kind: frame.Video, Timescale: r.t.Timescale, Source: sourceOf(r.t, object),
	}, Inits: []timeline.Init{in}}
	end := r.end()
	last := secondsOf(r.t, end+r.delay)
	soundEnds := last
	if audio != nil && audio.Len() > 0 {
		soundEnds = soundEnd(audio)
	}
	if max(last, soundEnds) > maxSeconds {
		return nil, nil, ErrTooLong
	}
	cuts := r.cuts(idrs)
	borders := make([]float64, 0, len(cuts)+1)
	borders = append(borders, min(r.shownAt(0, false), 0)) // what is in front of a late first picture belongs to it
	for _, i := range cuts[1:] {
		borders = append(borders, r.shownAt(i, isIDR(idrs, i)))
	}
	switch tail := soundEnds - last; {
	case tail > standing.Seconds():
	case tail > together.Seconds():
		end += int64(math.Round(tail * float64(r.t.Timescale)))
		last = soundEnds
	default:
		last = max(last, soundEnds)
	}
	if end-r.dts(r.to-1) > math.MaxUint32 {
		return nil, nil, fmt.Errorf("%w: its last picture stands for too long", mp4.ErrMalformed)
	}
	borders = append(borders, last)
	for k, from := range cuts {
		at, to, until := r.dts(from), r.to, end
		if k == 0 {
			at = r.start()
		}
		if k+1 < len(cuts) {
			to, until = cuts[k+1], r.dts(cuts[k+1])
		}
		l.Append(timeline.Chunk{
			Rendition: l.ID, Time: at + r.origin(), Duration: until - at, Size: sizeOf(r.t, from, to),
			Independent: isIDR(idrs, from), From: from, To: to,
		})
	}
	if soundEnds-last > together.Seconds() {
		from := len(borders) - 1
		borders = split(borders, last, soundEnds)
		for k := from; k < len(borders)-1; k++ {
			l.Append(gap(l, borders[k], borders[k+1], timeline.Origin))
		}
	}
	return l, borders, nil
}

// cuts gives the samples that segments begin with, 0 first.
func (v *videoTrack) cuts(idrs []int) []int {
	c := cutter{wanted: v.ticks(wanted), first: v.ticks(soonest), limit: v.ticks(longest), maxBytes: maxVideoBytes}
	cuts := []int{0}
	for i, k := 0, 0; i < v.to; i++ {
		for k < len(idrs) && idrs[k] < i {
			k++
		}
		idr := k < len(idrs) && idrs[k] == i
		alone := false
		if idr || i == 0 {
			n := k
			if idr {
				n++
			}
			until := v.end()
			if n < len(idrs) && idrs[n] < v.to {
				until = v.dts(idrs[n])
			}
			alone = until-v.dts(i) > c.limit
		}
		cuts = append(cuts, c.next(i, v.dts(i), int64(v.t.Sample(i).Size), v.t.Sync(i), idr, alone)...)
	}
	return cuts
}

func sourceOf(t *mp4.Track, object string) *timeline.Source {
	return &timeline.Source{Object: object, Track: t.ID, Start: t.Start}
}

func (v *videoTrack) ticks(d time.Duration) int64 { return int64(d.Seconds() * float64(v.t.Timescale)) }

func isIDR(idrs []int, i int) bool {
	k := sort.SearchInts(idrs, i)
	return k < len(idrs) && idrs[k] == i
}

func ticksOf(t *mp4.Track, seconds float64) int64 {
	return int64(math.Round(seconds * float64(t.Timescale)))
}

func secondsOf(t *mp4.Track, ticks int64) float64 { return float64(ticks) / float64(t.Timescale) }

// split adds borders up to end, `wanted` apart: the first one behind `from` and what follows the last border.
func split(borders []float64, from, end float64) []float64 {
	at := max(from, borders[len(borders)-1])
	for at += wanted.Seconds(); end-at > wanted.Seconds()/2; at += wanted.Seconds() {
		borders = append(borders, at)
	}
	return append(borders, max(end, borders[len(borders)-1]+0.001))
}

func gap(l *timeline.Rendition, from, to, zero float64) timeline.Chunk {
	at, until := int64(math.Round((zero+from)*float64(l.Timescale))), int64(math.Round((zero+to)*float64(l.Timescale)))
	return timeline.Chunk{Rendition: l.ID, Time: at, Duration: until - at, Gap: true}
}

func sizeOf(t *mp4.Track, from, to int) int64 {
	n := int64(overhead + perSample*(to-from))
	for i := from; i < to; i++ {
		n += int64(t.Sample(i).Size)
	}
	return n
}
