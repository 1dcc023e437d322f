package justintime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

// run is one encoder for a few segments.
type run struct {
	m        *Maker
	w        Work
	from     int64 // media sequence number of tickets[0]
	priority encode.Priority
	viewer   string // whose turn it takes
	cancel   func(error)
	hurry    chan struct{} // closed when somebody waits

	// Guarded by the maker.
	tickets []*ticket
	next    int64 // the first segment that is not made yet; 0: none is
	waiting int
	asked   bool // somebody has waited
	started bool

	alone bool                 // other nodes are not asked any more
	done  func(keys ...string) // of what was claimed

	init []byte   // what goes in: of the goroutine that feeds the encoder, once it is prepared
	data [][]byte // segments

	feeds []feed // what comes out: of the goroutine that reads the encoder. Segments that went in and have not come out
	keep  []picture
	keys  int // key frames of them that stand where one was asked for

	parts   []part       // side by side; nil: one encoder makes all
	missing atomic.Int32 // parts of which not all has come out
}

// ticket is what those who wait for a segment hold.
type ticket struct {
	done chan struct{}
	err  error // once done
}

// picture is a frame that the encoder gave.
type picture struct {
	pts  int64
	sync bool
	data []byte
}

// maxPicture bounds one frame of the encoder's, in bytes.
const maxPicture = 32 << 20

// patient reports whether no viewer waited when the run began.
func (r *run) patient() bool { return r.priority == encode.Ahead || r.priority == encode.Background }

// most threads of a run that somebody waits for; one that nobody does takes a single one.
func (r *run) threads() int {
	if r.patient() {
		return 1
	}
	return 0
}

// turn waits for the turn of a viewer. What no viewer has asked for takes none.
func (m *Maker) turn(ctx context.Context, p encode.Priority, viewer string) (leave func(), err error) {
	line := m.asked
	switch p {
	case encode.Background:
		return func() {}, nil
	case encode.Ahead:
		line = m.early
	case encode.Ingest, encode.Images, encode.OnDemand, encode.FirstPlay, encode.Live:
	}
	t, err := line.Enter(ctx, viewer, int(p), 0)
	if err != nil {
		return nil, err
	}
	return t.Leave, nil
}

// once runs the encoder.
func (r *run) once(ctx context.Context) error {
	leave, err := r.m.turn(ctx, r.priority, r.viewer)
	if err != nil {
		return err
	}
	defer leave()
	err = r.m.opt.Encoder.Rung(ctx, r.priority, encode.RungJob{
		Threads: r.threads(), Hurry: r.hurry, Prepare: r.prepare,
		Input: func(_ context.Context, n int, out io.Writer) error { return r.write(n, out) },
		Output: func(ctx context.Context, n int, in io.Reader) error {
			frames := cmaf.NewReader(in, cmaf.ReaderOptions{MaxFragment: maxPicture})
			if r.parts != nil {
				return r.readPart(ctx, &r.parts[n], frames)
			}
			return r.read(ctx, frames)
		},
	})
	if err != nil {
		return err
	}
	// Where less came out than went in, it counts only now that the encoder is known to have ended well.
	switch {
	case r.parts != nil && r.missing.Load() > 0:
		return r.join(ctx)
	case r.parts == nil && len(r.feeds)+len(r.keep) > 0:
		return r.flush(ctx)
	}
	return nil
}

// prepare reads what the run is made of.
func (r *run) prepare(ctx context.Context, cores int) ([]encode.RungArgs, error) {
	r.m.begun(r, true)
	if err := r.claim(ctx); err != nil {
		return nil, err
	}
	var err error
	if r.init, err = r.w.Source.Init(ctx, r.w.chunk(r.from).Init); err != nil {
		return nil, fmt.Errorf("read init segment: %w", err)
	}
	if err = r.load(ctx); err != nil {
		return nil, err
	}
	if err = r.runUp(ctx); err != nil {
		return nil, err
	}
	args := r.w.args(r.from)
	args.FastPreset = !r.patient()
	if args.Part = r.divide(cores); args.Part {
		return slices.Repeat([]encode.RungArgs{args}, len(r.parts)), nil
	}
	for i := range r.feeds {
		f := &r.feeds[i]
		r.data, f.data, f.samples = append(r.data, f.data), nil, nil
		args.Keys = append(args.Keys, float64(f.pts[0])/float64(r.w.Video.Timescale))
		if f.keys() == 2 {
			args.Keys = append(args.Keys, float64(f.pts[f.had])/float64(r.w.Video.Timescale))
		}
	}
	if args.FastPreset && len(args.Keys) == 1 && r.feeds[0].clean {
		args.Keys = nil // as the first picture is one anyway, and arguments that are always the same can be given ahead
	}
	return []encode.RungArgs{args}, nil
}

// load reads the run's segments, up to one whose times are in disorder.
func (r *run) load(ctx context.Context) error {
	for msn := r.from; msn < r.from+int64(len(r.tickets)); msn++ {
		f, err := r.w.feed(ctx, msn)
		if err != nil {
			return err
		}
		if err = r.m.behead(ctx, &r.w, &f); err != nil {
			return err
		}
		// Of a segment by itself it is known which pictures are its own.
		if n := len(r.feeds); n > 0 && (f.odd || f.pts[0] <= r.feeds[n-1].latest()) {
			r.m.shorten(r, n)
			break
		}
		if r.feeds = append(r.feeds, f); f.odd {
			r.m.shorten(r, 1)
		}
	}
	return nil
}

// runUp reads what has to be decoded in front of the first segment, where it can't be decoded by itself: back to a key
// frame, or to where a decoder recovers in time.
func (r *run) runUp(ctx context.Context) error {
	size, frames := lengthSize(r.init), 0
	for back := 0; !r.feeds[0].clean && back < furthestBack && r.w.continues(r.feeds[0].msn); back++ {
		f, err := r.w.feed(ctx, r.feeds[0].msn-1)
		if err != nil {
			return err
		}
		r.feeds, frames = slices.Insert(r.feeds, 0, f), frames+len(f.samples)
		if entry := f.entry(size); entry >= 0 && entry <= frames {
			break
		}
	}
	for i := range r.feeds {
		r.feeds[i].onlyIDRs(size)
	}
	return nil
}

// furthestBack is how many segments are decoded in front of one that can't be decoded by itself.
const furthestBack = 10

// args are how a segment is encoded. Its range is its own: another picture of the same recording may have another one.
func (w *Work) args(msn int64) encode.RungArgs {
	return encode.RungArgs{
		Width: w.Rung.Width, Height: w.Rung.Height, Range: w.rangeOf(msn),
		Preset: w.Rung.Preset, CRF: w.Rung.CRF, Bitrate: w.Rung.Rate(),
		Level:     w.Rung.Level,
		NoReorder: w.Rung.NoReorder, FrameRate: w.Rung.FrameRate, Timescale: w.Video.Timescale,
	}
}

// rangeOf is that of a segment's picture.
func (w *Work) rangeOf(msn int64) frame.VideoRange {
	if c := w.chunk(msn); c != nil && c.Init >= 0 && c.Init < len(w.Video.Inits) {
		return w.Video.Inits[c.Init].Range
	}
	return frame.SDR
}

func (r *run) write(n int, out io.Writer) error {
	if _, err := out.Write(r.init); err != nil {
		return err // the engine says what was written
	}
	if r.parts != nil {
		_, err := out.Write(r.parts[n].data)
		return err
	}
	for i := range r.data {
		if _, err := out.Write(r.data[i]); err != nil {
			return err
		}
		r.data[i] = nil
	}
	return nil
}

// read takes the encoder's frames and stores a segment whenever the next one begins, and the last one when all of it is
// there: the encoder's end is not waited for.
func (r *run) read(ctx context.Context, in *cmaf.Reader) error {
	for {
		some, err := pictures(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, p := range some {
			if p.sync && len(r.keep) > 0 && (len(r.feeds) == 0 || r.keys == r.feeds[0].keys()) {
				if err := r.flush(ctx); err != nil {
					return err
				}
			}
			if r.keep = append(r.keep, p); p.sync {
				r.keys++
			}
		}
		if len(r.feeds) == 1 && len(r.keep) == len(r.feeds[0].pts) {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
	}
}

// pictures are the next ones that an encoder gives; io.EOF: there are none any more.
func pictures(in *cmaf.Reader) (all []picture, err error) {
	fragments, err := in.Next()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("read encoder: %w", err)
	}
	for _, f := range fragments {
		at := int64(f.BaseMediaDecodeTime)
		for _, s := range f.Samples {
			all = append(all, picture{at + int64(s.CompositionOffset), s.Sync, s.Data})
			at += int64(s.Duration)
		}
	}
	return all, nil
}

// flush stores the segment that the pictures at hand are.
func (r *run) flush(ctx context.Context) error {
	pictures := r.keep
	r.keep, r.keys = nil, 0
	if len(pictures) == 0 || len(r.feeds) == 0 {
		return errUnplaced
	}
	f := r.feeds[0]
	r.feeds = r.feeds[1:]
	if err := f.place(pictures); err != nil {
		return err
	}
	if f.msn < r.from {
		return nil
	}
	return r.store(ctx, &f, pictures)
}

// store keeps a segment.
func (r *run) store(ctx context.Context, f *feed, pictures []picture) error {
	data, err := r.w.segment(f, pictures)
	if err != nil {
		return err
	}
	if r.w.AwaitStored != nil {
		if err = r.w.AwaitStored(ctx, f.msn); err != nil {
			return err
		}
	}
	key := r.w.SegmentKey(f.msn)
	kept, err := r.m.Keep(ctx, key, data)
	if err != nil {
		return fmt.Errorf("store segment: %w", err)
	}
	if r.m.opt.Encoded != nil {
		r.m.opt.Encoded(kept)
	}
	r.done(key)
	r.m.made(r, f.msn)
	return nil
}

// segment puts pictures, in the order of decoding, into a fragment with the source's times. Decoding comes earlier than
// the source's by a constant, for the encoder's reordering; where uneven frames want more than that, it comes as late
// as it may.
func (w *Work) segment(f *feed, pictures []picture) ([]byte, error) {
	if !pictures[0].sync || len(pictures) > len(f.dts) {
		return nil, fault.New(fault.Internal, "the encoder gave %d pictures of %d that went in", len(pictures),
			len(f.dts))
	}
	earlier := w.reorder()
	at := make([]int64, len(pictures)+1)
	at[len(pictures)] = f.end - earlier
	earliest := int64(math.MaxInt64)
	for i := len(pictures) - 1; i >= 0; i-- {
		earliest = min(earliest, pictures[i].pts)
		at[i] = min(f.dts[i]-earlier, earliest)
	}
	from, err := f.behind(pictures)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		at[from] = f.headEnd
	} else if w.other(f.msn) {
		f.moveStart(at, pictures)
	}
	samples := make([]cmaf.Sample, len(pictures))
	for i := from; i < len(pictures); i++ {
		p := pictures[i]
		long, offset := at[i+1]-at[i], p.pts-at[i]
		if long < 0 || long > math.MaxUint32 || offset < 0 || offset > math.MaxInt32 {
			return nil, fault.New(fault.Internal,
				"picture %d of a segment lasts %d ticks and is shown %d after it is decoded", i, long, offset)
		}
		samples[i] = cmaf.Sample{Duration: uint32(long), CompositionOffset: int32(offset), Sync: p.sync, Data: p.data}
	}
	if from > 0 && from < len(samples) && w.Dependent != nil && w.Dependent(f.msn, f.parts) {
		samples[from].Sync = false
	}
	data := bytes.Clone(f.head)
	for _, to := range w.fragments(f, pictures, from) {
		data = cmaf.AppendFragment(data, uint32(f.msn+1), cmaf.TrackID, uint64(at[from]), samples[from:to])
		from = to
	}
	return data, nil
}

// moveStart moves the first decode times behind a discontinuity.
func (f *feed) moveStart(at []int64, pictures []picture) {
	if len(f.pts) < 2 {
		return
	}
	start := cmaf.StartAt(at[0], pictures[0].pts-at[0], f.pts[1]-f.pts[0])
	last, earliest := len(pictures), int64(math.MaxInt64)
	at[last] = start.At(at[last])
	for i, p := range slices.Backward(pictures) {
		earliest = min(earliest, p.pts)
		at[i] = min(start.At(at[i]), earliest)
	}
}

// reorder is by how many ticks decoding comes before the source's: two frames, which is what the encoder's pyramid of
// B-frames needs; none where pictures come out as they are shown.
func (w *Work) reorder() int64 {
	if w.Rung.NoReorder {
		return 0
	}
	fps := w.Rung.FrameRate
	if fps < 10 || fps > 120 {
		fps = 10
	}
	return int64(math.Ceil(2 * float64(w.Video.Timescale) / fps))
}
