package bridge

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/overlay"
	"millrace/internal/media/packager"
	"millrace/internal/media/slate"
	"millrace/internal/media/timeline"
)

// Stills encodes the slate's pictures; encode.Engine fits.
type Stills interface {
	Still(ctx context.Context, job encode.StillArgs, output func(mp4 io.Reader) error) error
	// Image decodes a PNG or a JPEG; fault.Invalid: it is damaged.
	Image(ctx context.Context, data []byte) (*image.NRGBA, error)
	Last(ctx context.Context, job encode.LastArgs, input func(context.Context, io.Writer) error, output func(mp4 io.Reader) error) error
}

// Images fetches images that somebody has named; its errors tell nobody's secrets.
type Images interface {
	Image(ctx context.Context, url string, maxBytes int64) ([]byte, error)
}

// fillers is what a broadcast's slate needs besides its writer.
type fillers struct {
	wake    chan struct{}      // one token: whether slate is wanted has changed, or what it is made of
	url     string             // of somebody's own image; empty: the default one is shown
	fresh   bool               // nothing was recorded before: a warning was not told yet
	asked   chan struct{}      // closed when the image is there, or will never be; nil before it was asked for
	image   []byte             // somebody's own; nil: the default
	cutter  *packager.Packager // of the open stretch, or the last one; the writer's
	working bool               // a still is being made
	failed  slate.Shape        // what none can be made for

	mu sync.Mutex // guards all from asked on but the cutter
}

// newFiller makes the edge's writer; before is what was recorded by an earlier process.
func (b *broadcast) newFiller(before *timeline.Timeline, now time.Time) *slate.Filler {
	_, part := cutOf(b.mode)
	f := slate.New(slate.Options{
		Open: b.open, Now: b.opt.Now, Broken: b.fillerBroke,
		Limit: func() time.Duration {
			if said := b.edge.PartLimit(timeline.MainVideo); said > 0 {
				return min(said, part)
			}
			return part
		},
	})
	b.fill.wake, b.fill.fresh, b.fill.url = make(chan struct{}, 1), before == nil, b.stream.Settings.ReconnectSlateURL
	if b.edge.Standing().Began {
		f.Resume(now, recordedConfigs(before)...)
	}
	return f
}

// open begins a stretch of the recording that goes on where the edge stands.
func (b *broadcast) open(still bool, started time.Time) slate.Output {
	stands := b.edge.Standing()
	segment, part := cutOf(b.mode)
	cutter := packager.Options{Edge: b.edge, Segment: segment, Part: part, At: stands.At, Began: stands.Began}
	for i, r := range stands.Lanes {
		cutter.Lanes = append(cutter.Lanes, packager.Lane{Rendition: r, Next: stands.Next[i]})
	}
	if b.fill.cutter != nil {
		cutter.Lag = b.fill.cutter.Lag()
	}
	b.edge.Slate(still)
	b.ledger.begin(still, started, stands.At)
	b.log.Debug("stretch begins", "slate", still, "at", stands.At)
	b.fill.cutter = packager.New(cutter)
	return b.fill.cutter
}

func (b *broadcast) fillerBroke(err error) {
	b.log.Error("slate broke", "error", err)
}

// allowSlate says whether slate is wanted by what the stream's row says.
func (b *broadcast) allowSlate(s live.Stream) {
	b.filler.Allow(s.Settings.Slate())
	b.refill()
}

// refill has the slate's goroutine look again.
func (b *broadcast) refill() {
	select {
	case b.fill.wake <- struct{}{}:
	default:
	}
}

// stopFiller ends what the edge's writer has open.
func (b *broadcast) stopFiller() {
	defer func() {
		if r := recover(); r != nil {
			b.log.Error("close recording", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	b.filler.Stop()
	b.full()
}

// runFiller is the goroutine that writes slate at the pace of real time, until ctx ends. A panic of what it writes to ends the broadcast,
// as an encoder's does.
func (b *broadcast) runFiller(ctx context.Context) {
	defer func() {
		if r := recover(); r != nil {
			broken := fmt.Errorf("write slate: panic: %v\n%s", r, debug.Stack())
			b.mail.post(func() { b.crash(broken) })
		}
	}()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.fill.wake:
		case <-alarm.C:
		}
		wait := b.filler.Tick()
		b.provide(ctx)
		if g, ok := b.filler.Gap(); ok {
			b.owner.wg.Go(func() { b.holdLast(ctx, g) })
			wait = b.filler.Tick()
		}
		alarm.Reset(wait)
	}
}

// provide sees to it that there is a still when slate is needed: the image is fetched with the first frames, and encoded once it is known
// what shape the stream has. What it takes runs in the background.
func (b *broadcast) provide(ctx context.Context) {
	shape, wants := b.filler.Wants()
	b.fill.mu.Lock()
	defer b.fill.mu.Unlock()
	if shape == (slate.Shape{}) || b.opt.Stills == nil {
		return
	}
	if b.fill.asked == nil {
		b.fill.asked = make(chan struct{})
		b.owner.wg.Go(func() { b.fetchImage(ctx) })
	}
	if !wants || b.fill.working || b.fill.failed == shape {
		return
	}
	b.fill.working = true
	b.owner.wg.Go(func() { b.makeStill(ctx, shape) })
}

// holdLast decodes the last picture, which is to stand when nothing comes. Where it can't be had the last key frame does.
func (b *broadcast) holdLast(ctx context.Context, g slate.Group) {
	var last *slate.Still
	defer func() {
		b.filler.Hold(g, last)
		b.refill()
	}()
	if b.opt.Stills == nil {
		return
	}
	shape := slate.Shape{Codec: g.Config.Codec, Width: g.Config.Width, Height: g.Config.Height}
	err := b.opt.Stills.Last(ctx, encode.LastArgs{Codec: shape.Codec, At: g.Last()},
		func(_ context.Context, w io.Writer) error { return g.MP4(w) },
		func(mp4 io.Reader) (err error) {
			last, err = slate.Read(mp4, shape)
			return err
		})
	if err != nil {
		last = nil
		b.log.DebugContext(ctx, "last picture can't be decoded, the last key frame stands instead", "codec", string(shape.Codec), "error", err)
	}
}

// imagePatience bounds the download of an image: a slate that is late is none.
const imagePatience = 20 * time.Second

// fetchImage gets the owner's image. Where it can not be used the default one is shown, and both stream and asset are told.
func (b *broadcast) fetchImage(ctx context.Context) {
	defer func() { close(b.fill.asked) }()
	if b.fill.url == "" {
		return
	}
	try, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	data, err := b.opt.Images.Image(try, b.fill.url, slate.MaxBytes)
	if err == nil {
		if err = b.owner.check(try, data); err == nil {
			b.fill.mu.Lock()
			b.fill.image = data
			b.fill.mu.Unlock()
			return
		}
	}
	if ctx.Err() != nil {
		return
	}
	b.log.WarnContext(ctx, "slate image can't be used, showing the default one", "error", err)
	if b.fill.fresh {
		message := fmt.Sprintf("the custom slate image can't be used, the default one is shown in this recording: %s", explain(err))
		b.mail.post(func() { b.warn(live.CustomSlateUnavailable, message) })
	}
}

// makeStill encodes the slate for a shape.
func (b *broadcast) makeStill(ctx context.Context, shape slate.Shape) {
	<-b.fill.asked // fetchImage always ends
	b.fill.mu.Lock()
	data := b.fill.image
	b.fill.mu.Unlock()
	segment, _ := cutOf(b.mode)
	still, err := b.owner.still(ctx, shape, segment, data)
	b.fill.mu.Lock()
	b.fill.working = false
	if err != nil {
		b.fill.failed = shape
	}
	b.fill.mu.Unlock()
	switch {
	case err == nil:
		b.filler.Use(still)
	case ctx.Err() == nil:
		b.log.WarnContext(ctx, "slate can't be encoded, the last picture is shown instead", "codec", string(shape.Codec), "error", err)
	}
	b.refill()
}

// still encodes a slate: of the image, or the default one, which is kept for the next stream of the same shape.
func (l *Live) still(ctx context.Context, shape slate.Shape, group time.Duration, data []byte) (*slate.Still, error) {
	kind := stillKind{shape, group}
	if data == nil {
		if s := l.stills.get(kind); s != nil {
			return s, nil
		}
	}
	picture, err := l.draw(ctx, data, max(shape.Width&^1, 2), max(shape.Height&^1, 2)) // 4:2:0 has no odd sizes
	if err != nil {
		return nil, err
	}
	job := encode.StillArgs{Codec: shape.Codec, Picture: picture, FPS: shape.FPS, Frames: max(int(math.Round(group.Seconds()*shape.FPS)), 1)}
	var made *slate.Still
	err = l.opt.Stills.Still(ctx, job, func(mp4 io.Reader) error {
		made, err = slate.Read(mp4, shape)
		return err
	})
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, errors.New("encode slate: nothing came out")
	}
	if data == nil {
		l.stills.put(kind, made)
	}
	return made, nil
}

// draw gives the slate's picture.
func (l *Live) draw(ctx context.Context, data []byte, w, h int) (out *image.RGBA, err error) {
	if data == nil {
		return slate.Default(w, h)
	}
	err = l.decoded(ctx, data, func(img image.Image) { out = slate.Fit(img, w, h) })
	return out, err
}

// check finds out whether an image can be used.
func (l *Live) check(ctx context.Context, data []byte) error {
	return l.decoded(ctx, data, func(image.Image) {})
}

// decoded has an image used. Images are large: there is one at a time, for as long as it is in memory.
func (l *Live) decoded(ctx context.Context, data []byte, use func(image.Image)) error {
	if err := slate.Check(data); err != nil || l.opt.Stills == nil {
		return err
	}
	select {
	case l.decoding <- struct{}{}:
		defer func() { <-l.decoding }()
	case <-ctx.Done():
		return fmt.Errorf("wait to decode slate image: %w", context.Cause(ctx))
	}
	img, err := l.opt.Stills.Image(ctx, data)
	switch {
	case fault.KindOf(err) == fault.Invalid && err != nil:
		return fmt.Errorf("%w: it is damaged", slate.ErrImage)
	case err != nil:
		return err
	}
	use(img)
	return nil
}

// explain says why an image can't be used, for its owner.
func explain(err error) string {
	if said := fault.Messages(err); len(said) > 0 {
		return strings.Join(said, "; ")
	}
	if errors.Is(err, slate.ErrImage) || errors.Is(err, overlay.ErrImage) {
		return err.Error()
	}
	return "it can't be fetched"
}

// warn tells both the stream and the asset that an image of the owner's is not shown.
func (b *broadcast) warn(kind, message string) {
	now := b.opt.Now()
	b.tell("image unavailable", func(ctx context.Context) error {
		return b.opt.Streams.Warn(ctx, b.id, b.epoch, live.Warning{Type: kind, Message: message}, now)
	})
	b.tell("image unavailable", func(ctx context.Context) error {
		return b.opt.Assets.Warn(ctx, b.asset.ID, asset.Warning{Type: kind, Message: message}, now)
	})
}

// stillKind is what a default slate is made for.
type stillKind struct {
	shape slate.Shape
	group time.Duration
}

// stills are default slates that were made.
type stills struct {
	mu   sync.Mutex
	made map[stillKind]*slate.Still
}

const maxStills = 16

func (s *stills) get(k stillKind) *slate.Still {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[k]
}

func (s *stills) put(k stillKind, still *slate.Still) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || len(s.made) >= maxStills {
		s.made = map[stillKind]*slate.Still{}
	}
	s.made[k] = still
}

// recordedConfigs tells what an earlier process has recorded, as far as slate needs to know it: a picture's shape, and the parameters of
// the sound where a timeline says enough of them.
func recordedConfigs(t *timeline.Timeline) []frame.Config {
	var out []frame.Config
	if t == nil {
		return nil
	}
	for _, l := range t.Lanes {
		in, ok := newestInit(t, l)
		switch {
		case !ok:
		case l.ID == timeline.MainVideo:
			out = append(out, frame.Config{
				Kind: frame.Video, Codec: codecOf(in.Codec), Width: in.Width, Height: in.Height, FrameRate: in.FrameRate,
			})
		case l.ID == timeline.MainAudio:
			if c, ok := recordedSound(codecOf(in.Codec), in.SampleRate, in.Channels); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// recordedSound makes the parameters of silence of a codec: not those that were recorded, but such that say the same of it.
func recordedSound(codec frame.Codec, rate, channels int) (frame.Config, bool) {
	c, err := frame.Config{Kind: frame.Audio, Codec: codec, SampleRate: rate, Channels: channels}, error(nil)
	switch codec {
	case frame.AAC:
		c, err = aac.TrackConfig(aac.LC(rate, channels))
	case frame.Opus:
		if c.Header, err = opus.Header(channels); err == nil {
			c.Header[2], c.Header[3] = 0, 0 // nothing to be skipped: an encoder's delay is no part of silence
			c, err = opus.TrackConfig(c.Header)
		}
	case frame.FLAC:
		c, err = flac.TrackConfig(flac.Info(rate, channels))
	case frame.AC3:
		c.Header = ac3.Specific(rate, channels)
	case frame.MP3, frame.H264, frame.HEVC, frame.AV1, frame.VP9, frame.VP8:
	}
	_, ok := slate.SilenceOf(c)
	return c, ok && err == nil
}

// codecOf is the codec of an RFC 6381 name, as far as slate can stand in for it.
func codecOf(name string) frame.Codec {
	for prefix, c := range map[string]frame.Codec{
		"avc1.": frame.H264, "hvc1.": frame.HEVC, "hev1.": frame.HEVC, "av01.": frame.AV1, "vp09.": frame.VP9,
		"mp4a.40.2": frame.AAC, "mp4a.40.5": frame.AAC, "mp4a.40.29": frame.AAC, "opus": frame.Opus, "Opus": frame.Opus,
		"fLaC": frame.FLAC, "flac": frame.FLAC, "ac-3": frame.AC3, "mp4a.40.34": frame.MP3,
	} {
		if strings.HasPrefix(name, prefix) {
			return c
		}
	}
	return ""
}

// newestInit is the init segment of a lane's last media that an encoder has sent.
func newestInit(t *timeline.Timeline, l *timeline.Lane) (timeline.Init, bool) {
	for i := len(l.Chunks) - 1; i >= 0; i-- {
		if c := &l.Chunks[i]; !c.Gap && !t.Marks[i].Slate {
			return l.Inits[c.Init], true
		}
	}
	return timeline.Init{}, false
}
