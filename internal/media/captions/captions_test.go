package captions

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

const twoCues = "1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nWorld\n"

func TestParseEncodings(t *testing.T) {
	t.Parallel()
	const text = "1\n00:00:01,000 --> 00:00:02,000\nCafé “œuvre” €\n"
	encoded := func(e interface{ Bytes([]byte) ([]byte, error) }, s string) string {
		b, err := e.Bytes([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	utf16 := func(e unicode.Endianness, bom unicode.BOMPolicy) interface{ Bytes([]byte) ([]byte, error) } {
		return unicode.UTF16(e, bom).NewEncoder()
	}
	const chinese = "1\n00:00:01,000 --> 00:00:02,000\n你好，世界。今天天气很好，我们去公园散步。\n"
	for name, tt := range map[string]struct{ in, want string }{
		"utf-8":             {text, "Café “œuvre” €"},
		"utf-8 with BOM":    {"\uFEFF" + text, "Café “œuvre” €"},
		"windows-1252":      {encoded(charmap.Windows1252.NewEncoder(), text), "Café “œuvre” €"},
		"latin-1":           {strings.ReplaceAll(twoCues, "Hello", "\xc9t\xe9"), "Été"},
		"utf-16le with BOM": {encoded(utf16(unicode.LittleEndian, unicode.UseBOM), text), "Café “œuvre” €"},
		"utf-16be with BOM": {encoded(utf16(unicode.BigEndian, unicode.UseBOM), text), "Café “œuvre” €"},
		"utf-16le":          {encoded(utf16(unicode.LittleEndian, unicode.IgnoreBOM), text), "Café “œuvre” €"},
		"utf-16be":          {encoded(utf16(unicode.BigEndian, unicode.IgnoreBOM), text), "Café “œuvre” €"},
		"utf-16le, Chinese": {
			encoded(utf16(unicode.LittleEndian, unicode.IgnoreBOM), chinese), "你好，世界。今天天气很好，我们去公园散步。",
		},
		"utf-16 cut in half": {
			encoded(utf16(unicode.LittleEndian, unicode.UseBOM), text) + "x", "Café “œuvre” €\n\uFFFD",
		},
		"damaged utf-8": {
			strings.Replace(text, "Café", "Caf\xc3 éééééééé", 1), "Caf\uFFFD éééééééé “œuvre” €",
		},
		"NUL":                {strings.Replace(text, "Café", "C\x00f", 1), "C\uFFFDf “œuvre” €"},
		"control characters": {strings.Replace(text, "Café", "C\x01\x1b[31m\u0085af", 1), "C[31maf “œuvre” €"},
		"entities that are more": {
			strings.Replace(text, "Café", "&#10;&#13;&#0;&#1;a&zwnj;&lrm;&bogus;&", 1),
			"\uFFFDa\u200c&lrm;&amp;bogus;&amp; “œuvre” €",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimLeft(d.Cues()[0].Text, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("00:01.000 --> 00:02.000\nx\n\n", MaxCues+1)
	for name, tt := range map[string]struct{ in, want string }{
		"nothing": {"", "the file holds no cue: it is empty"},
		"blank":   {"\uFEFF \r\n\t\n", "the file holds no cue: it is empty"},
		"html": {
			"<!DOCTYPE html><html><body>404</body></html>", "the file holds no cue: it starts like an HTML page",
		},
		"html upper": {"\n <HTML>", "the file holds no cue: it starts like an HTML page"},
		"ttml":       {"<tt xmlns='x'/>", "the file holds no cue: it starts like a TTML document without any text"},
		"xml": {
			"<?xml version='1.0'?><Error/>", "the file holds no cue: it starts like an XML document that is no TTML",
		},
		"ass": {
			"[Script Info]\nTitle: x\n",
			"the file holds no cue: it starts like a SubStation (ASS) file, and only SRT, WebVTT and TTML are read",
		},
		"json": {`{"error":"no"}`, "the file holds no cue: it starts like a JSON document"},
		"binary": {
			strings.Repeat("\x00\x00\x00\x18ftypmp42", 50), "the file holds no cue: it is binary data, not text",
		},
		"gzip": {
			"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "the file holds no cue: it starts like a gzip archive",
		},
		"noise": {
			strings.Repeat("\x01\x02\x93\xff\xfe\x07", 50), "the file holds no cue: it is binary data, not text",
		},
		"prose":          {"Dear Sir or Madam", "the file holds no cue: it is no SRT, WebVTT or TTML file"},
		"webvtt, no cue": {"WEBVTT\n\nNOTE nothing\n", "the file holds no cue: it is a WebVTT file without any"},
		"no good cue": {
			"00:02.000 --> 00:01.000\nx\n\n00:02.000 -->\ny\n",
			"the file holds no cue: what looks like cues can't be used (1 with a time that can't be read, 1 that end " +
				"before they start)",
		},
		"too many":  {many, "the file holds more than 100000 cues"},
		"too large": {strings.Repeat(" ", MaxInput+1), "the file is larger than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(tt.in))
			if _, ok := errors.AsType[*InputError](err); !ok || err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	long := "00:01.000 --> 00:02.000\n" + strings.Repeat("x", MaxCueText+1) + "\n\n"
	grows := "00:01.000 --> 00:02.000\n" + strings.Repeat("&", MaxCueText-10) + "\n\n"
	fine := "00:03.000 --> 00:04.000\n" + strings.Repeat("word ", 20_000/5) + "\n\n"
	d, err := Parse([]byte(long + grows + fine))
	if err != nil || d.Len() != 1 || d.Dropped() != (Drops{TooLong: 2}) {
		t.Errorf("got %d cues, %+v, %v", d.Len(), d.Dropped(), err)
	}

	many := strings.Repeat("00:01.000 --> 00:02.000\nx\n\n", MaxAtOnce+5) + "00:02.000 --> 00:03.000\nlater\n"
	d, err = Parse([]byte(many))
	if err != nil || d.Len() != MaxAtOnce+1 || d.Dropped() != (Drops{Crowded: 5}) {
		t.Errorf("got %d cues, %+v, %v", d.Len(), d.Dropped(), err)
	}

	// Deep nesting, stray ends and very long runs of blank lines cost no more than their length.
	nasty := "00:01.000 --> 00:02.000\n" + strings.Repeat("<b>", 5000) + "x\n1" + strings.Repeat("\n", 4<<20) + "y"
	d, err = Parse([]byte(nasty))
	if err != nil || d.Len() != 1 || strings.Count(d.Cues()[0].Text, "<b>") != maxDepth ||
		strings.Count(d.Cues()[0].Text, "</b>") != maxDepth {
		t.Errorf("got %d cues, %v", d.Len(), err)
	}
}

func TestAlignmentCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"1": "position:0% align:start", "2": "", "3": "position:100% align:end",
		"4": "line:50%,center position:0% align:start", "5": "line:50%,center",
		"6": "line:50%,center position:100% align:end",
		"7": "line:0 position:0% align:start", "8": "line:0", "9": "line:0 position:100% align:end", "0": "",
	} {
		d, err := Parse([]byte("00:01,000 --> 00:02,000\n{\\an" + code + "}x\n"))
		if err != nil || d.Cues()[0].Settings != want || d.Cues()[0].Text != "x" {
			t.Errorf("an%s: got %+v, %v, want %q", code, d.Cues(), err, want)
		}
	}
}

// TestSlice: cues are whole in each segment in which they are shown. Where none is, there is one without text.
func TestSlice(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte("WEBVTT\n\nSTYLE\n::cue{color:red}\n\n00:00.000 --> 10:00.000\nalways\n\n00:01.000 --> " +
		"00:04.000\nA\n\n00:04.000 --> 00:05.000\nB\n"))
	if err != nil {
		t.Fatal(err)
	}
	const head = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900630,LOCAL:00:00:00.007\n\nSTYLE\n::cue{color:red}\n"
	const always = "\n00:00:00.000 --> 00:10:00.000\nalways\n"
	const a, b = "\n00:00:01.000 --> 00:00:04.000\nA\n", "\n00:00:04.000 --> 00:00:05.000\nB\n"
	for _, tt := range []struct {
		from, to time.Duration
		want     string
	}{
		{0, 2 * time.Second, head + always + a},
		{2 * time.Second, 4 * time.Second, head + always + a},
		{4 * time.Second, 6 * time.Second, head + always + b},
		{6 * time.Second, 8 * time.Second, head + always},
		{10 * time.Minute, 11 * time.Minute, head + "\n00:10:00.000 --> 00:11:00.000\n\n"},
	} {
		if got := string(d.Slice(tt.from, tt.to, 900_000)); got != tt.want {
			t.Errorf("[%v,%v): got\n%s\nwant\n%s", tt.from, tt.to, got, tt.want)
		}
	}
	if got, want := string(Document{}.Slice(0, time.Second, 1<<33+7)),
		"WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:637,LOCAL:00:00:00.007\n\n00:00:00.000 --> 00:00:01.000\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSliceWraps: where the clock of 33 bits has wrapped since the beginning, a segment maps a time behind the wrap, so
// that each cue is where the media's clock, modulo 2^33, says; a cue on both sides has the same times in both segments.
// A player that counts wraps, as Shaka does, and one that takes the nearest, as hls.js does, find the same time.
func TestSliceWraps(t *testing.T) {
	t.Parallel()
	const zero, around = 900_000, 1 << 33
	at := func(ticks int64) time.Duration { return time.Duration(ticks-zero) * 100_000 / 9 }
	for _, tt := range []struct {
		name         string
		from, mpegts int64 // of the segment, in media time, and the least that may be mapped
		wraps        int64
		local        string
	}{
		{"begins before the wrap", around - 90_000, zero + 630, 0, "00:00:00.007"},
		{"begins at the wrap", around + 90, 0, 1, "26:30:33.718"},
		{"begins behind the wrap", around + 90_000, 0, 1, "26:30:33.718"},
		{"begins behind the second wrap", 2*around + 90_000, 0, 2, "53:01:17.436"},
		{"begins behind the tenth wrap", 10*around + 90_000, 0, 10, "265:07:07.177"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			from := at(tt.from)
			cue := Cue{
				Start: (from - time.Second).Truncate(time.Millisecond),
				End:   (from + time.Second).Truncate(time.Millisecond), Text: "on both sides",
			}
			text := string(New([]Cue{cue}).Slice(from, from+2*time.Second, zero))
			_, value, _ := strings.Cut(text, "X-TIMESTAMP-MAP=MPEGTS:")
			value, rest, _ := strings.Cut(value, ",LOCAL:")
			local, _, _ := strings.Cut(rest, "\n")
			mapped, err := strconv.ParseInt(value, 10, 64)
			if err != nil || local != tt.local || mapped < tt.mpegts || mapped >= tt.mpegts+90 {
				t.Errorf("MPEGTS:%s,LOCAL:%s, want %d and %s", value, local, tt.mpegts, tt.local)
			}
			zeroOfCues, _, ok := parseTime(local)
			if got := mapped + tt.wraps*around - zeroOfCues.Milliseconds()*90; !ok || got != zero {
				t.Errorf("cues are %d ticks late", got-zero)
			}
			if want := string(appendCue(nil, cue)); !strings.HasSuffix(text, want) {
				t.Errorf("%s\nis without%s", text, want)
			}
		})
	}
}

// Every segment holds exactly the cues that a plain scan finds, for documents of any shape.
func TestSliceAgreesWithScan(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var cues []Cue
		for i := range rnd.IntN(40) {
			start := time.Duration(rnd.IntN(1000)) * time.Millisecond
			cues = append(cues, Cue{
				Start: start, End: start + time.Duration(1+rnd.IntN(300))*time.Millisecond, Text: fmt.Sprint(i),
			})
		}
		d := New(cues)
		var end time.Duration
		for from := time.Duration(0); from < 1400*time.Millisecond; from += 100 * time.Millisecond {
			to := from + 100*time.Millisecond
			var want, got []Cue
			for _, c := range d.Cues() {
				if c.Start < to && c.End > from {
					want = append(want, c)
				}
				end = max(end, c.End)
			}
			d.overlapping(from, to, func(c Cue) { got = append(got, c) })
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("[%v,%v): got %v, want %v", from, to, got, want)
			}
		}
		if d.End() != end {
			t.Fatalf("end %v, want %v", d.End(), end)
		}
	}
}

func TestTrimAndShift(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte("WEBVTT\n\nid\n00:01.000 --> 00:05.000 line:0\na <00:02.000>b <00:04.000>c\n\n00:05.000 " +
		"--> 00:07.000\nlast\n\n00:20.000 --> 00:21.000\noutside\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := string(d.Trim(3*time.Second, 6*time.Second).Shift(-3 * time.Second).AppendVTT(nil))
	want := "WEBVTT\n\nid\n00:00:00.000 --> 00:00:02.000 line:0\na b <00:00:01.000>c\n\n00:00:02.000 --> " +
		"00:00:03.000\nlast\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := d.Before(6 * time.Second).Cues(); !slices.Equal(got, d.Cues()[:2]) {
		t.Errorf("before second 6: %v", got)
	}
	if got := d.Before(5 * time.Second).Len(); got != 1 {
		t.Errorf("%d cues begin before second 5", got)
	}
	if got := d.Shift(-21 * time.Second).Len(); got != 0 {
		t.Errorf("%d cues left before zero", got)
	}
	if got := d.Shift(time.Hour).Cues()[2].Start; got != time.Hour+20*time.Second {
		t.Errorf("shifted to %v", got)
	}
	if got := d.Shift(20_000 * time.Hour).Len(); got != 0 {
		t.Errorf("%d cues beyond the last time", got)
	}
}

func TestNewSanitises(t *testing.T) {
	t.Parallel()
	d := New([]Cue{
		{
			ID: "a\nb", Start: 1500 * time.Microsecond, End: time.Second, Settings: "line:0\nx --> y",
			Text: "one\r\n\r\n--> <script>two\xff",
		},
		{Start: time.Second, End: time.Second + 100*time.Microsecond, Text: "too short"},
		{Start: -time.Second, End: time.Second, Text: "negative"},
		{Start: 0, End: time.Second, Text: " \n<b></b>"},
	})
	want := "WEBVTT\n\n00:00:00.001 --> 00:00:01.000 line:0\none\n--&gt; &lt;script&gt;two\uFFFD\n"
	if got := string(d.AppendVTT(nil)); got != want || d.Dropped() != (Drops{BadTime: 1, NotPositive: 1, Empty: 1}) {
		t.Errorf("got %q, %+v, want %q", got, d.Dropped(), want)
	}
	var b strings.Builder
	if err := d.Write(&b); err != nil || b.String() != want {
		t.Errorf("wrote %q, %v", b.String(), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		twoCues,
		"WEBVTT\n\nSTYLE\n::cue(b) {color:red}\n\nREGION\nid:a width:40%\n\nx\n00:01.000 --> 00:02.000 region:a " +
			"align:start\n<v.a B><i>x</i> <00:01.500><ruby>a<rt>b</ruby>&lt;&nbsp;\n",
		"1\n00:00:01,000 --> 00:00:02,000\n{\\an8}{\\i1}<font color=red>x</b> -->\n\n2\n00:00:03,000 -->\n",
		"00:01.000 --> 00:02.000\n{&#92;an8}<v a--&gt;>x<c.a--->y&#10;&#x3c;script>\n42\n00:03 --> 00:04\nx",
		"\xff\xfe1\x00\n\x00", "\xef\xbb\xbfWEBVTT\n\nNOTE\n00:01.000 --> 00:02.000\n \t\n5\n\n\nx<",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data)
		if err != nil {
			return
		}
		checkOutput(t, d)
		checkOutput(t, d.Trim(500*time.Millisecond, 1500*time.Millisecond).Shift(-500*time.Millisecond))
	})
}

// checkOutput holds a document against what the package promises of everything it writes.
func checkOutput(t *testing.T, d Document) {
	t.Helper()
	out := d.AppendVTT(nil)
	if strings.Contains(strings.ToLower(string(out)), "<script") {
		t.Fatalf("markup of a page: %q", out)
	}
	for _, c := range d.Cues() {
		if strings.Contains(c.Text, "-->") || strings.Contains(c.ID, "-->") ||
			strings.Contains("\n"+c.Text+"\n", "\n\n") || c.Start >= c.End || c.Start < 0 {
			t.Fatalf("bad cue %q", c)
		}
	}
	if d.Len() == 0 {
		return
	}
	again, err := Parse(out)
	if err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	if got := again.AppendVTT(nil); string(got) != string(out) || again.Dropped().Total() != 0 {
		t.Fatalf("reads back as\n%q\nfrom\n%q", got, out)
	}
	if _, err := Parse(d.Slice(0, d.End(), 900_000)); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkParse(b *testing.B) {
	data := New(manyCues()).AppendVTT(nil)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSlice(b *testing.B) {
	d := New(manyCues())
	b.ReportAllocs()
	for b.Loop() {
		_ = d.Slice(10*time.Hour, 10*time.Hour+4*time.Second, 0)
	}
}

func manyCues() []Cue {
	cues := make([]Cue, 0, MaxCues)
	for i := range MaxCues {
		start := time.Duration(i) * time.Second
		cues = append(cues, Cue{
			Start: start, End: start + 900*time.Millisecond,
			Text: fmt.Sprintf("Line number %d of a <i>large</i> file", i),
		})
	}
	return cues
}
