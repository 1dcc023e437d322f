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
	CutPicture(ctx context.Context, a encode.PictureCut, input func(io.Writer) error, output func(io.Reader) error) error
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
func (c *Cutter) Cut(ctx context.Context, t *timeline.Timeline, from, to float64, prefix string) (*timeline.Timeline, error) {
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
func (x *cut) find(from, to float64) bool {
	n := len(x.t.Marks)
	from, to = max(from, 0), min(to, x.spans[n])
	if !(to-from > snap) {
		return false
	}
	for x.a < n && x.spans[x.a+1] <= from+snap {
		x.a++
	}
	for x.b = n - 1; x.b > x.a && x.spans[x.b] >= to-snap; {
		x.b--
	}
	x.from, x.to = x.t.ZeroTime()+from, x.t.ZeroTime()+to
	x.asked = x.from
	return x.a < n
}

// border is where segment i begins, in seconds of media time.
func (x *cut) border(i int) float64 { return x.t.ZeroTime() + x.spans[i] }

// rendition is one rendition, to be cut.
func (x *cut) rendition(l *timeline.Rendition) *renditionCut {
	y := &renditionCut{cut: x, src: l, out: &timeline.Rendition{RenditionInfo: l.RenditionInfo}, made: map[int]timeline.Chunk{}}
	y.out.PartTarget = 0 // a clip is not live
	y.out.Inits = slices.Clone(l.Inits)
	return y
}

// make makes what differs from the recording, and lists everything.
func (y *renditionCut) make(ctx context.Context) error {
	var err error
	switch y.src.Kind {
	case frame.Video:
		err = y.pictures(ctx)
	case frame.Audio:
		err = y.sound(ctx)
	case frame.Text:
	}
	if err != nil {
		return fmt.Errorf("cut %s: %w", y.src.ID, err)
	}
	for i := y.a; i <= y.b; i++ {
		c, ok := y.made[i]
		if !ok {
			c = y.src.Chunks[i]
		}
		if y.src.Kind == frame.Audio {
			c.Apart = y.apart(i, c)
		}
		y.out.Chunks = append(y.out.Chunks, c)
	}
	y.tidy()
	return nil
}

// apart is by how many milliseconds the first frame of what stands for chunk i is later than the clip's segment: both
// may begin later than in the recording.
func (y *renditionCut) apart(i int, c timeline.Chunk) int64 {
	was := y.src.Chunks[i]
	later := float64(c.Time-was.Time) / float64(y.src.Timescale)
	if i == y.a {
		later -= y.from - y.border(i)
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
func (y *renditionCut) tidy() {
	var used []timeline.Init
	at := map[int]int{}
	for i := range y.out.Chunks {
		c := &y.out.Chunks[i]
		if c.Gap {
			c.Init = 0
			continue
		}
		n, ok := at[c.Init]
		if !ok {
			n = len(used)
			at[c.Init] = n
			used = append(used, y.out.Inits[c.Init])
		}
		c.Init = n
	}
	y.out.Inits = used
}

// coarse reports whether a tick is longer than what a time may miss a picture's own by.
func (y *renditionCut) coarse() bool { return snap*float64(y.src.Timescale) < 1 }

// ticks of a time in seconds.
func (y *renditionCut) ticks(s float64) int64 { return int64(math.Round(s * float64(y.src.Timescale))) }

// store keeps a fragment as chunk i.
func (y *renditionCut) store(ctx context.Context, i int, c timeline.Chunk, samples []cmaf.Sample) error {
	data := cmaf.AppendFragment(nil, uint32(i-y.a+1), cmaf.TrackID, uint64(c.Time), samples)
	c.Rendition, c.Size, c.From, c.To, c.Lead, c.Gap = y.src.ID, int64(len(data)), 0, 0, 0, false
	c.Object = y.prefix + y.src.ID + "/" + strconv.Itoa(i-y.a) + ".m4s"
	if err := y.Put(ctx, c.Object, data); err != nil {
		return fmt.Errorf("store segment: %w", err)
	}
	y.made[i] = c
	return nil
}

// read gives the samples of chunk i.
func (y *renditionCut) read(ctx context.Context, i int) ([]sample, error) {
	raw, err := delivered.Bytes(y.Source(y.src).Segment(ctx, y.t.First+int64(i)))
	if err != nil {
		return nil, fmt.Errorf("read segment %d: %w", y.t.First+int64(i), err)
	}
	fragments, err := cmaf.ParseFragments(raw)
	if err != nil {
		return nil, fmt.Errorf("read segment %d: %w", y.t.First+int64(i), err)
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
		return nil, fmt.Errorf("segment %d of %s has no media", y.t.First+int64(i), y.src.ID)
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
func (y *renditionCut) continues(i int) bool {
	if i < 1 || i >= len(y.src.Chunks) || y.t.Marks[i].Discontinuity {
		return false
	}
	before, c := &y.src.Chunks[i-1], &y.src.Chunks[i]
	return !before.Gap && !c.Gap && before.Init == c.Init
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
