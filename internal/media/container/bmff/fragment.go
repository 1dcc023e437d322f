package bmff

// Default sample flags, ISO 14496-12 section 8.8.3.1.
const (
	// FlagsSync says depends on no other sample.
	FlagsSync = 0x02000000
	// FlagsNonSync says depends on others and is no sync sample.
	FlagsNonSync = 0x01010000
	flagNonSync  = 0x00010000
)

// Defaults are the trex box's values for a track.
type Defaults struct {
	Description, Duration, Size, Flags uint32
}

// ParseDefaults reads the trex boxes of an mvex body by track ID.
func ParseDefaults(mvex []byte) map[uint32]Defaults {
	out := map[uint32]Defaults{}
	_ = Walk(mvex, func(b Box) error {
		if !b.Type.Is("trex") {
			return nil
		}
		r := NewReader(b.Body)
		r.Full()
		id := r.U32()
		d := Defaults{r.U32(), r.U32(), r.U32(), r.U32()}
		if r.Err() == nil {
			out[id] = d
		}
		return nil
	})
	return out
}

// TrackRun is what one traf box says: samples of one track.
type TrackRun struct {
	TrackID     uint32
	Description uint32
	// BaseTime is the tfdt's; HasTime is false without one: go on where the track's last fragment ended. It is negative
	// where ffmpeg writes the priming of sound in front of everything.
	BaseTime int64
	HasTime  bool
	Samples  []RunSample
}

// RunSample is one sample of a run.
type RunSample struct {
	// Offset from the start of what the moof's offset was counted from.
	Offset            int64
	Size, Duration    uint32
	CompositionOffset int32
	Sync              bool
}

// Moof is the place of a movie fragment and what its tracks have by default.
type Moof struct {
	Body []byte
	// Start is the offset of the moof box in the file or stream.
	Start int64
	// MaxSamples bounds how many samples it may claim in all; more is malformed.
	MaxSamples int
	Defaults   map[uint32]Defaults
}

// Runs reads the traf boxes.
func (m Moof) Runs() ([]TrackRun, error) {
	var out []TrackRun
	left, dataEnd := m.MaxSamples, m.Start
	err := Walk(m.Body, func(b Box) error {
		if !b.Type.Is("traf") {
			return nil
		}
		run, n, err := m.run(b.Body, left, &dataEnd)
		if err != nil {
			return err
		}
		left -= n
		out = append(out, run)
		return nil
	})
	return out, err
}

// tfhd and trun flags, ISO 14496-12 sections 8.8.7 and 8.8.8.
const (
	tfhdBaseOffset, tfhdDescription, tfhdDuration, tfhdSize, tfhdFlags, tfhdBaseIsMoof = 1, 2, 8, 0x10, 0x20, 0x20000

	trunOffset, trunFirstFlags, trunDuration, trunSize, trunFlags, trunComposition = 1, 4, 0x100, 0x200, 0x400, 0x800
)

func (m Moof) run(traf []byte, left int, dataEnd *int64) (TrackRun, int, error) {
	r := NewReader(Find(traf, "tfhd"))
	_, flags := r.Full()
	run := TrackRun{TrackID: r.U32()}
	d := m.Defaults[run.TrackID]
	base := *dataEnd // the first track's data counts from the moof, the next one's from where that ended
	if flags&tfhdBaseIsMoof != 0 {
		base = m.Start
	}
	if flags&tfhdBaseOffset != 0 {
		base = int64(r.U64())
	}
	for _, f := range [...]struct {
		flag uint32
		to   *uint32
	}{{tfhdDescription, &d.Description}, {tfhdDuration, &d.Duration}, {tfhdSize, &d.Size}, {tfhdFlags, &d.Flags}} {
		if flags&f.flag != 0 {
			*f.to = r.U32()
		}
	}
	if r.Err() != nil || base < 0 || base > 1<<62 {
		return run, 0, Malformed("movie fragment: bad track fragment header")
	}
	run.Description = d.Description
	if tfdt := Find(traf, "tfdt"); tfdt != nil {
		t := NewReader(tfdt)
		version, _ := t.Full()
		run.BaseTime, run.HasTime = int64(t.Sized(version)), true
		if t.Err() != nil || run.BaseTime > 1<<62 || run.BaseTime < -1<<32 {
			return run, 0, Malformed("movie fragment: bad decode time")
		}
	}
	pos, n := base, 0
	err := Walk(traf, func(b Box) error {
		if !b.Type.Is("trun") {
			return nil
		}
		count, err := run.trun(b.Body, d, base, &pos, left-n)
		n += count
		return err
	})
	*dataEnd = pos
	return run, n, err
}

func (t *TrackRun) trun(body []byte, d Defaults, base int64, pos *int64, left int) (int, error) {
	r := NewReader(body)
	_, flags := r.Full()
	count := r.U32()
	if flags&trunOffset != 0 {
		*pos = base + int64(int32(r.U32()))
	}
	first, hasFirst := uint32(0), flags&trunFirstFlags != 0
	if hasFirst {
		first = r.U32()
	}
	per := uint64(0)
	for _, f := range [...]uint32{trunDuration, trunSize, trunFlags, trunComposition} {
		if flags&f != 0 {
			per += 4
		}
	}
	if r.Err() != nil || uint64(count)*per > uint64(len(r.Left())) || int64(count) > int64(left) {
		return 0, Malformed("movie fragment: a run claims %d samples, more than fit", count)
	}
	if t.Samples == nil {
		t.Samples = make([]RunSample, 0, count)
	}
	for i := range count {
		s := RunSample{Offset: *pos, Size: d.Size, Duration: d.Duration}
		sf := d.Flags
		if flags&trunDuration != 0 {
			s.Duration = r.U32()
		}
		if flags&trunSize != 0 {
			s.Size = r.U32()
		}
		if flags&trunFlags != 0 {
			sf = r.U32()
		} else if i == 0 && hasFirst {
			sf = first
		}
		if flags&trunComposition != 0 {
			s.CompositionOffset = int32(r.U32()) // version 0 is unsigned, but no real offset needs the sign bit
		}
		s.Sync = sf&flagNonSync == 0
		*pos += int64(s.Size)
		t.Samples = append(t.Samples, s)
	}
	return int(count), nil
}
