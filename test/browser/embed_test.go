package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/origin"
	"millrace/test/rig"
)

// framed opens a page of another site that shows an address in a frame, and gives page and frame. It looks at neither:
// Chromium takes that for the press of a viewer.
func framed(t *testing.T, b *browser.Browser, src string, width, height int) (page, frame *browser.Page) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><title>Site</title><body style='margin: 0'>"+
			"<iframe src=%q title=Video width=%d height=%d style='border: 0; display: block' "+
			"allow='autoplay; fullscreen'></iframe>",
			src, width, height)
	}))
	t.Cleanup(s.Close)
	page = b.OpenSize(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), width, height)
	return page, page.Frame(1)
}

// fits fails the test when something of the player is outside the frame.
func fits(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	var outside []string
	p.Eval(t, `[...document.querySelectorAll('#message > *, #message button, #message a, #controls *')]
		.filter((e) => e.checkVisibility() && !e.closest('.pl-settings, .pl-peek')).filter((e) => {
			const r = e.getBoundingClientRect();
			const inside = r.left > -2 && r.top > -2 && r.right < innerWidth + 2 && r.bottom < innerHeight + 2;
			return r.width && r.height && !inside;
		}).map((e) => e.id || e.tagName)`, &outside)
	if len(outside) > 0 {
		t.Errorf("%s: outside of the frame are %q", name, outside)
	}
}

// TestEmbed shows the embed page in a frame of another site. Nothing of the media is asked for before a viewer wants
// it, nor does any site count as the referrer; it begins at a second, without sound, and by itself, as its address
// says.
func TestEmbed(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	recording, err := origin.New(origin.Options{Mode: origin.VOD, Clip: c[0], Subtitles: true})
	made(t, err)
	var lists, media, referred atomic.Int64
	asked := make(chan struct{}, 1000) // for media
	about := watch.About{Title: hostile, State: watch.Video, Public: true, Width: origin.Width, Height: origin.Height}
	url, _ := hostKnowing(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Referer") != "" {
			referred.Add(1)
		}
		switch {
		case r.URL.Path == recording.Path():
			lists.Add(1)
		case !strings.HasSuffix(r.URL.Path, "/thumbnail.jpg"):
			media.Add(1)
			asked <- struct{}{}
		}
		recording.ServeHTTP(w, r)
	}), func(context.Context, watch.Viewer) (watch.About, error) { return about, nil })
	url = strings.Replace(url, "/watch/", "/embed/", 1)
	b := browser.Start(t, "--autoplay-policy=document-user-activation-required")

	page, frame := framed(t, b, url+"?muted&start=0m20s", 640, 360)
	frame.Await(t, "shows the player", "window.millrace", patience)
	frame.Until(t, "waits for a press", patience, func(v browser.Probe) bool { return v.State == "ready" })
	if !shows(t, frame, "#begin") || shows(t, frame, "#controls") || shows(t, frame, "#message") {
		t.Error("before the press there is more, or less, than a button to begin")
	}
	looksRight(t, b, frame, "ready")
	var title string
	frame.Eval(t, "document.querySelector('h1').textContent", &title)
	if title != hostile {
		t.Errorf("the title is %q, want %q", title, hostile)
	}
	if lists.Load() == 0 || media.Load() > 0 {
		t.Errorf("before the press: %d requests for the playlist, %d for media", lists.Load(), media.Load())
	}
	frame.Click(t, "#begin")
	v := frame.Plays(t, 1, patience)
	var played struct {
		From  float64
		Muted bool
	}
	const state = "(({played, muted}) => ({from: played.start(0), muted}))(document.querySelector('video'))"
	frame.Eval(t, state, &played)
	if played.From < 19.5 || played.From > 21 || !played.Muted {
		t.Errorf("begins at %.1f s, muted %t, want 20 s without sound", played.From, played.Muted)
	}
	if v.Width != origin.Width || shows(t, frame, "#sound") {
		t.Errorf("plays wrongly: %+v", v)
	}
	frame.Eval(t, "document.querySelector('video').pause()", nil)
	frame.Click(t, "#menu summary")
	looksRight(t, b, frame, "settings")
	if !shows(t, frame, "#subtitles") || !shows(t, frame, "#speed") {
		t.Error("the menu has no settings")
	}
	fits(t, frame, "playing")
	page.Close(t)

	for len(asked) > 0 {
		<-asked
	}
	page, frame = framed(t, b, url+"?autoplay=1&start=9999", 320, 180)
	<-asked // it has tried to begin
	frame.Plays(t, 1, patience)
	frame.Eval(t, state, &played)
	if played.From > 1 || !played.Muted || !shows(t, frame, "#sound") {
		t.Errorf("by itself: begins at %.1f s, muted %t, want 0 s without sound, and a way to it",
			played.From, played.Muted)
	}
	fits(t, frame, "by itself")
	page.Close(t)
	if n := referred.Load(); n > 0 {
		t.Errorf("%d requests of the player have a referrer", n)
	}
}

// TestEmbedStates walks the states in which there is nothing to play in a small frame: what they say is in it.
func TestEmbedStates(t *testing.T) {
	rig.Paced(t)
	clip, err := generate(440, 3*origin.Seconds) // it must not end while a slow machine looks
	made(t, err)
	b := browser.Start(t)
	show := &program{}
	show.knows(watch.About{Title: hostile, State: watch.Idle})
	url, base := hostKnowing(t, show, show.describe)
	url = strings.Replace(url, "/watch/", "/embed/", 1)
	says := func(name, text string) (page, frame *browser.Page) {
		page, frame = framed(t, b, url, 300, 170)
		frame.Await(t, "shows the player", "window.millrace", patience)
		frame.Until(t, name, patience, func(browser.Probe) (found bool) {
			frame.Eval(t, fmt.Sprintf("document.getElementById('message').innerText.includes(%q)", text), &found)
			return found
		})
		fits(t, frame, name)
		looksRight(t, b, frame, name)
		return page, frame
	}
	page, frame := says("soon", "Waiting for the stream to start")
	show.airs(t, "first", clip, 4*time.Second)
	frame.Until(t, "waits for a press", patience, func(v browser.Probe) bool { return v.State == "ready" })
	frame.Eval(t, "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'k'}))", nil)
	frame.Plays(t, 1, patience)
	if shows(t, frame, "#seek") || !shows(t, frame, "#live") {
		t.Error("what is live has a seek bar, or no way to its edge")
	}
	fits(t, frame, "live")
	page.Close(t)

	show.onAir.Store(nil)
	show.knows(watch.About{State: watch.Ended, Recording: "recorded"})
	page, frame = says("ended", "Not on air now")
	var to string
	if frame.Eval(t, "document.getElementById('recording').href", &to); to != base+"/embed/recorded?autoplay" {
		t.Errorf("leads to %s", to)
	}
	page.Close(t)

	show.about.Store(nil)
	page, frame = says("private", "This video is private")
	if frame.Eval(t, "document.title", &to); to != "Private video · Millrace" {
		t.Errorf("refused: title %q", to)
	}
	page.Close(t)
}
