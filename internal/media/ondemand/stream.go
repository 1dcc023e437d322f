package ondemand

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// ErrApart says that sound and picture lie so far apart in a stream that they can't be brought together.
var ErrApart = errors.New("picture and sound lie too far apart in the file")

const (
	// behind is by how many seconds sound may come later than picture before a segment is closed without it.
	behind = 15
	// opening is how many pictures are looked at to find the first one that is shown.
	opening = 32
	// held is how many bytes may wait for the other track.
	held = 256 << 20
)

// Object is a file to be stored.
type Object struct {
	Key  string
	Data []byte
}

// Sealed is one media sequence number that is whole: its files, and the entries of the timeline that tell of it once
// they are stored. The first one declares the renditions.
type Sealed struct {
	Objects []Object
	Entries []timeline.Entry
}

// StreamOptions describe a stream.
type StreamOptions struct {
	Prefix string // of storage keys
	// KeyInterval is how far apart key frames are at most, in seconds, as the stream's encoder was told; 0: unknown.
	KeyInterval int
	Freeze      Freeze
	// LeftOut is told at the end how many pictures were left out, as no decoder takes them or one before them up to the
	// next key frame. nil: nobody wants to know.
	LeftOut func(pictures int)
}

// Stream cuts a fragmented MP4, as it comes, into segments, hands each to emit as soon as it is whole, and gives the
// timeline of all. It takes the first H.264 and the first AAC track. What is shown first is at timeline.Origin; all
// else keeps its distance to it, but where the clock of the file jumps. The same stream gives the same segments. It
// holds about a segment in memory; where nobody knows how far apart key frames are, half a minute in the beginning.
//
// Errors are of the reader, of emit, ErrNothing, ErrTooLong or ErrApart.
func Stream(r *cmaf.Reader, o StreamOptions, emit func(Sealed) error) (*timeline.Timeline, error) {
	s := &streamer{prefix: o.Prefix, keys: o.KeyInterval, freeze: o.Freeze, emit: emit, timeline: &timeline.Timeline{}}
	tracks, err := r.Tracks()
	if errors.Is(err, io.EOF) {
		return nil, ErrNothing
	}
	if err != nil {
		return nil, err
	}
	for _, t := range tracks {
		if err := s.addTrack(t); err != nil {
			return nil, err
		}
	}
	for {
		fragments, err := r.Next()
		if errors.Is(err, io.EOF) {
			if err = s.advance(true); err != nil {
				return nil, err
			}
			if o.LeftOut != nil && s.video != nil {
				o.LeftOut(s.video.leftOut)
			}
			return s.whole(), nil
		}
		if err != nil {
			return nil, err
		}
		s.addFragments(fragments)
		if err := s.advance(false); err != nil {
			return nil, err
		}
	}
}

type streamer struct {
	prefix       string
	keys         int
	freeze       Freeze
	clock        clock
	emit         func(Sealed) error
	video, audio *trackBuffer // nil without
	timeline     *timeline.Timeline

	begun   bool
	msn     int64
	delay   int64         // of the video from decoding to showing, in its ticks
	border  float64       // where the next segment begins, in seconds of media time
	longest float64       // that a segment may be, in seconds
	group   []cmaf.Sample // pictures from the last key frame on
	pending []timeline.Entry
	objects []Object
}

func (s *streamer) buffers() []*trackBuffer {
	var out []*trackBuffer
	for _, t := range []*trackBuffer{s.video, s.audio} {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}

func (s *streamer) addTrack(t cmaf.Track) error {
	var err error
	switch {
	case t.Config.Codec == frame.H264 && s.video == nil:
		s.video, err = newVideoBuffer(t)
	case t.Config.Codec == frame.AAC && s.audio == nil:
		s.audio, err = newAudioBuffer(t)
	}
	return err
}

// advance seals what is whole. At the end everything is.
func (s *streamer) advance(ended bool) error {
	waiting := int64(0)
	for _, t := range s.buffers() {
		waiting += t.bytes
	}
	if waiting > held {
		return ErrApart
	}
	if !s.begun && !s.begin(ended) {
		return nil
	}
	if s.video == nil && s.audio == nil {
		return ErrNothing
	}
	for {
		more, err := s.seal(ended)
		if err != nil || !more {
			return err
		}
	}
}

// begin finds out what comes first, as soon as that can be known, and gives everything its place in media time.
func (s *streamer) begin(ended bool) bool {
	if ended {
		if s.video != nil && len(s.video.samples) == 0 {
			s.video = nil
		}
		if s.audio != nil && len(s.audio.samples) == 0 {
			s.audio = nil
		}
	}
	enough := ended
	for _, t := range s.buffers() {
		enough = enough || t.span() > behind
	}
	if !enough && (s.video != nil && len(s.video.samples) < opening || s.audio != nil && len(s.audio.samples) == 0) {
		return false
	}
	if !s.foresees(ended) {
		return false
	}
	zero := math.Inf(1)
	for _, t := range s.buffers() {
		if len(t.samples) > 0 {
			zero = min(zero, float64(t.first())/t.scale())
		}
	}
	for _, t := range s.buffers() {
		t.move(int64(math.Round((timeline.Origin - zero) * t.scale())))
	}
	s.begun, s.border = true, timeline.Origin
	if a := s.audio; a != nil {
		a.due = a.at(timeline.Origin)
		if len(a.samples) > 0 && a.samples[0].dts-a.due <= a.at(late) {
			a.due = a.samples[0].dts
		}
	}
	if v := s.video; v != nil && len(v.samples) > 0 {
		s.delay = max(v.first()-v.samples[0].dts, 0)
		v.soon = usual(s.delay, v.rendition.Timescale)
		s.delay = v.soon
		// Decoded and shown at the beginning even if it is shown later in the file, so that all playlists begin
		// together.
		if zero := v.at(timeline.Origin); v.samples[0].pts == v.first() && v.samples[0].pts > zero+v.at(late) {
			v.samples[0].pts = zero
		}
		v.samples[0].dts = max(min(v.samples[0].dts, v.at(timeline.Origin)-s.delay), 0)
	}
	target := s.chooseTarget(ended)
	s.longest = float64(target) + rounding
	s.pending = append(s.pending, timeline.Entry{Target: target})
	for _, t := range s.buffers() {
		t.init.Object = s.prefix + t.rendition.ID + "/init-0.mp4"
		if t.rendition.Kind == frame.Video && !(t.init.FrameRate > 0 && t.init.FrameRate <= 300) {
			t.init.FrameRate = t.rate()
		}
		s.objects = append(s.objects, Object{t.init.Object, t.header})
		s.pending = append(s.pending, timeline.Entry{Rendition: &t.rendition}, timeline.Entry{Init: &t.init})
	}
	return true
}

// seal hands out one segment if it is whole; false when there is none.
func (s *streamer) seal(ended bool) (bool, error) {
	if s.video == nil {
		return s.sealSound(ended)
	}
	v := s.video
	v.decide(ended)
	if len(v.cuts) == 0 {
		if !ended {
			return false, nil
		}
		return false, s.finish()
	}
	n := v.cuts[0] - v.gone
	next := v.samples[n]
	border := float64(next.dts+s.delay) / v.scale()
	if next.idr {
		border = float64(next.pts) / v.scale()
	}
	if a := s.audio; a != nil && !ended && a.last() < border && v.last() < border+behind {
		return false, nil
	}
	v.cuts = v.cuts[1:]
	end, whole := s.pausesAt(n, next.dts), border
	if end < next.dts {
		border = float64(end+s.delay) / v.scale()
	}
	chunks := []timeline.Chunk{s.store(v, n, end)}
	if s.audio != nil {
		chunks = append(chunks, s.soundUpTo(border))
	}
	err := s.out(border, chunks)
	if err == nil && end < next.dts {
		err = s.freezeUntil(end, next.dts, whole)
	}
	return true, err
}

// sealSound is seal where there is no picture.
func (s *streamer) sealSound(ended bool) (bool, error) {
	a := s.audio
	border := s.border + wanted.Seconds()
	if len(a.samples) == 0 {
		return false, nil
	}
	// a rest that is short belongs to the last segment
	if end := float64(a.end()) / a.scale(); end-border <= wanted.Seconds()/2 {
		if !ended {
			return false, nil
		}
		border = end
	}
	return true, s.out(border, []timeline.Chunk{s.soundUpTo(border)})
}

// finish seals what is left, and sound that goes on behind the last picture.
func (s *streamer) finish() error {
	v, a := s.video, s.audio
	soundEnds := 0.0
	if a != nil && len(a.samples) > 0 {
		soundEnds = float64(a.end()) / a.scale()
	}
	if len(v.samples) > 0 {
		end := v.end()
		border := float64(end+s.delay) / v.scale()
		tail := soundEnds - border
		if tail > together.Seconds() && float64(end-v.samples[0].dts)/v.scale()+tail <= s.longest {
			v.stands = int64(math.Round(tail * v.scale()))
			end += v.stands
			border = soundEnds
		} else if tail <= together.Seconds() {
			border = max(border, soundEnds)
		}
		chunks := []timeline.Chunk{s.store(v, len(v.samples), end)}
		if a != nil {
			chunks = append(chunks, s.lastSound(border))
		}
		if err := s.out(border, chunks); err != nil {
			return err
		}
		if soundEnds > border && s.freeze != nil && len(s.group) > 0 {
			return s.freezeUntil(end, v.at(soundEnds)-s.delay, soundEnds)
		}
	}
	for a != nil && len(a.samples) > 0 {
		border := s.border + wanted.Seconds()
		if soundEnds-border < wanted.Seconds()/2 {
			border = max(soundEnds, s.border+0.001)
		}
		if err := s.out(border, []timeline.Chunk{v.gap(s.border, border), s.soundUpTo(border)}); err != nil {
			return err
		}
	}
	return nil
}

// whole is the timeline when nothing is added any more: without renditions that nothing came of, and with what is known
// only now.
func (s *streamer) whole() *timeline.Timeline {
	t := s.timeline
	t.Renditions = slices.DeleteFunc(t.Renditions, func(l *timeline.Rendition) bool {
		return !slices.ContainsFunc(l.Chunks, func(c timeline.Chunk) bool { return !c.Gap })
	})
	t.Target = max(t.Target, target(t.Renditions))
	if l := t.Rendition(timeline.MainVideo); l != nil && s.video.ticks > 0 {
		l.Inits[0].FrameRate = s.video.shown()
	}
	return t
}

// lastSound stores the sound of the last segment with pictures, which may end a little before them.
func (s *streamer) lastSound(border float64) timeline.Chunk {
	if a := s.audio; len(a.samples) > 0 && border-float64(a.end())/a.scale() <= together.Seconds() {
		border = min(border, float64(a.end())/a.scale())
	}
	return s.soundUpTo(border)
}

// soundUpTo stores the sound that begins before border.
func (s *streamer) soundUpTo(border float64) timeline.Chunk {
	a := s.audio
	a.hush(a.at(border))
	n := 0
	for n < len(a.samples) && float64(a.samples[n].pts)/a.scale() < border {
		n++
	}
	if n == 0 {
		return a.gap(s.border, border)
	}
	end := a.samples[n-1].dts + int64(a.samples[n-1].long)
	if n < len(a.samples) {
		next := a.samples[n].dts
		end = next - a.silence.at(a.silence.within(next-end)) // silence comes first
	}
	return s.store(a, n, end)
}

// store takes n samples off a trackBuffer as a segment that ends at end.
func (s *streamer) store(t *trackBuffer, n int, end int64) timeline.Chunk {
	if n == 0 {
		return t.gap(s.border, float64(end)/t.scale())
	}
	key := s.prefix + t.rendition.ID + "/" + strconv.FormatInt(s.msn, 10) + ".m4s"
	first := t.samples[0]
	if t == s.video && s.freeze != nil {
		s.remember(t.fragment(n, end))
	}
	data := cmaf.AppendFragment(nil, uint32(s.msn+1), cmaf.TrackID, uint64(max(first.dts, 0)), t.cut(n, end))
	s.objects = append(s.objects, Object{key, data})
	return timeline.Chunk{
		Rendition:   t.rendition.ID,
		Time:        first.dts,
		Duration:    end - first.dts,
		Size:        int64(len(data)),
		Independent: first.idr,
		Object:      key,
	}
}

// out hands out a segment.
func (s *streamer) out(border float64, chunks []timeline.Chunk) error {
	e := timeline.Entry{Segment: &timeline.Segment{MSN: s.msn, Chunks: chunks}}
	sealed := Sealed{Objects: s.objects, Entries: append(s.pending, e)}
	for _, e := range sealed.Entries {
		if err := s.timeline.Apply(e); err != nil {
			return fmt.Errorf("cut stream: %w", err)
		}
	}
	s.objects, s.pending, s.border = nil, nil, border
	s.msn++
	if border > timeline.Origin+maxSeconds {
		return ErrTooLong
	}
	return s.emit(sealed)
}
