package browser_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// breaking has a page's connection break as its second piece is to be sent, and take nothing of the third one.
const breaking = `let pieces = 0;
const { send } = XMLHttpRequest.prototype;
window.held = null;
XMLHttpRequest.prototype.send = function (body) {
  if (body) pieces++;
  if (body && pieces === 2) this.dispatchEvent(new ProgressEvent('loadend'));
  else if (body && pieces === 3) window.held = true;
  else send.call(this, body);
}`

// TestDashboardUploads sends a file from the dashboard: over a connection that breaks, paused, left behind by a page
// and taken up by the next one, until it is an asset. Another one is dropped on the page, and what is no video fails
// there.
func TestDashboardUploads(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	film := long(t, rig.File(t, "film.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 12}))
	p := firstLink(t, b, s)
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	p.Click(t, ".side a[href='/dashboard/assets']")
	p.Await(t, "offers it", "document.querySelector('.empty [data-files]')", patience)
	p.Eval(t, breaking, nil)
	p.Choose(t, "#files", film)
	p.Await(t, "goes on by itself", "window.held", patience)
	const said = "document.querySelector('.up .state')?.textContent"
	p.Await(t, "says how far it is", "document.querySelector('.up progress').value > 0.2 && "+
		"/^8\\.4 MB of /.test(document.querySelector('.up .bytes').textContent)", patience)
	looksRight(t, b, p, "uploads")
	p.Click(t, ".up [data-do=pause]")
	p.Await(t, "is paused", said+" === 'Paused'", patience)

	p.Eval(t, "location.reload()", nil)
	p.Await(t, "says what was left behind", said+" === 'Stopped. Choose the same file to go on.'", patience)
	p.Eval(t, `window.sent = 0;
const { send } = XMLHttpRequest.prototype;
XMLHttpRequest.prototype.send = function (body) { window.sent += body?.size ?? 0; send.call(this, body); }`, nil)
	p.Choose(t, "#files", film)
	p.Await(t, "is uploaded", said+" === 'Uploaded' && document.querySelectorAll('.up').length === 1", patience)
	p.Await(t, "has its row", "!document.querySelector('.empty') && !document.querySelector('#news a') && "+
		"document.querySelector('.tbl tbody tr')?.checkVisibility()", patience)
	var sent int64
	p.Eval(t, "window.sent", &sent)
	if info, err := os.Stat(film); err != nil || sent != info.Size()-8<<20 {
		t.Errorf("%d bytes were sent again of %s: %v", sent, film, err)
	}

	s.CreateAsset(t, s.HTTP+"/nothing.mp4") // by somebody else
	p.Await(t, "lets what others add wait", "document.querySelector('#news a')?.textContent.startsWith('1 new')",
		patience)
	p.Eval(t, `document.querySelector('main').style.minHeight = '200vh';
const row = document.querySelector('.tbl tbody tr');
const sight = () => row.getBoundingClientRect().top - document.querySelector('.top').getBoundingClientRect().bottom;
scrollBy(0, sight() + 8);
Object.assign(window, { same: true, sight })`, nil)
	p.Eval(t, `const bytes = new DataTransfer();
bytes.items.add(new File(['no video'], 'Heats <img src=x onerror="window.bad = 1">.mp4'));
for (const type of ['dragover', 'drop']) document.body.dispatchEvent(
  new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: bytes }))`, nil)
	p.Await(t, "takes what is dropped", "document.querySelectorAll('.up').length === 2 && "+
		"[...document.querySelectorAll('.up .state')].every((s) => s.textContent === 'Uploaded')", patience)
	p.Await(t, "has its row above the first one, which stays where it is read", "window.same && "+
		"document.querySelector('.tbl .name')?.textContent.startsWith('Heats') && "+
		"document.querySelectorAll('.tbl tbody tr').length === 2 && Math.abs(window.sight() + 8) < 1 && "+
		"document.querySelector('#news a').textContent.startsWith('1 new')", patience)
	p.Click(t, ".up:last-child a.name")
	p.Await(t, "says what is wrong with it", "document.querySelector('#head .state.fault')", patience)
	p.Click(t, ".side a[href='/dashboard/assets']")
	p.Await(t, "has all", "document.querySelectorAll('.tbl tbody tr').length === 3 && window.bad === undefined",
		patience)
	p.Click(t, ".tbl tr:last-child a.name")
	p.Await(t, "is the video", "window.video?.duration > 11 && "+
		"document.querySelector('h1').textContent.includes('film.mp4')", patience)
	p.StaysHome(t, s.HTTP)
}

// long is a copy of an MP4 file with room of 9 MB at its end, which is more than a piece.
func long(t *testing.T, file string) string {
	t.Helper()
	const room = 9 << 20
	film, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	film = append(binary.BigEndian.AppendUint32(film, 8+room), "free"...) // ISO/IEC 14496-12 section 8.1.2
	name := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(name, append(film, make([]byte, room)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
