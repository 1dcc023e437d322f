package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
	"millrace/internal/media/watching"
)

// A real 320x180 High profile SPS and PPS of x264, AAC-LC 8 kHz mono, and the beginning of a picture.
var (
	sps = []byte{ //nolint:gochecknoglobals // bytes that are never changed
		0x67, 0x64, 0x00, 0x0d, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9e, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
		0x03, 0x03, 0xc0, 0xf1, 0x42, 0x99, 0x60,
	}
	pps     = []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}                      //nolint:gochecknoglobals // likewise
	asc     = []byte{0x15, 0x88}                                              //nolint:gochecknoglobals // likewise
	picture = []byte{0, 0, 0, 8, 0x65, 0x88, 0x84, 0x00, 0x4f, 0x5d, 0xe7, 1} //nolint:gochecknoglobals // likewise
)

const (
	fps, keys  = 2, 4 // pictures a second, and from one key frame to the next
	soundEvery = 1024 * time.Second / 8000
	// begins is how many encoders connect in a second.
	begins = 50
	// asks is how often a viewer asks for something.
	asks = time.Second
	// slices of a second in which what is due is done.
	slice = 20 * time.Millisecond
)

// stream is a live stream with its encoder and the counters of its viewers.
type stream struct {
	live.Stream

	sink   ingest.Sink
	began  time.Time
	at     int // the node of its encoder
	frames int
	sounds int
	meters map[int]*metering.Counter // of each node where it is watched
}

func (s *stream) stop() { s.sink.Close(ingest.ErrEncoderEnded) }

// connect has more encoders connect, until there are so many.
func (f *fleet) connect(ctx context.Context, streams int) error {
	tick := time.NewTicker(time.Second / begins)
	defer tick.Stop()
	for i := len(f.streams); i < streams; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s, err := f.stream(ctx, i)
		if err != nil {
			return fmt.Errorf("connect encoder %d: %w", i, err)
		}
		f.mu.Lock()
		f.streams = append(f.streams, s)
		f.mu.Unlock()
	}
	return nil
}

func (f *fleet) stream(ctx context.Context, i int) (*stream, error) {
	s := &stream{at: i % len(f.nodes), meters: map[int]*metering.Counter{}}
	n := f.nodes[s.at]
	public := []playbackid.Policy{playbackid.Public}
	made, err := live.New(live.Options{Store: n.db.LiveStreams()}).Create(ctx, env, live.CreateInput{
		PlaybackPolicies: public, NewAsset: &assetopt.Options{PlaybackPolicies: public},
	}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("create live stream: %w", err)
	}
	began := time.Now()
	_, s.sink, err = n.live.Admit(ctx, ingest.Publication{
		Protocol: "rtmp", Key: made.StreamKey, Remote: netip.MustParseAddrPort("192.0.2.1:4711"), Encoder: "fleet",
	})
	if err = f.times.since("connect", began, err); err != nil {
		return nil, err
	}
	for _, c := range []frame.Config{
		{Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: pps, Width: 320, Height: 180},
		{Kind: frame.Audio, Codec: frame.AAC, ASC: asc, SampleRate: 8000, Channels: 1},
	} {
		if err = s.sink.Configure(c); err != nil {
			return nil, fmt.Errorf("configure encoder: %w", err)
		}
	}
	row, err := n.db.LiveStreams().Find(ctx, made.ID)
	if err != nil {
		return nil, fmt.Errorf("read live stream: %w", err)
	}
	for k := range min(f.plan.spread, len(f.nodes)) {
		at := (s.at + k) % len(f.nodes)
		s.meters[at] = f.nodes[at].meter.Counter(metering.Asset{
			ID: string(row.ActiveAsset), Environment: string(env), LiveStream: string(made.ID),
		})
	}
	s.Stream, s.began = row, time.Now()
	return s, nil
}

// run has encoders send, and viewers ask, at their own pace whatever becomes of it.
func (f *fleet) run(ctx context.Context) {
	for i := range f.nodes {
		f.load.Go(func() { f.every(ctx, func(now time.Time, _ int) { f.send(i, now) }) })
		f.load.Go(func() { f.every(ctx, func(now time.Time, part int) { f.watch(ctx, i, now, part) }) })
	}
}

// every calls do for each slice of each second, and notes by how much it is late.
func (f *fleet) every(ctx context.Context, do func(now time.Time, part int)) {
	due := time.Now()
	for part := 0; ; part = (part + 1) % int(time.Second/slice) {
		due = due.Add(slice)
		if wait := time.Until(due); wait > 0 {
			if pause(ctx, wait) != nil {
				return
			}
		} else {
			f.times.behind(-wait)
		}
		if ctx.Err() != nil {
			return
		}
		do(due, part)
	}
}

// here are the streams there are.
func (f *fleet) here() []*stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams
}

// send sends what is due of all encoders at a node.
func (f *fleet) send(at int, now time.Time) {
	for _, s := range f.here() {
		if s.at != at {
			continue
		}
		for {
			video := time.Duration(s.frames) * time.Second / fps
			audio := time.Duration(s.sounds) * soundEvery
			next := frame.Frame{Kind: frame.Audio, DTS: audio, PTS: audio, Key: true, Data: picture, Received: now}
			count := &s.sounds
			if video <= audio {
				key := s.frames%keys == 0
				next = frame.Frame{Kind: frame.Video, DTS: video, PTS: video, Key: key, Data: picture, Received: now}
				count = &s.frames
			}
			if s.began.Add(next.DTS).After(now) || s.sink.Write(next) != nil {
				break
			}
			*count++
		}
	}
}

// watch has the viewers at a node ask whose turn it is in this part of a second.
func (f *fleet) watch(ctx context.Context, at int, now time.Time, part int) {
	n, parts := f.nodes[at], int(asks/slice)
	for i, s := range f.here() {
		counter := s.meters[at]
		if counter == nil {
			continue
		}
		first := (at - s.at + len(f.nodes)) % len(f.nodes)
		for v := first; v < f.plan.viewers; v += len(s.meters) {
			if (i+v)%parts != part {
				continue
			}
			f.ask(ctx, n, s.PlaybackIDs[0].ID)
			counter.Add(metering.Tier720, asks)
			n.watched.Saw(string(s.PlaybackIDs[0].ID), viewer(i, v), asks, now)
		}
	}
}

// viewer is one of a stream.
func viewer(stream, number int) watching.Viewer {
	address := netip.AddrFrom4([4]byte{10, byte(stream >> 8), byte(stream), byte(number)})
	return watching.ViewerOf(address, strconv.Itoa(number))
}

// ask is a request of a viewer, as far as it may ask the database. It does not wait for others' requests.
func (f *fleet) ask(ctx context.Context, n *node, p id.Playback) {
	f.load.Go(func() {
		began := time.Now()
		_, _, err := n.shows.Open(ctx, playback.Request{PlaybackID: string(p)})
		if err == nil {
			f.times.note("request", time.Since(began))
		}
	})
}
