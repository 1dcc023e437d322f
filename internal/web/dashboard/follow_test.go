package dashboard_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// events follows a page.
type events struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Scanner
}

func (s *site) follow(t *testing.T, server *httptest.Server, path string) *events {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.AddCookie(&http.Cookie{Name: "millrace", Value: s.cookie})
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	e := &events{t, resp, bufio.NewScanner(resp.Body)}
	e.in.Buffer(nil, 1<<20)
	return e
}

// next reads an event.
func (e *events) next() (name, data string) {
	e.t.Helper()
	for e.in.Scan() {
		line := e.in.Text()
		switch {
		case line == "" && name != "":
			return name, data
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data += strings.TrimPrefix(line, "data: ") + "\n"
		}
	}
	e.t.Fatalf("no event: %v", e.in.Err())
	return "", ""
}

// until reads events until one has a text, and gives that. Others may have the further texts, before it or behind.
func (e *events) until(text string, further ...string) (with string) {
	e.t.Helper()
	for with == "" || len(further) > 0 {
		name, data := e.next()
		if name != "page" {
			continue
		}
		if with == "" && strings.Contains(data, text) {
			with = data
		}
		further = slices.DeleteFunc(further, func(f string) bool { return strings.Contains(data, f) })
	}
	return with
}

// TestFollow: the page of a live stream is sent again when something of it changes, and the last event says that it is
// deleted.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	v := s.stream(t, hostile, false, playbackid.Public)
	path := "/dashboard/live/" + string(v.ID) + "/follow"
	e := s.follow(t, server, path)
	if got := e.resp.Header.Get("Content-Type"); e.resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%d %s", e.resp.StatusCode, got)
	}
	first := e.until("Waiting for your encoder")
	for _, bad := range []string{"<script>", v.StreamKey, v.SRTPassphrase} {
		if strings.Contains(first, bad) {
			t.Errorf("an event has %q", bad)
		}
	}
	connected, err := s.broadcasts.Connect(t.Context(), live.Connection{
		StreamKey: v.StreamKey, Protocol: "rtmp", NewAsset: id.Asset(id.New()),
		Owner: live.Owner{Node: "node", Run: "run"},
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	e.until("Your encoder is connected")
	if err = s.broadcasts.Active(t.Context(), v.ID, connected.Writer(), s.now); err != nil {
		t.Fatal(err)
	}
	e.until("data-player=")
	if err = s.live.Delete(t.Context(), s.env(t), v.ID, s.now); err != nil {
		t.Fatal(err)
	}
	for {
		if name, data := e.next(); name == "over" {
			if data != "deleted\n" {
				t.Errorf("over: %q", data)
			}
			break
		}
	}
	if e.in.Scan() && e.in.Text() != "" {
		t.Errorf("behind the last event: %q", e.in.Text())
	}
}

// TestFollowers: one person keeps so many pages up to date and no more, and gives the places back.
func TestFollowers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	path := "/dashboard/live/" + string(s.stream(t, "One", false).ID) + "/follow"
	var all []*events
	for range 32 {
		all = append(all, s.follow(t, server, path))
	}
	if e := s.follow(t, server, path); e.resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one more: %d", e.resp.StatusCode)
	}
	_ = all[0].resp.Body.Close()
	for end := time.Now().Add(time.Minute); ; {
		e := s.follow(t, server, path)
		if e.resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no place is given back")
		}
	}
}
