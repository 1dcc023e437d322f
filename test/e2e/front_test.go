package e2e

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// agedByCache are rules of hlscheck that compare playlists of several URLs as they are at one moment. A cache keeps
// each of them for up to a second, of its own: a full playlist and its delta update, or a rendition and the report of
// it in another, may then be a second apart in age, which is several parts. No player minds: what it joins to a
// playlist that it has is asked for by _HLS_msn and _HLS_part, which are part of the cache's key, and so is never older
// than that. The other tests that use hlscheck apply these rules to the nodes themselves.
var agedByCache = []string{"delta", "skip-boundary", "report"}

// TestFrontNginx runs nginx as docs/front/nginx.conf configures it.
func TestFrontNginx(t *testing.T) {
	rig.Parallel(t)
	b := behindFront(t)
	f := frontTest{b, rig.Nginx(t, b.nodes[0], b.nodes[1])}
	res, _ := f.get(t, "/"+f.public+".m3u8", http.StatusPreconditionFailed)
	if res.ProtoMajor != 2 {
		t.Errorf("viewers get %s", res.Proto)
	}
	f.keepsNoErrors(t)
	f.plays(t)
	for given, want := range map[string]string{
		"/a.m3u8": "/a.m3u8", "/a.m3u8?CMCD=x%2Cy": "/a.m3u8", "/a.m3u8?token=b&CMCD=x": "/a.m3u8?token=b",
		"/a.m3u8?CMCD=x&token=b": "/a.m3u8?token=b", "/a.m3u8?c=d&CMCD=&_HLS_msn=1": "/a.m3u8?c=d&_HLS_msn=1",
		"/a.m3u8?XCMCD=1&CMCD2=3": "/a.m3u8?XCMCD=1&CMCD2=3", "/a.m3u8?token=CMCD=1": "/a.m3u8?token=CMCD=1",
		"/CMCD=1/a.m3u8?cmcd=2": "/CMCD=1/a.m3u8?cmcd=2",
	} {
		if key := f.send(t, f.front.URL+given, nil).Header.Get("X-Key"); key != want {
			t.Errorf("the key of %s is %s, want %s", given, key, want)
		}
	}
	f.shares(t, false)
	f.passes(t)
	f.waitsApart(t)
	f.keepsTokensApart(t)
	f.check(t)
	if n := f.connections(); n > 40 {
		t.Errorf("%d connections were opened to the nodes", n)
	}
}

// TestFrontVarnish runs Varnish as docs/front/varnish.vcl configures it.
func TestFrontVarnish(t *testing.T) {
	rig.Parallel(t)
	b := behindFront(t)
	f := frontTest{b, rig.Varnish(t, b.nodes[0], b.nodes[1])}
	f.keepsNoErrors(t)
	f.plays(t)
	f.shares(t, true)
	f.passes(t)
	f.waitsApart(t)
	f.keepsTokensApart(t)
	f.check(t)
}

// longestTarget is the longest target duration of a live stream in seconds, as docs/network.md says.
const longestTarget = 21

// TestFrontTimeouts: the documented proxies wait for longer than a blocking reload takes.
func TestFrontTimeouts(t *testing.T) {
	rig.Parallel(t)
	for file, setting := range map[string]string{
		"nginx.conf": `proxy_read_timeout (\d+)s;`, "varnish.vcl": `\.(?:first_byte|between_bytes)_timeout = (\d+)s;`,
	} {
		text, err := os.ReadFile("../../docs/front/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(setting).FindAllStringSubmatch(string(text), -1)
		for _, m := range found {
			if n, err := strconv.Atoi(m[1]); err != nil || n <= 3*longestTarget {
				t.Errorf("%s: %s, want more than %d s", file, m[0], 3*longestTarget)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s has no %s", file, setting)
		}
	}
}

// frontTest is a proxy, and what is behind it.
type frontTest struct {
	*behind

	front *rig.Front
}

// behind is a node that two addresses lead to, which count what a proxy asks for.
type behind struct {
	server         *rig.Server
	stream         rig.Object
	public, signed string // its playback IDs
	nodes          []string

	mu     sync.Mutex
	asked  map[string]int // by request URI
	byNode []int
	opened int                      // connections
	held   map[string]chan struct{} // requests that wait until the channel is closed, by request URI
	broken map[string]int           // those that fail so with a status; 0: their connection is closed
	from   string                   // X-Forwarded-For of the last request
	body   chan struct{}            // gets a value when the first byte of a request's body has come
}

func behindFront(t *testing.T) *behind {
	t.Helper()
	b := &behind{
		asked: map[string]int{}, byNode: make([]int, 2), held: map[string]chan struct{}{}, broken: map[string]int{},
		body: make(chan struct{}, 1),
	}
	b.server = rig.Start(t, rig.Options{})
	b.stream = b.server.CreateLive(t, "low", rig.Object{"playback_policies": []string{"public", "signed"}})
	for _, id := range b.stream.List("playback_ids") {
		if id.Text("policy") == "signed" {
			b.signed = id.Text("id")
		} else {
			b.public = id.Text("id")
		}
	}
	to, err := url.Parse(b.server.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.byNode {
		pass := httputil.NewSingleHostReverseProxy(to)
		pass.FlushInterval = -1
		node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.pass(i, pass, w, r)
		}))
		node.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				b.mu.Lock()
				b.opened++
				b.mu.Unlock()
			}
		}
		node.Start()
		t.Cleanup(node.Close)
		b.nodes = append(b.nodes, node.Listener.Addr().String())
	}
	return b
}

func (b *behind) pass(node int, to http.Handler, w http.ResponseWriter, r *http.Request) {
	uri := r.URL.RequestURI()
	b.mu.Lock()
	if uri != "/readyz/node" {
		b.asked[uri]++
		b.byNode[node]++
		b.from = r.Header.Get("X-Forwarded-For")
	}
	held, status := b.held[uri], b.broken[uri]
	_, broken := b.broken[uri]
	b.mu.Unlock()
	switch {
	case broken && status == 0:
		panic(http.ErrAbortHandler)
	case broken:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		return
	case held != nil:
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	r.Body = &noticed{ReadCloser: r.Body, first: b.body}
	to.ServeHTTP(w, r)
}

// noticed is a request's body that says when its first byte has come.
type noticed struct {
	io.ReadCloser

	first chan struct{}
}

func (n *noticed) Read(p []byte) (int, error) {
	k, err := n.ReadCloser.Read(p)
	if k > 0 {
		select {
		case n.first <- struct{}{}:
		default:
		}
	}
	return k, err
}

// times is how often the nodes were asked for something.
func (b *behind) times(uri string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[uri]
}

func (b *behind) connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

// hold makes requests wait until release is called.
func (b *behind) hold(uri string) (release func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := make(chan struct{})
	b.held[uri] = wait
	return sync.OnceFunc(func() { close(wait) })
}

// fail makes requests fail with a status; mend ends that.
func (b *behind) fail(uri string, status int) (mend func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken[uri] = status
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.broken, uri)
	}
}

// send asks for a URL and gives the response, whose body is closed with the test at the latest.
func (f frontTest) send(t *testing.T, address string, header http.Header) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	res, err := f.front.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// get asks the proxy, and wants a status.
func (f frontTest) get(t *testing.T, uri string, status int) (*http.Response, string) {
	t.Helper()
	res := f.send(t, f.front.URL+uri, nil)
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != status {
		t.Fatalf("%s: %d, want %d, %v\n%.300s", uri, res.StatusCode, status, err, text)
	}
	return res, string(text)
}

// keepsNoErrors: who asks for what is not there yet, or not there, asks a node each time.
func (f frontTest) keepsNoErrors(t *testing.T) {
	t.Helper()
	master := "/" + f.public + ".m3u8"
	before := f.times(master)
	f.get(t, master, http.StatusPreconditionFailed)
	f.get(t, master, http.StatusPreconditionFailed)
	unknown := "/" + f.public + "/none/v/1.m4s"
	f.server.Publish(t, f.stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, NoB: true})
	f.server.AwaitPlayable(t, f.server.PlayURL(f.public), patience)
	f.get(t, master, http.StatusOK)
	if n := f.times(master) - before; n != 3 {
		t.Errorf("a playlist that was not there twice was asked for %d times, want 3", n)
	}
	f.get(t, unknown, http.StatusNotFound)
	f.get(t, unknown, http.StatusNotFound)
	if n := f.times(unknown); n != 2 {
		t.Errorf("what is not there was asked for %d times, want 2", n)
	}
}

var (
	ofPlaylist = regexp.MustCompile(`(?m)^[^#\s].*m3u8$`)
	ofSegment  = regexp.MustCompile(`(?m)^v/\d+\.m4s$`)
	ofPart     = regexp.MustCompile(`PART:.*URI="(v/\d+\.\d+\.m4s)"`)
	ofInit     = regexp.MustCompile(`MAP:URI="([^"]+)"`)
	ofCMCD     = regexp.MustCompile(`[?&]CMCD=`)
	ofHint     = regexp.MustCompile(`PRELOAD-HINT.*URI="v/(\d+)\.`)
)

// video is the playlist of the video, and its text.
func (f frontTest) video(t *testing.T) (uri, text string) {
	t.Helper()
	_, master := f.get(t, "/"+f.public+".m3u8", http.StatusOK)
	uri = "/" + ofPlaylist.FindString(master)
	_, text = f.get(t, uri, http.StatusOK)
	return uri, text
}

// plays blocks for one part after the other.
func (f frontTest) plays(t *testing.T) {
	t.Helper()
	uri, text := f.video(t)
	for range 10 {
		m := ofHint.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no preload hint in\n%s", text)
		}
		_, text = f.get(t, uri+"?_HLS_msn="+m[1]+"&_HLS_part=0", http.StatusOK)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byNode[0] == 0 || f.byNode[1] == 0 {
		t.Errorf("the nodes were asked %v times", f.byNode)
	}
}

// shares: of several viewers, each with a CMCD parameter of their own, one has a node asked for media, and where equal
// requests are merged, for a playlist that is not there yet.
func (f frontTest) shares(t *testing.T, merged bool) {
	t.Helper()
	uri, text := f.video(t)
	folder := strings.TrimSuffix(uri, "v.m3u8")
	segments := ofSegment.FindAllString(text, -1)
	parts := ofPart.FindAllStringSubmatch(text, -1)
	for _, name := range []string{
		segments[len(segments)-1], parts[len(parts)-1][1], ofInit.FindStringSubmatch(text)[1],
	} {
		_, first := f.get(t, folder+name+"?CMCD=br%3D300%2Csid%3D%22a%22", http.StatusOK)
		_, second := f.get(t, folder+name+"?CMCD=br%3D300%2Csid%3D%22b%22", http.StatusOK)
		_, third := f.get(t, folder+name, http.StatusOK)
		if first != second || first != third || first == "" {
			t.Errorf("%s: viewers have %d, %d and %d bytes", name, len(first), len(second), len(third))
		}
		if n := f.times(folder + name); n != 1 {
			t.Errorf("%s was asked for %d times, want once", name, n)
		}
	}
	if t.Failed() {
		return // what follows waits for a request by its URI
	}
	_, text = f.video(t)
	next := "_HLS_msn=" + ofHint.FindStringSubmatch(text)[1] + "&_HLS_part=1"
	release := f.hold(uri + "?" + next)
	defer release()
	texts := make([]string, 3)
	var all sync.WaitGroup
	for i := range texts {
		all.Go(func() {
			res := f.send(t, f.front.URL+uri+"?"+next+"&CMCD=sid%3D%22"+strconv.Itoa(i)+"%22", nil)
			b, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%d, %v: %.300s", res.StatusCode, err, b)
			}
			texts[i] = string(b)
		})
	}
	f.await(t, uri+"?"+next, 1)
	if !merged {
		f.await(t, uri+"?"+next, len(texts))
	}
	release()
	all.Wait()
	if n := f.times(uri + "?" + next); merged && n != 1 {
		t.Errorf("a playlist that %d viewers wait for was asked for %d times", len(texts), n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for asked := range f.asked {
		if ofCMCD.MatchString(asked) {
			t.Errorf("a node was asked for %s", asked)
		}
	}
}

// await waits until the nodes have been asked for something so often.
func (f frontTest) await(t *testing.T, uri string, times int) {
	t.Helper()
	for end := time.Now().Add(patience); f.times(uri) < times; rig.Pause(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s was asked for %d times, want %d", uri, f.times(uri), times)
		}
	}
}

// waitsApart: a reload that blocks keeps no other one from its response, and what a node says while it fails is not
// kept.
func (f frontTest) waitsApart(t *testing.T) {
	t.Helper()
	uri, text := f.video(t)
	msn := ofHint.FindStringSubmatch(text)[1]
	blocked := uri + "?_HLS_msn=" + msn + "&_HLS_part=2"
	release := f.hold(blocked)
	defer release()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		res := f.send(t, f.front.URL+blocked, nil)
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("a blocking reload: %d, %v", res.StatusCode, err)
		}
	}()
	f.await(t, blocked, 1)
	f.get(t, uri+"?_HLS_msn="+msn+"&_HLS_part=1", http.StatusOK)
	segments := ofSegment.FindAllString(text, -1)
	segment := strings.TrimSuffix(uri, "v.m3u8") + segments[len(segments)-1] + "?fails=1" // not in the cache
	mend := f.fail(segment, http.StatusServiceUnavailable)
	f.get(t, segment, http.StatusServiceUnavailable)
	mend()
	f.get(t, segment, http.StatusOK)
	segment = strings.Replace(segment, "=1", "=2", 1)
	mend = f.fail(segment, 0)
	if res := f.send(t, f.front.URL+segment, nil); res.StatusCode/100 != 5 {
		t.Errorf("without a node that responds: %d", res.StatusCode)
	}
	mend()
	f.get(t, segment, http.StatusOK)
	select {
	case <-ended:
		t.Error("a reload that was held has ended")
	default:
	}
	release()
	<-ended
}

// keepsTokensApart: what is for the bearer of a token is given to nobody else.
func (f frontTest) keepsTokensApart(t *testing.T) {
	t.Helper()
	keys := newSigner(t, f.server)
	one := keys.token(t, f.signed)
	other := keys.token(t, f.signed, "--param", "max_resolution=720p")
	master := "/" + f.signed + ".m3u8"
	_, first := f.get(t, master+"?token="+one+"&CMCD=a", http.StatusOK)
	_, second := f.get(t, master+"?token="+other+"&CMCD=a", http.StatusOK)
	_, again := f.get(t, master+"?CMCD=b&token="+one, http.StatusOK)
	if first == second || first != again {
		t.Errorf("with one token:\n%s\nwith another:\n%s\nwith the first again:\n%s", first, second, again)
	}
	f.get(t, master, http.StatusForbidden)
	f.get(t, master+"?token="+one+"x", http.StatusForbidden)
	if n := f.times(master + "?token=" + one); n != 2 {
		t.Errorf("a node was asked %d times to verify a token that was used twice", n)
	}
	below := "/" + ofPlaylist.FindString(first)
	if !strings.Contains(below, "/signed-") {
		t.Fatalf("below a token is %s", below)
	}
	f.get(t, below, http.StatusOK)
}

// passes: what is no playback goes both ways as it comes, and says who asks.
func (f frontTest) passes(t *testing.T) {
	t.Helper()
	header := http.Header{"Authorization": {f.server.Authorization()}, "X-Forwarded-For": {"203.0.113.9"}}
	res := f.send(t, f.front.URL+"/system/v1/events/stream", header)
	hello := make([]byte, 1)
	if _, err := io.ReadFull(res.Body, hello); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("a stream of events: %d, %v", res.StatusCode, err)
	}
	_ = res.Body.Close()
	f.mu.Lock()
	if !strings.HasSuffix(f.from, ", 127.0.0.1") && f.from != "127.0.0.1" {
		t.Errorf("a node is told that %q asks", f.from)
	}
	f.mu.Unlock()
	select { // an earlier one
	case <-f.body:
	default:
	}
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.front.URL+"/video/v1/assets", in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	ended := make(chan int, 1)
	go func() {
		answer, failed := f.front.Client.Do(req)
		if failed != nil {
			ended <- 0
			return
		}
		_ = answer.Body.Close()
		ended <- answer.StatusCode
	}()
	if _, err = io.WriteString(out, `{"inputs":`); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.body:
	case <-time.After(patience):
		t.Error("a request's body waits in the proxy for its end")
	}
	_, _ = io.WriteString(out, `0}`)
	_ = out.Close()
	if code := <-ended; code != http.StatusBadRequest {
		t.Errorf("a request with a body: %d", code)
	}
}

func (f frontTest) check(t *testing.T) {
	t.Helper()
	checkBut(t, "through the proxy", agedByCache, hlscheck.Options{
		URL: f.front.URL + "/" + f.public + ".m3u8", Client: f.front.Client,
		Follow: 4 * time.Second, LowLatency: true, MaxSegments: 3,
	}, "blocking-reload", "preload-hint", "part-bytes", "ranges", "gzip", "media-cache", "immutable-bytes")
}
