package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// overTLS sends requests over HTTP/2 and TLS, all on one connection.
type overTLS struct {
	t      *testing.T
	client *http.Client
}

// send sends one. Its error is that of a stream that was reset.
func (o overTLS) send(method, at string, body io.Reader, head http.Header) (*http.Response, []byte, error) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		o.t.Fatal(err)
	}
	maps.Copy(req.Header, head)
	resp, err := o.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

// TestHTTP2 plays, calls the API and uploads over one connection of HTTP/2, as a page does that has all of it, and
// compares what players get with what they get in clear text.
func TestHTTP2(t *testing.T) {
	rig.Parallel(t)
	certFile, keyFile := ownCertificate(t, t.TempDir(), 1)
	s := rig.Start(t, rig.Options{Args: []string{"--tls-cert", certFile, "--tls-key", keyFile}})
	stream := s.CreateLive(t, "low", nil)
	e := s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	s.AwaitPlayable(t, s.PlayURL(stream.Text("playback_ids.0.id")), patience)
	transport := &http.Transport{
		ForceAttemptHTTP2: true, MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	defer transport.CloseIdleConnections()
	o := overTLS{t, &http.Client{Transport: transport}}
	secure := func(at string) string { return strings.Replace(at, s.HTTP, s.HTTPS, 1) }
	list := playlists(t, s, s.PlayURL(stream.Text("playback_ids.0.id")))[0]

	o.reload(secure(list))
	o.mixed(s, secure(list))
	e.Stop()
	s.Complete(t, stream.Text("id"))
	o.same(s, secure, list)
	clients(t, secure(list))
}

var lastMSN = regexp.MustCompile(`#EXT-X-MEDIA-SEQUENCE:(\d+)`)

// reload blocks ninety playlists at a time until the next segment, beside one that does not wait.
func (o overTLS) reload(list string) {
	o.t.Helper()
	_, data, err := o.send(http.MethodGet, list, nil, nil)
	first := lastMSN.FindSubmatch(data)
	if err != nil || first == nil {
		o.t.Fatalf("%v: %s", err, data)
	}
	msn, _ := strconv.Atoi(string(first[1]))
	msn += bytes.Count(data, []byte("#EXTINF")) + 1
	const waiting = 90
	var wg sync.WaitGroup
	for range waiting {
		wg.Go(func() {
			resp, data, err := o.send(http.MethodGet, list+"?_HLS_msn="+strconv.Itoa(msn), nil, nil)
			if err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 ||
				!bytes.Contains(data, []byte("#EXTINF")) {
				o.t.Errorf("blocked: %v, %v: %s", resp, err, data)
			}
		})
	}
	if resp, _, err := o.send(http.MethodHead, list, nil, nil); err != nil || resp.StatusCode != http.StatusOK {
		o.t.Errorf("beside it: %v, %v", resp, err)
	}
	wg.Wait()
}

// mixed uploads a file and creates streams while playlists are asked for.
func (o overTLS) mixed(s *rig.Server, list string) {
	o.t.Helper()
	var wg sync.WaitGroup
	for n := range 5 {
		u := createUpload(o.t, s)
		wg.Go(func() {
			resp, data, err := o.send(http.MethodPut, s.HTTPS+u.path, bytes.NewReader(make([]byte, 3<<20+n)), nil)
			if err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
				o.t.Errorf("upload: %v, %v: %s", resp, err, data)
			}
		})
		wg.Go(func() {
			head := http.Header{"Authorization": {s.Authorization()}, "Content-Type": {"application/json"}}
			resp, data, err := o.send(http.MethodPost, s.HTTPS+"/video/v1/live-streams", strings.NewReader(`{}`), head)
			if err != nil || resp.StatusCode != http.StatusCreated {
				o.t.Errorf("API: %v, %v: %s", resp, err, data)
			}
		})
		wg.Go(func() {
			for range 20 {
				resp, data, err := o.send(http.MethodGet, list, nil, nil)
				if err != nil || resp.StatusCode != http.StatusOK {
					o.t.Errorf("playlist: %v, %v: %s", resp, err, data)
				}
			}
		})
	}
	wg.Wait()
}

// same asks for all that players ask for, in clear text and over TLS.
func (o overTLS) same(s *rig.Server, secure func(string) string, list string) {
	o.t.Helper()
	at, err := url.Parse(list)
	if err != nil {
		o.t.Fatal(err)
	}
	all := []string{
		list, list + "?_HLS_skip=YES", list + "?_HLS_part=1", list + "x", s.HTTP + "/AbsentPlaybackID00000000000.m3u8",
	}
	_, _, data := s.Get(o.t, list)
	for _, m := range regexp.MustCompile(`URI="([^"]+)"`).FindAllSubmatch(data, -1) {
		to, err := at.Parse(string(m[1]))
		if err != nil {
			o.t.Fatal(err)
		}
		all = append(all, to.String())
	}
	all = append(all, playlists(o.t, s, list)...)
	if len(all) < 8 {
		o.t.Fatalf("%q are no playlist", all)
	}
	for _, what := range all {
		for _, head := range []http.Header{
			{},
			{"Range": {"bytes=100-299"}},
			{"Range": {"bytes=99999999-"}},
			{"Accept-Encoding": {"gzip"}},
			{"If-None-Match": {`"x"`}},
			{"Origin": {"https://example.org"}},
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete} {
				plain, secured := o.said(method, what, head), o.said(method, secure(what), head)
				if plain != secured {
					o.t.Errorf("%s %s %v: %.500s\nover TLS: %.500s", method, what, head, plain, secured)
				}
			}
		}
	}
}

// said is a response as a text.
func (o overTLS) said(method, at string, head http.Header) string {
	o.t.Helper()
	resp, data, err := o.send(method, at, nil, head)
	if err != nil {
		return "error"
	}
	resp.Header.Del("Date")
	resp.Header.Del("Strict-Transport-Security")
	var fields []string
	for name, values := range resp.Header {
		fields = append(fields, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(fields)
	return fmt.Sprintf("%d %q %x", resp.StatusCode, fields, data)
}

// clients are those that people have.
func clients(t *testing.T, at string) {
	t.Helper()
	out := programtest.Run(t, "curl", "-sS", "--insecure", "--http2", "-o", "/dev/null",
		"-w", "%{http_version} %{response_code}", at)
	if string(out) != "2 200" {
		t.Errorf("curl: %s", out)
	}
	for _, client := range [][]string{
		{"h2load", "-n", "500", "-c", "5", "-m", "20", at}, {"nghttp", "-n", "-s", "-m", "50", "--no-verify-peer", at},
	} {
		path, err := exec.LookPath(client[0])
		if err != nil {
			continue // the benchmarks' alone
		}
		out, err := exec.CommandContext(t.Context(), path, client[1:]...).CombinedOutput()
		if err != nil || client[0] == "h2load" && !bytes.Contains(out, []byte("500 succeeded, 0 failed")) {
			t.Errorf("%s: %v: %s", client[0], err, out)
		}
	}
}
