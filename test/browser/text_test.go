package browser_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/media/playback"
	"millrace/test/browser"
	"millrace/test/rig"
)

// TestTextOverReconnect: what a live text rendition says is shown in the second that it is about: to one who has
// watched from the recording's first second on, behind a reconnect of the encoder as well, and rewound to before it.
func TestTextOverReconnect(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	s := newStream(t, c[0], 12*time.Second, 6*time.Second, speak)
	url, _ := host(t, playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)}))
	p := b.Open(t, url)
	first := p.Until(t, "plays", patience, func(v browser.Probe) bool {
		return v.Frames > 0 && v.Time > 0 && v.PlayingDate > 0
	})
	p.Until(t, "offers text", patience, func(p browser.Probe) bool {
		return slices.Equal(p.SubtitleTracks, []string{"Seconds"})
	})
	p.Select(t, "#subtitles", "Seconds")
	// The player's time of the recording's first picture. It depends on when the player joined: the gaps in front of
	// the recording leave the playlist one by one.
	zero := first.Time - float64(first.PlayingDate-s.began.UnixMilli())/1000
	for _, from := range []float64{0, 22} { // before and behind the reconnect
		p.Until(t, "says the second that is shown", patience, func(v browser.Probe) bool {
			return v.Time-zero > from && saysSecond(v, v.Time-zero)
		})
	}
	p.Seek(t, zero+14)
	p.Until(t, "says it, rewound", patience, func(v browser.Probe) bool {
		return v.Time-zero > 13 && v.Time-zero < 18 && saysSecond(v, v.Time-zero)
	})
}

// TestTextInShaka: Shaka shows the text of a low-latency stream. It takes no playlist with a server control and without
// a PART-HOLD-BACK once one has parts (error 4023).
func TestTextInShaka(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	s := newStream(t, c[0], 20*time.Second, 0, speak)
	p := players(t, browser.Start(t), s, "shaka")
	await(t, p, "plays", func(x player) bool { return x.Played >= 2 })
	var said struct {
		Cues []string `json:"cues"`
		Date int64    `json:"date"`
	}
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		p.Eval(t, "window.text()", &said)
		second := int(time.UnixMilli(said.Date).Sub(s.began).Seconds())
		if slices.Equal(said.Cues, []string{saying(second)}) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("at second %d it shows %q: %+v", second, said.Cues, p.Log(t))
		}
	}
}

// TestTextHoldsBackReaders: text does not delay players that show none. One that does stays so far behind live that
// each line is there with its pictures, where it is set as docs/api.md says or asks for it; any other shows the text
// too.
func TestTextHoldsBackReaders(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	s := newStream(t, c[0], 20*time.Second, 0, speak)
	site := httptest.NewServer(playersSite(s))
	defer site.Close()
	p := b.Open(t, site.URL+"/players")
	await(t, p, "play", func(x player) bool { return x.Played >= 2 })
	alone := holdBacks(t, p)
	t.Logf("without text: %v", alone)
	for name, is := range alone {
		if is <= 0 || is >= 2 {
			t.Errorf("without text %s stays %.2f s behind live", name, is)
		}
	}
	p.Eval(t, "window.read(true)", nil)
	showsText(t, p, s, "mux", 1)
	showsText(t, p, s, "hls", 5)
	with := holdBacks(t, p)
	t.Logf("with text: %v", with)
	if with["hls"] < alone["hls"]+1 || with["mux"] != alone["mux"] {
		t.Errorf("with text they stay %v s behind live, without it %v", with, alone)
	}
	p.Eval(t, "window.read(false)", nil)
	if without := holdBacks(t, p); without["hls"] != alone["hls"] {
		t.Errorf("without text again: %v", without)
	}
	p.Close(t)
	p = b.Open(t, site.URL+"/players?modifiers="+url.QueryEscape("?text_hold_back=true"))
	await(t, p, "play", func(x player) bool { return x.Played >= 2 })
	for name, is := range holdBacks(t, p) {
		if is != with["hls"] {
			t.Errorf("asked for it, %s stays %.2f s behind live", name, is)
		}
	}
	p.Eval(t, "window.read(true)", nil)
	showsText(t, p, s, "mux", 5)
}

// holdBacks is how many seconds behind live each player of a page is told to stay.
func holdBacks(t *testing.T, p *browser.Page) (out map[string]float64) {
	t.Helper()
	p.Eval(t, "window.holdBack()", &out)
	return out
}

// showsText waits until a player of a page has shown the text of so many seconds, one behind the other, each with its
// pictures.
func showsText(t *testing.T, p *browser.Page, s *stream, name string, seconds int) {
	t.Helper()
	first, last := -1, -1
	var said struct {
		Cues []string `json:"cues"`
		Date int64    `json:"date"`
	}
	for end := time.Now().Add(patience); last-first+1 < seconds || first < 0; <-time.After(50 * time.Millisecond) {
		p.Eval(t, "window.shown('"+name+"')", &said)
		second := int(time.UnixMilli(said.Date).Sub(s.began).Seconds())
		if slices.Equal(said.Cues, []string{saying(second)}) && second != last {
			if second != last+1 {
				first = second
			}
			last = second
		}
		if time.Now().After(end) {
			t.Fatalf("at second %d %s shows %q; in time were %d to %d: %+v", second, name, said.Cues, first, last,
				p.Log(t))
		}
	}
}

// TestTextAheadOfMedia: text that a player has loaded further ahead than the media, over a stretch in which nobody
// speaks, is shown at its time, and what comes behind it too.
func TestTextAheadOfMedia(t *testing.T) {
	rig.Paced(t)
	p, slow := silentStretch(t)
	p.Until(t, "has played what there is", patience, func(v browser.Probe) bool { return v.Time > 7.5 })
	slow()
	for _, from := range []float64{13, 20} {
		p.Until(t, "says the second that is shown", patience, func(v browser.Probe) bool {
			return v.Time > from && saysSecond(v, v.Time)
		})
	}
}

// TestSeekWhileTextWaits: who seeks while text waits for media, to where media is known already, is shown the text
// there.
func TestSeekWhileTextWaits(t *testing.T) {
	rig.Paced(t)
	p, slow := silentStretch(t)
	defer slow()
	for _, to := range []float64{16, 1, 18} {
		p.Seek(t, to)
		p.Until(t, "says the second that was sought", patience, func(v browser.Probe) bool {
			return v.Time >= to && v.Time < to+3 && saysSecond(v, v.Time)
		})
		if to == 1 {
			p.Until(t, "has played what there is", patience, func(v browser.Probe) bool { return v.Time > 7.5 })
		}
	}
}

// silentStretch is a page that plays a recording from its beginning. Its encoder reconnected after 8 and 12 seconds,
// and nobody speaks between. The media between comes only after slow.
func silentStretch(t *testing.T) (p *browser.Page, slow func()) {
	t.Helper()
	c, err := clips()
	made(t, err)
	s := newStream(t, c[0], 26*time.Second, 0, func(s *stream) {
		s.breaks = []time.Duration{8 * time.Second, 12 * time.Second}
		s.speakBut(7, 13)
	})
	s.end()
	s.edge.Close()
	held := make(chan struct{})
	media := playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
	url, _ := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v/11.m4s") { // the first one of the silent stretch
			<-held
		}
		media.ServeHTTP(w, r)
	}))
	slow = sync.OnceFunc(func() { close(held) })
	t.Cleanup(slow)
	p = browser.Start(t).Open(t, url)
	p.FirstPicture(t, patience)
	p.Until(t, "offers text", patience, func(p browser.Probe) bool {
		return slices.Equal(p.SubtitleTracks, []string{"Seconds"})
	})
	p.Select(t, "#subtitles", "Seconds")
	p.Until(t, "says the second that is shown", patience, func(v browser.Probe) bool { return saysSecond(v, v.Time) })
	return p, slow
}

// saysSecond reports whether a page shows the text of a second, and no other.
func saysSecond(v browser.Probe, second float64) bool {
	return slices.ContainsFunc(v.TextTracks, func(x browser.TextTrack) bool {
		return x.Mode == "showing" && slices.Equal(x.Active, []string{saying(int(second))})
	})
}
