package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/origin"
	"millrace/test/rig"
)

// hostile is a title that would like to be more than a text.
const hostile = `<img src=x onerror="document.title='broken'"> & „Regatta“ ` + "\u202e"

// program is a live stream as the watch page meets it: its broadcasts, and what is known of them.
type program struct {
	onAir atomic.Pointer[http.Handler] // nil: nothing
	about atomic.Pointer[watch.About]  // nil: the viewer may not watch
	lists atomic.Int64                 // requests for playlists
	looks atomic.Int64                 // requests for what is known
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ".m3u8") {
		p.lists.Add(1)
	}
	switch h := p.onAir.Load(); {
	case p.about.Load() == nil:
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error":{"messages":["x"],"message":"token: add ?token= with a token"}}`))
	case h == nil:
		http.Error(w, "not live", http.StatusPreconditionFailed)
	default:
		(*h).ServeHTTP(w, r)
	}
}

func (p *program) describe(context.Context, watch.Viewer) (watch.About, error) {
	p.looks.Add(1)
	if a := p.about.Load(); a != nil {
		return *a, nil
	}
	return watch.About{}, fault.New(fault.Denied, "no")
}

func (p *program) knows(a watch.About) { p.about.Store(&a) }

// airs sends a clip of which so much is there already, as the broadcast of a name.
func (p *program) airs(t *testing.T, name string, clip origin.Clip, sent time.Duration) {
	t.Helper()
	folder := "/" + name + "/"
	named := func(_, text string) string { // in the multivariant playlist
		return strings.ReplaceAll(text, origin.ID+"/", origin.ID+folder)
	}
	g, err := origin.New(origin.Options{LowLatency: true, Clip: clip, Begin: time.Now().Add(-sent), Text: named})
	made(t, err)
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.Replace(r.URL.Path, folder, "/", 1)
		g.ServeHTTP(w, r)
	})
	p.onAir.Store(&h)
}

// looksTidy is looksRight, and checks that nothing shines through a text.
func looksTidy(t *testing.T, b *browser.Browser, p *browser.Page, name string) {
	t.Helper()
	looksRight(t, b, p, name)
	if shows(t, p, "#message") && (shows(t, p, "#controls") || shows(t, p, "#sound")) {
		t.Errorf("%s: there are controls behind the text", name)
	}
	var native bool
	p.Eval(t, "document.getElementById('video').controls", &native)
	if native {
		t.Errorf("%s has the browser's controls", name)
	}
}

// shows reports whether an element can be seen.
func shows(t *testing.T, p *browser.Page, selector string) (yes bool) {
	t.Helper()
	p.Eval(t, fmt.Sprintf("document.querySelector(%q).checkVisibility()", selector), &yes)
	return yes
}

// sees fails the test unless those of the page's parts can be seen that are named, and none of the others.
func sees(t *testing.T, p *browser.Page, name string, want ...string) {
	t.Helper()
	p.Eval(t, "document.getElementById('menu').open = true", nil)
	defer p.Eval(t, "document.getElementById('menu').open = false", nil)
	for _, part := range []string{
		"#play", "#mute", "#seek", "#live", "#full", "#subtitles", "#audio", "#quality", "#speed", "#recording",
		"#again",
	} {
		if got := shows(t, p, part); got != slices.Contains(want, part) {
			t.Errorf("%s: %s is seen: %t", name, part, got)
		}
	}
}

// TestWatchStates walks a broadcast on the watch page, on a phone and on a large screen: before it, live, ended, its
// recording, and refused. Parts without a meaning are not there.
func TestWatchStates(t *testing.T) {
	rig.Paced(t)
	clip, err := generate(440, 3*origin.Seconds) // it must not end while a slow machine looks
	made(t, err)
	recorded, err := origin.New(origin.Options{Mode: origin.VOD, Clip: clip, Subtitles: true})
	made(t, err)
	b := browser.Start(t)
	for _, width := range []int{phone, large} {
		show := &program{}
		show.knows(watch.About{Title: hostile, State: watch.Idle})
		url, base := hostKnowing(t, show, show.describe)
		name := func(state string) string { return fmt.Sprintf("%s-%d", state, width) }
		p := b.OpenSize(t, url, width, 844)
		p.Until(t, "waits", patience, func(v browser.Probe) bool { return v.State == "waiting" })
		sees(t, p, name("soon"))
		looksTidy(t, b, p, name("soon"))
		var texts []string
		p.Eval(t, "[document.title, document.querySelector('h1').textContent]", &texts)
		if texts[0] != strings.TrimSpace(hostile) && texts[0] != hostile || texts[1] != hostile {
			t.Errorf("title and heading are %q, want %q", texts, hostile)
		}

		show.airs(t, "first", clip, 4*time.Second)
		p.Plays(t, 1, patience)
		sees(t, p, name("live"), "#play", "#mute", "#live", "#full")
		looksTidy(t, b, p, name("live"))
		p.StaysHome(t, base)
		p.Close(t)

		show.onAir.Store(nil)
		show.knows(watch.About{State: watch.Ended, Recording: "recorded"})
		p = b.OpenSize(t, url, width, 844)
		p.Until(t, "waits for the next", patience, func(v browser.Probe) bool { return v.State == "waiting" })
		sees(t, p, name("between"), "#recording")
		looksTidy(t, b, p, name("between"))
		p.Close(t)

		var h http.Handler = recorded
		show.onAir.Store(&h)
		show.knows(watch.About{State: watch.Video})
		p = b.OpenSize(t, url, width, 844)
		p.Plays(t, 1, patience)
		sees(t, p, name("recording"), "#play", "#mute", "#seek", "#full", "#subtitles", "#speed")
		looksTidy(t, b, p, name("recording"))
		p.Eval(t, `const bar = document.getElementById('seek');
			bar.value = 20;
			for (const e of ['input', 'change']) bar.dispatchEvent(new Event(e))`, nil)
		if v := p.Plays(t, 1, patience); v.Time < 21 {
			t.Errorf("%s: after a seek to 20 s the time is %.1f", name("recording"), v.Time)
		}
		p.Close(t)

		show.about.Store(nil)
		p = b.OpenSize(t, url, width, 844)
		v := p.Until(t, "is refused", patience, func(v browser.Probe) bool { return v.State == "error" })
		if !strings.Contains(v.Sentence, "This video is private") {
			t.Errorf("refused: %q", v.Sentence)
		}
		sees(t, p, name("private"))
		looksTidy(t, b, p, name("private"))
		p.Eval(t, "[document.title, document.querySelector('h1').textContent]", &texts)
		if want := []string{"Private video · Millrace", "Private video"}; !slices.Equal(texts, want) {
			t.Errorf("refused: title and heading are %q, want %q", texts, want)
		}
		p.Close(t)
	}
}

// TestWatchEnd watches broadcasts to their ends: the page leads to a recording, or says that there is none, asks for no
// playlist any more, and takes up the next broadcast while it looks for it, or when it is told to look once more.
func TestWatchEnd(t *testing.T) {
	rig.Paced(t, rig.Long)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	recorded := watch.About{State: watch.Ended, Recording: "recorded"}
	const faster = "const slow = window.setTimeout; window.setTimeout = (f, ms, ...a) => slow(f, ms / 50, ...a)"
	for name, tt := range map[string]struct {
		known watch.About // after the end
		width int
		sees  []string
		then  string // what the viewer does
	}{
		"recorded":       {recorded, phone, []string{"#recording", "#again"}, ""},
		"recorded-large": {recorded, large, []string{"#recording", "#again"}, ""},
		"not-recorded":   {watch.About{State: watch.Ended}, phone, []string{"#again"}, faster},
		"refused":        {watch.About{}, large, []string{"#again"}, ""},
		"looks":          {watch.About{State: watch.Finishing}, phone, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Paced(t)
			show := &program{}
			show.knows(tt.known)
			url, base := hostKnowing(t, show, func(ctx context.Context, v watch.Viewer) (watch.About, error) {
				about, err := show.describe(ctx, v)
				if about.State == "" {
					err = fault.New(fault.Denied, "no")
				}
				return about, err
			})
			show.airs(t, "first", c[0], (origin.Seconds-12)*time.Second)
			p := b.OpenSize(t, url, tt.width, 844)
			p.Plays(t, 1, patience)
			p.Until(t, "says that it has ended", patience, func(v browser.Probe) bool { return v.State == "ended" })
			p.Eval(t, tt.then, nil)
			p.Until(t, "has looked", patience, func(browser.Probe) bool {
				return show.looks.Load() > 1 && shows(t, p, "#again") == slices.Contains(tt.sees, "#again")
			})
			sees(t, p, name, tt.sees...)
			looksTidy(t, b, p, "ended-"+name)
			lists, looks := show.lists.Load(), show.looks.Load()
			<-time.After(5 * time.Second)
			if more := show.lists.Load() - lists; more > 0 {
				t.Errorf("%d requests for playlists after the end", more)
			}
			if more := show.looks.Load() - looks; more > 0 && len(tt.sees) > 0 {
				t.Errorf("%d looks although it has stopped", more)
			}
			if tt.known.Recording != "" {
				var to string
				p.Eval(t, "document.getElementById('recording').href", &to)
				if to != base+"/watch/recorded" {
					t.Errorf("leads to %s", to)
				}
			}
			show.airs(t, "second", c[1], 5*time.Second)
			show.knows(watch.About{State: watch.OnAir})
			if len(tt.sees) > 0 {
				p.Click(t, "#again")
			}
			p.Plays(t, 2, patience)
			p.StaysHome(t, base)
			p.Close(t)
		})
	}
}
