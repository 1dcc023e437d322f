package browser_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Eyevinn/mp4ff/mp4"

	"millrace/internal/fault"
	"millrace/internal/media/captions"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/packager"
	"millrace/internal/media/playback"
	"millrace/internal/media/slate"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
	"millrace/test/origin"
)

// stream is a live stream of the service's own slate writer, packager and live edge: a clip that is sent over and over.
// What was live before the test began is sent at once, so that a stream is as old as wanted.
type stream struct {
	t       testing.TB
	edge    *window.Edge
	configs []frame.Config
	media   []frame.Frame
	long    time.Duration // of the file
	began   time.Time

	breaks []time.Duration // when the encoder reconnected before the test began, since the stream began
	cuts   []time.Duration // after which time of its own each publication is cut off, and another begins at once

	// away reports whether the encoder leaves out what it has of a kind at a time of its clock; nil: nothing.
	away    func(k frame.Kind, at time.Duration) bool
	noSlate bool
	uneven  bool // the pictures come at a variable rate

	writer *slate.Writer
	cutter *packager.Packager
	out    *slate.Publication

	next int           // frame of the file
	turn time.Duration // the clock of the file's first frame, this time
	zero time.Time     // when the clock was at 0
	do   chan func()   // what is done to it while it is live, between two sendings
	end  func()        // ends the stream, once
	over chan struct{} // closed when nothing is sent any more
}

// newStream makes a low-latency stream that began some time ago and goes on until the test is over. breakAfter: the
// encoder reconnects once, so much later than now. before: what is done to it before anything is sent.
func newStream(t testing.TB, clip origin.Clip, age, breakAfter time.Duration, before ...func(*stream)) *stream {
	t.Helper()
	s := &stream{t: t, long: time.Duration(clip.Seconds) * time.Second, began: time.Now().Add(-age)}
	s.zero = s.began
	s.do, s.over = make(chan func()), make(chan struct{})
	s.configs = append(s.configs, configOf(t, frame.Video, clip.Video), configOf(t, frame.Audio, clip.Audio))
	s.media = slices.Concat(s.frames(frame.Video, clip.Video), s.frames(frame.Audio, clip.Audio))
	slices.SortStableFunc(s.media, func(a, b frame.Frame) int { return cmp.Compare(a.DTS, b.DTS) })
	s.edge = window.New(window.Options{
		Media: "media", Store: nowhere{}, Recorder: nowhere{}, Logger: slog.New(slog.DiscardHandler),
		Mode: window.Mode{Low: true, Leading: 7, Listed: 30 * time.Second, InMemory: 1000},
	})
	for _, do := range before {
		do(s)
	}
	if s.uneven {
		s.shake()
	}
	s.writer = slate.New(slate.Options{
		Open: s.open, Stands: func(time.Time) {}, Now: time.Now,
		Lasts: func() time.Duration { return 0 }, Sooner: func() {},
		Limit:  func() time.Duration { return s.edge.PartLimit(timeline.MainVideo) },
		Broken: func(err error) { t.Error(err) },
	})
	s.writer.Allow(!s.noSlate)
	s.begin()
	for _, at := range s.breaks {
		s.send(s.began.Add(at))
		s.reconnect(s.began.Add(at))
	}
	s.send(time.Now())
	stop := make(chan struct{})
	if breakAfter > 0 {
		s.cuts = append(s.cuts, age+breakAfter)
	}
	go s.run(stop)
	s.end = sync.OnceFunc(func() { close(stop); <-s.over })
	t.Cleanup(s.end)
	return s
}

// spoken is a text rendition.
const spoken = "t"

// speak adds a text rendition that says in each second which it is, from the recording's first one on.
func speak(s *stream) { s.speakBut(0, 0) }

// speakBut is silent from one second to another.
func (s *stream) speakBut(silent, until int) {
	s.edge.Texts().Add(spoken, false)
	for n := range 600 {
		if n >= silent && n < until {
			continue
		}
		from := time.Duration(n) * time.Second
		if !s.edge.Texts().Publish(spoken, captions.Cue{
			Start: from, End: from + 900*time.Millisecond, Text: saying(n),
		}) {
			s.t.Errorf("%s is not taken", saying(n))
		}
	}
}

func saying(second int) string { return fmt.Sprintf("it is second %d.", second) }

// run sends what is live.
func (s *stream) run(stop chan struct{}) {
	defer close(s.over)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case do := <-s.do:
			do()
		case now := <-tick.C:
			for len(s.cuts) > 0 && !s.zero.Add(s.cuts[0]).After(now) {
				at := s.zero.Add(s.cuts[0])
				s.send(at)
				s.cuts = s.cuts[1:]
				s.reconnect(at)
			}
			s.send(now)
		}
	}
}

// cutOff has the encoder reconnect from now on: after so many pictures of the next group of pictures, and then after so
// many of each publication. It gives the time of the last reconnect.
func (s *stream) cutOff(pictures ...int) time.Time {
	last := make(chan time.Time, 1)
	s.do <- func() {
		const group = origin.GOPSeconds * time.Second
		after := time.Since(s.zero).Truncate(group) + group
		at := s.zero
		for _, n := range pictures {
			after += time.Duration(n)*time.Second/origin.FrameRate + time.Millisecond
			s.cuts = append(s.cuts, after)
			at, after = at.Add(after), 0
		}
		last <- at
	}
	return <-last
}

// open begins a stretch of the recording.
func (s *stream) open(still bool, _ time.Time) slate.Output {
	stands := s.edge.Standing()
	o := packager.Options{
		Edge: s.edge, Segment: 2 * time.Second, Part: 290 * time.Millisecond, At: stands.At, Began: stands.Began,
		Slate: still,
	}
	for i, r := range stands.Renditions {
		o.Renditions = append(o.Renditions, packager.Rendition{RenditionInfo: r, Next: stands.Next[i]})
	}
	if s.cutter != nil {
		o.Lag = s.cutter.Lag()
	}
	s.cutter = packager.New(o)
	return s.cutter
}

// reconnect ends the publication and begins another one.
func (s *stream) reconnect(now time.Time) {
	if err := s.out.Close(nil); err != nil {
		s.t.Error(err)
	}
	s.zero = now
	s.begin()
}

// awaitListed waits until the stream has a multivariant playlist. Before, it is answered 412: a page may ask again, as
// the watch page does, but players alone give up.
func (s *stream) awaitListed(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		if _, err := s.Multivariant(t.Context(), playback.Clip{}); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no segment is whole within %v", patience)
		}
	}
}

// begin begins a publication.
func (s *stream) begin() {
	s.out, s.next, s.turn = s.writer.Attach(), 0, 0
	for _, c := range s.configs {
		if err := s.out.Configure(c); err != nil {
			s.t.Error(err)
		}
	}
	if err := s.out.Rate(origin.FrameRate, !s.uneven); err != nil {
		s.t.Error(err)
	}
}

// send sends what was live until then.
func (s *stream) send(until time.Time) {
	for {
		f := s.media[s.next]
		f.DTS, f.PTS = f.DTS+s.turn, f.PTS+s.turn
		f.Received = s.zero.Add(f.DTS + f.Duration)
		if f.Received.After(until) {
			return
		}
		if s.away == nil || !s.away(f.Kind, f.DTS) {
			if err := s.out.Write(f); err != nil {
				s.t.Error(err)
			}
		}
		if s.next++; s.next == len(s.media) {
			s.next, s.turn = 0, s.turn+s.long
		}
	}
}

// configOf reads a track's parameters.
func configOf(t testing.TB, k frame.Kind, from origin.Track) frame.Config {
	t.Helper()
	f, err := mp4.DecodeFile(bytes.NewReader(from.Init))
	if err != nil {
		t.Fatal(err)
	}
	stsd := f.Init.Moov.Trak.Mdia.Minf.Stbl.Stsd
	if k == frame.Audio {
		return frame.Config{
			Kind: k, Codec: frame.AAC, ASC: stsd.Mp4a.Esds.DecConfigDescriptor.DecSpecificInfo.DecConfig,
			SampleRate: 48000, Channels: 2,
		}
	}
	avc := stsd.AvcX.AvcC
	return frame.Config{
		Kind: k, Codec: frame.H264, SPS: avc.SPSnalus[0], PPS: avc.PPSnalus[0], Width: origin.Width,
		Height: origin.Height,
	}
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

// shake has each picture come at a time of its own, and nobody know how long it lasts. Those that refer to each other
// stay in order.
func (s *stream) shake() {
	by := func(at time.Duration) time.Duration {
		shift := [...]int{0, 6, -5, 7, 2, -6, 3, -3, 7, -5} // milliseconds
		n := int((at*origin.FrameRate + time.Second/2) / time.Second)
		return at + time.Duration(shift[n%len(shift)])*time.Millisecond
	}
	for i := range s.media {
		if f := &s.media[i]; f.Kind == frame.Video {
			f.DTS, f.PTS, f.Duration = by(f.DTS), by(f.PTS), 10*time.Millisecond
		}
	}
}

// nowhere keeps nothing: all that tests play is in memory.
type nowhere struct{}

func (nowhere) Put(context.Context, string, io.Reader) error   { return nil }
func (nowhere) Link(context.Context, string, *os.File) error   { return nil }
func (nowhere) Record(context.Context, []timeline.Entry) error { return nil }

// Open implements playback.Source: every playback ID leads here.
func (s *stream) Open(context.Context, playback.Request) (playback.Presentation, playback.Permit, error) {
	return s, playback.Permit{}, nil
}

// Media implements playback.Presentation.
func (s *stream) Media() string { return "media" }

func (*stream) Began() time.Time { return time.Time{} }

// Multivariant implements playback.Presentation.
func (s *stream) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	renditions, err := s.edge.Describe()
	if err != nil {
		return nil, fault.New(fault.NotReady, "not yet")
	}
	v := hls.Variant{
		Audio: "audio", URI: hls.PlaylistURI("v"), Width: origin.Width, Height: origin.Height,
		FrameRate: origin.FrameRate,
	}
	for _, l := range renditions {
		v.Bandwidth += int64(l.Peak)
		v.Codecs = append(v.Codecs, l.Inits[0].Codec)
		v.NoCaptions = v.NoCaptions || l.NoCaptions
	}
	sound := hls.Rendition{
		Type: "AUDIO", GroupID: "audio", Name: "Default", Default: true, Channels: 2, URI: hls.PlaylistURI("a"),
	}
	all := []hls.Rendition{sound}
	if s.edge.Texts().Has(spoken) {
		v.Subtitles = "text"
		all = append(all, hls.Rendition{
			Type: "SUBTITLES", GroupID: v.Subtitles, Name: "Seconds", Language: "en", Autoselect: true,
			URI: hls.PlaylistURI(spoken),
		})
	}
	return &hls.Multivariant{Renditions: all, Variants: []hls.Variant{v}}, nil
}

// Playlist implements playback.Presentation.
func (s *stream) Playlist(
	ctx context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	reload := window.Reload{MSN: r.MSN, Part: r.Part, Skip: r.Skip, TextHoldBack: r.TextHoldBack}
	data, err := s.edge.Playlist(ctx, rendition, reload, compressed)
	return playback.Text{Data: data, MaxAge: 1}, playbackError(err)
}

// Chunk implements playback.Presentation.
func (s *stream) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	var at window.Location
	var err error
	if rendition == spoken {
		data, terr := s.edge.Texts().Segment(ctx, rendition, r.MSN)
		return playback.Body{Data: data}, playbackError(terr)
	}
	switch {
	case r.Init >= 0:
		at, err = s.edge.ReadInit(rendition, r.Init)
	case r.Part >= 0:
		at, err = s.edge.ReadPart(ctx, rendition, r.MSN, r.Part)
	default:
		at, err = s.edge.ReadSegment(ctx, rendition, r.MSN)
	}
	return playback.Body{Data: at.Data, Init: at.Init, Start: at.Start}, playbackError(err)
}

// Pictures implements playback.Presentation.
func (s *stream) Pictures(context.Context) ([]hls.Picture, error) { return nil, nil }

// Covers implements playback.Presentation.
func (s *stream) Covers(_ context.Context, rendition string, r hls.Resource, c playback.Clip) (bool, error) {
	return s.edge.Covers(rendition, r, hls.Clip{Begin: c.Begin, End: c.End}), nil
}

func playbackError(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.NotFound, err, "it is not there")
}

// Description implements playback.Presentation. Each stream has a title, so that its playlist names all that one can.
func (s *stream) Description() playback.Description { return playback.Description{Title: "A stream"} }

// Tiles implements playback.Presentation.
func (s *stream) Tiles(context.Context, playback.Clip) (*hls.Tiles, error) {
	return nil, fault.New(fault.NotFound, "there are no images for trick play")
}

// File implements playback.Presentation.
func (s *stream) File(context.Context, string) (playback.File, error) {
	return playback.File{}, fault.New(fault.NotFound, "there is no file")
}

// Earlier implements playback.Presentation.
func (s *stream) Earlier(context.Context, string) (playback.Presentation, error) {
	return nil, fault.New(fault.NotFound, "there is no earlier broadcast")
}

// Master implements playback.Source.
func (s *stream) Master(context.Context, string, string, string) (playback.File, error) {
	return playback.File{}, fault.New(fault.NotFound, "there is no asset")
}

// Sidecar implements playback.Presentation.
func (s *stream) Sidecar(context.Context, string) (playback.Body, error) {
	return playback.Body{}, fault.New(fault.NotFound, "there is none")
}

// Image implements playback.Presentation.
func (s *stream) Image(context.Context, string, string, string) (playback.Image, error) {
	return playback.Image{}, fault.New(fault.NotFound, "there is none")
}
