// Package timeline records what an asset consists of: which segments exist in which renditions, in which order, with
// their times, sizes and places. It is a log of entries that only grows; applied in order, they give the Timeline.
// Pure: no files, sockets or clock.
//
// All renditions are cut at the same media sequence numbers. Media time never has a hole: after a pause or a jump of
// the encoder's clock, media time continues where it ended, behind a discontinuity; wall-clock time is kept beside it.
package timeline

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/internal/media/frame"
)

// Origin is the media time of an asset's first video frame, in seconds. It keeps decoding times positive for every
// reorder delay and audio priming, without edit lists.
const Origin = 10

// The names of the renditions of the incoming tracks; others are named by their track's ID.
const (
	MainVideo = "v"
	MainAudio = "a"
)

// RenditionInfo declares one rendition.
type RenditionInfo struct {
	ID        string     `json:"id"`
	Kind      frame.Kind `json:"kind"`
	Timescale uint32     `json:"timescale"` // ticks per second of its chunks
	// PartTarget is EXT-X-PART-INF's in microseconds: it never changes once said. 0: cut without parts.
	PartTarget int64 `json:"part_target,omitempty"`
	// Source is the stored file its init segment and its chunks are made from when asked for, but for those that are
	// objects of their own.
	Source *Source `json:"source,omitempty"`
}

// Source is one track of a stored MP4.
type Source struct {
	Object string `json:"object"` // storage key
	Track  uint32 `json:"track"`  // track_ID, ISO 14496-12 section 8.3.2
	// Start is the place on the file's clock, in ticks of the track, that media times were counted from when the
	// timeline was made.
	Start int64 `json:"start,omitempty"`
}

// Init is one initialization segment of a rendition (EXT-X-MAP), with what it takes to describe it in a playlist.
type Init struct {
	Rendition  string           `json:"rendition"`
	Codec      string           `json:"codec"` // RFC 6381
	Width      int              `json:"width,omitempty"`
	Height     int              `json:"height,omitempty"`
	FrameRate  float64          `json:"frame_rate,omitempty"` // frames per second; 0: unknown or variable
	Range      frame.VideoRange `json:"range,omitempty"`
	SampleRate int              `json:"sample_rate,omitempty"`
	Channels   int              `json:"channels,omitempty"`
	// storage key; empty when it is made from the rendition's Source
	Object     string `json:"object,omitempty"`
	Hash       string `json:"hash,omitempty"` // of its bytes, so that the same ones are known again
	Generation int64  `json:"gen,omitempty"`  // of the broadcast, in which it was published
	// Still says that the chunks with it are one held picture, which their Object has once for all: it takes its times
	// from the chunk.
	Still bool `json:"still,omitempty"`
}

// Segment is one media sequence number in every rendition.
type Segment struct {
	MSN int64 `json:"msn"`
	// wall clock of its first frame, Unix milliseconds; 0: not from a live source
	Start         int64   `json:"start,omitempty"`
	Discontinuity bool    `json:"discontinuity,omitempty"` // it does not continue what came before
	Slate         bool    `json:"slate,omitempty"`         // it stands in for an encoder that was away
	Generation    int64   `json:"gen,omitempty"`           // of the broadcast, in which it was published
	Chunks        []Chunk `json:"chunks"`
}

// Chunk is a segment's media in one rendition.
type Chunk struct {
	Rendition string `json:"r"`
	Init      int    `json:"i,omitempty"` // which Init of its rendition, from 0
	// decoding time of its first sample, in ticks; behind a discontinuity before it is moved, see cmaf.Start
	Time     int64 `json:"t"`
	Duration int64 `json:"d"`           // in ticks
	Size     int64 `json:"n,omitempty"` // bytes
	// wall clock: its first frame is so many milliseconds later than the segment's Start
	Apart       int64  `json:"w,omitempty"`
	Independent bool   `json:"k,omitempty"` // starts with an IDR (video); always so for audio
	Gap         bool   `json:"g,omitempty"` // there is no media (EXT-X-GAP)
	Object      string `json:"o,omitempty"` // storage key; empty when it is made from the rendition's Source
	From        int    `json:"f,omitempty"` // samples [From, To) of the Source
	To          int    `json:"e,omitempty"`
	// packets of silence in front of those; where From is To, silence is all there is
	Lead int `json:"l,omitempty"`
}

// Entry is one step of the log: exactly one field is set.
type Entry struct {
	Rendition *RenditionInfo `json:"rendition,omitempty"`
	Init      *Init          `json:"init,omitempty"`
	Segment   *Segment       `json:"segment,omitempty"`
	Text      *Text          `json:"text,omitempty"`   // published in a live text rendition; it is part of no index
	Target    int            `json:"target,omitempty"` // EXT-X-TARGETDURATION in seconds: it never changes once said
	Over      bool           `json:"over,omitempty"`   // the asset ends here: what follows was listed while it was live
	// media time, in seconds, of the asset's second 0, where that is not Origin
	Zero float64 `json:"zero,omitempty"`
}

// Mark is what all renditions share at one media sequence number.
type Mark struct {
	Start         time.Time // zero: unknown
	Discontinuity bool
	Slate         bool // no encoder's media
	Generation    int64
}

// Rendition is one rendition with its chunks, index-aligned to the timeline's Marks.
type Rendition struct {
	RenditionInfo
	Inits  []Init
	Chunks []Chunk
	Peak   float64 // bits per second of the fastest stretch
	target int     // seconds; 0: unknown
	rate   Rate
}

// Timeline is the log applied. The zero value is empty.
type Timeline struct {
	First  int64 // media sequence number of Marks[0]
	Target int   // seconds
	// Media time of the asset's second 0 (presentation time of its first video frame), in seconds; 0 means Origin.
	Zero       float64
	Marks      []Mark
	Renditions []*Rendition
	Texts      []Text // of the live text renditions, while there is no index
	// Tail is what was listed behind the asset's end while it was live. Its segments stay at their addresses; nothing
	// else knows them. nil: nothing.
	Tail *Timeline
}

// ErrOrder says that an entry does not fit what came before.
var ErrOrder = errors.New("timeline entry out of order")

// ZeroTime is the media time of the asset's second 0, in seconds.
func (t *Timeline) ZeroTime() float64 {
	if t.Zero > 0 {
		return t.Zero
	}
	return Origin
}

// Rendition returns the rendition with that ID, or nil.
func (t *Timeline) Rendition(id string) *Rendition {
	for _, l := range t.Renditions {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// Next is the media sequence number that the next segment gets.
func (t *Timeline) Next() int64 { return t.First + int64(len(t.Marks)) }

// Apply appends one entry. A rendition that joins late has gaps in front; one without a chunk in a segment gets a gap
// there. An entry that is refused with ErrOrder changes nothing.
func (t *Timeline) Apply(e Entry) error {
	if n := e.fields(); n != 1 {
		return fmt.Errorf("entry of %d things: %w", n, ErrOrder)
	}
	if e.Text != nil {
		t.addText(*e.Text)
		return nil
	}
	if t.Tail != nil {
		return t.Tail.Apply(e)
	}
	switch {
	case e.Over:
		t.Tail = t.beyond()
		return nil
	case e.Rendition != nil:
		return t.addRendition(*e.Rendition)
	case e.Init != nil:
		l := t.Rendition(e.Init.Rendition)
		if l == nil {
			return fmt.Errorf("init of unknown rendition %q: %w", e.Init.Rendition, ErrOrder)
		}
		l.Inits = append(l.Inits, *e.Init)
		return nil
	case e.Segment != nil:
		return t.addSegment(*e.Segment)
	case e.Target != 0:
		return t.setTarget(e.Target)
	}
	if !(e.Zero > 0) {
		return fmt.Errorf("second 0 at %v: %w", e.Zero, ErrOrder)
	}
	t.Zero = e.Zero
	return nil
}

// fields counts what e says.
func (e *Entry) fields() int {
	n := 0
	for _, said := range []bool{
		e.Rendition != nil, e.Init != nil, e.Segment != nil, e.Text != nil, e.Target != 0,
		e.Over, e.Zero != 0,
	} {
		if said {
			n++
		}
	}
	return n
}

func (t *Timeline) setTarget(seconds int) error {
	if seconds < 0 || t.Target != 0 && t.Target != seconds {
		return fmt.Errorf("target duration %d s after %d s: %w", seconds, t.Target, ErrOrder)
	}
	t.Target = seconds
	for _, l := range t.Renditions {
		l.target = seconds
	}
	return nil
}

// maxRenditions bounds what one hostile row can make of many others.
const maxRenditions = 256

func (t *Timeline) addRendition(r RenditionInfo) error {
	if r.ID == "" || t.Rendition(r.ID) != nil || r.Timescale == 0 || r.Kind > frame.Text || r.PartTarget < 0 ||
		len(t.Renditions) >= maxRenditions {
		return fmt.Errorf("rendition %q: %w", r.ID, ErrOrder)
	}
	l := &Rendition{RenditionInfo: r, target: t.Target}
	for i := range t.Marks {
		l.Chunks = append(l.Chunks, t.gap(l, i))
	}
	t.Renditions = append(t.Renditions, l)
	return nil
}

func (t *Timeline) addSegment(s Segment) error {
	if s.MSN < 0 || len(t.Marks) > 0 && s.MSN != t.Next() {
		return fmt.Errorf("segment %d after %d: %w", s.MSN, t.Next()-1, ErrOrder)
	}
	for i := range s.Chunks {
		if c := &s.Chunks[i]; !t.fits(c) || slices.ContainsFunc(s.Chunks[:i],
			func(o Chunk) bool { return o.Rendition == c.Rendition }) {
			return fmt.Errorf("chunk of rendition %q in segment %d: %w", c.Rendition, s.MSN, ErrOrder)
		}
	}
	if len(t.Marks) == 0 {
		t.First = s.MSN
	}
	m := Mark{Discontinuity: s.Discontinuity, Slate: s.Slate, Generation: s.Generation}
	if s.Start != 0 {
		m.Start = time.UnixMilli(s.Start).UTC()
	}
	t.Marks = append(t.Marks, m)
	for _, l := range t.Renditions {
		i := slices.IndexFunc(s.Chunks, func(c Chunk) bool { return c.Rendition == l.ID })
		if i >= 0 {
			l.Append(s.Chunks[i])
		}
	}
	for _, l := range t.Renditions { // after the others, whose time a gap takes over
		if len(l.Chunks) < len(t.Marks) {
			l.Chunks = append(l.Chunks, t.gap(l, len(t.Marks)-1))
		}
	}
	return nil
}

// fits reports whether a chunk is of a rendition and an init segment that were declared.
func (t *Timeline) fits(c *Chunk) bool {
	l := t.Rendition(c.Rendition)
	return l != nil && c.Init >= 0 && (c.Gap || c.Init < len(l.Inits)) && c.Duration >= 0 && c.Size >= 0 &&
		c.From >= 0 && c.To >= c.From && c.Lead >= 0
}

// Append adds the next chunk.
func (r *Rendition) Append(c Chunk) {
	r.Chunks = append(r.Chunks, c)
	if !c.Gap {
		r.rate.Add(c.Size, c.Duration, r.Timescale, r.target)
		r.Peak = r.rate.Peak(r.Timescale)
	}
}

// gap is an empty chunk of l that lasts as long as another rendition's chunk at index i: one with media, if there is
// one.
func (t *Timeline) gap(l *Rendition, i int) Chunk {
	g := Chunk{Rendition: l.ID, Gap: true}
	for _, o := range t.Renditions {
		if o == l || i >= len(o.Chunks) || o.Chunks[i].Gap && g.Duration > 0 {
			continue
		}
		g.Time = rescale(o.Chunks[i].Time, o.Timescale, l.Timescale)
		g.Duration = rescale(o.Chunks[i].Duration, o.Timescale, l.Timescale)
		if !o.Chunks[i].Gap {
			break
		}
	}
	return g
}

func rescale(v int64, from, to uint32) int64 {
	return (v/int64(from))*int64(to) + (v%int64(from))*int64(to)/int64(from)
}

// Average is the mean bit rate in bits per second; 0 for an empty rendition.
func (r *Rendition) Average() float64 { return r.rate.Average(r.Timescale) }

// Segment is how long segments are where they are shortest; see Rate.Segment.
func (r *Rendition) Segment() float64 { return r.rate.Segment() }

// Seconds is the length of chunk i.
func (r *Rendition) Seconds(i int) float64 {
	return float64(r.Chunks[i].Duration) / float64(r.Timescale)
}

// Lead is the rendition that decides where segments start: the main video, else the first one.
func (t *Timeline) Lead() *Rendition {
	if v := t.Rendition(MainVideo); v != nil {
		return v
	}
	if len(t.Renditions) > 0 {
		return t.Renditions[0]
	}
	return nil
}

// Duration is the length of the whole in media time.
func (t *Timeline) Duration() time.Duration {
	lead := t.Lead()
	if lead == nil || len(lead.Chunks) == 0 {
		return 0
	}
	var ticks int64
	for i := range lead.Chunks {
		ticks += lead.Chunks[i].Duration
	}
	return time.Duration(float64(ticks) / float64(lead.Timescale) * float64(time.Second))
}

// Independent reports whether every video segment starts with an IDR (EXT-X-INDEPENDENT-SEGMENTS).
func (t *Timeline) Independent() bool {
	for _, l := range t.Renditions {
		if l.Kind == frame.Video && slices.ContainsFunc(l.Chunks,
			func(c Chunk) bool { return !c.Gap && !c.Independent }) {
			return false
		}
	}
	return true
}

// Spans gives the borders of the segments in seconds from the asset's second 0 on: len(Marks)+1 of them.
func (t *Timeline) Spans() []float64 {
	borders := make([]float64, 0, len(t.Marks)+1)
	lead := t.Lead()
	if lead == nil {
		return make([]float64, len(t.Marks)+1)
	}
	var ticks int64
	for i := range lead.Chunks {
		borders = append(borders, float64(ticks)/float64(lead.Timescale))
		ticks += lead.Chunks[i].Duration
	}
	return append(borders, float64(ticks)/float64(lead.Timescale))
}
