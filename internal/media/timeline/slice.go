package timeline

// Slice is the part of t that covers [from, to) seconds of media time, cut at segment borders so that nothing asked for
// is missing. Chunks still point at the media of their source: nothing is copied. Sequence numbers start at 0. The
// result shares no memory that t changes later. An empty range gives an empty timeline.
func (t *Timeline) Slice(from, to float64) *Timeline {
	const slack = 1e-6 // of float rounding
	borders := t.Spans()
	a, b := 0, len(t.Marks)
	for a < b && borders[a+1] <= from+slack {
		a++
	}
	for b > a && borders[b-1] >= to-slack {
		b--
	}
	if !(to > from) {
		b = a
	}
	out := &Timeline{Target: t.Target, Zero: t.ZeroTime() + borders[a], Marks: append([]Mark(nil), t.Marks[a:b]...)}
	if len(out.Marks) > 0 {
		out.Marks[0].Discontinuity = false
	}
	for _, l := range t.Renditions {
		c := &Rendition{RenditionInfo: l.RenditionInfo, Inits: append([]Init(nil), l.Inits...), target: t.Target}
		c.PartTarget = 0 // a clip is not live
		for _, chunk := range l.Chunks[a:b] {
			c.Append(chunk)
		}
		out.Renditions = append(out.Renditions, c)
	}
	return out
}

// Objects calls yield for every storage key that t needs.
func (t *Timeline) Objects(yield func(key string) bool) { t.objects(yield) }

// objects is Objects; it reports whether yield wants more.
func (t *Timeline) objects(yield func(key string) bool) bool {
	if t.Tail != nil && !t.Tail.objects(yield) {
		return false
	}
	for _, l := range t.Renditions {
		if l.Source != nil && !yield(l.Source.Object) {
			return false
		}
		for i := range l.Inits {
			if k := l.Inits[i].Object; k != "" && !yield(k) {
				return false
			}
		}
		for i := range l.Chunks {
			if k := l.Chunks[i].Object; k != "" && !yield(k) {
				return false
			}
		}
	}
	return true
}
