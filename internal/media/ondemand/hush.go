package ondemand

// hush puts silence into the holes of an audio buffer up to a border: the packets that begin in front of it. A hole is
// filled no sooner than it is cut, so that one of hours costs no memory.
func (t *trackBuffer) hush(border int64) {
	if !t.fills || border-t.due > t.at(longestFill) {
		return
	}
	var out []sample
	at := t.due
	for i, x := range t.samples {
		if x.dts < at-int64(t.silence.step/2) { // silence has been stored in its place
			t.bytes -= int64(len(x.data))
			continue
		}
		if n := t.silence.within(x.dts - at); n > 0 {
			out = t.silent(out, x.dts-t.silence.at(n), min(x.dts-int64(t.silence.step/2), border))
		}
		if x.pts >= border {
			t.samples = append(out, t.samples[i:]...)
			return
		}
		out, at = append(out, x), x.dts+t.silence.at(1)
	}
	t.samples = t.silent(out, at, border)
}

// silent appends packets of silence, the first at a time, until one would begin at a border.
func (t *trackBuffer) silent(out []sample, at, border int64) []sample {
	for n := int64(0); at+t.silence.at(n) < border; n++ {
		now := at + t.silence.at(n)
		out = append(out, sample{
			dts:  now,
			pts:  now,
			long: uint32(t.silence.at(1)),
			idr:  true,
			sync: true,
			data: t.silence.packet,
		})
		t.bytes += int64(len(t.silence.packet))
	}
	return out
}
