package hlscheck

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// rendition is a media playlist that is watched.
type rendition struct {
	c        *checker
	url      string
	kind     string     // video, audio, text
	variants []*variant // that name it

	latest   *media
	reloads  int
	changed  time.Time // when next() last grew
	first    int       // lowest media sequence number seen
	last     int
	breaks   map[int]bool
	segments map[int]*segmentSeen
	parts    map[partKey]*partSeen
	inits    map[string]*initSeen
	ranged   bool // a range request has been tried
}

func (re *rendition) summary() Rendition {
	r := Rendition{
		URL: re.url, Kind: re.kind, Parts: len(re.parts), Reloads: re.reloads, First: re.first, Last: re.last,
		Discontinuities: len(re.breaks),
	}
	for _, s := range re.segments {
		r.Segments++
		r.Seconds += s.duration
	}
	if re.latest != nil {
		r.Ended, r.TargetDuration, r.PartTarget = re.latest.ended, re.latest.target, re.latest.partTarget
	}
	return r
}

// extrasEvery is with which turns of follow the extras are looked at.
const extrasEvery = 4

// atOnce is how long a response may take that waits for nothing. What is refused by a server that blocks first takes
// target durations.
const atOnce = 5 * time.Second

// follow watches the playlist until deadline or its end.
func (re *rendition) follow(ctx context.Context, deadline time.Time) error {
	m, err := re.load(ctx, re.url)
	if err != nil || m == nil {
		return err
	}
	re.changed, re.first = time.Now(), m.sequence
	re.note(m)
	re.static(re.url, m)
	if !m.ended && m.control.yes("CAN-BLOCK-RELOAD") {
		if err := re.checkDirectives(ctx, m); err != nil {
			return err
		}
	}
	if err := re.take(ctx, m, re.c.o.MaxSegments); err != nil {
		return err
	}
	least := 0 // turns, for a machine that takes all of the time for fewer: the extras are looked at with each fourth
	if re.c.o.Follow > 0 && m.lowLatency() {
		least = extrasEvery
	}
	for turn := 0; !m.ended && (turn < least || re.c.goesOn(deadline)); turn++ {
		next, u, err := re.reload(ctx, m)
		if err != nil {
			return err
		}
		if next == nil {
			continue
		}
		re.reloads++
		re.note(next)
		re.static(u, next)
		re.compare(u, m, next)
		re.checkGrowth(m, next)
		if err := re.checkRemoved(ctx, m, next); err != nil {
			return err
		}
		if err := re.take(ctx, next, 0); err != nil {
			return err
		}
		if turn%extrasEvery == extrasEvery-1 && !next.ended {
			if err := re.checkExtras(ctx, next); err != nil {
				return err
			}
		}
		m = next
	}
	return re.again(ctx)
}

// load fetches and reads a playlist; nil without error when it could not be had.
func (re *rendition) load(ctx context.Context, u string) (*media, error) {
	a, err := re.c.fetchPlaylist(ctx, u)
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusServiceUnavailable && u != re.url && re.c.o.stalls() {
		return nil, nil // a reload was blocked for as long as may be (6.2.5.2): nothing comes while the encoder is away
	}
	if !re.c.check("status", a.status == http.StatusOK, u, "status %d: %.100q", a.status, a.body) {
		return nil, nil
	}
	m := parseMedia(string(a.body), func(rule string, ok bool, format string, args ...any) {
		re.c.check(rule, ok, u, format, args...)
	})
	re.c.checkPlaylistCache(u, a, m)
	return m, nil
}

// note keeps what the summary and the comparison of renditions need.
func (re *rendition) note(m *media) {
	re.latest = m
	re.last = m.next() - 1
	for _, e := range m.entries {
		if e.discontinuity {
			if re.breaks == nil {
				re.breaks = map[int]bool{}
			}
			re.breaks[e.msn] = true
		}
	}
}

// reload gets the next state of the playlist: blocked for, when the server offers that, else polled for. nil: try
// again.
func (re *rendition) reload(ctx context.Context, m *media) (*media, string, error) {
	if !m.control.yes("CAN-BLOCK-RELOAD") {
		if err := sleep(ctx, max(time.Duration(m.target)*time.Second/2, time.Second/2)); err != nil {
			return nil, "", err
		}
		next, err := re.load(ctx, re.url)
		return next, re.url, err
	}
	msn, part := m.next(), -1
	pairs := []string{"_HLS_msn", strconv.Itoa(msn)}
	limit := 3 * time.Duration(m.target) * time.Second / 2
	if m.lowLatency() && (len(m.open.parts) > 0 || len(m.hints) > 0) {
		part = len(m.open.parts)
		pairs = append(pairs, "_HLS_part", strconv.Itoa(part))
		limit = time.Duration(m.target) * time.Second // parts come far sooner, but how soon is for benchmarks to say
	}
	hint := re.fetchHint(ctx, m)
	u := withQuery(re.url, pairs...)
	began := time.Now()
	next, err := re.load(ctx, u)
	took := time.Since(began)
	h := <-hint
	if err != nil {
		return nil, "", err
	}
	if next == nil { // that is no reason to ask on the spot
		return nil, "", sleep(ctx, time.Second)
	}
	if !re.c.o.stalls() && !next.ended {
		re.c.check("blocking-time", took <= limit+time.Second, u, "took %v, want at most %v",
			took.Round(time.Millisecond), limit)
	}
	has := next.contains(msn, part)
	re.c.check("blocking-reload", next.ended || re.c.o.stalls() || has, u,
		"the response does not have segment %d part %d", msn, part)
	if !has && !next.ended { // a server that does not block must not be hammered
		if err := sleep(ctx, 300*time.Millisecond); err != nil {
			return nil, "", err
		}
	}
	return next, u, re.checkHint(next, msn, h)
}

// breaksLast reports whether other media has begun in what is listed last.
func (m *media) breaksLast() bool {
	n := len(m.entries)
	return m.open.discontinuity || n > 0 && m.entries[n-1].discontinuity || n > 1 && m.entries[n-2].discontinuity
}

// contains reports whether the segment, or its part, is listed.
func (m *media) contains(msn, part int) bool {
	switch {
	case m.next() > msn:
		return true
	case m.open.msn == msn && part >= 0:
		return len(m.open.parts) > part
	default:
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hinted is a part that was asked for by its hint.
type hinted struct {
	url  string
	a    response
	took time.Duration
	err  error
	none bool
}

// stood reports whether the server gave the hint up only when it had waited for as long as players have something to
// show: the encoder, or a machine that is short of time, had nothing for it.
func (h *hinted) stood(m *media) bool {
	const rounding = 50 * time.Millisecond
	return h.a.status == http.StatusNotFound && m.partTarget > 0 &&
		h.took.Seconds() >= 3*m.partTarget-rounding.Seconds()
}

// fetchHint asks for the hinted part right away, as a player does; the channel gives the outcome once.
func (re *rendition) fetchHint(ctx context.Context, m *media) <-chan hinted {
	out := make(chan hinted, 1)
	for _, h := range m.hints {
		if h.text("TYPE") != "PART" {
			continue
		}
		u := re.c.resolve(re.url, h.text("URI"))
		go func() {
			from := time.Now()
			a, err := re.c.fetch(ctx, http.MethodGet, u, "")
			out <- hinted{url: u, a: a, took: time.Since(from), err: err}
		}()
		return out
	}
	out <- hinted{none: true}
	return out
}

// checkHint looks for the hinted part of segment msn in the playlist that came after.
func (re *rendition) checkHint(m *media, msn int, h hinted) error {
	if h.none {
		return nil
	}
	if h.err != nil {
		return h.err
	}
	if h.stood(m) || m.ended ||
		(re.c.o.stalls() || re.c.o.OtherMedia && m.breaksLast()) && h.a.status != http.StatusOK {
		return nil // the end may take back a hint
	}
	re.c.check("preload-hint", h.a.status == http.StatusOK, h.url, "status %d", h.a.status)
	listed := false
	old := m.sequence > msn // what came after is so much that the parts, or the whole segment, are not listed any more
	for _, e := range append(m.entries, m.open) {
		for _, p := range e.parts {
			listed = listed || re.c.resolve(re.url, p.uri) == h.url
		}
		old = old || e.msn == msn && m.next() > msn && len(e.parts) == 0
	}
	if other := m.breakNear(msn); !listed && re.c.o.OtherMedia && other != nil && h.a.status == http.StatusOK {
		re.hintBytes(re.c.resolve(re.url, other.parts[0].uri), h.a.body)
		return nil
	}
	re.c.check("preload-hint", listed || old || re.c.o.stalls(), h.url, "the hinted part is not in the next playlist")
	if listed && h.a.status == http.StatusOK {
		re.hintBytes(h.url, h.a.body)
	}
	return nil
}

// breakNear is segment msn, or the one behind it, if other media begins with it and its parts are listed.
func (m *media) breakNear(msn int) *entry {
	for _, e := range append(m.entries, m.open) {
		if (e.msn == msn || e.msn == msn+1) && e.discontinuity && len(e.parts) > 0 {
			return &e
		}
	}
	return nil
}

// checkGrowth wants a new segment in time (6.2.2).
func (re *rendition) checkGrowth(old, m *media) {
	if m.next() > old.next() || m.ended || re.c.o.stalls() {
		re.changed = time.Now()
	}
	limit := 3*time.Duration(m.target)*time.Second/2 + time.Second
	re.c.check("reload-grows", time.Since(re.changed) <= limit, re.url, "no new segment for %v, target duration %d s",
		time.Since(re.changed).Round(time.Millisecond), m.target)
}

// checkRemoved asks for a segment that has just left the playlist.
func (re *rendition) checkRemoved(ctx context.Context, old, m *media) error {
	for _, e := range old.entries {
		if e.msn >= m.sequence || e.gap {
			continue
		}
		u := re.c.resolve(re.url, e.uri)
		a, err := re.c.fetch(ctx, http.MethodGet, u, rangeHeader(e.byteRange))
		if err != nil {
			return err
		}
		re.c.check("removal-early", a.status/100 == 2, u, "status %d as soon as it left the playlist", a.status)
		if s := re.segments[e.msn]; s != nil && a.status/100 == 2 {
			re.c.check("immutable-bytes", s.same(a.body), u, "other bytes than before")
		}
	}
	return nil
}

// checkDirectives sends directives that must be refused.
func (re *rendition) checkDirectives(ctx context.Context, m *media) error {
	for _, d := range []struct {
		rule  string
		pairs []string
	}{
		{"far-future", []string{"_HLS_msn", strconv.Itoa(m.next() + 10)}},
		{"far-future", []string{"_HLS_msn", strconv.Itoa(m.next() + 10), "_HLS_part", "0"}},
		{"directive", []string{"_HLS_part", "0"}},
		{"directive", []string{"_HLS_msn", "x"}},
		{"directive", []string{"_HLS_msn", "-1"}},
	} {
		u := withQuery(re.url, d.pairs...)
		a, err := re.c.fetch(ctx, http.MethodGet, u, "")
		if err != nil {
			return err
		}
		re.c.check(d.rule, a.status == http.StatusBadRequest && a.took < atOnce, u,
			"status %d after %v, want 400 at once", a.status, a.took.Round(time.Millisecond))
	}
	return nil
}
