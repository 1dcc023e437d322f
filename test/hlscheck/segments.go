package hlscheck

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// segmentSeen is a segment that was fetched.
type segmentSeen struct {
	entry
	url      string
	data     []byte // kept for the decoder only
	sum      [32]byte
	size     int
	init     *initSeen
	start    uint64  // first decode time, in the track's timescale
	end      uint64  // after the last sample
	pts      float64 // lowest presentation time of the first fragment, seconds
	samples  int
	hole     float64 // what is left in front of the first frame of sound, seconds
	fragment bool    // start to hole are known
}

// ahead is how long before its time its first frame is decoded: a picture with B-frames, and a frame in front of which
// a hole is left, which belongs to the segment. That is then dated where the one before ends.
func (s *segmentSeen) ahead() time.Duration {
	if !s.fragment {
		return 0
	}
	seconds := s.hole + max(0, s.pts-float64(s.start)/float64(s.init.info.timescale))
	return time.Duration(seconds * float64(time.Second))
}

// measure fills in what its fragments say.
func (s *segmentSeen) measure(list []fragment, kind string) {
	info, last := s.init.info, list[len(list)-1]
	s.start, s.end, s.fragment = list[0].time, last.time+last.duration, true
	s.pts = float64(list[0].minPTS) / float64(info.timescale)
	for _, f := range list {
		s.samples += len(f.each)
	}
	if kind == "audio" {
		s.hole = holeInFront(list, info)
	}
}

func (s *segmentSeen) same(b []byte) bool { return sha256.Sum256(b) == s.sum }

type partKey struct{ msn, part int }

type partSeen struct {
	url        string
	data       []byte
	start, end uint64
	known      bool // start and end are
}

type initSeen struct {
	url  string
	data []byte
	info *initInfo // nil: broken
}

// take fetches what is new in m, newest limit segments only unless limit is 0, and checks the bytes.
func (re *rendition) take(ctx context.Context, m *media, limit int) error {
	entries := m.entries
	if limit > 0 && len(entries) > limit {
		entries = entries[len(entries)-limit:]
	}
	for _, e := range entries {
		if re.segments[e.msn] != nil || e.gap {
			continue
		}
		for i := range e.parts {
			if err := re.takePart(ctx, e, i); err != nil {
				return err
			}
		}
		if err := re.takeSegment(ctx, e); err != nil {
			return err
		}
	}
	for i := range m.open.parts {
		if err := re.takePart(ctx, m.open, i); err != nil {
			return err
		}
	}
	return nil
}

// hintBytes keeps a part that was fetched by its hint, to be compared when it is listed.
func (re *rendition) hintBytes(u string, data []byte) {
	for _, p := range re.parts {
		if p.url == u {
			re.c.check("immutable-bytes", bytes.Equal(p.data, data), u,
				"the hinted part has other bytes than the listed one")
			return
		}
	}
	if re.inits["hint "+u] == nil {
		re.inits["hint "+u] = &initSeen{url: u, data: data}
	}
}

func (re *rendition) takeInit(ctx context.Context, e entry) (*initSeen, error) {
	if e.mapURI == "" {
		return nil, nil //nolint:nilnil // a rendition without init segments, or one that the rule map has reported
	}
	u := re.c.resolve(re.url, e.mapURI)
	key := u + "#" + e.mapRange
	if s := re.inits[key]; s != nil {
		return s, nil
	}
	b, err := re.c.fetchMedia(ctx, u, e.mapRange, re.kind)
	if err != nil {
		return nil, err
	}
	s := &initSeen{url: u, data: b}
	re.inits[key] = s
	if b == nil {
		return s, nil
	}
	info, err := parseInit(b)
	if re.c.check("init", err == nil, u, "%v", err) {
		want := map[string]string{"video": "vide", "audio": "soun"}[re.kind]
		re.c.check("init", info.handler == want, u, "track of handler %q in a %s rendition", info.handler, re.kind)
		s.info = info
	}
	return s, nil
}

func (re *rendition) takePart(ctx context.Context, e entry, i int) error {
	key := partKey{e.msn, i}
	p := e.parts[i]
	if re.parts[key] != nil || p.gap {
		return nil
	}
	init, err := re.takeInit(ctx, e)
	if err != nil {
		return err
	}
	u := re.c.resolve(re.url, p.uri)
	b, err := re.c.fetchMedia(ctx, u, p.byteRange, re.kind)
	if err != nil {
		return err
	}
	s := &partSeen{url: u, data: b}
	re.parts[key] = s
	if h := re.inits["hint "+u]; h != nil && b != nil {
		re.c.check("immutable-bytes", bytes.Equal(h.data, b), u, "the hinted part has other bytes than the listed one")
		delete(re.inits, "hint "+u)
	}
	if b == nil || init == nil || init.info == nil {
		return nil
	}
	list := re.fragments(u, b, init.info)
	if len(list) == 0 {
		return nil
	}
	re.checkPart(u, e, i, list, init.info)
	s.start, s.end, s.known = list[0].time, list[len(list)-1].time+list[len(list)-1].duration, true
	if prev := re.parts[partKey{e.msn, i - 1}]; prev != nil && prev.known {
		re.c.check("tfdt", near(s.start, prev.end), u, "decode time %d, the part before ended at %d (timescale %d)",
			s.start, prev.end, init.info.timescale)
	}
	return nil
}

func (re *rendition) checkPart(u string, e entry, i int, list []fragment, info *initInfo) {
	p := e.parts[i]
	seconds := length(list, info)
	same := math.Abs(seconds-p.duration) <= tick || i == 0 && re.startsLate(e, list, p.duration-seconds)
	re.c.check("part-duration", same, u, "samples last %.5f s, DURATION is %.5f", seconds, p.duration)
	re.c.check("independent-part", list[0].sync == p.independent, u, "INDEPENDENT=%t, first sample is sync: %t",
		p.independent, list[0].sync)
	if i == 0 && re.kind == "video" {
		re.c.check("segment-sync", list[0].sync, u, "the segment's first part does not begin with a sync sample")
	}
}

// fragments parses fMP4 bytes and checks how they are built.
func (re *rendition) fragments(u string, b []byte, info *initInfo) []fragment {
	list, structure, err := parseFragments(b, info)
	if !re.c.check("fmp4", err == nil, u, "%v", err) {
		return nil
	}
	shape := strings.Join(slices.DeleteFunc(slices.Clone(structure), func(s string) bool {
		return s == "styp" || s == "prft" || s == "emsg" || s == "sidx"
	}), " ")
	pairs := strings.TrimSpace(strings.Repeat("moof mdat ", len(list)))
	if !re.c.check("fmp4", len(list) > 0 && shape == pairs, u, "boxes are %s, want moof and mdat in turn",
		strings.Join(structure, " ")) {
		return nil
	}
	for i := 1; i < len(list); i++ {
		end := list[i-1].time + list[i-1].duration
		re.c.check("tfdt", near(list[i].time, end), u,
			"fragment %d has decode time %d, the one before ended at %d (timescale %d)", i, list[i].time, end,
			info.timescale)
	}
	return list
}

// startsLate reports whether a segment behind a discontinuity may last so many seconds longer than its samples: its
// first picture is decoded when it is presented, and those behind it are decoded earlier than that, so that what is
// presented is longer than what is decoded.
func (re *rendition) startsLate(e entry, list []fragment, longer float64) bool {
	return re.kind == "video" && e.discontinuity && longer > 0 && longer <= maxStand &&
		list[0].minPTS == int64(list[0].time)
}

// near allows a decode time to be off by one tick, from rounding to the track's timescale.
func near(a, b uint64) bool { return a == b || a == b+1 || a+1 == b }

// length is the samples' time in seconds.
func length(list []fragment, info *initInfo) float64 {
	total := uint64(0)
	for _, f := range list {
		total += f.duration
	}
	return float64(total) / float64(info.timescale)
}

// holeInFront is what is left of a hole in front of the first frame of sound, in seconds. All frames are of one length;
// the first sample lasts longer by the hole, and the next ones do where their parts have no room for all of it. What is
// less than a quarter of a frame is rounding, and ends it.
func holeInFront(list []fragment, info *initInfo) float64 {
	var each []uint32
	for _, f := range list {
		each = append(each, f.each...)
	}
	if len(each) == 0 {
		return 0
	}
	hole, shortest := uint32(0), slices.Min(each)
	for _, long := range each {
		more := long - shortest
		if more < long/4 {
			break
		}
		hole += more
	}
	return float64(hole) / float64(info.timescale)
}

func (re *rendition) takeSegment(ctx context.Context, e entry) error {
	init, err := re.takeInit(ctx, e)
	if err != nil {
		return err
	}
	u := re.c.resolve(re.url, e.uri)
	b, err := re.c.fetchMedia(ctx, u, e.byteRange, re.kind)
	if err != nil {
		return err
	}
	s := &segmentSeen{entry: e, url: u, init: init, size: len(b), sum: sha256.Sum256(b)}
	re.segments[e.msn] = s
	if b == nil {
		return nil
	}
	if re.c.o.Decoder != "" || re.kind == "text" {
		s.data = b
	}
	if !re.ranged && e.byteRange == "" {
		re.ranged = true
		if err := re.c.checkRange(ctx, u, b); err != nil {
			return err
		}
	}
	re.checkPartBytes(u, e, b)
	if re.kind == "text" {
		re.c.check("webvtt", bytes.HasPrefix(bytes.TrimPrefix(b, []byte("\ufeff")), []byte("WEBVTT")), u,
			"begins with %.20q", b)
		return nil
	}
	if init == nil || init.info == nil {
		return nil
	}
	list := re.fragments(u, b, init.info)
	if len(list) == 0 {
		return nil
	}
	s.measure(list, re.kind)
	seconds := length(list, init.info)
	same := math.Abs(seconds-e.duration) <= tick || re.startsLate(e, list, e.duration-seconds) ||
		re.latest != nil && re.latest.stands(e.msn, e.duration-seconds)
	re.c.check("segment-duration", same, u, "samples last %.5f s, EXTINF is %.5f", seconds, e.duration)
	if re.kind == "video" {
		re.c.check("segment-sync", list[0].sync, u, "the first sample is no sync sample")
	}
	re.checkNeighbour(re.segments[e.msn-1], s)
	re.checkNeighbour(s, re.segments[e.msn+1])
	return nil
}

// checkPartBytes compares a segment with its parts, when all were fetched: with its first ones, where the playlist
// lists no parts of it any more, as behind the end of a stream, whose last part is listed nowhere.
func (re *rendition) checkPartBytes(u string, e entry, b []byte) {
	var joined []byte
	n := 0
	for ; re.parts[partKey{e.msn, n}] != nil; n++ {
		joined = append(joined, re.parts[partKey{e.msn, n}].data...)
	}
	if n > 0 && n >= len(e.parts) {
		same := bytes.Equal(joined, b) || len(e.parts) == 0 && bytes.HasPrefix(b, joined)
		re.c.check("part-bytes", same, u, "%d parts have %d bytes, the segment has %d, or others", n, len(joined),
			len(b))
	}
	for i := range n { // they have done their work
		re.parts[partKey{e.msn, i}].data = nil
	}
}

// checkNeighbour holds the decode times of two segments in a row against each other.
func (re *rendition) checkNeighbour(a, b *segmentSeen) {
	if a == nil || b == nil || !a.fragment || !b.fragment {
		return
	}
	if b.discontinuity {
		sameScale := a.init.info.timescale == b.init.info.timescale
		re.c.check("tfdt-break", !sameScale || b.start+1 >= a.end, b.url,
			"decode time %d, the segment before the break ended at %d", b.start, a.end)
		return
	}
	re.c.check("discontinuity-map", a.init == b.init || bytes.Equal(a.init.data, b.init.data), b.url,
		"a new EXT-X-MAP without EXT-X-DISCONTINUITY")
	re.c.check("tfdt", near(b.start, a.end), b.url, "decode time %d, the segment before ended at %d (timescale %d)",
		b.start, a.end, b.init.info.timescale)
}

// again fetches some things a second time at the end of the watch.
func (re *rendition) again(ctx context.Context) error {
	for _, s := range re.sorted() {
		if re.latest == nil || s.msn < re.latest.sequence || s.size == 0 {
			continue
		}
		a, err := re.c.fetch(ctx, http.MethodGet, s.url, rangeHeader(s.byteRange))
		if err != nil {
			return err
		}
		re.c.check("immutable-bytes", a.status/100 == 2 && s.same(a.body), s.url,
			"other bytes than before, or status %d", a.status)
		break
	}
	return nil
}

// sorted gives the fetched segments by number.
func (re *rendition) sorted() []*segmentSeen {
	list := make([]*segmentSeen, 0, len(re.segments))
	for _, s := range re.segments {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *segmentSeen) int { return a.msn - b.msn })
	return list
}
