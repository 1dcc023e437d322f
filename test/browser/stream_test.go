package browser_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/Eyevinn/mp4ff/mp4"

	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/packager"
	"millrace/internal/media/playback"
	"millrace/internal/media/slate"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
	"millrace/test/origin"
)

// stream is a live stream of the service's own filler, packager and live edge: a clip that is sent over and over. What was live before the test began
// is sent at once, so that a stream is as old as wanted.
type stream struct {
	t       *testing.T
	edge    *window.Edge
	configs []frame.Config
	tape    []frame.Frame
	long    time.Duration // of the tape

	filler *slate.Filler
	cutter *packager.Packager
	out    *slate.Publication

	next int           // frame of the tape
	turn time.Duration // the clock of the tape's first frame, this time
	zero time.Time     // when the clock was at 0
	over chan struct{} // closed when nothing is sent any more
}

// newStream makes a low-latency stream that began some time ago and goes on until the test is over. breakAfter: the encoder reconnects once, so
// much later than now.
func newStream(t *testing.T, clip origin.Clip, age, breakAfter time.Duration) *stream {
	t.Helper()
	s := &stream{t: t, long: time.Duration(clip.Seconds) * time.Second, zero: time.Now().Add(-age), over: make(chan struct{})}
	s.configs = append(s.configs, configOf(t, frame.Video, clip.Video), configOf(t, frame.Audio, clip.Audio))
	s.tape = slices.Concat(s.frames(frame.Video, clip.Video), s.frames(frame.Audio, clip.Audio))
	slices.SortStableFunc(s.tape, func(a, b frame.Frame) int { return cmp.Compare(a.DTS, b.DTS) })
	s.edge = window.New(window.Options{
		Media: "media", Store: nowhere{}, Recorder: nowhere{}, Logger: slog.New(slog.DiscardHandler),
		Mode: window.Mode{Low: true, Leading: 7, Listed: 30 * time.Second, InMemory: 1000},
	})
	s.filler = slate.New(slate.Options{
		Open: s.open, Now: time.Now, Limit: func() time.Duration { return s.edge.PartLimit(timeline.MainVideo) }, Broken: func(err error) { t.Error(err) },
	})
	s.filler.Allow(true)
	s.begin()
	s.send(time.Now())
	stop := make(chan struct{})
	go s.run(stop, time.Now().Add(breakAfter), breakAfter > 0)
	t.Cleanup(func() { close(stop); <-s.over })
	return s
}

// run sends what is live.
func (s *stream) run(stop chan struct{}, breaks time.Time, breaking bool) {
	defer close(s.over)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			if breaking && now.After(breaks) {
				breaking = false
				if err := s.out.Close(nil); err != nil {
					s.t.Error(err)
				}
				s.zero = now
				s.begin()
			}
			s.send(now)
		}
	}
}

// open begins a stretch of the recording.
func (s *stream) open(bool, time.Time) slate.Output {
	stands := s.edge.Standing()
	o := packager.Options{Edge: s.edge, Segment: 2 * time.Second, Part: 330 * time.Millisecond, At: stands.At, Began: stands.Began}
	for i, r := range stands.Lanes {
		o.Lanes = append(o.Lanes, packager.Lane{Rendition: r, Next: stands.Next[i]})
	}
	if s.cutter != nil {
		o.Lag = s.cutter.Lag()
	}
	s.cutter = packager.New(o)
	return s.cutter
}

// begin begins a publication.
func (s *stream) begin() {
	s.out, s.next, s.turn = s.filler.Attach(), 0, 0
	for _, c := range s.configs {
		if err := s.out.Configure(c); err != nil {
			s.t.Error(err)
		}
	}
	if err := s.out.Rate(origin.FrameRate, true); err != nil {
		s.t.Error(err)
	}
}

// send sends what was live until then.
func (s *stream) send(until time.Time) {
	for {
		f := s.tape[s.next]
		f.DTS, f.PTS = f.DTS+s.turn, f.PTS+s.turn
		f.Received = s.zero.Add(f.DTS + f.Duration)
		if f.Received.After(until) {
			return
		}
		if err := s.out.Write(f); err != nil {
			s.t.Error(err)
		}
		if s.next++; s.next == len(s.tape) {
			s.next, s.turn = 0, s.turn+s.long
		}
	}
}

// configOf reads a track's parameters.
func configOf(t *testing.T, k frame.Kind, from origin.Track) frame.Config {
	t.Helper()
	f, err := mp4.DecodeFile(bytes.NewReader(from.Init))
	if err != nil {
		t.Fatal(err)
	}
	stsd := f.Init.Moov.Trak.Mdia.Minf.Stbl.Stsd
	if k == frame.Audio {
		return frame.Config{Kind: k, Codec: frame.AAC, ASC: stsd.Mp4a.Esds.DecConfigDescriptor.DecSpecificInfo.DecConfig, SampleRate: 48000, Channels: 2}
	}
	avc := stsd.AvcX.AvcC
	return frame.Config{Kind: k, Codec: frame.H264, SPS: avc.SPSnalus[0], PPS: avc.PPSnalus[0], Width: origin.Width, Height: origin.Height}
}

// frames are a track's, as a session gives them: no picture is presented before it is decoded.
func (s *stream) frames(k frame.Kind, from origin.Track) []frame.Frame {
	var out []frame.Frame
	at := func(ticks int64) time.Duration {
		return time.Duration(ticks) * time.Second / time.Duration(from.Timescale)
	}
	early := int32(0)
	for _, x := range from.Samples {
		early = min(early, x.CompositionTimeOffset)
	}
	for _, x := range from.Samples {
		f := frame.Frame{Kind: k, Key: x.IsSync(), Data: x.Data}
		f.DTS, f.PTS = at(int64(x.DecodeTime)), at(int64(x.DecodeTime)+int64(x.CompositionTimeOffset)-int64(early))
		f.Duration = at(int64(x.DecodeTime)+int64(x.Dur)) - f.DTS
		if f.DTS < s.long {
			out = append(out, f)
		}
	}
	return out
}

// nowhere keeps nothing: all that tests play is in memory.
type nowhere struct{}

func (nowhere) Put(context.Context, string, io.Reader) error   { return nil }
func (nowhere) Link(context.Context, string, *os.File) error   { return nil }
func (nowhere) Record(context.Context, []timeline.Entry) error { return nil }

// Open implements playback.Source: every playback ID leads here.
func (s *stream) Open(context.Context, string, string) (playback.Presentation, error) { return s, nil }

// Media implements playback.Presentation.
func (s *stream) Media() string { return "media" }

// Private implements playback.Presentation.
func (s *stream) Private() bool { return false }

// Multivariant implements playback.Presentation.
func (s *stream) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	lanes, err := s.edge.Describe()
	if err != nil {
		return nil, fault.New(fault.NotReady, "not yet")
	}
	v := hls.Variant{Audio: "audio", URI: hls.PlaylistURI("v"), Width: origin.Width, Height: origin.Height, FrameRate: origin.FrameRate}
	for _, l := range lanes {
		v.Bandwidth += int64(l.Peak)
		v.Codecs = append(v.Codecs, l.Inits[0].Codec)
	}
	sound := hls.Rendition{Type: "AUDIO", GroupID: "audio", Name: "Default", Default: true, Channels: 2, URI: hls.PlaylistURI("a")}
	return &hls.Multivariant{Renditions: []hls.Rendition{sound}, Variants: []hls.Variant{v}}, nil
}

// Playlist implements playback.Presentation.
func (s *stream) Playlist(ctx context.Context, rendition string, r playback.Reload, compressed bool) (playback.Text, error) {
	data, err := s.edge.Playlist(ctx, rendition, window.Reload{MSN: r.MSN, Part: r.Part, Skip: r.Skip}, compressed)
	return playback.Text{Data: data, MaxAge: 1}, told(err)
}

// Chunk implements playback.Presentation.
func (s *stream) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	var at window.Place
	var err error
	switch {
	case r.Init >= 0:
		at, err = s.edge.ReadInit(rendition, r.Init)
	case r.Part >= 0:
		at, err = s.edge.ReadPart(ctx, rendition, r.MSN, r.Part)
	default:
		at, err = s.edge.ReadSegment(ctx, rendition, r.MSN)
	}
	return playback.Body{Data: at.Data}, told(err)
}

func told(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.NotFound, err, "it is not there")
}

// Sidecar implements playback.Presentation.
func (s *stream) Sidecar(context.Context, string) (playback.Body, error) {
	return playback.Body{}, fault.New(fault.NotFound, "there is none")
}

// Image implements playback.Presentation.
func (s *stream) Image(context.Context, string, string, string) (playback.Image, error) {
	return playback.Image{}, fault.New(fault.NotFound, "there is none")
}
