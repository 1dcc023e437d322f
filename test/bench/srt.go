package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"millrace/test/bench/encoder"
)

// listener is a server that takes SRT callers, encrypted.
type listener interface {
	server
	// call gives a new stream's listener, stream ID and passphrase, and the path of its playlist.
	call(latency string) (addr, streamID, passphrase, play string, err error)
}

// transport makes the transport stream that every SRT encoder sends: the clip of the others, as long as a measurement
// takes.
func (b *bench) transport(ctx context.Context) (*encoder.Stream, error) {
	if _, err := b.clip(ctx); err != nil {
		return nil, err
	}
	length := b.warmup + b.window + time.Duration(b.streams)*100*time.Millisecond + 30*time.Second
	path := filepath.Join(b.dir, fmt.Sprintf("clip-v1-%ds.ts", int(length.Seconds())))
	err := once(path, func(to string) error {
		return ffmpeg(ctx, "-stream_loop", "-1", "-i", filepath.Join(b.dir, "clip-v1.flv"), "-t",
			fmt.Sprint(length.Seconds()), "-c", "copy", "-f", "mpegts", to)
	})
	if err != nil {
		return nil, err
	}
	return encoder.ReadStream(path)
}

// calling publishes over SRT.
func calling(s listener, stream *encoder.Stream) publishing {
	return func(ctx context.Context) (string, func(context.Context) error, error) {
		addr, id, passphrase, play, err := s.call("low")
		if err != nil {
			return "", nil, err
		}
		c, err := encoder.Call(ctx, addr, id, passphrase)
		if err != nil {
			return "", nil, err
		}
		return play, func(ctx context.Context) error {
			defer c.Close()
			return c.Play(ctx, stream)
		}, nil
	}
}

// srt compares many encoders over SRT, as density does over RTMP.
func (b *bench) srt(ctx context.Context) error {
	stream, err := b.transport(ctx)
	if err != nil {
		return err
	}
	by := func(s server) publishing { return calling(s.(listener), stream) } //nolint:forcetypeassert // both are
	peer := rival{name: "MediaMTX", start: b.live, there: b.peer != "", how: "over SRT into LL-HLS, encrypted"}
	return b.compare(ctx, by, []rival{peer}, b.streams, 0, b.rounds)
}

// active measures how long it takes from the first datagram, or the TCP connection, until the API says that the stream
// is active.
func (b *bench) active(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	stream, err := b.transport(ctx)
	if err != nil {
		return err
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	b.out.begin("From connecting to active (GOP 2 s)", "-")
	for _, way := range []struct {
		name string
		by   publishing
	}{{"RTMP", sending(s, clip)}, {"SRT", calling(s, stream)}} {
		var took []float64
		for range max(3, b.rounds) {
			d, err := b.untilActive(ctx, s, way.by)
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			took = append(took, milliseconds(d))
		}
		b.out.alone(way.name+", median", "ms", median(took), "")
		b.out.alone(way.name+", worst", "ms", percentile(took, 1), "")
	}
	return nil
}

func (b *bench) untilActive(ctx context.Context, s *millrace, by publishing) (took time.Duration, err error) {
	begin := time.Now()
	_, play, err := by(ctx)
	if err != nil {
		return 0, err
	}
	playing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- play(playing) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	c := s.client()
	defer c.Close()
	for time.Since(begin) < 30*time.Second {
		var streams []liveStream
		if err := call(c, "GET", "/video/v1/live-streams?limit=1", "", &streams); err != nil { // newest first
			return 0, err
		}
		if len(streams) > 0 && streams[0].Status == "active" {
			return time.Since(begin), nil
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("the stream did not become active")
}
