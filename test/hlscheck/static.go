package hlscheck

import (
	"math"
	"strconv"
	"time"
)

// tick is the slack for a duration written with few decimals, in seconds.
const tick = 0.002

// static applies the rules that one whole media playlist must keep by itself. u is the address it came from.
func (re *rendition) static(u string, m *media) {
	say := func(rule string, ok bool, format string, args ...any) { re.c.check(rule, ok, u, format, args...) }
	say("media-sequence-tag", m.hasSequence || m.ended, "no EXT-X-MEDIA-SEQUENCE in a live playlist")
	uris := map[string]bool{}
	unique := func(uri, byteRange string) {
		say("uri-unique", !uris[uri+"#"+byteRange], "%s is there twice", uri)
		uris[uri+"#"+byteRange] = true
	}
	for i, e := range m.entries {
		say("target-duration", math.Round(e.duration) <= float64(m.target),
			"segment %d lasts %.3f s, target duration %d", e.msn, e.duration, m.target)
		if !e.gap {
			unique(e.uri, e.byteRange)
			say("map", (e.mapURI != "") == (re.kind != "text"), "segment %d of a %s rendition has EXT-X-MAP %q", e.msn,
				re.kind, e.mapURI)
		}
		for _, p := range e.parts {
			unique(p.uri, p.byteRange)
		}
		if i > 0 {
			re.checkDates(m.entries[i-1], e, say)
		}
	}
	for _, p := range m.open.parts {
		unique(p.uri, p.byteRange)
	}
	if len(m.entries) > 0 {
		re.checkDrift(m, say)
		if len(m.open.parts) > 0 {
			re.checkDates(m.entries[len(m.entries)-1], m.open, say)
		}
	}
	re.staticParts(m, say)
	re.staticControl(m, say)
	if !m.ended && m.kind == "" && m.sequence > 0 && len(m.entries) > 0 && m.entries[0].msn > 0 {
		total := 0.0
		for _, e := range m.entries {
			total += e.duration
		}
		say("window-length", total >= 3*float64(m.target)-tick, "%.1f s listed, target duration %d", total, m.target)
	}
}

// checkDates holds the date of a segment against the one before.
func (re *rendition) checkDates(before, e entry, say report) {
	if before.pdt.IsZero() && e.pdt.IsZero() {
		return // checkDrift reports whether there must be any
	}
	if before.pdt.IsZero() || e.pdt.IsZero() {
		missing := e.pdt.IsZero() && !e.gap || before.pdt.IsZero() && !before.gap // what is not there needs no date
		say("pdt", !missing, "segment %d: one of two segments has a date, the other none", e.msn)
		return
	}
	want := before.pdt.Add(time.Duration(before.duration * float64(time.Second)))
	off := e.pdt.Sub(want)
	if e.discontinuity || before.gap || e.gap {
		say("pdt", off > -3*time.Second, "segment %d after a break is dated %v before the end of the one before", e.msn,
			-off)
		return
	}
	slack := re.dateSlack()
	if before.discontinuity {
		slack += reordering
	}
	say("pdt", off.Abs() <= slack, "segment %d is dated %v off the end of the one before", e.msn, off)
}

// reordering is by how much the decoding of the first segment behind a break may be shorter than its presentation:
// pictures that are decoded earlier than shown, behind some that are not, have no time before the break.
const reordering = 100 * time.Millisecond

// dateSlack is a rounding: a date is that of its segment's own first sample, also where a sound's begins up to a frame
// from the picture's.
func (re *rendition) dateSlack() time.Duration {
	return 3 * time.Millisecond
}

// checkDrift adds up the durations since the first date or break: small errors must not grow.
func (re *rendition) checkDrift(m *media, say report) {
	dated := 0
	var anchor time.Time
	sum := 0.0
	for i, e := range m.entries {
		if e.discontinuity || e.gap || i > 0 && m.entries[i-1].discontinuity {
			anchor = time.Time{}
		}
		if !e.pdt.IsZero() {
			dated++
			if anchor.IsZero() {
				anchor, sum = e.pdt, 0
			}
			off := e.pdt.Sub(anchor) - time.Duration(sum*float64(time.Second))
			say("pdt", off.Abs() <= 2*re.dateSlack()+time.Duration(len(m.entries))*time.Millisecond/10,
				"segment %d: dates and durations have drifted %v apart", e.msn, off)
		}
		sum += e.duration
	}
	say("pdt", dated > 0 || m.ended, "no EXT-X-PROGRAM-DATE-TIME in a live playlist") // a file was never live
}

// staticParts checks durations of parts and which segments have them.
func (re *rendition) staticParts(m *media, say report) {
	some := len(m.open.parts) > 0
	for _, e := range m.entries {
		some = some || len(e.parts) > 0
	}
	if !some {
		return
	}
	say("part-inf", m.partTarget > 0, "parts without EXT-X-PART-INF")
	end, at := m.length(), 0.0 // from the first segment
	far := 3 * float64(m.target)
	for _, e := range m.entries {
		start := at
		at += e.duration
		re.partDurations(m, e, say)
		if len(e.parts) > 0 {
			total := 0.0
			for _, p := range e.parts {
				total += p.duration
			}
			same := math.Abs(total-e.duration) <= tick || m.stands(e.msn, e.duration-total)
			say("part-sum", same, "segment %d: parts last %.5f s, EXTINF is %.5f", e.msn, total, e.duration)
			say("part-old", end-start <= far+tick, "segment %d keeps its parts, the first of them %.1f s from the end",
				e.msn, end-start)
		} else if !e.gap && !m.ended {
			say("part-kept", end-start > far-tick, "segment %d has no parts %.1f s from the end", e.msn, end-start)
		}
	}
	re.partDurations(m, m.open, say)
}

func (re *rendition) partDurations(m *media, e entry, say report) {
	for i, p := range e.parts {
		say("part-target", p.duration <= m.partTarget+1e-4, "part %d.%d lasts %.5f s, PART-TARGET is %.5f", e.msn, i,
			p.duration, m.partTarget)
		last := i == len(e.parts)-1 // of an open segment: it may be the segment's last
		free := i == 0 && p.independent
		if !last && !free {
			say("part-short", p.duration >= 0.85*m.partTarget-1e-4, "part %d.%d lasts %.5f s, PART-TARGET is %.5f",
				e.msn, i, p.duration, m.partTarget)
		}
	}
}

// staticControl checks EXT-X-SERVER-CONTROL and what a low-latency playlist has to offer.
func (re *rendition) staticControl(m *media, say report) {
	if m.ended {
		return
	}
	a := m.control
	if _, ok := a.values["HOLD-BACK"]; ok {
		say("hold-back", a.number("HOLD-BACK") >= 3*float64(m.target)-1e-6, "HOLD-BACK=%s, target duration %d",
			a.text("HOLD-BACK"), m.target)
	}
	if _, ok := a.values["CAN-SKIP-UNTIL"]; ok {
		say("can-skip-until", a.number("CAN-SKIP-UNTIL") >= 6*float64(m.target)-1e-6,
			"CAN-SKIP-UNTIL=%s, target duration %d", a.text("CAN-SKIP-UNTIL"), m.target)
	}
	if m.lowLatency() {
		say("part-hold-back", a.number("PART-HOLD-BACK") >= 3*m.partTarget-1e-4, "PART-HOLD-BACK=%s, PART-TARGET %.5f",
			a.text("PART-HOLD-BACK"), m.partTarget)
	}
	if !re.c.o.LowLatency {
		return
	}
	if re.kind == "text" { // Shaka wants it of each playlist with a server control, once one has parts
		say("part-hold-back", a.number("PART-HOLD-BACK") > 0, "no PART-HOLD-BACK in a playlist of text")
		return
	}
	say("low-latency-server", m.lowLatency(), "no EXT-X-PART-INF")
	say("low-latency-server", a.yes("CAN-BLOCK-RELOAD"), "no CAN-BLOCK-RELOAD=YES")
	say("low-latency-server", a.number("CAN-SKIP-UNTIL") > 0, "no CAN-SKIP-UNTIL")
	// nothing comes while the encoder is away, and nobody knows what does where media ends
	say("low-latency-server", len(m.hints) > 0 || re.c.o.stalls() || re.c.o.OtherMedia, "no EXT-X-PRELOAD-HINT")
	for _, other := range re.c.renditions {
		if other == re || other.kind == "text" {
			continue
		}
		found := false
		for _, r := range m.reports {
			found = found || re.c.resolve(re.url, r.text("URI")) == other.url
		}
		say("report", found, "no EXT-X-RENDITION-REPORT for %s", other.url)
	}
}

// compare holds a playlist against the one loaded before.
func (re *rendition) compare(u string, old, m *media) {
	say := func(rule string, ok bool, format string, args ...any) { re.c.check(rule, ok, u, format, args...) }
	re.constants(old, m, say)
	say("media-sequence", m.sequence >= old.sequence, "EXT-X-MEDIA-SEQUENCE fell from %d to %d", old.sequence,
		m.sequence)
	say("append-only", m.next() >= old.next(), "segments %d to %d are gone from the end", m.next(), old.next()-1)
	say("append-only", m.kind == "" || m.sequence == old.sequence, "%s playlist lost its first segments", m.kind)
	say("append-only", !old.ended || m.ended && m.next() == old.next(), "the playlist changed after EXT-X-ENDLIST")
	now := map[int]entry{}
	byURI := map[string]int{}
	for _, e := range m.entries {
		now[e.msn] = e
		if !e.gap {
			byURI[e.uri+"#"+e.byteRange] = e.msn
		}
	}
	for _, e := range old.entries {
		if n, ok := byURI[e.uri+"#"+e.byteRange]; ok && !e.gap {
			say("media-sequence", n == e.msn, "%s was number %d and is now %d", e.uri, e.msn, n)
		}
		n, ok := now[e.msn]
		if !ok {
			continue
		}
		same := n.uri == e.uri && n.byteRange == e.byteRange && n.duration == e.duration && n.gap == e.gap &&
			n.pdt.Equal(e.pdt) && n.mapURI == e.mapURI
		say("entry-immutable", same, "segment %d was %s", e.msn, describe(e)+", is "+describe(n))
		say("entry-immutable", n.discontinuity == e.discontinuity, "segment %d: EXT-X-DISCONTINUITY was %t, is %t",
			e.msn, e.discontinuity, n.discontinuity)
		say("discontinuity-sequence", n.dsn == e.dsn, "segment %d had discontinuity sequence number %d, has %d", e.msn,
			e.dsn, n.dsn)
		re.comparePart(e, n, say)
	}
	if n, ok := now[old.open.msn]; ok {
		re.comparePart(old.open, n, say)
	} else if m.open.msn == old.open.msn {
		say("listed-parts", len(m.open.parts) >= len(old.open.parts), "segment %d lost parts that were listed",
			m.open.msn)
		re.comparePart(old.open, m.open, say)
	}
}

// comparePart checks that the parts listed before are still what they were; all may be gone by age.
func (re *rendition) comparePart(old, now entry, say report) {
	if len(now.parts) == 0 {
		return
	}
	for i, p := range old.parts {
		say("listed-parts", i < len(now.parts) && now.parts[i] == p,
			"part %d.%d was %s for %.5f s, and is not any more", old.msn, i, p.uri, p.duration)
	}
}

func describe(e entry) string {
	return e.uri + " of " + strconv.FormatFloat(e.duration, 'f', -1, 64) + " s at " +
		e.pdt.UTC().Format("15:04:05.000") + " with map " + e.mapURI
}

// constants never change in a stream's life. An end may take what only a live playlist needs, and make a VOD of an
// EVENT.
func (re *rendition) constants(old, m *media, say report) {
	say("constants", m.target == old.target, "EXT-X-TARGETDURATION was %d, is %d", old.target, m.target)
	say("constants", m.version == old.version, "EXT-X-VERSION was %d, is %d", old.version, m.version)
	say("constants", m.kind == old.kind || m.ended && !old.ended && m.kind == "VOD",
		"EXT-X-PLAYLIST-TYPE was %q, is %q", old.kind, m.kind)
	if m.ended {
		return
	}
	say("constants", m.partTarget == old.partTarget, "PART-TARGET was %.5f, is %.5f", old.partTarget, m.partTarget)
	for _, name := range []string{"PART-HOLD-BACK", "HOLD-BACK", "CAN-SKIP-UNTIL", "CAN-BLOCK-RELOAD"} {
		say("constants", m.control.text(name) == old.control.text(name), "%s was %q, is %q", name,
			old.control.text(name), m.control.text(name))
	}
}
