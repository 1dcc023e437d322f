package broadcast

import (
	"maps"
	"slices"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/measure"
	"millrace/internal/media/timeline"
)

// The types of recording times: what an encoder sent, and what stood in for it.
const (
	content = "content"
	slated  = "slate"
)

// recordingTimes are an asset's (recording_times of the API): one for each publication that something is stored of, or
// for each part of it when slate came in between, and one for each time of slate. One is as long as what is stored of
// it, so together they are as long as the timeline, also after a crash. Pure.
type recordingTimes struct {
	list   []recordingTime
	at     int               // what was stored last is of this one
	scales map[string]uint32 // ticks per second by rendition
	total  float64           // seconds stored
	limit  float64           // seconds that the recording may have; 0: any
	kept   float64           // seconds of its whole segments within the limit
}

type recordingTime struct {
	started time.Time
	kind    string
	from    float64 // seconds of media time where it begins
	long    float64 // seconds stored
}

// resumeRecordingTimes goes on from what is stored of a broadcast; what was stored last counts for its last recording
// time.
func resumeRecordingTimes(have []asset.Recording, t *timeline.Timeline, limit float64) *recordingTimes {
	s := &recordingTimes{scales: map[string]uint32{}, limit: limit}
	for _, r := range have {
		s.list = append(s.list, recordingTime{started: r.StartedAt, kind: r.Type, long: r.Duration})
	}
	if t == nil {
		return s
	}
	for _, l := range t.Renditions {
		s.scales[l.ID] = l.Timescale
	}
	s.total, s.at = t.Duration().Seconds(), max(len(s.list)-1, 0)
	for _, end := range t.Spans()[1:] {
		s.keep(end)
	}
	rest := s.total
	for i := range s.list {
		if i == len(s.list)-1 {
			s.list[i].long = max(rest, 0)
		}
		rest -= s.list[i].long
	}
	return s
}

// begin notes that a recording time begins at media time from. Slate goes on with slate.
func (rt *recordingTimes) begin(kind string, started time.Time, from float64) {
	if n := len(rt.list); kind == slated && n > 0 && rt.list[n-1].kind == slated {
		return
	}
	rt.list = append(rt.list, recordingTime{started: started, kind: kind, from: from})
}

// count adds what is about to be stored; it returns a copy, so that a failed attempt leaves nothing behind.
func (rt *recordingTimes) count(entries []timeline.Entry) *recordingTimes {
	next := &recordingTimes{
		list: append([]recordingTime(nil), rt.list...), at: rt.at, scales: map[string]uint32{},
		total: rt.total, limit: rt.limit, kept: rt.kept,
	}
	maps.Copy(next.scales, rt.scales)
	for _, e := range entries {
		switch {
		case e.Rendition != nil:
			next.scales[e.Rendition.ID] = e.Rendition.Timescale
		case e.Segment != nil:
			next.add(e.Segment)
		}
	}
	return next
}

// add counts a segment for the last recording time of its kind that begins before its middle.
func (rt *recordingTimes) add(seg *timeline.Segment) {
	lead := -1
	for i, c := range seg.Chunks {
		if rt.scales[c.Rendition] > 0 && (lead < 0 || c.Rendition == timeline.MainVideo) {
			lead = i
		}
	}
	if lead < 0 {
		return
	}
	c := seg.Chunks[lead]
	scale := float64(rt.scales[c.Rendition])
	long := float64(c.Duration) / scale
	middle := float64(c.Time)/scale + long/2
	rt.total += long
	rt.keep(rt.total)
	kind := content
	if seg.Slate {
		kind = slated
	}
	for i := len(rt.list) - 1; i >= rt.at; i-- {
		if r := &rt.list[i]; r.kind == kind && (r.from <= middle || i == rt.at) {
			r.long += long
			rt.at = i
			return
		}
	}
	// A process that died had noted a beginning, and left only the media.
	rt.list = append(rt.list, recordingTime{started: time.UnixMilli(seg.Start).UTC(), kind: kind, long: long})
	rt.at = len(rt.list) - 1
}

// merge takes over those that began while s was being stored.
func (rt *recordingTimes) merge(newer []recordingTime) {
	if n := len(rt.list); len(newer) > n {
		rt.list = append(rt.list, newer[n:]...)
	}
}

// concluded is what stays of them when the broadcast is over: it ends with what an encoder sent last, as its timeline
// does.
func (rt *recordingTimes) concluded() *recordingTimes {
	next := &recordingTimes{
		list:   rt.list,
		at:     rt.at,
		scales: rt.scales,
		total:  rt.total,
		limit:  rt.limit,
		kept:   rt.kept,
	}
	for i, r := range slices.Backward(rt.list) {
		if r.long > 0 && r.kind != slated {
			return next.limited()
		}
		next.list, next.total = rt.list[:i], next.total-r.long
	}
	return rt.limited()
}

// keep notes that a segment ends after so many seconds.
func (rt *recordingTimes) keep(end float64) {
	const slack = 0.1 // as timeline's Concluded
	if rt.kept == 0 || end <= rt.limit+slack {
		rt.kept = end
	}
}

// limited leaves out what is beyond the limit.
func (rt *recordingTimes) limited() *recordingTimes {
	if rt.limit <= 0 || rt.total <= rt.kept {
		return rt
	}
	rest := rt.kept
	next := &recordingTimes{at: rt.at, scales: rt.scales, total: rt.kept, limit: rt.limit, kept: rt.kept}
	for _, r := range rt.list {
		r.long = max(min(r.long, rest), 0)
		rest -= r.long
		next.list = append(next.list, r)
	}
	return next
}

// stored counts those that something is stored of.
func (rt *recordingTimes) stored() (n int) {
	for _, r := range rt.list {
		if r.long > 0 {
			n++
		}
	}
	return n
}

// recordings leaves out what nothing is stored of.
func (rt *recordingTimes) recordings() []asset.Recording {
	var out []asset.Recording
	for _, r := range rt.list {
		if r.long > 0 {
			out = append(out, asset.Recording{StartedAt: r.started, Duration: measure.Seconds(r.long), Type: r.kind})
		}
	}
	return out
}
