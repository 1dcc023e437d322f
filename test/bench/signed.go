package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"millrace/test/bench/load"
	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

// signedTurns is how often public and signed requests take turns, signedSlot how long each turn is.
const (
	signedTurns = 41
	signedSlot  = 200 * time.Millisecond
)

// signed compares what requests below a signed path cost with the same ones of a public playback ID of the same live
// stream.
func (b *bench) signed(ctx context.Context) (err error) {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	c := s.client()
	defer c.Close()
	var live liveStream
	if err = call(c, "POST", "/video/v1/live-streams", `{"playback_policies":["public","signed"],"latency_mode":"low"}`,
		&live); err != nil {
		return err
	}
	if len(live.PlaybackIDs) != 2 {
		return errors.New("live stream without two playback IDs")
	}
	end, err := onAir(ctx, "rtmp://"+s.rtmp+"/app/"+live.StreamKey, clip)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	token, err := b.token(ctx, c, live.PlaybackIDs[1].ID)
	if err != nil {
		return err
	}
	open, err := tune(ctx, s.http, "/"+live.PlaybackIDs[0].ID+".m3u8")
	if err != nil {
		return err
	}
	defer open.Close()
	closed, err := tune(ctx, s.http, "/"+live.PlaybackIDs[1].ID+".m3u8?token="+token)
	if err != nil {
		return err
	}
	defer closed.Close()
	segment := open.Playlist().Segments[0].URI
	if err = sleep(ctx, 12*time.Second); err != nil { // now it is no longer in memory
		return err
	}
	b.out.begin("Signed playback, live, keep-alive", "public")
	for _, o := range []struct {
		name, uri string
		gzip      bool
		goal      string
	}{
		{"playlist", "", false, "at most 1.15"},
		{"playlist, gzip", "", true, "at most 1.15"},
		{"sealed segment", segment, false, "at most 1.05"},
	} {
		path := [2]string{viewer.Resolve(closed.URL(), o.uri), viewer.Resolve(open.URL(), o.uri)}
		if o.uri == "" {
			path = [2]string{closed.URL(), open.URL()}
		}
		for _, conns := range []int{1, 64} {
			if err = b.weigh(ctx, s, path, load.Target{Addr: s.http, Gzip: o.gzip, Conns: conns}, o.name,
				o.goal); err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
		}
	}
	return nil
}

// tune gives the first media playlist of a multivariant one.
func tune(ctx context.Context, addr, play string) (*viewer.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	streams, err := viewer.Tune(ctx, addr, play, 100*time.Millisecond)
	if err != nil {
		return nil, err
	}
	for _, x := range streams[1:] {
		x.Close()
	}
	return streams[0], nil
}

// token makes a signing key and signs a token for a playback ID with it.
func (b *bench) token(ctx context.Context, c *viewer.Client, playbackID string) (string, error) {
	var key struct {
		ID         string `json:"id"`
		PrivateKey string `json:"private_key"`
	}
	if err := call(c, "POST", "/system/v1/signing-keys", "", &key); err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, "signing.key")
	if err := os.WriteFile(file, []byte(key.PrivateKey), 0o600); err != nil {
		return "", fmt.Errorf("keep signing key: %w", err)
	}
	out, err := exec.CommandContext(
		ctx, b.binary, "token", "sign", "--key-id", key.ID, "--private-key-file", file, "--playback-id", playbackID,
		"--type", "video", "--expiry", "12h",
	).Output()
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// weigh asks for the first path and the second one in turns. All of them together count: the processor time of one turn
// is told coarsely.
func (b *bench) weigh(ctx context.Context, s *millrace, path [2]string, t load.Target, name, goal string) error {
	var spent, took [2]time.Duration
	var requests [2]int64
	for n := range signedTurns {
		for k := range path {
			i := (k + n) % 2 // neither is always the first
			if err := ctx.Err(); err != nil {
				return err
			}
			t.Path = path[i]
			before, err1 := proc.Read(s.p.PID())
			r, err2 := load.Run(t, signedSlot)
			after, err3 := proc.Read(s.p.PID())
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			spent[i], took[i], requests[i] = spent[i]+after.CPU-before.CPU, took[i]+r.Elapsed, requests[i]+r.Requests
		}
	}
	rate := func(i int) float64 { return float64(requests[i]) / took[i].Seconds() }
	cost := func(i int) float64 { return float64(spent[i].Microseconds()) / float64(requests[i]) }
	name = fmt.Sprintf("%s, %d conn", name, t.Conns)
	b.out.pair(name, "req/s", rate(0), rate(1), "")
	b.out.pair(name, "µs CPU/req", cost(0), cost(1), goal)
	return nil
}
