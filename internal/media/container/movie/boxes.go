package movie

import (
	"encoding/binary"
	"math"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// ftyp names what readers must know: sound alone is an M4A to those who go by it.
func ftyp(tracks []*Track) []byte {
	for _, t := range tracks {
		if t.o.Kind == frame.Video {
			return bmff.Make("ftyp", []byte("mp42"), bmff.U32(0x200), []byte("mp42isomiso2avc1mp41"))
		}
	}
	return bmff.Make("ftyp", []byte("M4A "), bmff.U32(0x200), []byte("M4A mp42isomiso2"))
}

var identity = [9]uint32{0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000} //nolint:gochecknoglobals // a table

// movieScale is ticks per second of the movie: that of the first track, which is the video where there is one, so that
// its times are whole.
func movieScale(tracks []*Track) uint32 {
	for _, t := range tracks {
		return t.o.Timescale
	}
	return 1000
}

// moovOf is the moov of media that begins at a byte of the file.
func moovOf(tracks []*Track, start int64, wide bool) []byte {
	scale := movieScale(tracks)
	long := uint64(0)
	parts := [][]byte{nil}
	for i, t := range tracks {
		parts = append(parts, t.trak(uint32(i+1), scale, start, wide))
		long = max(long, t.shown(scale))
	}
	parts[0] = timed("mvhd", 0, long, func(duration []byte) [][]byte {
		return [][]byte{
			bmff.U32(scale), duration, bmff.U32(0x10000, 0x01000000, 0, 0), bmff.U32(identity[:]...),
			bmff.U32(0, 0, 0, 0, 0, 0, uint32(len(tracks)+1)),
		}
	})
	return bmff.Make("moov", parts...)
}

// timed builds a header box with its two dates, which are not told, and its duration in 32 bits where that does.
func timed(typ string, flags uint32, duration uint64, rest func(duration []byte) [][]byte) []byte {
	if duration > math.MaxUint32 {
		return bmff.Full(typ, 1, flags, append([][]byte{u64(0), u64(0)}, rest(u64(duration))...)...)
	}
	return bmff.Full(typ, 0, flags, append([][]byte{bmff.U32(0, 0)}, rest(bmff.U32(uint32(duration)))...)...)
}

// lead is how much of the media is before what is presented first, in ticks.
func (t *Track) lead() int64 { return max(t.o.Zero+t.late(), t.first) - t.first }

// late is how long after the presentation begins the first sample is shown, in ticks; 0 for what nobody notices.
func (t *Track) late() int64 {
	if late := t.shows - t.o.Zero; late > int64(t.o.Timescale/100) || t.first > t.o.Zero {
		return late
	}
	return 0
}

// shown is how long the track is presented, with what it waits for, in ticks of a scale.
func (t *Track) shown(scale uint32) uint64 {
	return rescale(uint64(max(t.end-t.o.Zero, 0)), t.o.Timescale, scale)
}

func rescale(v uint64, from, to uint32) uint64 {
	return v/uint64(from)*uint64(to) + (v%uint64(from)*uint64(to)+uint64(from)/2)/uint64(from)
}

func (t *Track) trak(number, scale uint32, start int64, wide bool) []byte {
	o := t.o
	if o.Matrix == [9]uint32{} {
		o.Matrix = identity
	}
	volume := uint32(0)
	if o.Kind == frame.Audio {
		volume = 0x01000000
	}
	const enabledInMovie = 3
	tkhd := timed("tkhd", enabledInMovie, t.shown(scale), func(duration []byte) [][]byte {
		return [][]byte{
			bmff.U32(number, 0), duration, bmff.U32(0, 0, 0, volume), bmff.U32(o.Matrix[:]...),
			bmff.U32(o.Width, o.Height),
		}
	})
	mdhd := timed("mdhd", 0, uint64(t.next-t.first), func(duration []byte) [][]byte {
		return [][]byte{bmff.U32(o.Timescale), duration, bmff.U16(packLanguage(o.Language), 0)}
	})
	return bmff.Make("trak", tkhd, bmff.Make("edts", t.elst(scale)),
		bmff.Make("mdia", mdhd, t.hdlr(), t.minf(start, wide)))
}

// elst says where in the media the presentation begins: behind the priming of sound and the reordering of pictures, and
// behind an empty edit where the track begins later than others.
func (t *Track) elst(scale uint32) []byte {
	lead, late, shown := t.lead(), t.late(), t.shown(scale)
	const normal = 0x10000
	var entries []byte
	count := uint32(1)
	version := uint8(0)
	if shown > math.MaxUint32 || lead > math.MaxInt32 {
		version = 1
	}
	add := func(duration uint64, at int64) {
		if version == 1 {
			entries = append(append(entries, u64(duration)...), u64(uint64(at))...)
		} else {
			entries = append(entries, bmff.U32(uint32(duration), uint32(int32(at)))...)
		}
		entries = append(entries, bmff.U32(normal)...)
	}
	if late > 0 {
		wait := rescale(uint64(late), t.o.Timescale, scale)
		count++
		add(wait, -1)
		shown -= min(wait, shown)
	}
	add(shown, lead)
	return bmff.Full("elst", version, 0, bmff.U32(count), entries)
}

func (t *Track) hdlr() []byte {
	handler, name := "vide", "VideoHandler\x00"
	if t.o.Kind == frame.Audio {
		handler, name = "soun", "SoundHandler\x00"
	}
	return bmff.Full("hdlr", 0, 0, bmff.U32(0), []byte(handler), bmff.U32(0, 0, 0), []byte(name))
}

func (t *Track) minf(start int64, wide bool) []byte {
	header := bmff.Full("vmhd", 0, 1, bmff.U32(0, 0))
	if t.o.Kind == frame.Audio {
		header = bmff.Full("smhd", 0, 0, bmff.U32(0))
	}
	parts := append([][]byte{bmff.U32(uint32(len(t.entries)))}, t.entries...)
	tables := [][]byte{bmff.Full("stsd", 0, 0, parts...), bmff.Full("stts", 0, 0, runs(t.holds))}
	if t.shifted {
		version := uint8(0)
		if t.early {
			version = 1
		}
		tables = append(tables, bmff.Full("ctts", version, 0, runs(t.offsets)))
	}
	if len(t.syncs) < len(t.sizes) {
		tables = append(tables, bmff.Full("stss", 0, 0, bmff.U32(uint32(len(t.syncs))), bmff.U32(t.syncs...)))
	}
	tables = append(tables, t.stsc(), bmff.Full("stsz", 0, 0, bmff.U32(0, uint32(len(t.sizes))), bmff.U32(t.sizes...)),
		t.places(start, wide))
	return bmff.Make("minf", header,
		bmff.Make("dinf", bmff.Full("dref", 0, 0, bmff.U32(1), bmff.Full("url ", 0, 1))),
		bmff.Make("stbl", tables...))
}

func runs(all []run) []byte {
	b := make([]byte, 0, 4+8*len(all))
	b = binary.BigEndian.AppendUint32(b, uint32(len(all)))
	for _, r := range all {
		b = binary.BigEndian.AppendUint32(b, r.n)
		b = binary.BigEndian.AppendUint32(b, r.value)
	}
	return b
}

// stsc says how many samples the chunks have, where that changes.
func (t *Track) stsc() []byte {
	var b []byte
	n := uint32(0)
	for i, c := range t.chunks {
		if i > 0 && c.samples == t.chunks[i-1].samples && c.entry == t.chunks[i-1].entry {
			continue
		}
		n++
		b = append(b, bmff.U32(uint32(i+1), c.samples, c.entry)...)
	}
	return bmff.Full("stsc", 0, 0, bmff.U32(n), b)
}

// places says where the chunks are.
func (t *Track) places(start int64, wide bool) []byte {
	b := make([]byte, 0, 4+8*len(t.chunks))
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.chunks)))
	for _, c := range t.chunks {
		if wide {
			b = binary.BigEndian.AppendUint64(b, uint64(start+c.at))
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(start+c.at))
		}
	}
	if wide {
		return bmff.Full("co64", 0, 0, b)
	}
	return bmff.Full("stco", 0, 0, b)
}

func packLanguage(code string) uint16 {
	if len(code) != 3 {
		code = "und"
	}
	return uint16(code[0]-0x60)&31<<10 | uint16(code[1]-0x60)&31<<5 | uint16(code[2]-0x60)&31
}
