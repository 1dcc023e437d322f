package broadcast

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/health"
	"millrace/internal/media/ingest"
	"millrace/internal/media/session"
)

const (
	// sampleEvery is how long a sample of an encoder's health is.
	sampleEvery = 5 * time.Second
	// keepRecords bounds how many streams' last encoders are remembered.
	keepRecords = 1000
)

// records is what this node knows of its encoders' health, by stream: also over the end of a broadcast, so that one
// that flaps is not taken for a new one each time.
type records struct {
	mu  sync.Mutex
	all map[id.LiveStream]*record
}

// record is one stream's.
type record struct {
	mu      sync.Mutex
	number  int              // counts the publications: one that has another's place has no say any more
	last    func() time.Time // when media came last; nil while no encoder is connected
	encoder live.Encoder
	samples []live.Sample
	watch   health.Watch
}

// begin notes a publication. The response names it.
func (r *records) begin(s id.LiveStream, e live.Encoder, audioOnly bool, last func() time.Time) (*record, int) {
	r.mu.Lock()
	rec := r.all[s]
	if rec == nil {
		r.trim()
		rec = &record{}
		r.all[s] = rec
	}
	r.mu.Unlock()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.number++
	rec.last, rec.encoder, rec.samples = last, e, nil
	rec.watch.Begin(audioOnly)
	return rec, rec.number
}

// trim forgets the encoder that is gone for longest when there are too many. Called with the lock.
func (r *records) trim() {
	if len(r.all) < keepRecords {
		return
	}
	var oldest id.LiveStream
	var at time.Time
	for s, rec := range r.all {
		rec.mu.Lock()
		gone, until := rec.last == nil, rec.encoder.Until
		rec.mu.Unlock()
		if gone && (oldest == "" || until.Before(at)) {
			oldest, at = s, until
		}
	}
	delete(r.all, oldest)
}

func (r *records) of(s id.LiveStream) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[s]
}

// take adds a sample of the publication turn and says what has changed with it.
func (r *record) take(number int, m measured) []health.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number != number || r.last == nil {
		return nil
	}
	if m.name != "" {
		r.encoder.Name = m.name
	}
	count(&r.encoder, m.totals)
	if len(r.samples) == live.MaxSamples {
		r.samples = slices.Delete(r.samples, 0, 1)
	}
	r.samples = append(r.samples, sampleOf(m.sample))
	return r.watch.Look(m.sample, m.video, m.audio)
}

// end notes that a publication is over.
func (r *record) end(number int, now time.Time, cause error, totals health.Totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number != number || r.last == nil {
		return
	}
	r.last, r.samples = nil, nil
	count(&r.encoder, totals)
	r.encoder.Until = now
	if cause != nil {
		r.encoder.Cause = ingest.Reason(cause)
	}
	r.watch.End()
}

// show gives a copy for the API.
func (r *record) show(now time.Time) live.Health {
	r.mu.Lock()
	last := r.last
	encoder := r.encoder
	h := live.Health{Encoder: &encoder, Samples: slices.Clone(r.samples)}
	for _, w := range r.watch.Warnings() {
		h.Trouble = append(h.Trouble, live.Trouble{
			Warning: live.Warning{Type: w.Kind, Message: w.Message},
			Since:   w.Since,
		})
	}
	r.mu.Unlock()
	if last == nil {
		return h
	}
	h.Status = live.HealthLive
	if heard := last(); now.Sub(heard) >= hush && now.Sub(encoder.Since) >= hush {
		h.Status = live.HealthSilent
	}
	return h
}

// Health tells how the encoder of a stream does; s is the stream's row.
func (svc *Service) Health(s live.Stream) live.Health {
	var h live.Health
	if r := svc.records.of(s.ID); r != nil {
		h = r.show(svc.opt.Now())
	}
	h.Stream = s.ID
	switch {
	case h.Status != "":
	case s.Protocol != "" && s.Node != svc.opt.Owner.Node:
		h.Status = live.HealthElsewhere
	case s.ActiveAsset != "":
		h.Status = live.HealthAway
	default:
		h.Status = live.HealthIdle
	}
	return h
}

// Encoders tells how the encoders that are connected to this node do.
func (svc *Service) Encoders() []live.Health {
	svc.records.mu.Lock()
	all := maps.Clone(svc.records.all)
	svc.records.mu.Unlock()
	var out []live.Health
	for s, r := range all {
		if h := r.show(svc.opt.Now()); h.Status != "" {
			h.Stream = s
			out = append(out, h)
		}
	}
	return out
}

// measured is a sample of a publication with what belongs to it.
type measured struct {
	sample       health.Sample
	totals       health.Totals
	video, audio bool   // tracks that were announced
	name         string // of the encoder, if it has said more since
}

// measure takes a sample.
func (s *sink) measure(now time.Time) measured {
	var link ingest.LinkStats
	if s.link != nil {
		link = s.link() // not with the lock: it may have one of its own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var m measured
	counts := countsOf(s.session.Stats(), link)
	counts.Unheard = time.Duration(s.owner.unheard.Load() - s.unheard)
	m.sample = s.meter.Sample(now, counts)
	m.totals, m.name = s.meter.Totals(), link.Encoder
	m.video, m.audio = s.meter.Announced()
	return m
}

// measure takes a sample of the connected encoder when it is time for one, and tells what is wrong with it.
func (b *broadcast) measure(now time.Time) {
	if b.sink == nil || now.Before(b.sampleAt) {
		return
	}
	b.sampleAt = now.Add(sampleEvery)
	for _, c := range b.sink.record.take(b.sink.number, b.sink.measure(now)) {
		switch {
		case c.Over:
			b.log.Info("ingest warning is over", "type", c.Kind)
		case !c.Tell:
			b.log.Debug("ingest warning again", "type", c.Kind, "message", c.Message)
		default:
			b.log.Warn("ingest warning", "type", c.Kind, "message", c.Message)
			b.tell("ingest warning", func(ctx context.Context) error {
				return b.opt.Streams.Warn(ctx, b.id, b.by, live.Warning{Type: c.Kind, Message: c.Message}, now)
			})
		}
	}
}

func count(e *live.Encoder, t health.Totals) {
	e.VideoFrames, e.AudioFrames, e.Bytes, e.Counts = t.VideoFrames, t.AudioFrames, t.Bytes, shownCounts(t.Counts)
}

func countsOf(s session.Stats, l ingest.LinkStats) health.Counts {
	return health.Counts{
		Dropped: s.Dropped, Repaired: s.Clamped, Jumps: s.Jumps, Discontinuities: s.Discontinuities, Holes: s.Holes,
		Missing: s.Lost, Broken: s.Broken,
		Variable: s.FPS > 0 && !s.Constant, AudioSkew: s.AudioSkew, AudioByCount: s.AudioByCount,
		Link: health.Link{
			Packets: l.Packets, PacketsLost: l.Lost, PacketsRetransmitted: l.Retransmitted, PacketsDropped: l.Dropped,
			RTT: l.RTT,
		},
	}
}

func shownCounts(c health.Counts) live.Counts {
	return live.Counts{
		FramesDropped: c.Dropped + c.Broken, TimestampsRepaired: c.Repaired, ClockJumps: c.Jumps,
		Discontinuities: c.Discontinuities,
		AudioHoles:      c.Holes, FramesMissing: c.Missing,
		Packets: c.Packets, PacketsLost: c.PacketsLost, PacketsRetransmitted: c.PacketsRetransmitted,
		PacketsDropped: c.PacketsDropped,
	}
}

func sampleOf(s health.Sample) live.Sample {
	flow := func(f health.Flow) live.Flow {
		return live.Flow{Bitrate: f.Bitrate, Rate: f.Rate, Jitter: f.Jitter, Drift: f.Drift}
	}
	return live.Sample{
		At: s.At, Span: s.Span, Video: flow(s.Video), Audio: flow(s.Audio), GOP: s.GOP, Pace: s.Pace,
		VariableFrameRate: s.Counts.Variable, RTT: s.Counts.RTT, Counts: shownCounts(s.Counts),
	}
}
