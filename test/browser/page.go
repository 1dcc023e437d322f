package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Page is an open tab.
type Page struct {
	b     *Browser
	id    int
	frame int // 0: the page itself
	// Began is when the tab was opened.
	Began time.Time
}

// Probe is what the page's video element and player say at one moment. Times are seconds.
type Probe struct {
	State    string `json:"state"`    // of the watch page: loading, waiting, playing, ended, error
	Sentence string `json:"sentence"` // what the page tells the viewer

	Time          float64      `json:"time"`
	Duration      float64      `json:"duration"` // -1: not known or endless
	Paused        bool         `json:"paused"`
	Ended         bool         `json:"ended"`
	ReadyState    int          `json:"readyState"`
	Rate          float64      `json:"rate"`
	Width         int          `json:"width"`
	Height        int          `json:"height"`
	Frames        int          `json:"frames"` // decoded so far
	Dropped       int          `json:"dropped"`
	AudioBytes    int          `json:"audioBytes"` // decoded so far
	Buffered      [][2]float64 `json:"buffered"`
	Seekable      [][2]float64 `json:"seekable"`
	Error         string       `json:"error"`
	Live          bool         `json:"live"`
	Latency       float64      `json:"latency"` // hls.js's own figure, -1: not known
	TargetLatency float64      `json:"targetLatency"`
	LiveSync      float64      `json:"liveSync"`
	// ms since 1970 of the picture shown, by EXT-X-PROGRAM-DATE-TIME; 0: none
	PlayingDate int64 `json:"playingDate"`
	Now         int64 `json:"now"` // ms since 1970 at the probe

	Stalls         int         `json:"stalls"`
	Restarts       int         `json:"restarts"`
	Errors         []string    `json:"errors"`
	Levels         []int       `json:"levels"`  // heights
	Loaders        []string    `json:"loaders"` // states of hls.js's loaders: of the picture, of the sound
	AudioTracks    []string    `json:"audioTracks"`
	AudioTrack     int         `json:"audioTrack"`
	SubtitleTracks []string    `json:"subtitleTracks"`
	SubtitleTrack  int         `json:"subtitleTrack"`
	TextTracks     []TextTrack `json:"textTracks"`
}

// Behind is how many seconds ago the encoder sent what is shown.
func (p Probe) Behind() float64 { return float64(p.Now-p.PlayingDate) / 1000 }

func (p Probe) String() string {
	text, _ := json.Marshal(p) //nolint:errchkjson // plain numbers and strings
	return string(text)
}

// TextTrack is one of the video element's text tracks.
type TextTrack struct {
	Label    string   `json:"label"`
	Language string   `json:"language"`
	Mode     string   `json:"mode"`   // disabled, hidden, showing
	Cues     []Cue    `json:"cues"`   // none of a track that is disabled
	Active   []string `json:"active"` // texts shown now
}

// Cue is one of a text track's. Times are seconds.
type Cue struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Text  string  `json:"text"`
}

// Log is what the page asked for and complained of since it was opened.
type Log struct {
	Requests []string `json:"requests"`
	Failed   []string `json:"failed"`  // "status url" of responses from 400
	Console  []string `json:"console"` // warnings and errors
	Errors   []string `json:"errors"`  // uncaught exceptions
	Dialogs  []string `json:"dialogs"` // what they said: alert, confirm, prompt
	// the last requests that ended, with when they began and ended, in ms since the page was opened
	Trace []string `json:"trace"`
}

// String leaves out what was asked for: of a long test that is too much to read, and the last of it is in the trace.
func (l Log) String() string {
	said := []string{
		"failed: " + fmt.Sprint(l.Failed), "console: " + fmt.Sprint(l.Console), "errors: " + fmt.Sprint(l.Errors),
	}
	return strings.Join(append(said, l.Trace...), "\n")
}

// Open opens url in a tab of its own.
func (b *Browser) Open(t testing.TB, url string) *Page {
	t.Helper()
	return b.OpenSize(t, url, 1280, 800)
}

// OpenSize opens url in a tab of the given size in CSS pixels.
func (b *Browser) OpenSize(t testing.TB, url string, width, height int) *Page {
	t.Helper()
	p := &Page{b: b, Began: time.Now()}
	if err := b.do(command{Do: "open", URL: url, Width: width, Height: height}, &p.id); err != nil {
		t.Fatal(err)
	}
	return p
}

// OpenScriptless opens url in a tab that runs no script of its pages; Eval and Await look at it all the same.
func (b *Browser) OpenScriptless(t testing.TB, url string) *Page {
	t.Helper()
	p := &Page{b: b, Began: time.Now()}
	if err := b.do(command{Do: "open", URL: url, Width: 1280, Height: 800, Scriptless: true}, &p.id); err != nil {
		t.Fatal(err)
	}
	return p
}

// Forget empties the browser's cache, so that a tab that is opened then loads all from the server.
func (b *Browser) Forget(t testing.TB) {
	t.Helper()
	if err := b.do(command{Do: "forget"}, nil); err != nil {
		t.Fatal(err)
	}
}

// Frame is one of the page's frames, 1 the first: Probe, Until, Plays, Eval, Await and Click look at it, everything
// else at the page that it is in.
func (p *Page) Frame(n int) *Page { return &Page{b: p.b, id: p.id, frame: n, Began: p.Began} }

// Probe reads the page now.
func (p *Page) Probe(t testing.TB) Probe {
	t.Helper()
	var v Probe
	if err := p.b.do(command{Do: "probe", Page: p.id, Frame: p.frame}, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Until probes the page until ok says yes and gives the last probe; the test fails when that takes longer than limit.
// what names the wish in the failure.
func (p *Page) Until(t testing.TB, what string, limit time.Duration, ok func(Probe) bool) Probe {
	t.Helper()
	end := time.Now().Add(limit)
	for {
		v := p.Probe(t)
		if ok(v) {
			return v
		}
		if time.Now().After(end) {
			p.Screenshot(t, "until-"+what)
			t.Fatalf("%s: not within %v\npage: %s\n%v", what, limit, v, p.Log(t))
		}
		pause(100 * time.Millisecond)
	}
}

// Plays waits until the picture has run for the given number of seconds; what the player jumps over does not count.
func (p *Page) Plays(t testing.TB, seconds float64, limit time.Duration) Probe {
	t.Helper()
	last, at, ran := p.Probe(t), time.Now(), 0.0
	return p.Until(t, fmt.Sprintf("play %.1f s", seconds), limit, func(v Probe) bool {
		step, passed := v.Time-last.Time, time.Since(at).Seconds()
		if step > 0 && step <= 2*passed+0.3 && v.Frames > last.Frames {
			ran += step
		}
		last, at = v, time.Now()
		return v.State == "playing" && ran >= seconds
	})
}

// FirstPicture waits for the first picture and gives the time since the tab was opened.
func (p *Page) FirstPicture(t testing.TB, limit time.Duration) time.Duration {
	t.Helper()
	p.Until(t, "first picture", limit, func(v Probe) bool { return v.Frames > 0 && v.Time > 0 })
	return time.Since(p.Began)
}

// Seek sets the video's time.
func (p *Page) Seek(t testing.TB, to float64) {
	t.Helper()
	p.Eval(t, fmt.Sprintf("document.querySelector('video').currentTime = %f", to), nil)
}

// Eval runs JavaScript in the page and decodes its value.
func (p *Page) Eval(t testing.TB, code string, value any) {
	t.Helper()
	if value == nil {
		code = "(() => { " + code + "; return null; })()"
	}
	if err := p.b.do(command{Do: "eval", Page: p.id, Frame: p.frame, Code: code}, value); err != nil {
		t.Fatal(err)
	}
}

// Await evaluates JavaScript until it is true; a page that is just being left for another one is not yet. The test
// fails when that takes longer than limit; what names the wish.
func (p *Page) Await(t testing.TB, what, code string, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); ; pause(100 * time.Millisecond) {
		var yes bool
		err := p.b.do(command{Do: "eval", Page: p.id, Frame: p.frame, Code: "Boolean(" + code + ")"}, &yes)
		if yes {
			return
		}
		if time.Now().After(end) {
			p.Screenshot(t, "await-"+what)
			t.Fatalf("%s: not within %v (%v)\npage: %s\n%v", what, limit, err, p.Probe(t), p.Log(t))
		}
	}
}

// Box is where something is on a page, in CSS pixels from the upper left of what is seen.
type Box struct {
	Left   float64 `json:"left"`
	Top    float64 `json:"top"`
	Right  float64 `json:"right"`
	Bottom float64 `json:"bottom"`
}

// Cues are the boxes of the texts that the page's video element shows, a line each.
func (p *Page) Cues(t testing.TB) []Box {
	t.Helper()
	var boxes []Box
	if err := p.b.do(command{Do: "cues", Page: p.id}, &boxes); err != nil {
		t.Fatal(err)
	}
	return boxes
}

// Select opens the player's menu and picks an entry by its text: Select(t, "#audio", "Deutsch").
func (p *Page) Select(t testing.TB, selector, label string) {
	t.Helper()
	p.Eval(t, "document.getElementById('menu').open = true", nil)
	if err := p.b.do(command{Do: "select", Page: p.id, Selector: selector, Label: label}, nil); err != nil {
		t.Fatal(err)
	}
}

// Fill types a text into a field.
func (p *Page) Fill(t testing.TB, selector, text string) {
	t.Helper()
	if err := p.b.do(command{Do: "fill", Page: p.id, Selector: selector, Label: text}, nil); err != nil {
		t.Fatal(err)
	}
}

// Choose picks a file of this machine in a file field.
func (p *Page) Choose(t testing.TB, selector, file string) {
	t.Helper()
	if err := p.b.do(command{Do: "choose", Page: p.id, Selector: selector, File: file}, nil); err != nil {
		t.Fatal(err)
	}
}

// Click clicks an element.
func (p *Page) Click(t testing.TB, selector string) {
	t.Helper()
	if err := p.b.do(command{Do: "click", Page: p.id, Frame: p.frame, Selector: selector}, nil); err != nil {
		t.Fatal(err)
	}
}

// Beside presses a link or a button that opens a tab of its own, a link with Ctrl held, and gives that tab.
func (p *Page) Beside(t testing.TB, selector string) *Page {
	t.Helper()
	tab := &Page{b: p.b, Began: time.Now()}
	if err := p.b.do(command{Do: "beside", Page: p.id, Selector: selector}, &tab.id); err != nil {
		t.Fatal(err)
	}
	return tab
}

// Frames are the addresses of the page's frames; one that the browser refused to show has that of an error page.
func (p *Page) Frames(t testing.TB) []string {
	t.Helper()
	var v []string
	if err := p.b.do(command{Do: "frames", Page: p.id}, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Log reads what the page asked for so far.
func (p *Page) Log(t testing.TB) Log {
	t.Helper()
	var v Log
	if err := p.b.do(command{Do: "log", Page: p.id}, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// StaysHome fails the test if the page asked anything of another origin than the given one, or threw an exception.
func (p *Page) StaysHome(t testing.TB, origin string) {
	t.Helper()
	l := p.Log(t)
	for _, r := range l.Requests {
		if !strings.HasPrefix(r, origin+"/") {
			t.Errorf("page asked %s", r)
		}
	}
	for _, e := range l.Errors {
		t.Errorf("page threw %s", e)
	}
}

// Screenshot keeps a picture of the page in the folder named by MILLRACE_TEST_SHOTS, if any.
func (p *Page) Screenshot(t testing.TB, name string) {
	t.Helper()
	dir := os.Getenv("MILLRACE_TEST_SHOTS")
	if dir == "" {
		return
	}
	file := filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()+"-"+name)+".png")
	if err := p.b.do(command{Do: "screenshot", Page: p.id, File: file}, nil); err != nil {
		t.Errorf("%v", err)
	}
}

// Picture makes a PNG file of what can be seen of the page.
func (p *Page) Picture(t testing.TB, file string) {
	t.Helper()
	if err := p.b.do(command{Do: "screenshot", Page: p.id, File: file}, nil); err != nil {
		t.Fatal(err)
	}
}

// Resize gives the page another size in CSS pixels.
func (p *Page) Resize(t testing.TB, width, height int) {
	t.Helper()
	if err := p.b.do(command{Do: "resize", Page: p.id, Width: width, Height: height}, nil); err != nil {
		t.Fatal(err)
	}
}

// Close closes the tab.
func (p *Page) Close(t testing.TB) {
	t.Helper()
	if err := p.b.do(command{Do: "close", Page: p.id}, nil); err != nil {
		t.Fatal(err)
	}
}

// pause waits on real time: a browser has no fake clock.
func pause(d time.Duration) { <-time.After(d) }
