package captions_test

import (
	"fmt"
	"strings"
	"testing"

	"millrace/internal/media/captions"
)

const imsc = `<?xml version="1.0" encoding="UTF-8"?>
<!-- an IMSC 1 document -->
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" xml:lang="en"
  ttp:frameRate="25" ttp:tickRate="1000">
 <head>
  <styling><style xml:id="slanted" tts:fontStyle="italic"/></styling>
  <layout><region xml:id="top" tts:displayAlign="before"/><region xml:id="low"><style tts:displayAlign="after"/></region></layout>
 </head>
 <body><div begin="10s">
  <p begin="00:00:01.500" end="00:00:03" region="low">Plain &amp; <span style="slanted">slanted</span><br/>
    second   line</p>
  <p begin="5000t" dur="2s" region="top"><span tts:fontWeight="bold" tts:textDecoration="underline">&lt;script&gt;</span></p>
  <p begin="00:00:08:05" end="225f">by frames</p>
  <p begin="9s" end="8s">backwards</p>
  <p begin="soon" end="later">no time at all</p>
 </div></body>
</tt>`

func TestTTML(t *testing.T) {
	t.Parallel()
	d, err := captions.Parse([]byte(imsc))
	if err != nil {
		t.Fatal(err)
	}
	want := `WEBVTT

00:00:11.500 --> 00:00:13.000
Plain &amp; <i>slanted</i>
second line

00:00:15.000 --> 00:00:17.000 line:0
<b><u>&lt;script&gt;</u></b>

00:00:18.200 --> 00:00:19.000
by frames
`
	if got := string(d.AppendVTT(nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := d.Dropped().NotPositive; n != 2 {
		t.Errorf("%d cues are backwards: %+v", n, d.Dropped())
	}
	prefixed := strings.NewReplacer("<tt", "<tt:tt", "</tt", "</tt:tt", "xmlns=", "xmlns:tt=", "<p", "<tt:p", "</p",
		"</tt:p", "<body", "<tt:body", "</body", "</tt:body").Replace(imsc)
	if d, err = captions.Parse([]byte(prefixed)); err != nil || d.Len() != 3 {
		t.Errorf("with prefixes: %d cues, %v", d.Len(), err)
	}
	for name, text := range map[string]string{
		"no text": `<tt xmlns="http://www.w3.org/ns/ttml"><body/></tt>`, "not TTML": `<?xml version="1.0"?><rss/>`,
		"broken": `<tt><body><p begin="1s"`,
		"deep":   "<tt>" + strings.Repeat("<div>", 100),
		"bomb":   `<!DOCTYPE tt [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><tt><body><p begin="1s" end="2s">&b;</p></body></tt>`,
	} {
		if d, err := captions.Parse([]byte(text)); err == nil && name != "bomb" ||
			err == nil && strings.Contains(string(d.AppendVTT(nil)), "aaaa") {
			t.Errorf("%s: %d cues", name, d.Len())
		}
	}
}

// TestTTMLSpans: spans have times of their own, as in files that were made from captions that are painted or sung word
// by word.
func TestTTMLSpans(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want string }{
		"a paragraph without times": {
			`<p><span begin="1s" end="2s">one</span> <span begin="2s" end="3s">two</span></p>`, "1-2 one; 2-3 two",
		},
		"relative to the paragraph": {`<p begin="10s" end="14s"><span begin="1s" end="2s">one</span></p>`, "11-12 one"},
		"it grows": {
			`<p begin="1s" end="4s">always <span begin="1s">then</span></p>`, "1-2 always; 2-4 always then",
		},
		"lines": {
			`<p><span begin="1s" end="5s">first</span><br/><span begin="2s" end="4s">second</span></p>`,
			"1-2 first; 2-4 first/second; 4-5 first",
		},
		"a pause": {
			`<p><span begin="1s" end="2s">same</span><span begin="3s" end="4s">same</span></p>`, "1-2 same; 3-4 same",
		},
		"no longer than it": {`<p end="3s"><span begin="1s" dur="9s">cut</span></p>`, "1-3 cut"},
		"spans in spans": {
			`<p begin="1s" end="9s"><span begin="1s" end="4s"><span begin="1s" tts:fontStyle="italic">in</span></span></p>`, "3-5 <i>in</i>",
		},
		"the same times": {`<p begin="1s" end="2s"><span begin="0s" end="1s">all</span></p>`, "1-2 all"},
	} {
		d, err := captions.Parse([]byte(`<tt xmlns="http://www.w3.org/ns/ttml"><body><div>` + tt.in +
			`</div></body></tt>`))
		var got []string
		for _, c := range d.Cues() {
			got = append(got,
				fmt.Sprintf("%v-%v %s", c.Start.Seconds(), c.End.Seconds(), strings.ReplaceAll(c.Text, "\n", "/")))
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, `<span begin="%ds" end="%ds">x</span>`, i, i+1)
	}
	spans := many.String()
	long := `<p end="200s">` + strings.Repeat("x", 2000) + spans[:strings.Index(spans, `<span begin="99s"`)] + `</p>`
	for want, in := range map[string]string{
		"(1 that end before they start)":    `<p begin="1s" end="9s"><span begin="2s" end="1s">never</span></p>`,
		"(1 with more than 64 KiB of text)": "<p>" + spans + "</p>", "(2 with more than 64 KiB of text)": long + long,
	} {
		if d, err := captions.Parse([]byte(`<tt><body>` + in + `</body></tt>`)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d cues, %v, want %s", d.Len(), err, want)
		}
	}
}

func FuzzTTML(f *testing.F) {
	f.Add([]byte(imsc))
	f.Add([]byte(`<tt><body begin="1h" dur="3ms"><div><p end="00:00:01"><span>x</span><br/></p></div></body></tt>`))
	f.Add(
		[]byte(
			`<tt><body><p begin="1s" end="9s">a<span begin="1s" end="2s">b<br/></span><span begin="1s" dur="3s">c</span></p></body></tt>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := captions.Parse(data)
		if err != nil {
			return
		}
		again, err := captions.Parse(d.AppendVTT(nil))
		if err != nil || again.Len() != d.Len() {
			t.Fatalf("%d cues became %d: %v", d.Len(), again.Len(), err)
		}
	})
}
