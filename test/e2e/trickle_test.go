package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/test/rig"
)

// trickle keeps so many connections open, from 100 addresses of this machine, on each of which a form comes at 4 bytes
// a second. One that is closed is made again. It returns how many times that was.
func trickle(ctx context.Context, t *testing.T, addr string, connections int) (again *atomic.Int64) {
	t.Helper()
	const head = "POST /dashboard/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n" +
		"Content-Length: 60000\r\n\r\npassword="
	conns := make([]net.Conn, connections)
	again = new(atomic.Int64)
	dial := func(i int) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 9, byte(1+i%100))}, Timeout: patience}
		nc, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			_, err = io.WriteString(nc, head)
		}
		if conns[i] = nc; err != nil && nc != nil {
			_ = nc.Close()
		}
	}
	for i := range conns {
		dial(i)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			rig.Pause(250 * time.Millisecond)
			var lost int64
			for i, nc := range conns {
				if nc != nil {
					_ = nc.SetReadDeadline(time.Unix(1, 0))
					_, err := nc.Write([]byte("x"))
					if err == nil {
						continue
					}
					_ = nc.Close()
				}
				lost++
				dial(i)
			}
			again.Add(lost)
		}
		for _, nc := range conns {
			if nc != nil {
				_ = nc.Close()
			}
		}
	}()
	t.Cleanup(func() { <-ended })
	return again
}

// TestTricklingBodies fills a server of 1024 descriptors, which has 376 places for viewers and callers, with 420 forms
// that hardly go on, from 100 addresses, which come again whenever they are closed. The API, viewers, a person who
// signs in and an upload over a slow link go on, each on new connections.
func TestTricklingBodies(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{OpenFiles: 1024})
	stream := s.CreateLive(t, "standard", nil)
	s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 200, GOP: 1})
	playlist := s.PlayURL(stream.Text("playback_ids.0.id"))
	s.AwaitPlayable(t, playlist, patience)
	up := createUpload(t, s)
	clip := rig.Clip{Size: "320x180", Kbit: 100, GOP: 1, Seconds: 5, NoAudio: true}
	film, err := os.ReadFile(rig.File(t, "a.mp4", clip))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	again := trickle(ctx, t, strings.TrimPrefix(s.HTTP, "http://"), 420)

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	uploaded := make(chan error, 1)
	go func() { // 20 kB a second
		in, out := io.Pipe()
		go func() {
			for rest := film; len(rest) > 0; rest = rest[min(len(rest), 5000):] {
				rig.Pause(250 * time.Millisecond)
				if _, err := out.Write(rest[:min(len(rest), 5000)]); err != nil {
					return
				}
			}
			_ = out.Close()
		}()
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.HTTP+up.path, in)
		if err != nil {
			uploaded <- err
			return
		}
		req.ContentLength = int64(len(film))
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("status %d", resp.StatusCode)
			}
		}
		uploaded <- err
	}()
	id, secret := s.Token()
	ask := func(what, method, url, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(url, "/video/") {
			req.SetBasicAuth(id, secret)
			req.Header.Set("Content-Type", "application/json")
		} else if body != "" {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Errorf("%s: %d %s", what, resp.StatusCode, bytes.TrimSpace(text))
		}
	}
	one := s.HTTP + "/video/v1/live-streams/" + stream.Text("id")
	var done error
	waiting := true
	for round := 0; waiting || round < 20; round++ {
		ask("viewer", http.MethodGet, playlist, "")
		ask("API", http.MethodGet, s.HTTP+"/video/v1/live-streams", "")
		ask("API with a body", http.MethodPatch, one, `{"passthrough":"p"}`)
		ask("page", http.MethodGet, s.HTTP+"/dashboard/sign-in", "")
		if t.Failed() {
			break
		}
		select {
		case done = <-uploaded:
			waiting = false
		default:
		}
	}
	if done != nil {
		t.Errorf("an upload of 20 kB a second: %v", done)
	}
	if n := again.Load(); n < 420 {
		t.Errorf("only %d connections were closed: that is no attack", n)
	}
	cancel()
	if log := s.Log(); strings.Contains(log, "too many open files") || !strings.Contains(log, "too many connections") {
		t.Errorf("the log does not tell of the attack, or of what it did")
	}
}
