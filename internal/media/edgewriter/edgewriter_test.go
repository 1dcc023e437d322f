package edgewriter

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/slate"
	"millrace/internal/media/timeline"
)

// painter makes stills of one picture of H.264, and decodes images: one is a byte of colour, as far as it cares.
type painter struct {
	Stills

	stills, decodes atomic.Int64
	frames          int   // of the last still
	refuses         error // what it says of images
	held            chan struct{}
}

func (p *painter) Still(_ context.Context, job encode.StillArgs, output func(io.Reader) error) error {
	p.stills.Add(1)
	p.frames = job.Frames
	sps := []byte{
		0x67, 0x42, 0xc0, 0x1e, 0xda, 0x02, 0x80, 0xbf, 0xe5, 0xc0, 0x44, 0, 0, 3, 0, 4, 0, 0, 3, 0, 0xf0, 0x3c, 0x58,
		0xba, 0x80,
	}
	head, err := cmaf.Init(frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: []byte{0x68, 0xce, 0x0f, 0x2c, 0x80},
		Width: 640, Height: 360,
	}, 90000)
	if err != nil {
		return err
	}
	sample := cmaf.Sample{Duration: 3000, Sync: true, Data: []byte{0, 0, 0, 4, 0x65, 0x88, 0x84, 0}}
	return output(bytes.NewReader(cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, []cmaf.Sample{sample})))
}

func (p *painter) Image(ctx context.Context, _ []byte) (*image.NRGBA, error) {
	p.decodes.Add(1)
	if p.held != nil {
		select {
		case <-p.held:
		case <-ctx.Done():
		}
	}
	return image.NewNRGBA(image.Rect(0, 0, 2, 2)), p.refuses
}

func anImage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestStills: the default picture is encoded once for all broadcasts of a shape, an owner's each time; both are a whole
// group of pictures long.
func TestStills(t *testing.T) {
	t.Parallel()
	e := &painter{}
	p := NewPictures(e)
	shape := slate.Shape{Codec: frame.H264, Width: 640, Height: 360, FPS: 30}
	other := shape
	other.FPS = 25
	for i, tt := range []struct {
		shape slate.Shape
		group time.Duration
		data  []byte
		made  int64 // so far
		long  int   // frames of the last that was made
	}{
		{shape, 2 * time.Second, nil, 1, 60},
		{shape, 2 * time.Second, nil, 1, 60},
		{shape, 4 * time.Second, nil, 2, 120},
		{other, 4 * time.Second, nil, 3, 100},
		{shape, 2 * time.Second, anImage(t), 4, 60},
		{shape, 2 * time.Second, anImage(t), 5, 60},
		{shape, 2 * time.Second, nil, 5, 60},
	} {
		s, err := p.still(t.Context(), tt.shape, tt.group, tt.data)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if e.stills.Load() != tt.made || e.frames != tt.long || s.FPS != tt.shape.FPS || len(s.Samples) != 1 {
			t.Errorf("%d: %d are made, the last of %d frames; %d pictures at %v", i, e.stills.Load(), e.frames,
				len(s.Samples), s.FPS)
		}
	}
	for i := range maxStills + 1 {
		if _, err := p.still(t.Context(), shape, time.Duration(10+i)*time.Second, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.made); n > maxStills {
		t.Errorf("%d are kept, %d at most", n, maxStills)
	}
}

// TestOwnersImage: what can't be shown is refused and says why; a trouble of this machine is none of the image.
func TestOwnersImage(t *testing.T) {
	t.Parallel()
	away := errors.New("the encoder is away")
	for name, tt := range map[string]struct {
		data    []byte
		refuses error
		want    error
		says    string
		decodes int64
	}{
		"usable":             {anImage(t), nil, nil, "", 1},
		"no image":           {[]byte("words"), nil, slate.ErrImage, "", 0},
		"no encoder likes":   {anImage(t), fault.New(fault.Invalid, "no end"), slate.ErrImage, "no end", 1},
		"nobody can look at": {anImage(t), away, away, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &painter{refuses: tt.refuses}
			err := NewPictures(e).check(t.Context(), tt.data)
			if !errors.Is(err, tt.want) || tt.says != "" && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if errors.Is(tt.want, away) && errors.Is(err, slate.ErrImage) {
				t.Errorf("the image is said to be at fault: %v", err)
			}
			if e.decodes.Load() != tt.decodes {
				t.Errorf("it was decoded %d times", e.decodes.Load())
			}
		})
	}
}

// TestOneImageAtATime: however many streams begin at once, one image is in memory; who does not want to wait leaves.
func TestOneImageAtATime(t *testing.T) {
	t.Parallel()
	data := anImage(t)
	synctest.Test(t, func(t *testing.T) {
		e := &painter{held: make(chan struct{})}
		p := NewPictures(e)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		done := make(chan error, 3)
		for range cap(done) {
			go func() { done <- p.check(t.Context(), data) }()
		}
		synctest.Wait()
		go func() { gone <- p.check(ctx, data) }()
		synctest.Wait()
		if n := e.decodes.Load(); n != 1 {
			t.Errorf("%d images are decoded at once", n)
		}
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who left was told %v", err)
		}
		close(e.held)
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := e.decodes.Load(); n != 3 {
			t.Errorf("%d images were decoded", n)
		}
	})
}

// TestRecordedConfigs: slate goes on as what an encoder sent last, whatever stood behind it; silence is made of those
// codecs that it can be made of.
func TestRecordedConfigs(t *testing.T) {
	t.Parallel()
	chunks := []timeline.Chunk{{Init: 0}, {Init: 1}, {Init: 2}, {Init: 0, Gap: true}}
	marks := []timeline.Mark{{}, {}, {Slate: true}, {}}
	of := func(id string, kind frame.Kind, inits ...timeline.Init) *timeline.Timeline {
		return &timeline.Timeline{Marks: marks, Renditions: []*timeline.Rendition{{
			RenditionInfo: timeline.RenditionInfo{ID: id, Kind: kind}, Inits: inits, Chunks: chunks,
		}}}
	}
	video := func(codec string, width int) timeline.Init {
		return timeline.Init{Codec: codec, Width: width, Height: 10}
	}
	sound := func(codec string, channels int) timeline.Init {
		return timeline.Init{Codec: codec, SampleRate: 48000, Channels: channels}
	}
	sounds := func(last string) *timeline.Timeline { // that an encoder sent; what stands behind it is slate
		return of(timeline.MainAudio, frame.Audio, sound("mp4a.40.2", 1), sound(last, 2), sound("opus", 1))
	}
	nothing := &timeline.Rendition{RenditionInfo: timeline.RenditionInfo{ID: timeline.MainVideo}}
	old, newer, slated := video("avc1.640028", 1), video("hvc1.1.6.L93.90", 2), video("avc1.640028", 3)
	for name, tt := range map[string]struct {
		t        *timeline.Timeline
		codec    frame.Codec // empty: nothing is known
		width    int
		channels int
	}{
		"nothing":     {t: nil},
		"the picture": {t: of(timeline.MainVideo, frame.Video, old, newer, slated), codec: frame.HEVC, width: 2},
		"AAC":         {t: sounds("mp4a.40.2"), codec: frame.AAC, channels: 2},
		"Opus":        {t: sounds("opus"), codec: frame.Opus, channels: 2},
		"another":     {t: sounds("vorbis")},
		"no media":    {t: &timeline.Timeline{Renditions: []*timeline.Rendition{nothing}}},
	} {
		got := recordedConfigs(tt.t)
		if tt.codec == "" {
			if len(got) != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Codec != tt.codec || got[0].Width != tt.width || got[0].Channels != tt.channels {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
