package hlscheck

import (
	"context"
	"strconv"
)

// checkExtras checks delta updates and rendition reports.
func (re *rendition) checkExtras(ctx context.Context, m *media) error {
	if m.control.number("CAN-SKIP-UNTIL") > 0 {
		if err := re.checkDelta(ctx); err != nil {
			return err
		}
	}
	for _, r := range m.reports {
		for _, other := range re.c.renditions {
			if other.url == re.c.resolve(re.url, r.text("URI")) {
				if err := re.checkReport(ctx, other); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkDelta loads the playlist as a delta, between two whole ones that are the same, and compares.
func (re *rendition) checkDelta(ctx context.Context) error {
	u := withQuery(re.url, "_HLS_skip", "YES")
	for range 10 { // until nothing came meanwhile
		full, err := re.load(ctx, re.url)
		if err != nil || full == nil || full.ended {
			return err
		}
		delta, err := re.load(ctx, u)
		if err != nil || delta == nil || delta.ended {
			return err
		}
		again, err := re.load(ctx, re.url)
		if err != nil || again == nil || again.ended {
			return err
		}
		if again.text == full.text {
			re.compareDelta(u, full, delta)
			return nil
		}
	}
	return nil
}

func (re *rendition) compareDelta(u string, full, delta *media) {
	c := re.c
	boundary := full.control.number("CAN-SKIP-UNTIL")
	end, at, may, worth := full.length(), 0.0, 0, 0
	for i, e := range full.entries {
		at += e.duration
		if end-at > boundary {
			may = i + 1
			if !e.gap {
				worth++
			}
		}
	}
	c.check("skip-boundary", delta.skipped <= may, u, "skips %d segments, %d lie beyond the skip boundary of %g s",
		delta.skipped, may, boundary)
	// Near the boundary a server may be cautious by one, and gaps in front alone are not worth skipping.
	c.check("skip-boundary", delta.skipped > 0 || worth < 2, u,
		"skips nothing, though %d segments lie beyond the skip boundary", may)
	if delta.skipped > len(full.entries) {
		return
	}
	rest := full.entries[delta.skipped:]
	same := len(rest) == len(delta.entries) && delta.sequence == full.sequence && delta.target == full.target &&
		delta.discontinuities == full.discontinuities && delta.partTarget == full.partTarget
	for i := 0; same && i < len(rest); i++ {
		f, d := rest[i], delta.entries[i]
		same = f.msn == d.msn && f.uri == d.uri && f.duration == d.duration && f.discontinuity == d.discontinuity &&
			f.pdt.Equal(d.pdt) &&
			len(f.parts) == len(d.parts) && (d.mapURI == "" || d.mapURI == f.mapURI)
	}
	same = same && len(full.open.parts) == len(delta.open.parts) && len(full.hints) == len(delta.hints)
	if delta.skipped > 0 && re.kind != "text" {
		first, want := append(delta.entries, delta.open)[0], append(rest, full.open)[0]
		c.check("delta-map", first.mapURI != "" && first.mapURI == want.mapURI, u,
			"its first segment %d has EXT-X-MAP %q, in the full playlist %q",
			first.msn, first.mapURI, want.mapURI)
	}
	c.check("delta", same, u, "with its %d skipped segments it is not the full playlist:\n%s\nagainst\n%s",
		delta.skipped, delta.text, full.text)
}

// checkReport holds our report of another rendition against that rendition.
func (re *rendition) checkReport(ctx context.Context, other *rendition) error {
	c := re.c
	before, err := other.load(ctx, other.url)
	if err != nil || before == nil {
		return err
	}
	ours, err := re.load(ctx, re.url)
	if err != nil || ours == nil || ours.ended {
		return err
	}
	for _, r := range ours.reports {
		if c.resolve(re.url, r.text("URI")) != other.url {
			continue
		}
		msn, part := r.integer("LAST-MSN"), r.integer("LAST-PART")
		bm, bp := before.lastPart()
		later, err := other.load(ctx, other.url)
		if err != nil || later == nil {
			return err
		}
		// The other rendition may have ended a segment between its playlist and ours, so an upper bound holds against
		// one that is younger than the report.
		lm, lp := later.lastPart()
		c.check("report", msn <= lm+1, re.url, "report of %s says %d.%d, it was at %d.%d afterwards", other.url, msn,
			part, lm, lp)
		// The report is as old as our own newest part, so it may be a part or two behind.
		behind := (bm-msn)*before.partsPerSegment() + bp - part
		c.check("report", behind <= 2, re.url, "report of %s says %d.%d, it was at %d.%d", other.url, msn, part, bm, bp)
		c.check("report", part >= 0 || !before.lowLatency(), re.url, "report of %s has no LAST-PART", other.url)
		pairs := []string{"_HLS_msn", strconv.Itoa(msn)}
		if part >= 0 {
			pairs = append(pairs, "_HLS_part", strconv.Itoa(part))
		}
		u := withQuery(other.url, pairs...)
		after, err := other.load(ctx, u)
		if err != nil || after == nil {
			return err
		}
		am, ap := after.lastPart()
		c.check("report", am > msn || am == msn && ap >= part, re.url,
			"report of %s says %d.%d, but it is only at %d.%d", other.url, msn, part, am, ap)
	}
	return nil
}

// partsPerSegment is a usual number, to tell how far two places are apart.
func (m *media) partsPerSegment() int {
	n := 0
	for _, e := range m.entries {
		n = max(n, len(e.parts))
	}
	return n
}
