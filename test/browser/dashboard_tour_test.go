package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// words are what people, programs and encoders call things on the tour.
type words struct {
	stream, second, asset, clip, track, token, passthrough, creator, encoder, cue string
}

// hostileWords would all like to be more than text, and some write from the right. A script or an event handler that
// becomes markup is refused by the policy of pages, which the console tells; a picture is asked for.
var hostileWords = words{
	stream:      streamName,
	second:      `"><img src=x onerror="window.bad = 1"> ` + "\u202e\u05e9\u05dc\u05d5\u05dd",
	asset:       `Heats <img src=x onerror="window.bad = 1">`,
	clip:        `</title></table><script>window.bad = 1</script>`,
	track:       `Suomi <img src=x onerror=window.bad=1>`, // HLS has no quotation marks in names
	token:       `'"><svg onload="window.bad = 1"> ` + "\u202e\u05de\u05e4\u05ea\u05d7",
	passthrough: `</script><script>window.bad = 1</script>`,
	creator:     `</pre><iframe srcdoc="<script>parent.bad = 1</script>">`,
	encoder:     `<img src=x onerror="window.bad = 1"> 30`,
	cue: `<script>window.bad = 1</script><img src=x onerror="window.bad = 1"> ` +
		"\u05e9\u05dc\u05d5\u05dd &amp; hei",
}

// tour is a walk through the dashboard. Only its first address is typed in: all else are links and buttons of pages.
type tour struct {
	t   *testing.T
	b   *browser.Browser
	s   *rig.Server
	p   *browser.Page
	say words
	pictures
}

// TestDashboardTour walks the way of a person who has just started the service: the printed link, a password, a live
// stream published from the browser, which is seen on its page and watched while it goes on, and its recording; another
// one from an encoder; a file added by its URL, clipped, given subtitles and watched with them. What happens is seen
// without a reload, and every text stays text.
func TestDashboardTour(t *testing.T) {
	rig.Paced(t, rig.Long)
	o := &tour{t: t, say: hostileWords, pictures: picturesWanted(t)}
	if o.wanted() {
		o.say = plainWords
	}
	o.b = browser.Start(t, o.camera(t)...)
	o.s = rig.Start(t, rig.Options{})
	o.p = firstLink(t, o.b, o.s)
	o.p.Fill(t, "#password", "correct horse battery")
	o.p.Click(t, "button.main")

	o.published()
	encoder := o.encoded()
	o.added()
	o.clipped()
	o.subtitled()
	o.tokens()
	o.ended(encoder)
	o.events()
	o.leaves(o.p)
	o.p.Click(t, "header .me summary")
	o.p.Click(t, "header .me button[name=everywhere]")
	o.p.Await(t, "signed out", "location.pathname === '/dashboard/sign-in'", patience)
}

// published makes a live stream, publishes to it from the browser, watches it, ends it, and plays its recording.
func (to *tour) published() {
	t, p := to.t, to.p
	p.Await(t, "says what to do", "document.querySelector('.empty h2')?.textContent === 'No live stream yet'", patience)
	p.Click(t, ".empty a.main")
	to.makesStream(to.say.stream)
	to.reads(p, to.say.stream)
	studio := p.Beside(t, "#publish")
	studio.Await(t, "has the key", "document.getElementById('key').value.length > 10 && location.hash === ''", patience)
	studio.Click(t, "#empty [data-show=camera]")
	studio.Until(t, "the camera", patience, func(v browser.Probe) bool { return v.State == "preview" && v.Width > 0 })
	studio.Click(t, "#start")
	studio.Until(t, "live", patience, func(v browser.Probe) bool { return v.State == "live" })
	to.seesLive(p)

	viewer := p.Beside(t, "#watch")
	viewer.Plays(t, 1, patience)
	to.reads(viewer, to.say.stream)
	viewer.Eval(t, "setInterval(() => stage.dispatchEvent(new PointerEvent('pointermove')), 200)", nil) // for controls
	to.picture(t, viewer, "watch")
	to.leaves(viewer)
	viewer.Close(t)
	to.picture(t, studio, "publish")
	studio.Click(t, "#stop")
	studio.Until(t, "stopped", patience, func(v browser.Probe) bool { return v.State == "idle" })
	to.leaves(studio)
	studio.Close(t)

	p.Await(t, "waits again", "window.same && document.querySelector('.waitbox #publish')", patience)
	p.Await(t, "has the recording", "window.same && document.querySelector('#recordings .state.ready')", patience)
	p.Click(t, "#recordings a.name")
	p.Await(t, "is the recording", "location.pathname.startsWith('/dashboard/assets/') && window.video?.duration > 1",
		patience)
	to.reads(p, "recorded from")
	p.Click(t, "#play")
	p.Await(t, "plays", "video.currentTime > 0.5", patience)
}

// makesStream fills the form of a new live stream in, and is on its page then.
func (to *tour) makesStream(name string) {
	t, p := to.t, to.p
	p.Fill(t, "#title", name)
	p.Click(t, "form.make details summary")
	p.Fill(t, "#passthrough", to.say.passthrough)
	p.Click(t, "form.make button.main")
	p.Await(t, "waits for an encoder",
		"document.querySelector('.waitbox h2')?.textContent === 'Waiting for your encoder'", patience)
	to.reads(p, to.say.passthrough)
	p.Await(t, "is kept up to date", "document.getElementById('link-state')?.className === 'state ok'", patience)
	p.Eval(t, "window.same = true", nil)
}

// seesLive awaits that the page of a live stream turns into the live page without a reload.
func (to *tour) seesLive(p *browser.Page) {
	t := to.t
	p.Await(t, "says LIVE", "window.same && document.querySelector('#head .live')?.textContent === 'LIVE'", patience)
	p.Await(t, "plays", "window.same && document.querySelector('[data-player] video')?.currentTime > 1", patience)
}

// encoded makes another live stream, which an encoder publishes to. A program of its maker's gives it more texts.
func (to *tour) encoded() *rig.Encoder {
	t, p := to.t, to.p
	p.Click(t, ".side a[href='/dashboard/live']")
	to.reads(p, to.say.stream)
	p.Click(t, ".head a.main")
	to.makesStream(to.say.second)
	p.Click(t, "#panel-OBS [data-show]")
	p.Await(t, "shows the key", "!document.querySelector('#panel-OBS [data-shown]').textContent.includes('•')",
		patience)
	var key, path string
	p.Eval(t, "document.querySelector('#panel-OBS [data-shown]').textContent", &key)
	p.Eval(t, "location.pathname", &path)
	meta := rig.Object{"title": to.say.second, "creator_id": to.say.creator, "external_id": to.say.creator}
	change := rig.Object{"meta": meta, "new_asset_settings": rig.Object{"meta": meta}}
	id := path[strings.LastIndex(path, "/")+1:]
	if code, said := to.s.Do(t, "PATCH", "/video/v1/live-streams/"+id, change); code != http.StatusOK {
		t.Fatalf("change the stream: %d %v", code, said)
	}
	clip := to.broadcast(t)
	clip.Says = to.say.encoder
	encoder := to.s.Publish(t, key, clip)
	to.seesLive(p)
	to.reads(p, to.say.encoder)
	p.Await(t, "draws the bitrate", "window.same && document.querySelector('#health .ln')?.getTotalLength() > 0",
		patience)
	return encoder
}

// ended ends the broadcast of the encoder, from the list on, and finds its recording there.
func (to *tour) ended(encoder *rig.Encoder) {
	t, p := to.t, to.p
	p.Click(t, ".side a[href='/dashboard/live']")
	p.Await(t, "says LIVE", "document.querySelector('.tbl .live')?.textContent === 'LIVE'", patience)
	to.reads(p, to.say.second)
	to.picture(t, p, "live-streams")
	p.Click(t, ".tbl tbody tr:first-child a.name")
	p.Await(t, "is the live page", "document.getElementById('end') && document.querySelector('#health .ln')", patience)
	to.healthPictures()
	p.Click(t, "#end")
	p.Click(t, "dialog button.air")
	p.Await(t, "waits again", "document.querySelector('.waitbox #publish')", patience)
	p.Await(t, "has the recording", "document.querySelector('#recordings .state.ready')", patience)
	encoder.Stop()
}

// added adds a file by its URL, and follows how far it is until it is the video.
func (to *tour) added() {
	t, p := to.t, to.p
	film, pass := held(t, to.film(t))
	p.Click(t, ".side a[href='/dashboard/assets']")
	to.reads(p, "Live stream")
	p.Click(t, ".head a[href='/dashboard/assets/new']")
	p.Fill(t, "#url", film)
	p.Fill(t, "#title", to.say.asset)
	p.Click(t, "form.make details summary")
	p.Fill(t, "#passthrough", to.say.passthrough)
	p.Click(t, "form.make button.main")
	p.Await(t, "says how far it is", "/^Preparing, \\d+ %$/.test(document.querySelector('#well h2')?.textContent)",
		patience)
	p.Eval(t, "window.same = true", nil)
	pass()
	p.Await(t, "turns into the video", "window.same && window.video?.duration > 11", patience)
	p.Await(t, "says that it is ready", "window.same && document.querySelector('#head .state.ready')", patience)
	to.reads(p, to.say.asset)
	to.reads(p, to.say.passthrough)
}

// clipped makes a clip of the film, from one picture that is shown to another one, and goes back by its link.
func (to *tour) clipped() {
	t, p := to.t, to.p
	p.Eval(t, "video.currentTime = 2.5", nil)
	p.Await(t, "is there", "!video.seeking", patience)
	p.Click(t, "[data-take=start_time]")
	p.Eval(t, "video.currentTime = 8", nil)
	p.Await(t, "is there", "!video.seeking", patience)
	p.Click(t, "[data-take=end_time]")
	p.Await(t, "takes the times", "document.getElementById('start_time').value === '0:00:02.5' && "+
		"document.getElementById('end_time').value === '0:00:08.0'", patience)
	p.Fill(t, "#clip_title", to.say.clip)
	to.clipPicture()
	p.Click(t, "#make-clip")
	p.Await(t, "is the page of the clip", "document.querySelector('#head .under')?.textContent.includes('clip of') && "+
		"Math.abs(window.video?.duration - 5.5) < 0.2", patience)
	to.reads(p, to.say.clip)
	p.Click(t, "#head .under a")
	p.Await(t, "is the page of the film", "window.video?.duration > 11", patience)
	to.reads(p, to.say.asset)
}

// subtitled gives the film subtitles by their URL, and watches it with them.
func (to *tour) subtitled() {
	t, p := to.t, to.p
	texts := rig.Files(t, map[string]string{"fi.vtt": "WEBVTT\n\n00:00.000 --> 00:12.000\n" + to.say.cue + "\n"})
	p.Click(t, "#add-track")
	p.Fill(t, "#track_url", texts+"/fi.vtt")
	p.Fill(t, "#language_code", "fi")
	p.Fill(t, "#track_name", to.say.track)
	p.Click(t, "#track-add button.main")
	p.Await(t, "has the subtitles", fmt.Sprintf("[...document.querySelectorAll('#track-list tr')].some((r) => "+
		"r.textContent.includes(%s) && r.querySelector('.state.ready'))", quoted(to.say.track)), patience)
	p.Await(t, "offers them", "[...video.textTracks].some((t) => t.language === 'fi')", patience)
	viewer := p.Beside(t, "#watch")
	viewer.Plays(t, 1, patience)
	viewer.Select(t, "#subtitles", to.say.track)
	viewer.Await(t, "shows the cue", "[...video.textTracks].some((t) => t.mode === 'showing' && "+
		"t.activeCues?.[0]?.text.includes('hei'))", patience)
	viewer.Plays(t, 1, patience)
	to.reads(viewer, to.say.asset)
	to.leaves(viewer)
	viewer.Close(t)
}

// tokens makes an access token.
func (to *tour) tokens() {
	t, p := to.t, to.p
	p.Click(t, ".side a[href='/dashboard/assets']")
	to.reads(p, to.say.clip)
	to.picture(t, p, "assets")
	p.Click(t, ".side a[href='/dashboard/settings/tokens']")
	p.Click(t, ".sec-h a.main")
	p.Fill(t, "#name", to.say.token)
	p.Click(t, "form.make button.main")
	p.Await(t, "shows the secret", "document.querySelector('[data-line=Secret]')?.textContent.length > 20", patience)
	p.Click(t, "main a.btn")
	p.Await(t, "is the list", "document.querySelector('.tbl .name-c')", patience)
	to.reads(p, to.say.token)
	to.picture(t, p, "access-tokens")
}

// events goes from the page of the live stream to its newest event, whose payload has the metadata.
func (to *tour) events() {
	t, p := to.t, to.p
	p.Click(t, "#facts a[href^='/dashboard/events']")
	p.Click(t, "main tbody a[href^='/dashboard/events/']")
	p.Await(t, "shows the payload",
		"JSON.parse(document.querySelector('main pre').textContent).data.meta.creator_id === "+quoted(to.say.creator),
		patience)
	to.reads(p, "")
	p.Click(t, ".side a[href='/dashboard/events']")
	p.Await(t, "has all events", "document.querySelectorAll('main tbody tr').length > 10", patience)
	to.picture(t, p, "events")
}

// reads awaits a text on a page, as it is, and that nothing on it has become markup or has run.
func (to *tour) reads(p *browser.Page, text string) {
	to.t.Helper()
	const turns = "\u202e" // names are shown without it
	text = strings.ReplaceAll(text, turns, "")
	p.Await(to.t, "has "+text, "document.readyState === 'complete' && "+
		"document.body.textContent.replaceAll('"+turns+"', '').includes("+quoted(text)+")", patience)
	var found []string
	p.Eval(to.t, `[...document.querySelectorAll('[onerror], [onload], [src="x"], iframe, script:not([src])')]
		.map((e) => e.outerHTML.slice(0, 200)).concat(window.bad === undefined ? [] : ['a script ran'])`, &found)
	if len(found) > 0 {
		to.t.Errorf("a page with %q has %q", text, found)
	}
}

// leaves checks what a tab has said, asked for and complained of in all its pages.
func (to *tour) leaves(p *browser.Page) {
	to.t.Helper()
	p.StaysHome(to.t, to.s.HTTP)
	quiet(to.t, p, "status of 412") // a player may ask once more before the page tells it that the broadcast has ended
	for _, said := range p.Log(to.t).Dialogs {
		to.t.Errorf("a dialog said %q", said)
	}
}

// quoted is a text in JavaScript.
func quoted(text string) string {
	q, _ := json.Marshal(text) //nolint:errchkjson // a string
	return string(q)
}

// held serves a file of which the first half comes slowly, as over a bad line, and the second one only after pass.
func held(t *testing.T, file string) (url string, pass func()) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	pass = sync.OnceFunc(func() { close(open) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		const step = 8 << 10
		for rest := content; ; {
			select {
			case <-open:
				_, _ = w.Write(rest)
				return
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
			if len(rest) > len(content)/2 {
				_, _ = w.Write(rest[:step])
				_ = http.NewResponseController(w).Flush()
				rest = rest[step:]
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(pass) // before the server closes
	return server.URL + "/film.mp4", pass
}
