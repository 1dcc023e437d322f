package wire_test

import (
	"errors"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
)

// TestAsk: a request is read as it was written, and nothing else is read as one.
func TestAsk(t *testing.T) {
	t.Parallel()
	clip := playback.Clip{From: 1.5, To: 99, Begin: time.Unix(1e9, 5e8).UTC()}
	ask := wire.Ask{
		What: wire.Playlist, Event: true,
		Texts:     wire.TextsOf([]playback.TextName{{Rendition: "t", Name: `a "b" & c`, Added: true}}),
		Rendition: "v", Resource: hls.Resource{Generation: 2, Init: -1, MSN: 7, Part: 3, Ext: "m4s"}, MSN: -1, Part: -1,
		Skip: true, Hold: true, Clip: wire.ClipOf(clip), Compressed: true, Revision: 1 << 63,
	}
	of := wire.Of{Stream: "s&t", Media: "m", Asset: "a", Edition: "run.7"}
	u, err := url.Parse(ask.Target(of))
	if err != nil {
		t.Fatal(err)
	}
	got, whose, err := wire.Parse(u)
	if err != nil || got != ask || whose != of {
		t.Errorf("%+v of %+v, %v; want %+v", got, whose, err, ask)
	}
	if c, failed := got.Clip.Value(); failed != nil || c != clip {
		t.Errorf("the clip: %+v, %v", c, failed)
	}
	if names, failed := got.Names(); failed != nil || len(names) != 1 || names[0].Name != `a "b" & c` {
		t.Errorf("the texts: %+v, %v", names, failed)
	}
	for _, target := range []string{
		"/", "/broadcasts/v2/about?ask={}", wire.Prefix + "about", wire.Prefix + "about?ask=[]",
		wire.Prefix + "about?ask=%zz",
		wire.Prefix + "about?ask={}&x=" + strings.Repeat("x", 64<<10),
	} {
		if u, err = url.Parse(target); err != nil {
			continue
		}
		if _, _, err = wire.Parse(u); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.40s: %v", target, err)
		}
	}
}

// TestFailures: an error keeps its kind, its sentences and when to ask again, and nothing else of it is sent.
func TestFailures(t *testing.T) {
	t.Parallel()
	for k := fault.Internal; k <= fault.TooMany; k++ {
		w := httptest.NewRecorder()
		wire.Fail(w, &fault.Error{
			Kind: k, Messages: []fault.Message{{Text: "one"}, {Text: "two"}},
			RetryAfter: 3 * time.Second, Err: errors.New("secret"),
		}, k == fault.Conflict)
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("kind %d: %s", k, w.Body)
		}
		err := wire.Failed(w.Code, w.Body.Bytes())
		_, moved := errors.AsType[*wire.MovedError](err)
		if !fault.Is(err, k) || len(fault.Messages(err)) != 2 || fault.RetryAfter(err) != 3*time.Second ||
			moved != (k == fault.Conflict) {
			t.Errorf("kind %d is read as %v", k, err)
		}
		if err = wire.Failed(299, w.Body.Bytes()); !fault.Is(err, fault.Internal) {
			t.Errorf("kind %d with another status: %v", k, err)
		}
	}
}

// FuzzMultivariant: whatever another node sends, each variant and rendition is one entry of a playlist.
func FuzzMultivariant(f *testing.F) {
	f.Add(
		[]byte(
			`{"Variants":[{"URI":"v.m3u8","Codecs":["avc1"],"Bandwidth":5}],"Renditions":[{"URI":"a.m3u8","Name":"x"}]}`))
	f.Add([]byte(`{"Variants":[{"URI":"v.m3u8\n#EXT"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wire.ReadMultivariant(data)
		if err != nil {
			return
		}
		lines := 2 + len(m.Renditions) + 2*len(m.Variants)
		if m.Independent {
			lines++
		}
		if text := string(m.Append(nil)); strings.Count(text, "\n") != lines {
			t.Errorf("%d lines, want %d:\n%s", strings.Count(text, "\n"), lines, text)
		}
	})
}
