package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestOwnerDies kills the node with the encoder, which comes to another node at once: it is let in to the same asset,
// also where there is no reconnect window. A viewer at a third node has a playlist all the time, no number twice, and
// no end; what is listed can be had. The log has the figures.
func TestOwnerDies(t *testing.T) {
	rig.Parallel(t)
	for name, window := range map[string]int{"with a reconnect window": 60, "without": 0} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			scaled(t)
			f := rig.StartFleet(t, 3, rig.Options{})
			a, b, c := f.Nodes[0], f.Nodes[1], f.Nodes[2]
			l := a.CreateLive(t, "low", rig.Object{"reconnect_window": window})
			a.Publish(t, l.Text("stream_key"), small())
			list := firstList(t, c, l)
			s := watchAt(t, list, c)
			s.await(c, "before", s.at(c)+3)
			// What no other node knows of is lost with the node, be it all that there was.
			asset := c.Live(t, l.Text("id")).Text("active_asset_id")
			recorded := func(o rig.Object) bool { return o.Number("duration") > 0 }
			b.AwaitAsset(t, asset, "recorded", patience, recorded)
			s.lose()
			died := s.at(c)
			a.Kill(t)
			at := time.Now()
			b.Publish(t, l.Text("stream_key"), small())
			b.AwaitLog(t, patience, `"encoder connected"`, l.Text("id"))
			t.Logf("the encoder was let in after %v", time.Since(at).Round(10*time.Millisecond))
			// What the next owner publishes has its generation in its name.
			for !strings.Contains(playlistAt(t, c, list), "/1-") {
				if time.Since(at) > patience {
					t.Fatalf("nothing new is listed:\n%s", playlistAt(t, c, list))
				}
				rig.Pause(20 * time.Millisecond)
			}
			t.Logf("the next part was listed after %v", time.Since(at).Round(10*time.Millisecond))
			s.await(c, "after its death", max(died+2, s.at(c)+2))
			if now := b.Live(t, l.Text("id")).Text("active_asset_id"); now != asset {
				t.Errorf("the asset is %s, and was %s", now, asset)
			}
			if codes := s.statuses(c); len(codes) != 1 || codes[http.StatusOK] == 0 {
				t.Errorf("viewers at the third node had the statuses %v", codes)
			}
			text := playlistAt(t, c, list)
			lines := strings.Split(text, "\n")
			for _, uri := range listedURIs(text) {
				if i := slices.Index(lines, uri); i > 1 && lines[i-2] == "#EXT-X-GAP" {
					continue
				}
				code, _ := fetched(t, c, list[:strings.LastIndexByte(list, '/')+1]+uri, "identity")
				if code != http.StatusOK {
					t.Errorf("%s, which is listed, has status %d:\n%s", uri, code, text)
				}
			}
		})
	}
}

// TestOwnerDiesBehindNginx kills the node with the encoder while viewers come through nginx, which sends them to any
// node: they go on when the encoder has come to the other one, are shown no end, and no number twice.
func TestOwnerDiesBehindNginx(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	f := rig.StartFleet(t, 2, rig.Options{})
	a, b := f.Nodes[0], f.Nodes[1]
	front := rig.Nginx(t, f.Hosts()...)
	l := a.CreateLive(t, "low", nil)
	a.Publish(t, l.Text("stream_key"), small())
	list := firstList(t, b, l)
	s := &onlookers{
		t: t, path: list, all: map[int]shownSegment{}, newest: map[*rig.Server]int{},
		codes: map[*rig.Server]map[int]int{nil: {}}, loses: true,
	}
	recorded := func(o rig.Object) bool { return o.Number("duration") > 0 }
	b.AwaitAsset(t, b.Live(t, l.Text("id")).Text("active_asset_id"), "recorded", patience, recorded)
	a.Kill(t)
	at := time.Now()
	b.Publish(t, l.Text("stream_key"), small())
	for goesOn := false; !goesOn; rig.Pause(30 * time.Millisecond) {
		code, text := through(t, front, list)
		if s.codes[nil][code]++; code == http.StatusOK {
			s.note(nil, text)
		}
		goesOn = strings.Contains(string(text), "/1-")
		if time.Since(at) > patience {
			t.Fatalf("it does not go on: statuses %v\n%s", s.codes[nil], text)
		}
	}
	t.Logf("after %v viewers have the next part; statuses until then: %v", time.Since(at).Round(10*time.Millisecond),
		s.codes[nil])
	for code := range s.codes[nil] {
		if code != http.StatusOK && code != http.StatusServiceUnavailable {
			t.Errorf("viewers had the status %d", code)
		}
	}
}

// through gets a path through a proxy.
func through(t *testing.T, front *rig.Front, path string) (code int, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := front.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err = io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// playlistAt is a playlist as a node's viewers have it.
func playlistAt(t *testing.T, n *rig.Server, path string) string {
	t.Helper()
	_, text := fetched(t, n, path, "identity")
	return string(text)
}

// statuses are how often a node has responded with which status.
func (o *onlookers) statuses(n *rig.Server) map[int]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[int]int{}
	for code, times := range o.codes[n] {
		if code != 0 { // the test ended it
			all[code] = times
		}
	}
	return all
}
