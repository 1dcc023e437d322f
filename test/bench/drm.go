package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

// drmTurns is how often clear and encrypted segments take turns of a second.
const drmTurns = 9

// drm compares the same live stream encrypted and clear: how late its parts are at a viewer, and what its segments cost
// over TLS.
func (b *bench) drm(ctx context.Context) (err error) {
	client, err := exec.LookPath("h2load")
	if err != nil {
		return fmt.Errorf("find h2load (nghttp2-client): %w", err)
	}
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	if b.cert, b.key, err = certificate(b.dir); err != nil {
		return err
	}
	defer func() { b.cert, b.key = "", "" }()
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	live, err := b.drmStream(ctx, s)
	if err != nil {
		return err
	}
	c := s.client()
	defer c.Close()
	token, err := b.token(ctx, c, live.PlaybackIDs[1].ID)
	if err != nil {
		return err
	}
	p, err := encoder.Dial(ctx, "rtmp://"+s.rtmp+"/app/"+live.StreamKey)
	if err != nil {
		return err
	}
	defer p.Close()
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	var stamps encoder.Stamps
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = p.Play(publishing, clip, &stamps) })
	defer func() {
		stop()
		wg.Wait()
		err = errors.Join(err, failed)
	}()
	var streams [2]*viewer.Stream // encrypted, clear
	for i, path := range []string{
		"/" + live.PlaybackIDs[1].ID + ".m3u8?token=" + token, "/" + live.PlaybackIDs[0].ID + ".m3u8",
	} {
		if streams[i], err = tune(ctx, s.http, path); err != nil {
			return err
		}
		defer streams[i].Close()
	}
	b.drmLatency(ctx, streams, &stamps)
	segment := streams[1].Playlist().Segments[0].URI
	return b.drmCost(ctx, client, s, [2]string{
		viewer.Resolve(streams[0].URL(), segment), viewer.Resolve(streams[1].URL(), segment),
	})
}

// drmStream makes a live stream with two playback IDs: one public, one with the policy drm.
func (b *bench) drmStream(ctx context.Context, s *millrace) (live liveStream, err error) {
	out, err := exec.CommandContext(ctx, b.binary, "drm-configuration", "create", "--name", "bench", "--clear-key",
		"--data-dir", s.data).Output()
	if err != nil {
		return live, fmt.Errorf("make DRM configuration: %w", err)
	}
	c := s.client()
	defer c.Close()
	err = call(c, "POST", "/video/v1/live-streams", fmt.Sprintf(
		`{"advanced_playback_policies":[{"policy":"public"},{"policy":"drm","drm_configuration_id":%q}],"latency_mode":"low"}`, strings.TrimSpace(string(out)),
	), &live)
	if err == nil && len(live.PlaybackIDs) != 2 {
		err = errors.New("live stream without two playback IDs")
	}
	return live, err
}

// drmLatency has one viewer of each at the same time.
func (b *bench) drmLatency(ctx context.Context, streams [2]*viewer.Stream, stamps *encoder.Stamps) {
	watching, enough := context.WithTimeout(ctx, b.window)
	defer enough()
	var found [2]waits
	var wg sync.WaitGroup
	for i, stream := range streams {
		stream.Skip()
		wg.Go(func() {
			w := &found[i]
			w.missed += stream.Follow(watching, func(seen viewer.Seen) {
				sent, ok := stamps.Last(seen.Body) // the mark is no part of a slice, and stays clear
				if !ok {
					w.missed++
					return
				}
				w.arrived = append(w.arrived, milliseconds(seen.Arrived.Sub(sent)))
			})
		})
	}
	wg.Wait()
	b.out.begin("DRM: encoder's last byte of a frame to its part at a viewer, one viewer of each", "clear")
	for _, q := range []struct {
		name string
		q    float64
		goal string
	}{{"p50", 0.5, ""}, {"p95", 0.95, "at most 1 ms more"}, {"max", 1, ""}} {
		b.out.pair("blocking reload then part, "+q.name, "ms", percentile(found[0].arrived, q.q),
			percentile(found[1].arrived, q.q), q.goal)
	}
	b.out.note("parts %d and %d, missed %d and %d", len(found[0].arrived), len(found[1].arrived), found[0].missed,
		found[1].missed)
}

// drmCost asks for one segment by both paths in turns. It is encrypted for the first request, and kept.
func (b *bench) drmCost(ctx context.Context, client string, s *millrace, paths [2]string) error {
	b.out.begin("DRM: the same segment over TLS, 16 connections with 4 requests each at a time", "clear")
	for _, version := range []string{"h2", "http/1.1"} {
		var spent [2]time.Duration
		var requests, rate [2]float64
		for n := range drmTurns {
			for k := range paths {
				i := (k + n) % 2 // neither is always the first
				before, err1 := proc.Read(s.p.PID())
				did, fast, err2 := h2load(ctx, client, "https://"+s.https+paths[i], version)
				after, err3 := proc.Read(s.p.PID())
				if err := errors.Join(err1, err2, err3); err != nil {
					return err
				}
				spent[i], requests[i], rate[i] = spent[i]+after.CPU-before.CPU, requests[i]+did, rate[i]+fast/drmTurns
			}
		}
		cost := func(i int) float64 { return float64(spent[i].Microseconds()) / requests[i] }
		b.out.pair("segment, "+version, "req/s", rate[0], rate[1], "")
		b.out.pair("segment, "+version, "µs CPU/req", cost(0), cost(1), "at most 2")
	}
	return nil
}
