package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// unreadGrowth is how much more memory a server may use while responses wait for clients that read nothing, in bytes:
// twice what it takes, of which 16 MiB are the budget of one address and 8 the large pieces that nobody counts.
const unreadGrowth = 100 << 20

// TestUnreadResponses asks for large segments and playlists over connections of HTTP/2 whose windows never open: the
// server's memory stays within bounds, also the second time, who asks beyond them is told so, and other viewers and an
// encoder do not notice.
func TestUnreadResponses(t *testing.T) {
	rig.Parallel(t)
	// The collector runs often: what is measured is memory in use. How much garbage waits for it otherwise is chance.
	s := rig.Start(t, rig.Options{Env: []string{"GOGC=25"}})
	large := rig.Clip{Size: "1280x720", Kbit: 4000, GOP: 4, Seconds: 8, More: []string{
		"-vf", "noise=alls=40:allf=t", "-maxrate", "4M", "-minrate", "4M", "-bufsize", "4M",
	}}
	silent := large
	silent.NoAudio = true
	small := rig.Clip{Size: "160x90", Kbit: 30, GOP: 2, Rate: 10, Seconds: 60, NoAudio: true}
	minute := rig.File(t, "minute.mp4", small)
	files := rig.Files(t, map[string]string{
		"one-piece.mp4": rig.File(t, "one-piece.mp4", silent), "scattered.mp4": rig.File(t, "scattered.mp4", large),
		"hours.mp4": programtest.Media(t, "hours.mp4", "-stream_loop", "299", "-i", minute, "-c", "copy"),
	})
	ids := map[string]string{}
	for _, name := range []string{"one-piece.mp4", "scattered.mp4", "hours.mp4"} {
		ids[name] = s.CreateAsset(t, files+"/"+name).Text("id")
	}
	targets := map[string]string{} // by what is asked for: a path, or two pieces of one with a number between them
	for name, id := range ids {
		a := s.AwaitAsset(t, id, "ready", 2*patience, rig.Ready)
		list := playlists(t, s, s.PlayURL(a.Text("playback_ids.0.id")))[0]
		if name == "hours.mp4" {
			targets["playlists"] = strings.TrimPrefix(list, s.HTTP) + "?asset_start_time=%d"
			continue
		}
		segment := playlists(t, s, list)[0]
		if _, _, data := s.Get(t, segment); len(data) < 1500<<10 {
			t.Fatalf("%s: a segment of %d bytes is no attack", name, len(data))
		}
		targets[name] = strings.TrimPrefix(segment, s.HTTP)
	}
	stream := s.CreateLive(t, "standard", nil)
	s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 200, GOP: 1})
	live := s.PlayURL(stream.Text("playback_ids.0.id"))
	s.AwaitPlayable(t, live, patience)

	before := s.Resident(t)
	t.Logf("%d MiB before", before>>20)
	attacker := 9
	for round := range 2 {
		for name, path := range targets {
			// Each from another address: the last one's streams may not have ended yet.
			attacker++
			got := attack(t, "127.0.0."+strconv.Itoa(attacker), s.HTTP, path)
			grown := s.Resident(t) - before
			t.Logf("%s, round %d: %v, %d MiB more", name, round, got.status, grown>>20)
			if grown > unreadGrowth {
				t.Errorf("%s, round %d: %d MiB more, at most %d are allowed", name, round, grown>>20, unreadGrowth>>20)
			}
			if got.status["200"] == 0 {
				t.Errorf("%s: %v: that is no attack", name, got.status)
			}
			if name == "playlists" && got.status["429"] == 0 {
				t.Errorf("%s: %v: nobody is told of the limit", name, got.status)
			}
			for _, at := range []string{s.HTTP + strings.ReplaceAll(path, "%d", "5"), live} {
				if code, _, data := s.Get(t, at); code != http.StatusOK || len(data) == 0 {
					t.Errorf("%s: another viewer gets %d for %s", name, code, at)
				}
			}
			got.end()
		}
	}
	wholeRecording(t, s, stream.Text("id"))
}

// unread are responses that wait for their client.
type unread struct {
	status map[string]int // how many have come
	conns  []net.Conn
}

func (u unread) end() {
	for _, nc := range u.conns {
		_ = nc.Close()
	}
}

// attack asks for a path 2000 times, over 20 connections from an address that take no byte of a body, and waits until
// each request is responded to or refused. The first connection begins alone: a thousand streams by themselves use up
// what an address may have, and where they all came before the first response was made, there was none to keep in
// memory.
func attack(t *testing.T, address, base, path string) unread {
	t.Helper()
	out := unread{status: map[string]int{}}
	const conns = 20
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range conns {
		nc := connect(t, address, strings.TrimPrefix(base, "http://"))
		if nc == nil {
			t.Fatal("no connection is taken")
		}
		out.conns = append(out.conns, nc)
		wg.Go(func() {
			found, err := unreadOn(nc, i, path)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				found["closed"]++
			}
			for what, n := range found {
				out.status[what] += n
			}
		})
		if i == 0 {
			wg.Wait()
		}
	}
	wg.Wait()
	return out
}

// unreadOn asks for a path a hundred times and says how each request fared.
func unreadOn(nc net.Conn, conn int, path string) (status map[string]int, err error) {
	const streams = 100
	status = map[string]int{}
	if _, err = io.WriteString(nc, http2.ClientPreface); err != nil {
		return status, err
	}
	framer := http2.NewFramer(nc, nc)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return status, err
	}
	var block bytes.Buffer
	packed := hpack.NewEncoder(&block)
	for i := range streams {
		block.Reset()
		at := path
		if strings.Contains(path, "%") {
			at = fmt.Sprintf(path, 4*(conn*streams+i))
		}
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}, {":path", at}} {
			if err = packed.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
				return status, err
			}
		}
		ask := http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		}
		if err = framer.WriteHeaders(ask); err != nil {
			return status, err
		}
	}
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	for heard := 0; heard < streams; {
		frame, err := framer.ReadFrame()
		if err != nil {
			return status, err
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			status[f.PseudoValue("status")]++
			heard++
		case *http2.RSTStreamFrame:
			status["reset "+strconv.Itoa(int(f.ErrCode))]++
			heard++
		}
	}
	return status, nil
}
