package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// speaking starts two nodes on one PostgreSQL and one S3 that speak to each other.
func speaking(t *testing.T) (a, b *rig.Server) {
	t.Helper()
	scaled(t)
	o := rig.Options{Pair: rig.Scaled, Args: []string{"--internal-addr", "127.0.0.1:0"}}
	a = rig.Start(t, o)
	o.Beside = a
	return a, rig.Start(t, o)
}

// TestFollowed: viewers at one node play what an encoder sends to another one, by the rules of HLS, and each URL has
// the same bytes at both: playlists, plain, compressed and by delta, segments, parts, text and pictures.
func TestFollowed(t *testing.T) {
	rig.Parallel(t, rig.Long)
	a, b := speaking(t)
	for _, mode := range []string{"low", "reduced", "standard"} {
		t.Run(mode, func(t *testing.T) { followed(t, a, b, mode) })
	}
}

func followed(t *testing.T, a, b *rig.Server, mode string) {
	t.Helper()
	keys := newSigner(t, a)
	l := a.CreateLive(t, mode, rig.Object{
		"playback_policies": []string{"public", "signed"}, "reconnect_window": 300,
		"use_slate_for_standard_latency": false,
	})
	public, signed := l.Text("playback_ids.0.id"), l.Text("playback_ids.1.id")
	if l.Text("playback_ids.0.policy") == "signed" {
		public, signed = signed, public
	}
	encoder := a.Publish(t, l.Text("stream_key"), rig.Clip{Size: "640x360", Kbit: 600, GOP: 1})
	b.AwaitPlayable(t, b.PlayURL(public), patience)
	watched := hlscheck.Options{
		URL: b.PlayURL(public), Follow: 6 * time.Second, LowLatency: mode == "low", MaxSegments: 4,
	}
	check(t, "at the other node", watched)
	watched.URL, watched.Follow = b.PlayURL(signed)+"?token="+keys.token(t, signed), 4*time.Second
	check(t, "signed, at the other node", watched)
	if code, _, _ := b.Get(t, b.PlayURL(signed)); code != http.StatusForbidden {
		t.Errorf("without a token: status %d at the other node", code)
	}
	for _, s := range []*rig.Server{a, b} {
		code, head, body := s.Get(t, s.HTTP+"/"+public+"/thumbnail.jpg?latest=true")
		if code != http.StatusOK || head.Get("Content-Type") != "image/jpeg" {
			t.Errorf("the newest picture: status %d: %.200s", code, body)
		}
		_, health := s.Do(t, http.MethodGet, "/video/v1/live-streams/"+l.Text("id")+"/health", nil)
		if health.Text("data.encoder.protocol") != "rtmp" {
			t.Errorf("health: %v", health)
		}
	}
	encoder.Stop()
	a.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	recording := a.Asset(t, a.Live(t, l.Text("id")).Text("active_asset_id")).Text("playback_ids.0.id")
	for _, id := range []string{public, recording} {
		sameAt(t, a, b, "/"+id+".m3u8")
	}
	a.Complete(t, l.Text("id"))
}

// sameAt holds that a multivariant playlist, and all that it leads to, are the same at two nodes.
func sameAt(t *testing.T, a, b *rig.Server, path string) {
	t.Helper()
	begun := map[string]bool{}
	for _, uri := range listedURIs(equalAt(t, a, b, path, "identity")) { // renditions begin when they are asked for
		equalStatus(t, a, b, "/"+uri)
		begun["/"+uri] = true
	}
	count := 0
	for list := range begun {
		var text string
		clip := "?program_start_time=1&program_end_time=9999999999"
		for _, query := range []string{"", "?_HLS_skip=YES", "?_HLS_msn=1", clip} {
			got := equalAt(t, a, b, list+query, "identity")
			equalAt(t, a, b, list+query, "gzip")
			if query == "" {
				text = got
			}
		}
		folder := list[:strings.LastIndexByte(list, '/')+1]
		for _, uri := range listedURIs(text) {
			equalAt(t, a, b, folder+uri, "identity")
			count++
		}
	}
	if count < 6 {
		t.Errorf("%s leads to %d segments and parts", path, count)
	}
	for _, more := range []string{"/thumbnail.jpg?time=1", "/storyboard.json", "/metadata.json"} {
		equalStatus(t, a, b, strings.TrimSuffix(path, ".m3u8")+more)
	}
}

// listedURIs are the URIs in a playlist, but for those of what does not exist yet.
func listedURIs(text string) (uris []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		_, quoted, attribute := strings.Cut(line, `URI="`)
		switch {
		case line == "", strings.HasPrefix(line, "#EXT-X-PRELOAD-HINT"),
			strings.HasPrefix(line, "#EXT-X-RENDITION-REPORT"):
		case attribute:
			uri, _, _ := strings.Cut(quoted, `"`)
			uris = append(uris, uri)
		case !strings.HasPrefix(line, "#"):
			uris = append(uris, line)
		}
	}
	return uris
}

func equalStatus(t *testing.T, a, b *rig.Server, path string) {
	t.Helper()
	at, _ := fetched(t, a, path, "identity")
	if there, _ := fetched(t, b, path, "identity"); at != there {
		t.Errorf("%s: status %d and %d", path, at, there)
	}
}

// equalAt holds that a path has the same bytes at two nodes, and gives them. Both are asked until they have: what an
// encoder has sent last may be closed and stored only now, and the other node hears of it a moment later.
func equalAt(t *testing.T, a, b *rig.Server, path, encoding string) string {
	t.Helper()
	at, body := fetched(t, a, path, encoding)
	there, other := fetched(t, b, path, encoding)
	equal := func() bool { return at == there && bytes.Equal(body, other) }
	for end := time.Now().Add(patience); !equal() && time.Now().Before(end); rig.Pause(20 * time.Millisecond) {
		at, body = fetched(t, a, path, encoding)
		there, other = fetched(t, b, path, encoding)
	}
	if !equal() {
		same := 0
		for same < min(len(body), len(other)) && body[same] == other[same] {
			same++
		}
		from := max(same-200, 0)
		t.Errorf("%s, %s: status %d and %d, %d and %d bytes, equal up to %d\n%.600s\n%.600s",
			path, encoding, at, there, len(body), len(other), same, body[from:], other[from:])
	}
	return string(body)
}

// fetched gets a path at a node, as it is sent.
func fetched(t *testing.T, s *rig.Server, path, encoding string) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

// TestFollowedOwnerDies: when the node with the encoder is killed another one still has the playlists of its viewers.
// Those who wait there are answered when the encoder has come to that node, and play on.
func TestFollowedOwnerDies(t *testing.T) {
	rig.Parallel(t)
	a, b := speaking(t)
	l := a.CreateLive(t, "low", rig.Object{"reconnect_window": 120})
	url := b.PlayURL(l.Text("playback_ids.0.id"))
	encoder := a.Publish(t, l.Text("stream_key"), small())
	b.AwaitPlayable(t, url, patience)
	list := listedURIs(equalAt(t, a, b, "/"+l.Text("playback_ids.0.id")+".m3u8", "identity"))[0]
	encoder.Stop()
	a.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	_, text := fetched(t, b, "/"+list, "identity")
	before := strings.Count(string(text), "#EXTINF")
	told := make(chan int, 1)
	go func() {
		code, _ := fetched(t, b, "/"+list+"?_HLS_msn="+nextNumber(t, string(text)), "identity")
		told <- code
	}()
	rig.Pause(200 * time.Millisecond) // it waits now
	a.Kill(t)
	if code, body := fetched(t, b, "/"+list, "identity"); code != http.StatusOK {
		t.Errorf("while nobody has it: status %d\n%s", code, body)
	}
	b.Publish(t, l.Text("stream_key"), small())
	select {
	case code := <-told:
		if code != http.StatusOK {
			t.Errorf("who waited at the other node, which has it now, has status %d", code)
		}
	case <-time.After(patience):
		t.Fatal("who waited at the other node has no response")
	}
	for end := time.Now().Add(patience); ; rig.Pause(100 * time.Millisecond) {
		code, body := fetched(t, b, "/"+list, "identity")
		if code == http.StatusOK && strings.Count(string(body), "#EXTINF") > before+2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not go on at the other node: status %d\n%s", code, body)
		}
	}
}

// TestFollowedEnd: when a broadcast has ended, nodes that have never followed it give the last playlists and what they
// list as the owner does, for as long as that serves them.
func TestFollowedEnd(t *testing.T) {
	rig.Parallel(t)
	a, b := speaking(t)
	l := a.CreateLive(t, "low", nil)
	path := "/" + l.Text("playback_ids.0.id") + ".m3u8"
	encoder := a.Publish(t, l.Text("stream_key"), small())
	a.AwaitPlayable(t, a.HTTP+path, patience)
	_, master := fetched(t, a, path, "identity")
	encoder.Stop()
	a.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	a.Complete(t, l.Text("id"))
	count := 0
	for _, uri := range listedURIs(string(master)) {
		text := equalAt(t, b, a, "/"+uri, "identity")
		if !strings.Contains(text, "#EXT-X-ENDLIST") {
			t.Errorf("%s of a broadcast that has ended:\n%s", uri, text)
		}
		for _, media := range listedURIs(text) {
			equalAt(t, b, a, "/"+uri[:strings.LastIndexByte(uri, '/')+1]+media, "identity")
			count++
		}
	}
	if count < 6 {
		t.Errorf("%d segments and parts are listed", count)
	}
	if _, text := fetched(t, a, path, "identity"); equalAt(t, b, a, path, "identity") != string(text) {
		t.Errorf("the playlist of playlists, at the owner: %s", text)
	}
}

// nextNumber is the media sequence number behind the last one in a playlist.
func nextNumber(t *testing.T, text string) string {
	t.Helper()
	_, after, _ := strings.Cut(text, "#EXT-X-MEDIA-SEQUENCE:")
	first, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("no media sequence number: %v\n%s", err, text)
	}
	return strconv.Itoa(n + strings.Count(text, "#EXTINF"))
}

// TestHandOver has an encoder go to another node as soon as it has ended at the first one: each picture that either has
// received is recorded, without a gap, and a viewer at a third node is shown no end in between.
func TestHandOver(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	f := rig.StartFleet(t, 3, rig.Options{})
	a, b, c := f.Nodes[0], f.Nodes[1], f.Nodes[2]
	l := a.CreateLive(t, "standard", rig.Object{"reconnect_window": 120})
	clip := small()
	clip.Seconds = 8
	first := a.Publish(t, l.Text("stream_key"), clip)
	path := "/" + l.Text("playback_ids.0.id") + ".m3u8"
	c.AwaitPlayable(t, c.HTTP+path, patience)
	_, master := fetched(t, c, path, "identity")
	list := "/" + listedURIs(string(master))[0]
	watched, stop := make(chan string, 1), make(chan struct{})
	go func() {
		shown := ""
		for {
			select {
			case <-stop:
				watched <- shown
				return
			case <-time.After(50 * time.Millisecond):
			}
			if code, text, err := try(t.Context(), c.HTTP+list); err == nil && code == http.StatusOK &&
				strings.Contains(string(text), "#EXT-X-ENDLIST") {
				shown = string(text)
			}
		}
	}()
	for i, at := range []*rig.Server{a, b} {
		encoder := first
		if i > 0 {
			encoder = at.Publish(t, l.Text("stream_key"), clip)
		}
		if said, err := encoder.Wait(t, patience); err != nil {
			t.Fatalf("encoder %d: %v: %s", i+1, err, said)
		}
	}
	close(stop)
	if end := <-watched; end != "" {
		t.Errorf("a viewer was shown an end:\n%s", end)
	}
	now := b.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	b.Complete(t, l.Text("id"))
	asset := b.AwaitAsset(t, now.Text("active_asset_id"), "finished", patience, rig.Finished)
	fps, _ := clip.FPS()
	url := b.PlayURL(asset.Text("playback_ids.0.id"))
	if got, want := read(t, url, true)["video"].count, 2*int(fps*float64(clip.Seconds)); got != want {
		t.Errorf("%d pictures are recorded, the encoders have sent %d", got, want)
	}
	check(t, "the recording", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, finishedRules...)
}
