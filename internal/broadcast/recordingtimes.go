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
func (s *recordingTimes) begin(kind string, started time.Time, from float64) {
	if n := len(s.list); kind == slated && n > 0 && s.list[n-1].kind == slated {
		return
	}
	s.list = append(s.list, recordingTime{started: started, kind: kind, from: from})
}

// count adds what is about to be stored; it returns a copy, so that a failed attempt leaves nothing behind.
func (s *recordingTimes) count(entries []timeline.Entry) *recordingTimes {
	next := &recordingTimes{
		list: append([]recordingTime(nil), s.list...), at: s.at, scales: map[string]uint32{},
		total: s.total, limit: s.limit, kept: s.kept,
	}
	maps.Copy(next.scales, s.scales)
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
func (s *recordingTimes) add(seg *timeline.Segment) {
	lead := -1
	for i, c := range seg.Chunks {
		if s.scales[c.Rendition] > 0 && (lead < 0 || c.Rendition == timeline.MainVideo) {
			lead = i
		}
	}
	if lead < 0 {
		return
	}
	c := seg.Chunks[lead]
	scale := float64(s.scales[c.Rendition])
	long := float64(c.Duration) / scale
	middle := float64(c.Time)/scale + long/2
	s.total += long
	s.keep(s.total)
	kind := content
	if seg.Slate {
		kind = slated
	}
	for i := len(s.list) - 1; i >= s.at; i-- {
		if r := &s.list[i]; r.kind == kind && (r.from <= middle || i == s.at) {
			r.long += long
			s.at = i
			return
		}
	}
	// A process that died had noted a beginning, and left only the media.
	s.list = append(s.list, recordingTime{started: time.UnixMilli(seg.Start).UTC(), kind: kind, long: long})
	s.at = len(s.list) - 1
}

// merge takes over those that began while s was being stored.
func (s *recordingTimes) merge(newer []recordingTime) {
	if n := len(s.list); len(newer) > n {
		s.list = append(s.list, newer[n:]...)
	}
}

// concluded is what stays of them when the broadcast is over: it ends with what an encoder sent last, as its timeline
// does.
func (s *recordingTimes) concluded() *recordingTimes {
	next := &recordingTimes{list: s.list, at: s.at, scales: s.scales, total: s.total, limit: s.limit, kept: s.kept}
	for i, r := range slices.Backward(s.list) {
		if r.long > 0 && r.kind != slated {
			return next.limited()
		}
		next.list, next.total = s.list[:i], next.total-r.long
	}
	return s.limited()
}

// keep notes that a segment ends after so many seconds.
func (s *recordingTimes) keep(end float64) {
	const slack = 0.1 // as timeline's Concluded
	if s.kept == 0 || end <= s.limit+slack {
		s.kept = end
	}
}

// limited leaves out what is beyond the limit.
func (s *recordingTimes) limited() *recordingTimes {
	if s.limit <= 0 || s.total <= s.kept {
		return s
	}
	rest := s.kept
	next := &recordingTimes{at: s.at, scales: s.scales, total: s.kept, limit: s.limit, kept: s.kept}
	for _, r := range s.list {
		r.long = max(min(r.long, rest), 0)
		rest -= r.long
		next.list = append(next.list, r)
	}
	return next
}

// stored counts those that something is stored of.
func (s *recordingTimes) stored() (n int) {
	for _, r := range s.list {
		if r.long > 0 {
			n++
		}
	}
	return n
}

// recordings leaves out what nothing is stored of.
func (s *recordingTimes) recordings() []asset.Recording {
	var out []asset.Recording
	for _, r := range s.list {
		if r.long > 0 {
			out = append(out, asset.Recording{StartedAt: r.started, Duration: measure.Seconds(r.long), Type: r.kind})
		}
	}
	return out
}
