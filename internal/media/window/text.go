package window

import (
	"context"
	"math"
	"slices"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// Texts is the text renditions at an edge: WebVTT, cut where the video is cut, or the sound where there is none. A
// segment is listed as soon as it is whole in the video and all its cues are known (Watermark), and is not waited for
// any longer than until the next one is half done; where parts are listed, and players are closer to live than that, it
// is not waited for at all. From then on its text never changes. The first one is listed at once: no player can do with
// an empty playlist. It has no parts: its PART-HOLD-BACK is so long that a segment is there in time.
//
// Times are from the asset's second 0 on. Its methods may be called by any goroutine and never wait for a disk.
type Texts struct {
	e          *Edge // whose lock guards what follows
	renditions []*liveRendition
}

// textScale is the time scale of text renditions: nanoseconds.
const textScale = 1_000_000_000

// written are the cues of a text rendition.
type written struct {
	cues     []timeline.Cue // in the order of publication; what is there never changes
	queued   int            // so many are in a record that is stored or queued
	lead     string         // whose segments those of the text are
	ticks    int64          // of the lead, in the segments that are listed
	until    time.Duration  // nothing that begins before comes any more
	full     bool           // some were left out
	late     time.Duration  // of those that were left out as they came too late
	draft    *captions.Cue  // becomes one when the segment in which it begins is listed
	drafted  bool           // it has
	embedded bool           // they are the closed captions of the pictures
	// They are a file that was added, as Offer says: there are none here, and nobody waits for any.
	offered bool
}

// Texts returns the text renditions.
func (e *Edge) Texts() *Texts { return &e.texts }

// Add adds a text rendition, unless it is there. embedded: its cues are the closed captions that the pictures carry,
// which players then must not show by themselves. Nothing is waited for until Watermark is called.
func (tx *Texts) Add(id string, embedded bool) {
	e := tx.e
	e.mu.Lock()
	defer e.mu.Unlock()
	l := tx.add(id)
	l.said.embedded = embedded
	tx.advance(l)
	e.changed(l)
}

// Offer has those text renditions listed whose cues are files that were added while the edge goes on, and no others of
// that kind any more. A segment is listed when it is whole in the video; Span says what it is to show. None of them is
// recorded.
func (tx *Texts) Offer(ids []string) {
	e := tx.e
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := func(l *liveRendition) bool { return l.said.offered && !slices.Contains(ids, l.ID) }
	if slices.ContainsFunc(tx.renditions, gone) {
		kept := slices.DeleteFunc(slices.Clone(tx.renditions), gone)
		for _, l := range tx.renditions {
			if gone(l) {
				e.changed(l)
			}
		}
		tx.renditions = kept
	}
	for _, id := range ids {
		if tx.find(id) != nil {
			continue
		}
		l := tx.add(id)
		l.said.offered = true
		tx.advance(l)
		e.changed(l)
	}
}

// Offered reports whether a text rendition is there by Offer.
func (tx *Texts) Offered(id string) bool {
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	l := tx.find(id)
	return l != nil && l.said.offered
}

func (tx *Texts) add(id string) *liveRendition {
	if l := tx.find(id); l != nil {
		return l
	}
	l := &liveRendition{
		RenditionInfo: timeline.RenditionInfo{ID: id, Kind: frame.Text, Timescale: textScale},
		said:          &written{until: math.MaxInt64},
	}
	tx.renditions = append(tx.renditions, l)
	return l
}

func (tx *Texts) find(id string) *liveRendition {
	i := slices.IndexFunc(tx.renditions, func(l *liveRendition) bool { return l.ID == id })
	if i < 0 {
		return nil
	}
	return tx.renditions[i]
}

// Any reports whether there are text renditions that are made here.
func (tx *Texts) Any() bool {
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	return slices.ContainsFunc(tx.renditions, func(l *liveRendition) bool { return !l.said.offered })
}

// Has reports whether there is such a text rendition.
func (tx *Texts) Has(id string) bool {
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	return tx.find(id) != nil
}

// Publish adds a cue. One that begins in a segment which is listed already is moved behind that, as long as it is, so
// that it is seen, by players at the PART-HOLD-BACK of the video for a second at least. Cues that are not the pictures'
// closed captions follow each other: one that would begin before the last one ends begins there, and ends when it would
// have, but is there for a second at least. One of them that begins more than MostLate behind the live edge is left out
// (Late): it would be shown with other pictures than its own. It reports false where nothing is added: that, or the
// text is empty, the broadcast has ended, or there are too many already (Full).
func (tx *Texts) Publish(id string, c captions.Cue) bool {
	clean := captions.New([]captions.Cue{c}).Cues()
	e := tx.e
	e.mu.Lock()
	defer e.mu.Unlock()
	l := tx.find(id)
	return l != nil && !e.ended && len(clean) > 0 && tx.publish(l, clean[0])
}

// Draft has a cue wait for words that may go with it: it is published when the segment in which it begins is listed,
// unless it is withdrawn before. There is one at most.
func (tx *Texts) Draft(id string, c captions.Cue) {
	clean := captions.New([]captions.Cue{c}).Cues()
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	if l := tx.find(id); l != nil && len(clean) > 0 {
		l.said.draft, l.said.drafted = &clean[0], false
	}
}

// Withdraw takes back the draft, and reports whether it has been published.
func (tx *Texts) Withdraw(id string) (published bool) {
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	l := tx.find(id)
	if l == nil {
		return false
	}
	published, l.said.draft, l.said.drafted = l.said.drafted, nil, false
	return published
}

// takeDraft gives the draft, to be published, if it begins before a time; nil: there is none that does.
func (w *written) takeDraft(end time.Duration) *captions.Cue {
	d := w.draft
	if d == nil || d.Start >= end {
		return nil
	}
	w.draft, w.drafted = nil, true
	return d
}

// publish is Publish. Called with the lock.
func (tx *Texts) publish(l *liveRendition, c captions.Cue) bool {
	if !l.said.embedded && tx.live(l)-c.Start > MostLate {
		l.said.late += max(c.End-c.Start, 0)
		return false
	}
	lasts := c.End - c.Start
	if late := l.listedEnd() - c.Start; late > 0 {
		c.Start += late
		c.End = c.Start + max(lasts, tx.missed()+leastShown)
	}
	if n := len(l.said.cues); n > 0 && !l.said.embedded {
		if before := l.said.cues[n-1].Caption().End; before > c.Start {
			c.Start, c.End = before, max(c.End, before+min(leastShown, lasts))
		}
	}
	if l.said.tooMany(c.Start) {
		l.said.full = true
		return false
	}
	l.said.cues = append(l.said.cues, timeline.Cue{
		Number: int64(len(l.said.cues)) + 1, Start: (c.Start + time.Millisecond - 1).Milliseconds(),
		End:      (c.End + time.Millisecond - 1).Milliseconds(),
		Settings: c.Settings, Text: c.Text,
	})
	tx.note(l, len(l.said.cues)-1)
	return true
}

// cuesASecond is how many cues may begin in one second, which is more than a channel of captions can say.
const cuesASecond = 30

// tooMany reports whether a cue that begins at a time would be one too many. The memory, the journal and the database
// keep each one, and an encoder may send any number of them.
func (w *written) tooMany(start time.Duration) bool {
	n := len(w.cues)
	return n >= captions.MaxCues || n >= cuesASecond && w.cues[n-cuesASecond].Caption().Start > start-time.Second
}

// Full reports whether cues of a text rendition were left out, as there were more than captions.MaxCues, or than any
// person can read.
func (tx *Texts) Full(id string) bool {
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	l := tx.find(id)
	return l != nil && l.said.full
}

// MostLate is how far behind the live edge a cue may begin that is made of what was said.
const MostLate = 10 * time.Second

// Late is how long the cues of a text rendition last, all together, that were left out as they came too late.
func (tx *Texts) Late(id string) time.Duration {
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	if l := tx.find(id); l != nil {
		return l.said.late
	}
	return 0
}

// Live is the live edge of a text rendition: where its lead ends.
func (tx *Texts) Live(id string) time.Duration {
	tx.e.mu.Lock()
	defer tx.e.mu.Unlock()
	if l := tx.find(id); l != nil {
		return tx.live(l)
	}
	return 0
}

// live is Live. Called with the lock.
func (tx *Texts) live(l *liveRendition) time.Duration {
	end, lead := l.listedEnd(), tx.e.lead()
	if lead == nil || len(lead.segs) <= len(l.segs) {
		return end
	}
	for i := range lead.segs[len(l.segs):] {
		end += lead.duration(lead.segs[len(l.segs)+i].dur)
	}
	return end
}

// missed is how much of a segment a player has shown, at the PART-HOLD-BACK of the video, when the segment of text is
// listed. Called with the lock.
func (tx *Texts) missed() time.Duration {
	if longest := tx.e.longestPart(); tx.e.opt.Mode.Low && longest > 0 {
		return max(tx.e.targetDuration()-hls.HoldBack(longest), 0)
	}
	return 0
}

// leastShown is how long a cue stays at least that comes late, or has waited for the one before.
const leastShown = time.Second

// note puts the cues from one on into the journal, with the segment with which they will be recorded. Called with the
// lock.
func (tx *Texts) note(l *liveRendition, from int) {
	if j := tx.e.opt.Journal; j != nil && from < len(l.said.cues) {
		r := journal.Record{Text: &timeline.Text{Rendition: l.ID, Cues: slices.Clone(l.said.cues[from:])}}
		j.Note(tx.e.first+int64(tx.e.sealed), r, nil)
	}
}

// Watermark says that no cue will be published that begins before t: segments up to there need not wait. math.MaxInt64:
// nothing comes for now.
func (tx *Texts) Watermark(id string, t time.Duration) {
	e := tx.e
	e.mu.Lock()
	defer e.mu.Unlock()
	l := tx.find(id)
	if l == nil {
		return
	}
	l.said.until = t
	if tx.advance(l) {
		e.changed(l)
	}
}

// listedEnd is where the segments that are listed end.
func (l *liveRendition) listedEnd() time.Duration {
	if n := len(l.segs); n > 0 {
		return time.Duration(l.segs[n-1].time + l.segs[n-1].dur)
	}
	return 0
}

// lead is the rendition whose segments the text renditions have; nil: there is none yet. Called with the lock.
func (e *Edge) lead() *liveRendition {
	if l := e.rendition(timeline.MainVideo); l != nil {
		return l
	}
	if len(e.renditions) > 0 {
		return e.renditions[0]
	}
	return nil
}

// follow lists what can be listed now that the lead has changed. Called with the lock.
func (tx *Texts) follow(of *liveRendition) {
	if of != tx.e.lead() {
		return
	}
	for _, l := range tx.renditions {
		if tx.advance(l) {
			tx.e.changed(l)
		}
	}
}

// advance lists the segments that are whole in the lead and not waited for. Called with the lock.
func (tx *Texts) advance(l *liveRendition) (moved bool) {
	lead := tx.e.lead()
	if lead == nil {
		return false
	}
	if w := l.said; w.lead != lead.ID {
		w.lead, w.ticks = lead.ID, 0
		for i := range l.segs[:min(len(l.segs), len(lead.segs))] {
			w.ticks += lead.segs[i].dur
		}
	}
	for i := len(l.segs); i < len(lead.segs) && lead.segs[i].done; i++ {
		from := &lead.segs[i]
		ticks := l.said.ticks + from.dur
		// As a recording says it: the sum of all lengths, so that the segments are the same there.
		at, end := int64(l.listedEnd()), int64(float64(ticks)/float64(lead.Timescale)*textScale)
		if tx.awaited(l, lead, i, time.Duration(end)) {
			break
		}
		if d := l.said.takeDraft(time.Duration(end)); d != nil {
			tx.publish(l, *d)
		}
		l.said.ticks = ticks
		l.segs = append(l.segs, segment{
			start: from.start, time: at, dur: max(end-at, 1), disc: from.disc, slate: from.slate,
			generation: from.generation, independent: true, done: true,
			stored: true,
		})
		moved = true
	}
	return moved
}

// awaited reports whether the cues of a segment, whole in the lead, are waited for. Called with the lock.
func (tx *Texts) awaited(l, lead *liveRendition, i int, end time.Duration) bool {
	const rounding = 2 * time.Millisecond
	if i == 0 || tx.e.ended || tx.e.opt.Mode.Low || l.said.until >= end-rounding || len(lead.segs)-i > 2 {
		return false
	}
	return len(lead.segs)-i == 1 || lead.duration(lead.segs[i+1].dur) <= time.Duration(tx.e.target)*time.Second/2
}

// pending takes the cues that are not recorded. Called with the lock.
func (tx *Texts) pending() (out []timeline.Entry) {
	for _, l := range tx.renditions {
		if w := l.said; w.queued < len(w.cues) {
			out = append(out, timeline.Entry{Text: &timeline.Text{
				Rendition: l.ID,
				Cues:      slices.Clone(w.cues[w.queued:]),
			}})
			w.queued = len(w.cues)
		}
	}
	return out
}

// resume goes on with what an earlier process has recorded.
func (tx *Texts) resume(t *timeline.Timeline) {
	for _, from := range t.Texts {
		l := tx.add(from.Rendition)
		l.said.cues = slices.Clone(from.Cues)
		l.said.queued = len(l.said.cues)
	}
}

// takeOver goes on with what an earlier process has published and not recorded.
func (tx *Texts) takeOver(all []timeline.Text) {
	for _, from := range all {
		w := tx.add(from.Rendition).said
		for _, c := range from.Cues {
			if c.Number == int64(len(w.cues))+1 {
				w.cues = append(w.cues, c)
			}
		}
	}
}

// keep has the journal keep what was taken over from it, and lists what there is.
func (tx *Texts) keep() {
	for _, l := range tx.renditions {
		tx.note(l, l.said.queued)
		tx.advance(l)
	}
}

// apart reports whether the pictures' closed captions are a text rendition. Called with the lock.
func (tx *Texts) apart() bool {
	return slices.ContainsFunc(tx.renditions, func(l *liveRendition) bool { return l.said.embedded })
}

// Segment is a whole WebVTT segment; one that comes next is waited for. ErrUnknown: its cues are not published here.
func (tx *Texts) Segment(ctx context.Context, id string, msn int64) ([]byte, error) {
	cues, from, to, err := tx.segment(ctx, id, msn, false)
	if err != nil {
		return nil, err
	}
	return captions.New(shown(cues, from, to)).Slice(from, to, timeline.Origin*90000), nil
}

// Span is from when to when a segment goes of a rendition that Offer has; one that comes next is waited for.
func (tx *Texts) Span(ctx context.Context, id string, msn int64) (from, to time.Duration, err error) {
	_, from, to, err = tx.segment(ctx, id, msn, true)
	return from, to, err
}

func (tx *Texts) segment(
	ctx context.Context, id string, msn int64, offered bool,
) (cues []timeline.Cue, from, to time.Duration, err error) {
	_, err = tx.e.await(ctx, id, tx.e.threeTargets, func(l *liveRendition) (Location, bool, error) {
		i := msn - tx.e.first
		if i < 0 || i > int64(len(l.segs))+1 || l.said == nil || l.said.offered != offered {
			return Location{}, false, ErrUnknown
		}
		if i >= int64(len(l.segs)) {
			return Location{}, false, nil
		}
		s := &l.segs[i]
		cues, from, to = l.said.cues, time.Duration(s.time), time.Duration(s.time+s.dur)
		return Location{}, true, nil
	})
	return cues, from, to, err
}

// shown are the cues of a segment.
func shown(all []timeline.Cue, from, to time.Duration) (out []captions.Cue) {
	for i := range all {
		c := all[i].Caption()
		if c.Start < to && c.End > from {
			out = append(out, c)
		}
	}
	return out
}

// Whole is all that was published in a text rendition so far. ErrUnknown: there is no such one.
func (tx *Texts) Whole(id string) (captions.Document, error) {
	tx.e.mu.Lock()
	l := tx.find(id)
	if l == nil {
		tx.e.mu.Unlock()
		return captions.Document{}, ErrUnknown
	}
	all := l.said.cues
	tx.e.mu.Unlock()
	return captions.New(shown(all, 0, math.MaxInt64)), nil
}

// segmentURI names segment i of a rendition.
func (e *Edge) segmentURI(l *liveRendition, i int, generation int64) string {
	ext := "m4s"
	if l.Kind == frame.Text {
		ext = "vtt"
	}
	return hls.InGeneration(generation, hls.SegmentURI(l.ID, e.first+int64(i), ext))
}
