package origin

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// listed gives the segments that are whole at now and in the window.
func (or *Origin) listed(v *rendition, now float64) []segment {
	n := 0
	for n < len(v.segments) && v.segments[n].end() <= now {
		n++
	}
	first := 0
	if or.o.Mode == Live {
		first = max(0, n-windowSize)
	}
	return v.segments[first:n]
}

func (or *Origin) breaks(msn int) bool { return or.o.BreakAt > 0 && msn == or.o.BreakAt }

func (or *Origin) initName(v *rendition, msn int) string {
	if or.o.BreakAt > 0 && msn >= or.o.BreakAt {
		return v.name + "_init2.mp4"
	}
	return v.name + "_init.mp4"
}

// render writes the media playlist as it is at now.
func (or *Origin) render(v *rendition, now float64, skip bool) string {
	list := or.listed(v, now)
	open := v.open(now)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	first := open.msn
	if len(list) > 0 {
		first = list[0].msn
	}
	or.head(p, first, or.o.LowLatency)
	skipped := 0
	if skip && or.o.LowLatency {
		// A segment may be skipped when the durations after it are more than the skip boundary (4.4.3.8); a gap counts
		// nothing.
		after := 0.0
		for _, p := range open.parts {
			after += p.end - p.start
		}
		for i, s := range slices.Backward(list) {
			if after > skipUntil {
				skipped = i + 1
				break
			}
			after += s.end() - s.start()
		}
	}
	if skipped > 0 {
		p("#EXT-X-SKIP:SKIPPED-SEGMENTS=%d", skipped)
	}
	front := first + skipped
	if front <= open.msn {
		p(`#EXT-X-MAP:URI="%s"`, or.initName(v, front))
	}
	parted, behind := len(list), 0.0 // the first segment with its parts, and how far from the end it begins
	for _, p := range open.parts {
		behind += p.end - p.start
	}
	for parted > 0 && behind+list[parted-1].end()-list[parted-1].start() <= fullParts*GOPSeconds {
		parted--
		behind += list[parted].end() - list[parted].start()
	}
	for i, s := range list[skipped:] {
		or.segmentHead(p, v, s.msn, s.start(), s.msn != front)
		if or.o.LowLatency && or.o.Mode != VOD && skipped+i >= parted {
			or.parts(p, v, s)
		}
		p("#EXTINF:%.5f,\n%s_%d.m4s", s.end()-s.start(), v.name, s.msn)
	}
	if or.o.Mode == VOD || open.msn == len(v.segments) {
		p("#EXT-X-ENDLIST")
		return b.String()
	}
	if or.o.LowLatency {
		if len(open.parts) > 0 {
			or.segmentHead(p, v, open.msn, open.start(), open.msn != front)
			or.parts(p, v, open)
		} else if or.breaks(open.msn) {
			or.segmentHead(p, v, open.msn, v.segments[open.msn].start(), open.msn != front)
		}
		p(`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="%s_%d.%d.m4s"`, v.name, open.msn, len(open.parts))
		or.reports(p, v, now)
	}
	return b.String()
}

func (or *Origin) head(p func(string, ...any), first int, parts bool) {
	p("#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:%d", GOPSeconds)
	if parts && or.o.Mode != VOD {
		p("#EXT-X-PART-INF:PART-TARGET=%.5f", PartTarget)
		p("#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=%d,PART-HOLD-BACK=%.5f,HOLD-BACK=%.1f", skipUntil,
			3*PartTarget, holdBack)
	} else if or.o.Mode != VOD {
		p("#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=%.5f,HOLD-BACK=%.1f", 3*PartTarget, holdBack)
	}
	switch or.o.Mode {
	case VOD:
		p("#EXT-X-PLAYLIST-TYPE:VOD")
	case Event:
		p("#EXT-X-PLAYLIST-TYPE:EVENT")
	case Live:
	}
	p("#EXT-X-MEDIA-SEQUENCE:%d", first)
	// A break counts when its segment has left the window (6.2.2).
	gone := 0
	if or.o.BreakAt > 0 && first > or.o.BreakAt {
		gone = 1
	}
	p("#EXT-X-DISCONTINUITY-SEQUENCE:%d", gone)
}

// segmentHead writes what stands before a segment's first part: the break, with its map unless the head has it, and the
// date.
func (or *Origin) segmentHead(p func(string, ...any), v *rendition, msn int, start float64, withMap bool) {
	if or.breaks(msn) {
		p("#EXT-X-DISCONTINUITY")
		if withMap {
			p(`#EXT-X-MAP:URI="%s"`, or.initName(v, msn))
		}
	}
	begin := or.o.Begin
	if begin.IsZero() {
		begin = time.Unix(1700000000, 0)
	}
	p("#EXT-X-PROGRAM-DATE-TIME:%s",
		begin.Add(time.Duration(start*float64(time.Second))).UTC().Format("2006-01-02T15:04:05.000Z"))
}

func (or *Origin) parts(p func(string, ...any), v *rendition, s segment) {
	for i, part := range s.parts {
		independent := ""
		if part.sync {
			independent = ",INDEPENDENT=YES"
		}
		p(`#EXT-X-PART:DURATION=%.5f,URI="%s_%d.%d.m4s"%s`, part.end-part.start, v.name, s.msn, i, independent)
	}
}

func (or *Origin) reports(p func(string, ...any), v *rendition, now float64) {
	for _, name := range or.names {
		if name == v.name {
			continue
		}
		o := or.renditions[name].open(now)
		msn, part := o.msn, len(o.parts)-1
		if part < 0 {
			msn--
			part = len(or.renditions[name].segments[msn].parts) - 1
		}
		p(`#EXT-X-RENDITION-REPORT:URI="%s.m3u8",LAST-MSN=%d,LAST-PART=%d`, name, msn, part)
	}
}

func (or *Origin) multivariant() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-INDEPENDENT-SEGMENTS")
	p(
		`#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="%s/audio.m3u8"`, ID)
	if or.o.Commentary != nil {
		p(
			`#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="Deutsch",LANGUAGE="de",DEFAULT=NO,AUTOSELECT=YES,CHANNELS="2",URI="%s/commentary.m3u8"`, ID)
	}
	text := ""
	if or.o.Subtitles {
		text = `,SUBTITLES="text"`
		p(
			`#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="text",NAME="English",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,URI="%s/text.m3u8"`, ID)
	}
	peak, average := or.rates()
	p(
		`#EXT-X-STREAM-INF:BANDWIDTH=%d,AVERAGE-BANDWIDTH=%d,CODECS="%s,%s",RESOLUTION=%dx%d,FRAME-RATE=%d.000,AUDIO="audio"%s`+"\n%s/video.m3u8",
		peak, average, or.o.Clip.Video.Codec, or.o.Clip.Audio.Codec, Width, Height, FrameRate, text, ID)
	return b.String()
}

// rates gives the peak and average bits per second of a variant with its largest audio (4.4.6.2).
func (or *Origin) rates() (peak, average int) {
	rate := func(name string) (peak, average float64) {
		v := or.renditions[name]
		if v == nil {
			return 0, 0
		}
		bits, seconds := 0.0, 0.0
		for _, s := range v.segments {
			n := 8 * float64(len(s.data()))
			bits, seconds = bits+n, seconds+s.end()-s.start()
			peak = max(peak, n/(s.end()-s.start()))
		}
		return peak, bits / seconds
	}
	p0, a0 := rate("video")
	p1, a1 := rate("audio")
	p2, a2 := rate("commentary")
	return int(p0 + max(p1, p2) + 1), int(a0 + max(a1, a2) + 1)
}

func (or *Origin) textPlaylist(now float64) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	video := or.renditions["video"]
	list := or.listed(video, now)
	first := 0
	if len(list) > 0 {
		first = list[0].msn
	}
	or.head(p, first, false)
	for _, s := range list {
		or.segmentHead(p, video, s.msn, s.start(), false)
		p("#EXTINF:%.5f,\ntext_%d.vtt", s.end()-s.start(), s.msn)
	}
	if or.o.Mode == VOD || len(list) > 0 && list[len(list)-1].msn == len(video.segments)-1 {
		p("#EXT-X-ENDLIST")
	}
	return b.String()
}
