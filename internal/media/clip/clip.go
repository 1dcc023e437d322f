// Package clip cuts an excerpt out of a recording, exact to the picture and to the audio sample. Segments inside the
// excerpt are the recording's own, by reference. Only the segments at both ends are made: pictures that have lost the
// key frame that they depend on are encoded again, and so are audio packets that are only partly inside.
//
// It must never know HTTP, resources, or where objects are kept. Renditions are cut concurrently, in goroutines that
// end with Cut.
package clip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Encoder makes what can't be taken as it is; encode.Engine fits.
type Encoder interface {
	CutPicture(
		ctx context.Context, a encode.PictureCut, input func(io.Writer) error, output func(io.Reader) error,
	) error
	CutSound(ctx context.Context, a encode.SoundCut, input func(io.Writer) error, output func(io.Reader) error) error
}

// Cutter makes clips.
type Cutter struct {
	Source  func(l *timeline.Rendition) delivered.Source // the media of the recording
	Encoder Encoder
	// Put stores what is made; it is called from several goroutines.
	Put func(ctx context.Context, key string, data []byte) error
}

// The errors of cutting; their text is fit for the person who asked for the clip.
var (
	// ErrEmpty says that nothing is shown or heard in the stretch.
	ErrEmpty = errors.New("the clip would be empty")
	// ErrCodec says that the first pictures can't be encoded.
	ErrCodec = errors.New("a clip of this codec can only begin where a segment does")
)

// none is a place or an index that is not there.
const none = -1

// snap is by how much a time may miss a picture's own and still mean it, in seconds: times are often given in
// milliseconds.
const snap = 0.002

// Cut makes the clip of t that shows what t shows from second `from` up to `to`; its own objects have keys that begin
// with prefix. The result shares no memory that t changes later.
func (c *Cutter) Cut(
	ctx context.Context, t *timeline.Timeline, from, to float64, prefix string,
) (*timeline.Timeline, error) {
	x := &cut{Cutter: c, t: t, prefix: prefix, spans: t.Spans(), whole: from <= 0}
	if !x.find(from, to) {
		return nil, ErrEmpty
	}
	out := &timeline.Timeline{Target: t.Target}
	renditions := make([]*renditionCut, len(t.Renditions))
	for i, l := range t.Renditions {
		renditions[i] = x.rendition(l)
	}
	// The picture decides where exactly everything is cut.
	for _, lead := range []bool{true, false} {
		for _, y := range renditions {
			if y.src.Kind != frame.Video || (y.src == t.Lead()) != lead {
				continue
			}
			if err := y.ends(ctx); err != nil {
				return nil, fmt.Errorf("cut %s: %w", y.src.ID, err)
			}
		}
	}
	group, together := errgroup.WithContext(ctx)
	for _, y := range renditions {
		group.Go(func() error { return y.make(together) })
		out.Renditions = append(out.Renditions, y.out)
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out.Zero = x.from
	out.Marks = append(out.Marks, t.Marks[x.a:x.b+1]...)
	out.Marks[0].Discontinuity = false
	if m := &out.Marks[0]; !m.Start.IsZero() {
		m.Start = m.Start.Add(seconds(x.from - x.border(x.a)))
	}
	breaks(out)
	return timeline.Build(out.Entries()) // sizes and rates are those of what is left
}

// breaks puts a discontinuity wherever decoders are set up again.
func breaks(t *timeline.Timeline) {
	for _, l := range t.Renditions {
		last := none
		for i, c := range l.Chunks {
			if c.Gap {
				continue
			}
			if last != none && c.Init != last {
				t.Marks[i].Discontinuity = true
			}
			last = c.Init
		}
	}
}

// cut is one clip.
type cut struct {
	*Cutter
	t        *timeline.Timeline
	prefix   string
	spans    []float64
	whole    bool    // it begins where the recording does
	a, b     int     // its segments, the last one included
	from, to float64 // media time in seconds
	asked    float64 // where it was to begin, likewise
}

// find finds the segments that hold something of [from, to), in seconds of the asset.
func (c *cut) find(from, to float64) bool {
	n := len(c.t.Marks)
	from, to = max(from, 0), min(to, c.spans[n])
	if !(to-from > snap) {
		return false
	}
	for c.a < n && c.spans[c.a+1] <= from+snap {
		c.a++
	}
	for c.b = n - 1; c.b > c.a && c.spans[c.b] >= to-snap; {
		c.b--
	}
	c.from, c.to = c.t.ZeroTime()+from, c.t.ZeroTime()+to
	c.asked = c.from
	return c.a < n
}

// border is where segment i begins, in seconds of media time.
func (c *cut) border(i int) float64 { return c.t.ZeroTime() + c.spans[i] }

// rendition is one rendition, to be cut.
func (c *cut) rendition(l *timeline.Rendition) *renditionCut {
	y := &renditionCut{
		cut:  c,
		src:  l,
		out:  &timeline.Rendition{RenditionInfo: l.RenditionInfo},
		made: map[int]timeline.Chunk{},
	}
	y.out.PartTarget = 0 // a clip is not live
	y.out.Inits = slices.Clone(l.Inits)
	return y
}

// make makes what differs from the recording, and lists everything.
func (rc *renditionCut) make(ctx context.Context) error {
	var err error
	switch rc.src.Kind {
	case frame.Video:
		err = rc.pictures(ctx)
	case frame.Audio:
		err = rc.sound(ctx)
	case frame.Text:
	}
	if err != nil {
		return fmt.Errorf("cut %s: %w", rc.src.ID, err)
	}
	for i := rc.a; i <= rc.b; i++ {
		c, ok := rc.made[i]
		if !ok {
			c = rc.src.Chunks[i]
		}
		if rc.src.Kind == frame.Audio {
			c.Apart = rc.apart(i, c)
		}
		rc.out.Chunks = append(rc.out.Chunks, c)
	}
	rc.tidy()
	return nil
}

// apart is by how many milliseconds the first frame of what stands for chunk i is later than the clip's segment: both
// may begin later than in the recording.
func (rc *renditionCut) apart(i int, c timeline.Chunk) int64 {
	was := rc.src.Chunks[i]
	later := float64(c.Time-was.Time) / float64(rc.src.Timescale)
	if i == rc.a {
		later -= rc.from - rc.border(i)
	}
	return was.Apart + int64(math.Round(later*1000))
}

// renditionCut is one rendition of a clip.
type renditionCut struct {
	*cut
	src, out *timeline.Rendition
	made     map[int]timeline.Chunk // by index in the source: what takes the place of its chunks
	cutEnds  []*segment             // of the video: the segments that are cut
	format   *format                // of the video
	sets     *sets                  // H.264's
}

// tidy leaves out the init segments that nothing needs.
func (rc *renditionCut) tidy() {
	var used []timeline.Init
	at := map[int]int{}
	for i := range rc.out.Chunks {
		c := &rc.out.Chunks[i]
		if c.Gap {
			c.Init = 0
			continue
		}
		n, ok := at[c.Init]
		if !ok {
			n = len(used)
			at[c.Init] = n
			used = append(used, rc.out.Inits[c.Init])
		}
		c.Init = n
	}
	rc.out.Inits = used
}

// coarse reports whether a tick is longer than what a time may miss a picture's own by.
func (rc *renditionCut) coarse() bool { return snap*float64(rc.src.Timescale) < 1 }

// ticks of a time in seconds.
func (rc *renditionCut) ticks(s float64) int64 {
	return int64(math.Round(s * float64(rc.src.Timescale)))
}

// store keeps a fragment as chunk i.
func (rc *renditionCut) store(ctx context.Context, i int, c timeline.Chunk, samples []cmaf.Sample) error {
	data := cmaf.AppendFragment(nil, uint32(i-rc.a+1), cmaf.TrackID, uint64(c.Time), samples)
	c.Rendition, c.Size, c.From, c.To, c.Lead, c.Gap = rc.src.ID, int64(len(data)), 0, 0, 0, false
	c.Object = rc.prefix + rc.src.ID + "/" + strconv.Itoa(i-rc.a) + ".m4s"
	if err := rc.Put(ctx, c.Object, data); err != nil {
		return fmt.Errorf("store segment: %w", err)
	}
	rc.made[i] = c
	return nil
}

// read gives the samples of chunk i.
func (rc *renditionCut) read(ctx context.Context, i int) ([]sample, error) {
	raw, err := delivered.Bytes(rc.Source(rc.src).Segment(ctx, rc.t.First+int64(i)))
	if err != nil {
		return nil, fmt.Errorf("read segment %d: %w", rc.t.First+int64(i), err)
	}
	fragments, err := cmaf.ParseFragments(raw)
	if err != nil {
		return nil, fmt.Errorf("read segment %d: %w", rc.t.First+int64(i), err)
	}
	var samples []sample
	for _, f := range fragments {
		at := int64(f.BaseMediaDecodeTime)
		for _, s := range f.Samples {
			samples = append(samples, sample{Sample: s, dts: at, pts: at + int64(s.CompositionOffset), chunk: i})
			at += int64(s.Duration)
		}
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("segment %d of %s has no media", rc.t.First+int64(i), rc.src.ID)
	}
	return samples, nil
}

// sample is one of a chunk's with its times in ticks.
type sample struct {
	cmaf.Sample
	dts, pts int64
	chunk    int
	changed  bool
}

// continues reports whether chunk i goes on where the one before ended.
func (rc *renditionCut) continues(i int) bool {
	if i < 1 || i >= len(rc.src.Chunks) || rc.t.Marks[i].Discontinuity {
		return false
	}
	before, c := &rc.src.Chunks[i-1], &rc.src.Chunks[i]
	return !before.Gap && !c.Gap && before.Init == c.Init
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
