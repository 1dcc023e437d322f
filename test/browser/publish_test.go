package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/web/publish"
	"millrace/test/browser"
	"millrace/test/rig"
)

// given has a page keep what the browser has given it.
const given = `window.given = [];
const get = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
  const media = await get(wanted);
  given.push(...media.getTracks());
  return media;
}`

// TestPublishPage has a person choose what to show, change their mind, mute the sound and be refused, on a large screen
// and on a phone. Publishing itself is tried end to end.
func TestPublishPage(t *testing.T) {
	rig.Paced(t)
	mux := http.NewServeMux()
	mux.Handle("/publish/", publish.Handler())
	mux.HandleFunc("/whip", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"detail":"stream key is unknown"}`, http.StatusUnauthorized)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b := browser.Start(t)
	for name, width := range map[string]int{"large": large, "phone": phone} {
		p := b.OpenSize(t, server.URL+"/publish/", width, 800)
		looksRight(t, b, p, "publish-"+name)
		p.Eval(t, given, nil)

		previews := func(p browser.Probe) bool { return p.State == "preview" }
		p.Eval(t, "for (const what of ['camera', 'none']) document.querySelector(`[data-show=${what}]`).click()", nil)
		p.Until(t, "the sound that was chosen last", patience, previews)
		if open := tracks(t, p); open != "audio" {
			t.Errorf("%s: %q are open, want the microphone alone", name, open)
		}
		p.Eval(t, "document.querySelector('[name=source][value=camera]').click()", nil)
		p.Until(t, "the camera", patience, func(p browser.Probe) bool { return previews(p) && p.Width == 1280 })
		p.Click(t, "#quality-480")
		p.Until(t, "the camera in another size", patience, func(p browser.Probe) bool {
			return previews(p) && p.Width > 0 && p.Width < 1280
		})
		p.Await(t, "the level moves",
			"parseInt(document.querySelector('#level i').style.getPropertyValue('--level')) > 0",
			patience)
		looksRight(t, b, p, "publish-preview-"+name)
		p.Click(t, "#mute")
		if open := tracks(t, p); open != "audio muted, video" {
			t.Errorf("%s: %q are open, want camera and muted microphone", name, open)
		}

		p.Fill(t, "#key", "not-a-key")
		p.Click(t, "#start")
		failed := func(p browser.Probe) bool { return p.State == "error" }
		said := p.Until(t, "an unknown key is refused", patience, failed)
		if !strings.Contains(said.Sentence, "stream key is unknown") {
			t.Errorf("%s: the page says %q", name, said.Sentence)
		}
		looksRight(t, b, p, "publish-refused-"+name)

		p.Eval(t, `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError'))`,
			nil)
		p.Eval(t, "document.querySelector('[name=source][value=none]').click()", nil)
		p.Until(t, "the browser's refusal", patience, func(p browser.Probe) bool {
			return strings.Contains(p.Sentence, "Allow it beside the address")
		})
		if open := tracks(t, p); open != "" {
			t.Errorf("%s: %q are open after a refusal", name, open)
		}
		hasRoom(t, p, "publish-denied-"+name)
		p.StaysHome(t, server.URL)
	}
}

// tracks are those of all that the browser has given and that are open still.
func tracks(t *testing.T, p *browser.Page) (open string) {
	t.Helper()
	p.Eval(t, `given.filter((t) => t.readyState === 'live')
		.map((t) => t.kind + (t.enabled ? '' : ' muted')).sort().join(', ')`, &open)
	return open
}
