package browser_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// uploadPage has the uploaders as they are delivered.
const uploadPage = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script src="/modules/@mux/mux-uploader/dist/mux-uploader.js"></script>
<script src="/modules/tus-js-client/dist/tus.js"></script>
<mux-uploader chunk-size="1024" max-retries="10"></mux-uploader>
<script>
window.state = {done: false, failed: "", attempts: 0}
const note = e => { state.failed = String(e && (e.detail && e.detail.message || e.message) || e) }
window.byMux = async url => {
  const file = new File([await (await fetch("/file")).blob()], "a.mp4", {type: "video/mp4"})
  const u = document.querySelector("mux-uploader")
  u.endpoint = url
  u.addEventListener("success", () => { state.done = true })
  u.addEventListener("uploaderror", note)
  u.dispatchEvent(new CustomEvent("file-ready", {composed: true, bubbles: true, detail: file}))
}
window.byTusAtOnce = url => byTus(url, true)
window.byTus = async (url, atOnce = false) => {
  const file = new File([await (await fetch("/file")).blob()], "a.mp4", {type: "video/mp4"})
  new tus.Upload(file, {
    endpoint: url, uploadDataDuringCreation: atOnce, retryDelays: [0, 1000, 1000, 1000, 2000, 2000, 5000],
    metadata: {filename: file.name}, removeFingerprintOnSuccess: true,
    onError: note, onSuccess: () => { state.done = true },
    onShouldRetry: () => { state.attempts++; return true },
  }).start()
}
</script>`

// front is a proxy in front of a server. Once, when so many bytes have gone to it, it breaks the connection off and has
// the server killed; connections that come meanwhile wait until it is there again.
type front struct {
	left atomic.Int64
	kill func()

	to    atomic.Pointer[string]
	there chan struct{} // closed once `to` is the server that was started again
	cuts  atomic.Int32
}

func (f *front) listen(t *testing.T) (addr string) {
	t.Helper()
	f.there = make(chan struct{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			go f.carry(t.Context(), from)
		}
	}()
	t.Cleanup(func() { _ = ln.Close() }) // the browser ends the connections
	return ln.Addr().String()
}

// lead has new connections go to a server.
func (f *front) lead(to *rig.Server) {
	addr := strings.TrimPrefix(to.HTTP, "http://")
	f.to.Store(&addr)
}

func (f *front) carry(ctx context.Context, from net.Conn) {
	defer func() { _ = from.Close() }()
	if f.cuts.Load() > 0 {
		select {
		case <-f.there:
		case <-ctx.Done():
			return
		}
	}
	to, err := net.Dial("tcp", *f.to.Load())
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if before := f.left.Add(int64(-n)) + int64(n); before > 0 && before <= int64(n) {
			f.cuts.Add(1)
			_ = from.(*net.TCPConn).SetLinger(0)
			f.kill()
			return
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// TestUploaders has the uploaders that people use send a film, from a page of another origin, to a server that is
// killed in the middle.
func TestUploaders(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	film := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Seconds: 4})
	data := rig.Padded(t, film, 10<<20) // more than a piece of a bucket
	pages := http.NewServeMux()
	pages.Handle("/modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir("driver/node_modules"))))
	pages.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, uploadPage) })
	pages.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.mp4", time.Time{}, bytes.NewReader(data))
	})
	page := httptest.NewServer(pages)
	t.Cleanup(page.Close)
	for _, u := range []struct{ name, call, field string }{
		{"mux-uploader", "byMux", "data.url"},
		{"tus-js-client", "byTus", "data.tus_url"},
		{"tus-js-client with creation", "byTusAtOnce", "data.tus_url"},
	} {
		t.Run(u.name, func(t *testing.T) {
			rig.Parallel(t)
			rig.On(t, rig.Scaled, func(t *testing.T, pair rig.Pair) {
				rig.Parallel(t)
				f := &front{}
				f.left.Store(int64(len(data)) / 2)
				s := rig.Start(t, rig.Options{Pair: pair, Args: []string{"--public-url", "http://" + f.listen(t)}})
				f.lead(s)
				killed := make(chan struct{})
				f.kill = func() { close(killed) }
				code, o := s.Do(t, "POST", "/video/v1/uploads", rig.Object{"cors_origin": page.URL})
				if code != http.StatusCreated {
					t.Fatalf("create upload: %d %v", code, o)
				}
				p := b.Open(t, page.URL+"/page")
				var started bool
				p.Eval(t, "window."+u.call+"("+strconv.Quote(o.Text(u.field))+"), true", &started)
				select {
				case <-killed:
				case <-time.After(patience):
					t.Fatalf("half of the file has not come: %+v", p.Log(t))
				}
				s.Kill(t)
				s.Run(t)
				f.lead(s)
				close(f.there)
				t.Logf("%+v", awaitUpload(t, p))
				_, now := s.Do(t, "GET", "/video/v1/uploads/"+o.Text("data.id"), nil)
				if now.Text("data.status") != "asset_created" {
					t.Fatalf("upload %v", now)
				}
				if got := s.Stored(t, "source.mp4"); !bytes.Equal(got, data) {
					t.Errorf("%d bytes are stored, and not the %d that were sent", len(got), len(data))
				}
			})
		})
	}
}

type uploadState struct {
	Done     bool   `json:"done"`
	Failed   string `json:"failed"`
	Attempts int    `json:"attempts"` // of tus-js-client, behind the first
}

func awaitUpload(t *testing.T, p *browser.Page) (s uploadState) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		if p.Eval(t, "window.state", &s); s.Done {
			return s
		}
		if s.Failed != "" || time.Now().After(end) {
			t.Fatalf("%+v\n%+v", s, p.Log(t))
		}
	}
}
