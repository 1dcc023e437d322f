package hlscheck

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// frameSlack is how far starts of the same media sequence number may lie apart: a cut falls on the first sample at or
// after its time, so one frame of the slower rendition.
const frameSlack = 0.050

// checkAcross holds renditions against each other after the watch.
func (c *checker) checkAcross() {
	if len(c.renditions) == 0 || c.renditions[0].latest == nil {
		return
	}
	lead := c.renditions[0]
	// the tag counts for the playlist it is in; nobody can promise what pictures an encoder will send
	for _, v := range c.renditions {
		stated := c.master.independent || v.kind == "text" ||
			v.latest != nil && (v.latest.independent || !v.latest.ended && v.kind == "video")
		c.check("independent-segments", stated, v.url,
			"no EXT-X-INDEPENDENT-SEGMENTS, neither here nor in the multivariant playlist")
	}
	for _, v := range c.renditions[1:] {
		if v.latest == nil {
			continue
		}
		c.check("align-target", v.latest.target == lead.latest.target, v.url, "target duration %d, %s has %d",
			v.latest.target, lead.url, lead.latest.target)
		c.check("align-ends", v.latest.ended == lead.latest.ended || !lead.latest.ended, v.url,
			"it goes on though %s has ended", lead.url)
		if v.latest.ended && lead.latest.ended {
			c.check("align-ends", v.latest.next() == lead.latest.next() && v.latest.sequence == lead.latest.sequence,
				v.url,
				"segments %d to %d, %s has %d to %d", v.latest.sequence, v.latest.next()-1, lead.url,
				lead.latest.sequence, lead.latest.next()-1)
		}
		c.checkPair(lead, v)
	}
}

func (c *checker) checkPair(lead, v *rendition) {
	from := max(lead.first, v.first)
	to := min(lead.last, v.last)
	for msn := from; msn <= to; msn++ {
		a, b := lead.segments[msn], v.segments[msn]
		if a == nil || b == nil {
			continue
		}
		if msn > from {
			c.check("align-discontinuity", a.discontinuity == b.discontinuity, v.url,
				"segment %d: EXT-X-DISCONTINUITY %t, in %s %t", msn, b.discontinuity, lead.url, a.discontinuity)
		}
		if !a.pdt.IsZero() && !b.pdt.IsZero() {
			apart := b.pdt.Sub(a.pdt)
			slack := time.Duration(frameSlack * float64(time.Second))
			c.check("align-pdt", apart <= slack+a.ahead() && -apart <= slack+b.ahead(), v.url,
				"segment %d is dated %v after that of %s", msn, apart, lead.url)
		}
		if a.fragment && b.fragment {
			early := a.pts - b.pts
			c.check("align-start", -early <= frameSlack && early <= frameSlack+b.hole, v.url,
				"segment %d starts at %.3f s, in %s at %.3f s", msn, b.pts, lead.url, a.pts)
		}
		if v.kind == "text" && a.fragment {
			c.checkCues(b, a)
		}
	}
}

var (
	cueTimes = regexp.MustCompile(
		`(?m)^(?:(\d+):)?(\d\d):(\d\d\.\d{3})[ \t]+-->[ \t]+(?:(\d+):)?(\d\d):(\d\d\.\d{3})`)
	timestampMap = regexp.MustCompile(`(?m)^X-TIMESTAMP-MAP=(.*)$`)
)

// checkCues wants a text segment's cues to overlap the time of the video's segment of the same number.
func (c *checker) checkCues(text, video *segmentSeen) {
	offset := 0.0 // from cue time to media time
	if m := timestampMap.FindSubmatch(text.data); m != nil {
		for pair := range strings.SplitSeq(string(m[1]), ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(pair), ":")
			switch key {
			case "MPEGTS":
				n, err := strconv.ParseUint(value, 10, 64)
				c.check("webvtt", err == nil && n < 1<<33, text.url, "MPEGTS:%s", value)
				offset += float64(n) / 90000
			case "LOCAL":
				if t := regexp.MustCompile(`^(?:(\d+):)?(\d\d):(\d\d\.\d{3})$`).FindStringSubmatch(value); t != nil {
					offset -= clock(t[1:])
				}
			}
		}
	}
	const wrap = float64(1<<33) / 90000
	from := video.pts
	to := from + video.duration
	for _, m := range cueTimes.FindAllSubmatch(text.data, -1) {
		f := make([]string, len(m))
		for i := range m {
			f[i] = string(m[i])
		}
		begin, end := clock(f[1:4])+offset, clock(f[4:7])+offset
		shift := math.Round((from-begin)/wrap) * wrap
		begin, end = begin+shift, end+shift
		c.check("webvtt", begin < to+1 && end > from-1, text.url,
			"cue from %.3f to %.3f s in a segment from %.3f to %.3f s", begin, end, from, to)
	}
}

func clock(f []string) float64 {
	total := 0.0
	for _, s := range f {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			n = 0 // no hours
		}
		total = total*60 + n
	}
	return total
}

// rates gives the peak bit rate over half to one and a half target durations (4.4.6.2), and the average, in bits per
// second.
func (re *rendition) rates() (peak, average float64) {
	list := re.sorted()
	if re.latest == nil || len(list) == 0 {
		return 0, 0
	}
	target := float64(re.latest.target)
	bits, seconds := 0.0, 0.0
	for i, s := range list {
		bits, seconds = bits+8*float64(s.size), seconds+s.duration
		b, d := 0.0, 0.0
		for j := i; j < len(list) && list[j].msn == s.msn+j-i; j++ {
			b, d = b+8*float64(list[j].size), d+list[j].duration
			if d > 1.5*target {
				break
			}
			if d >= 0.5*target {
				peak = max(peak, b/d)
			}
		}
	}
	if peak == 0 && seconds > 0 { // shorter than half a target duration
		peak = bits / seconds
	}
	return peak, bits / max(seconds, 0.001)
}

// checkRates holds what the multivariant playlist says of each variant against the media that were fetched.
func (c *checker) checkRates() {
	for _, v := range c.renditions {
		for _, variant := range v.variants {
			c.checkVariant(v, variant)
		}
	}
}

// names reports whether a name of CODECS is that of a sample entry, of which only the family is known here but for
// H.264 and AAC.
func names(stated, codec string) bool {
	if family, _, more := strings.Cut(stated, "."); more && !strings.Contains(codec, ".") {
		stated = family
	}
	return strings.EqualFold(stated, codec)
}

// estimated reports whether a variant is encoded when somebody asks for it: what it takes is bounded then, and not
// known.
func (v *variant) estimated() bool { return encoded.MatchString(v.uri) }

// encoded are such variants by their URIs, as 480p-0a1b2c3d.m3u8.
var encoded = regexp.MustCompile(`(^|/)[0-9]+p-[0-9a-f]{8}\.m3u8`)

func (c *checker) checkVariant(v *rendition, x *variant) {
	peak, average := v.rates()
	var audioPeak, audioAverage float64
	codecs := map[string]bool{}
	addCodecs := func(r *rendition) {
		for _, i := range r.inits {
			if i.info != nil {
				codecs[i.info.codec] = true
			}
		}
	}
	addCodecs(v)
	for _, t := range c.master.media {
		for _, r := range c.renditions {
			if t.kind == "AUDIO" && t.group == x.audio && t.uri != "" && c.resolve(c.o.URL, t.uri) == r.url && r != v {
				p, a := r.rates()
				audioPeak, audioAverage = max(audioPeak, p), max(audioAverage, a)
				addCodecs(r)
			}
		}
	}
	u := c.o.URL
	delete(codecs, "")
	if len(codecs) > 0 && len(v.breaks) == 0 { // after a change of codec parameters the playlist can name one of them
		stated := strings.Split(x.codecs, ",")
		for codec := range codecs {
			c.check("codecs",
				slices.ContainsFunc(stated, func(s string) bool { return names(strings.TrimSpace(s), codec) }), u,
				"CODECS=%q of %s lacks %s", x.codecs, x.uri, codec)
		}
		c.check("codecs", len(stated) <= len(codecs), u, "CODECS=%q of %s has more than the media's %d", x.codecs,
			x.uri, len(codecs))
	}
	c.checkPicture(v, x)
	peak, average = peak+audioPeak, average+audioAverage
	if peak == 0 || v.latest == nil {
		return
	}
	// A live stream's figures are of what was there when the multivariant playlist was read.
	slack := 1.25
	if v.latest.ended && c.o.MaxSegments == 0 {
		slack = 1.05 // segments of a broken-off recording are measured over stretches
		stated := float64(x.average)
		c.check("average-bandwidth", stated >= 0.9*average && (x.estimated() || stated <= 1.1*average), u,
			"AVERAGE-BANDWIDTH=%d of %s, measured %.0f", x.average, x.uri, average)
	}
	c.check("bandwidth", float64(x.bandwidth)*slack >= peak, u, "BANDWIDTH=%d of %s, measured peak %.0f", x.bandwidth,
		x.uri, peak)
	c.check("bandwidth", x.estimated() || float64(x.bandwidth) <= 2*peak+50_000, u,
		"BANDWIDTH=%d of %s is far above the measured peak %.0f", x.bandwidth, x.uri, peak)
}

// checkPicture holds RESOLUTION and FRAME-RATE against the video's init segments and samples.
func (c *checker) checkPicture(v *rendition, x *variant) {
	if v.kind != "video" {
		return
	}
	for _, i := range v.inits {
		if i.info == nil || i.info.width == 0 {
			continue
		}
		want := strconv.Itoa(i.info.width) + "x" + strconv.Itoa(i.info.height)
		// After a change of codec parameters the playlist can name one of them.
		c.check("resolution", x.resolution == want || len(v.breaks) > 0, c.o.URL,
			"RESOLUTION=%s of %s, the media are %s", x.resolution, x.uri, want)
	}
	samples, seconds := 0, 0.0
	for _, s := range v.segments {
		if s.fragment {
			samples, seconds = samples+s.samples, seconds+float64(s.end-s.start)/float64(s.init.info.timescale)
		}
	}
	if seconds > 1 {
		rate := float64(samples) / seconds
		c.check("frame-rate", math.Abs(rate-x.frameRate) <= 0.03*rate || len(v.breaks) > 0, c.o.URL,
			"FRAME-RATE=%.3f of %s, measured %.3f", x.frameRate, x.uri, rate)
	}
}
