package timeline

import "slices"

// beyond is an empty timeline that goes on where t ends, with what was declared so far.
func (t *Timeline) beyond() *Timeline {
	out := &Timeline{First: t.Next(), Target: t.Target, Zero: t.ZeroTime()}
	for _, l := range t.Renditions {
		out.Renditions = append(out.Renditions, &Rendition{
			RenditionInfo: l.RenditionInfo, Inits: slices.Clone(l.Inits),
			target: l.target,
		})
	}
	return out
}

// Concluded is the timeline of a broadcast that is over: it ends with the last segment that an encoder has sent. The
// slate that was shown while nobody came back becomes the Tail. One of slate alone stays as it is. limit is how many
// seconds the recording may have; 0: any. What is beyond becomes the Tail too, but for the first segment.
func (t *Timeline) Concluded(limit float64) (*Timeline, error) {
	n := len(t.Marks)
	for n > 0 && t.Marks[n-1].Slate {
		n--
	}
	const slack = 0.1 // segments are as long as the encoder's key frames are apart
	for ends := t.Spans(); limit > 0 && n > 1 && ends[n] > limit+slack; {
		n--
	}
	if n == 0 || n == len(t.Marks) || t.Tail != nil {
		return t, nil
	}
	head := &Timeline{First: t.First, Target: t.Target, Zero: t.Zero}
	for _, l := range t.Renditions {
		head.Renditions = append(head.Renditions, &Rendition{
			RenditionInfo: l.RenditionInfo,
			Inits:         l.Inits[:l.used(n)],
		})
	}
	out := append(head.Entries(), t.appendSegments(nil, 0, n)...)
	out = append(out, Entry{Over: true})
	for i, l := range t.Renditions {
		for k := len(head.Renditions[i].Inits); k < len(l.Inits); k++ {
			out = append(out, Entry{Init: &l.Inits[k]})
		}
	}
	concluded, err := Build(t.appendSegments(out, n, len(t.Marks)))
	if err == nil {
		concluded.Texts = t.Texts
	}
	return concluded, err
}

// used is how many of its init segments the first n chunks need.
func (r *Rendition) used(n int) int {
	most := min(1, len(r.Inits)) // a rendition is described by one, whether it has media or not
	for _, c := range r.Chunks[:n] {
		if !c.Gap {
			most = max(most, c.Init+1)
		}
	}
	return most
}

// Find is the timeline that has a segment: t, its Tail, or nil.
func (t *Timeline) Find(msn int64) *Timeline {
	for ; t != nil; t = t.Tail {
		if msn >= t.First && msn < t.Next() {
			return t
		}
	}
	return nil
}
