// Package captions is the model of timed text: cues with their times and styling, read from SubRip (SRT) or WebVTT
// files of any origin and written as WebVTT, whole or in segments for HLS.
//
// It is pure: bytes in, values and bytes out. It must never know files, sockets, the time of day, HTTP or who asks, and
// it starts no goroutine. Input is hostile: every size is bounded, nothing panics, and what is written is plain WebVTT
// in which text can never turn into markup of a page.
package captions

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"
)

// The bounds of a document.
const (
	MaxInput    = 16 << 20 // bytes of a file
	MaxCues     = 100_000  // cues of a document
	MaxCueText  = 64 << 10 // bytes of one cue's text, before and after conversion
	MaxAtOnce   = 256      // cues shown at the same moment
	MaxOnScreen = 1 << 20  // bytes of text shown at the same moment
	maxTime     = time.Hour * 10_000

	// transcriptPause is how long nobody speaks before a transcript begins a new line.
	transcriptPause = 2 * time.Second
)

// Cue is a text shown from Start to End. Times are whole milliseconds, Start < End, both under 10,000 hours.
type Cue struct {
	ID         string // identifier that style rules may name; may be empty
	Start, End time.Duration
	Settings   string // valid WebVTT cue settings joined by a space; may be empty
	Text       string // WebVTT cue text: tags balanced and of the known kinds, everything else escaped, no empty line
}

// Drops counts the cues that were left out, by reason.
type Drops struct {
	BadTime     int // a timing line that can't be read
	NotPositive int // the end is not after the start
	Empty       int // no visible text
	TooLong     int // more text than MaxCueText
	Crowded     int // more at once than MaxAtOnce or MaxOnScreen
}

// Total is the number of cues left out.
func (d Drops) Total() int { return d.BadTime + d.NotPositive + d.Empty + d.TooLong + d.Crowded }

// Document is an immutable list of cues ordered by start, with the style and region blocks they refer to.
// The zero value holds nothing and is ready to be written.
type Document struct {
	cues   []Cue
	blocks []string // STYLE and REGION blocks with their first line, without the closing empty line
	// implicit balanced tree over cues: the latest end of the subtree whose root is at this index
	maxEnd []time.Duration
	drops  Drops
}

// New makes a document of cues made by a program, such as a caption decoder. Texts and settings are sanitised as if
// they came from a WebVTT file, times are cut to milliseconds, and cues that can't be shown are left out and counted.
func New(cues []Cue) Document {
	b := builder{}
	for _, c := range cues {
		if len(b.cues) == MaxCues {
			b.drops.Crowded++
			continue
		}
		b.add(rawCue{
			id: c.ID, start: c.Start.Truncate(time.Millisecond), end: c.End.Truncate(time.Millisecond),
			settings: c.Settings, text: strings.ToValidUTF8(c.Text, "\uFFFD"),
		}, true)
	}
	return b.document()
}

// Len is the number of cues.
func (d Document) Len() int { return len(d.cues) }

// Cues returns a copy of the cues in the order of their start.
func (d Document) Cues() []Cue { return slices.Clone(d.cues) }

// Dropped says how many cues of the input were left out and why.
func (d Document) Dropped() Drops { return d.drops }

// End is the time at which the last cue disappears; zero without cues.
func (d Document) End() time.Duration {
	if len(d.cues) == 0 {
		return 0
	}
	return d.maxEnd[len(d.cues)/2]
}

// overlapping calls yield in order with each cue that is shown within [from, to).
func (d Document) overlapping(from, to time.Duration, yield func(Cue)) {
	var visit func(lo, hi int)
	visit = func(lo, hi int) {
		if lo >= hi {
			return
		}
		mid := lo + (hi-lo)/2
		if d.maxEnd[mid] <= from {
			return
		}
		visit(lo, mid)
		if d.cues[mid].Start >= to {
			return
		}
		if d.cues[mid].End > from {
			yield(d.cues[mid])
		}
		visit(mid+1, hi)
	}
	visit(0, len(d.cues))
}

// Trim returns the cues shown within [from, to), cut to that range. Times stay those of the original;
// a clip that starts at zero is d.Trim(from, to).Shift(-from).
func (d Document) Trim(from, to time.Duration) Document {
	from, to = from.Truncate(time.Millisecond), to.Truncate(time.Millisecond)
	var cues []Cue
	d.overlapping(from, to, func(c Cue) {
		c.Start, c.End = max(c.Start, from), min(c.End, to)
		cues = append(cues, c)
	})
	return build(cues, d.blocks)
}

// Before returns the cues that begin before a time, as they are.
func (d Document) Before(end time.Duration) Document {
	var cues []Cue
	d.overlapping(0, end, func(c Cue) { cues = append(cues, c) })
	return build(cues, d.blocks)
}

// Shift returns the cues moved by delta, cut to whole milliseconds, with the times inside their text. What would lie
// before zero is cut off.
func (d Document) Shift(delta time.Duration) Document {
	delta = delta.Truncate(time.Millisecond)
	var cues []Cue
	for _, c := range d.cues {
		c.Start, c.End = max(c.Start+delta, 0), min(c.End+delta, maxTime-time.Millisecond)
		if c.Start >= c.End {
			continue
		}
		c.Text = shiftText(c.Text, delta)
		cues = append(cues, c)
	}
	return build(cues, d.blocks)
}

// build orders sanitised cues and indexes them.
func build(cues []Cue, blocks []string) Document {
	slices.SortStableFunc(cues, func(a, b Cue) int { return cmp.Compare(a.Start, b.Start) })
	d := Document{cues: cues, blocks: blocks, maxEnd: make([]time.Duration, len(cues))}
	var index func(lo, hi int) time.Duration
	index = func(lo, hi int) time.Duration {
		if lo >= hi {
			return 0
		}
		mid := lo + (hi-lo)/2
		d.maxEnd[mid] = max(cues[mid].End, index(lo, mid), index(mid+1, hi))
		return d.maxEnd[mid]
	}
	index(0, len(cues))
	return d
}

// thin leaves out cues that would be shown together with too many others: it bounds what a segment repeats of its
// predecessors. cues are ordered by start.
func thin(cues []Cue) (kept []Cue, crowded int) {
	var shown shownHeap
	size := 0
	kept = cues[:0]
	for _, c := range cues {
		for len(shown) > 0 && shown[0].end <= c.Start {
			size -= heap.Pop(&shown).(shownCue).size
		}
		if len(shown) == MaxAtOnce || size+len(c.Text) > MaxOnScreen {
			crowded++
			continue
		}
		heap.Push(&shown, shownCue{end: c.End, size: len(c.Text)})
		size += len(c.Text)
		kept = append(kept, c)
	}
	return kept, crowded
}

type shownCue struct {
	end  time.Duration
	size int
}

// shownHeap has the cue that disappears first on top.
type shownHeap []shownCue

func (s shownHeap) Len() int           { return len(s) }
func (s shownHeap) Less(i, j int) bool { return s[i].end < s[j].end }
func (s shownHeap) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *shownHeap) Push(x any)        { *s = append(*s, x.(shownCue)) }
func (s *shownHeap) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// rawCue is a cue as it was read: times parsed, everything else as in the file.
type rawCue struct {
	id, settings, text string
	start, end         time.Duration
}

// builder collects cues and counts those it leaves out.
type builder struct {
	cues  []Cue
	drops Drops
}

func (b *builder) add(raw rawCue, vtt bool) {
	if raw.start < 0 || raw.end >= maxTime {
		b.drops.BadTime++
		return
	}
	if raw.end <= raw.start {
		b.drops.NotPositive++
		return
	}
	if len(raw.text) > MaxCueText {
		b.drops.TooLong++
		return
	}
	set := parseSettings(raw.settings)
	text, visible := convert(raw.text, vtt, &set)
	switch {
	case !visible:
		b.drops.Empty++
	case len(text) > MaxCueText:
		b.drops.TooLong++
	default:
		b.cues = append(b.cues, Cue{
			ID:       cleanID(raw.id),
			Start:    raw.start,
			End:      raw.end,
			Settings: set.String(),
			Text:     text,
		})
	}
}

func (b *builder) document(blocks ...string) Document {
	slices.SortStableFunc(b.cues, func(a, b Cue) int { return cmp.Compare(a.Start, b.Start) })
	kept, crowded := thin(b.cues)
	b.drops.Crowded += crowded
	d := build(kept, blocks)
	d.drops = b.drops
	return d
}

// cleanID returns id when it is safe to stand alone on a line before a timing line, else nothing: a cue needs no
// identifier.
func cleanID(id string) string {
	id = strings.Trim(stripControls(id), " \t")
	if len(id) > 256 || strings.ContainsAny(id, "<>&\n") {
		return ""
	}
	for _, word := range []string{"NOTE", "STYLE", "REGION", "WEBVTT"} {
		if strings.HasPrefix(id, word) {
			return ""
		}
	}
	return id
}
