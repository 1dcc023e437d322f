package hlscheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// fragment is what a moof says (ISO 14496-12, 8.8).
type fragment struct {
	time     uint64 // baseMediaDecodeTime
	duration uint64 // of all samples
	sync     bool   // the first sample is a sync sample
	minPTS   int64
	each     []uint32 // duration of each sample
}

// initInfo is what a moov says.
type initInfo struct {
	timescale uint32
	handler   string // vide, soun
	tracks    int
	format    string // sample entry: avc1, mp4a
	codec     string // RFC 6381, when we can tell
	width     int
	height    int
	duration  uint32 // default sample duration of trex
	flags     uint32 // default sample flags of trex
}

var errBox = errors.New("broken box")

// boxes calls each with type and body of every box in b.
func boxes(b []byte, each func(kind string, body []byte) error) error {
	for len(b) > 0 {
		if len(b) < 8 {
			return fmt.Errorf("%w: %d bytes left over", errBox, len(b))
		}
		size, head := uint64(binary.BigEndian.Uint32(b)), uint64(8)
		if size == 1 && len(b) >= 16 {
			size, head = binary.BigEndian.Uint64(b[8:]), 16
		}
		if size < head || size > uint64(len(b)) {
			return fmt.Errorf("%w: %q has size %d of %d", errBox, b[4:8], size, len(b))
		}
		if err := each(string(b[4:8]), b[head:size]); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// reader reads big-endian fields and remembers that it ran out.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.short = true
		return make([]byte, n)
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

// fullBox reads version and flags.
func (r *reader) fullBox() (version byte, flags uint32) {
	v := r.u32()
	return byte(v >> 24), v & 0xffffff
}

// parseFragments reads all moofs of a segment or part. structure names what stands around them, in order.
func parseFragments(b []byte, init *initInfo) (list []fragment, structure []string, err error) {
	left := len(b) // samples: each has a byte
	err = boxes(b, func(kind string, body []byte) error {
		structure = append(structure, kind)
		if kind != "moof" {
			return nil
		}
		f, bad := parseMoof(body, init, left)
		list = append(list, f)
		left -= len(f.each)
		return bad
	})
	return list, structure, err
}

// parseMoof reads a moof, which may have at most so many samples.
func parseMoof(b []byte, init *initInfo, most int) (f fragment, err error) {
	trafs, timed := 0, false
	defaults := struct{ duration, flags uint32 }{init.duration, init.flags}
	err = boxes(b, func(kind string, body []byte) error {
		if kind != "traf" {
			return nil
		}
		trafs++
		return boxes(body, func(kind string, body []byte) error {
			r := &reader{b: body}
			version, flags := r.fullBox()
			switch kind {
			case "tfhd":
				r.u32() // track
				for _, field := range []struct {
					flag uint32
					size int
					into *uint32
				}{{1, 8, nil}, {2, 4, nil}, {8, 4, &defaults.duration}, {16, 4, nil}, {32, 4, &defaults.flags}} {
					if flags&field.flag == 0 {
						continue
					}
					v := r.take(field.size)
					if field.into != nil {
						*field.into = binary.BigEndian.Uint32(v)
					}
				}
			case "tfdt":
				timed = true
				if version == 0 {
					f.time = uint64(r.u32())
				} else {
					f.time = r.u64()
				}
			case "trun":
				n := r.u32()
				if int64(n) > int64(most-len(f.each)) {
					return fmt.Errorf("%w: trun has %d samples, more than the segment has bytes", errBox, n)
				}
				readTrun(r, n, flags, defaults.duration, defaults.flags, &f)
			}
			if r.short {
				return fmt.Errorf("%w: %s is cut short", errBox, kind)
			}
			return nil
		})
	})
	if err == nil && trafs != 1 {
		err = fmt.Errorf("%w: moof has %d track fragments, want 1", errBox, trafs)
	}
	if err == nil && !timed {
		err = fmt.Errorf("%w: moof has no tfdt", errBox)
	}
	return f, err
}

// nonSync is sample_is_non_sync_sample in sample flags (8.8.3.1).
const nonSync = 0x10000

func readTrun(r *reader, n, flags, duration, sampleFlags uint32, f *fragment) {
	if flags&1 != 0 {
		r.u32()
	}
	first := sampleFlags
	hasFirst := flags&4 != 0
	if hasFirst {
		first = r.u32()
	}
	for ; n > 0 && !r.short; n-- {
		d, fl, offset := duration, sampleFlags, int32(0)
		if flags&0x100 != 0 {
			d = r.u32()
		}
		if flags&0x200 != 0 {
			r.u32()
		}
		if flags&0x400 != 0 {
			fl = r.u32()
		}
		if flags&0x800 != 0 {
			offset = int32(r.u32())
		}
		if len(f.each) == 0 {
			if !hasFirst {
				first = fl
			}
			f.sync = first&nonSync == 0
		}
		pts := int64(f.time+f.duration) + int64(offset)
		if len(f.each) == 0 || pts < f.minPTS {
			f.minPTS = pts
		}
		f.each = append(f.each, d)
		f.duration += uint64(d)
	}
}

// parseInit reads an init segment.
func parseInit(b []byte) (*initInfo, error) {
	info := &initInfo{}
	sawFtyp, sawMoov := false, false
	err := boxes(b, func(kind string, body []byte) error {
		switch kind {
		case "ftyp":
			sawFtyp = !sawMoov
		case "moov":
			sawMoov = true
			return info.moov(body)
		case "moof", "mdat":
			return fmt.Errorf("%w: %s in an init segment", errBox, kind)
		}
		return nil
	})
	if err == nil && (!sawFtyp || !sawMoov) {
		err = fmt.Errorf("%w: an init segment needs ftyp and moov", errBox)
	}
	if err == nil && info.tracks != 1 {
		err = fmt.Errorf("%w: init segment has %d tracks, want 1", errBox, info.tracks)
	}
	if err == nil && info.timescale == 0 {
		err = fmt.Errorf("%w: timescale is 0", errBox)
	}
	return info, err
}

// moov walks down to the boxes that matter.
func (i *initInfo) moov(b []byte) error {
	return boxes(b, func(kind string, body []byte) error {
		r := &reader{b: body}
		switch kind {
		case "trak":
			i.tracks++
			return i.moov(body)
		case "mdia", "minf", "stbl", "mvex":
			return i.moov(body)
		case "mdhd":
			if version, _ := r.fullBox(); version == 1 {
				r.take(16)
			} else {
				r.take(8)
			}
			i.timescale = r.u32()
		case "hdlr":
			r.take(8)
			i.handler = string(r.take(4))
		case "trex":
			r.take(12)
			i.duration = r.u32()
			r.take(4)
			i.flags = r.u32()
		case "stsd":
			r.take(8)
			return boxes(r.b, i.sampleEntry)
		case "stts", "stsz":
			r.take(4)
			if kind == "stsz" {
				r.take(4)
			}
			if n := r.u32(); n != 0 {
				return fmt.Errorf("%w: init segment has samples in %s", errBox, kind)
			}
		}
		if r.short {
			return fmt.Errorf("%w: %s is cut short", errBox, kind)
		}
		return nil
	})
}

func (i *initInfo) sampleEntry(kind string, body []byte) error {
	i.format = kind
	kind = unprotected(kind, body)
	i.codec = kind
	r := &reader{b: body}
	switch kind {
	case "avc1", "avc3", "hvc1", "hev1", "av01", "vp09":
		r.take(24)
		size := r.u32()
		i.width, i.height = int(size>>16), int(size&0xffff)
		r.take(50)
		return boxes(r.b, func(box string, b []byte) error {
			if box == "avcC" && len(b) >= 4 {
				i.codec = fmt.Sprintf("%s.%02x%02x%02x", kind, b[1], b[2], b[3])
			}
			if box == "hvcC" && len(b) >= 13 {
				i.codec = kind + hevcCodec(b)
			}
			return nil
		})
	case "mp4a":
		r.take(28)
		return boxes(r.b, func(box string, b []byte) error {
			if box == "esds" {
				i.codec = "mp4a" + esdsCodec(b)
			}
			return nil
		})
	}
	return nil
}

// unprotected is the format of a sample entry before it was encrypted, ISO/IEC 14496-12 section 8.12.2; of another it
// is its own.
func unprotected(kind string, body []byte) (format string) {
	head := map[string]int{"encv": 78, "enca": 28}[kind]
	if head == 0 || len(body) < head {
		return kind
	}
	format = kind
	_ = boxes(body[head:], func(box string, b []byte) error { // what is broken in there is still encv
		if box == "sinf" {
			return boxes(b, func(box string, b []byte) error {
				if box == "frma" && len(b) == 4 {
					format = string(b)
				}
				return nil
			})
		}
		return nil
	})
	return format
}

// hevcCodec is profile, compatibility, tier, level and constraints as ISO 14496-15 annex E writes them.
func hevcCodec(hvcC []byte) string {
	tier := "L"
	if hvcC[1]&0x20 != 0 {
		tier = "H"
	}
	compatible := bits.Reverse32(binary.BigEndian.Uint32(hvcC[2:]))
	var name strings.Builder
	fmt.Fprintf(&name, ".%s%d.%x.%s%d", []string{"", "a", "b", "c"}[hvcC[1]>>6], hvcC[1]&0x1f, compatible, tier,
		hvcC[12])
	for _, c := range bytes.TrimRight(hvcC[6:12], "\x00") {
		fmt.Fprintf(&name, ".%x", c)
	}
	return strings.ToLower(name.String())
}

// esdsCodec reads object type indication and AAC's audio object type (ISO 14496-1, 7.2.6).
func esdsCodec(b []byte) string {
	for at := 4; at+2 < len(b); {
		tag := b[at]
		at++
		size := 0
		for at < len(b) {
			v := b[at]
			at++
			size = size<<7 | int(v&0x7f)
			if v&0x80 == 0 {
				break
			}
		}
		switch tag {
		case 3:
			at += 3 // without the optional fields, which MP4 leaves out
		case 4:
			if at >= len(b) {
				return ""
			}
			// MPEG audio, which players know by the name that MPEG-4 has for its layer III
			if b[at] == 0x69 || b[at] == 0x6b {
				return ".40.34"
			}
			if b[at] != 0x40 {
				return fmt.Sprintf(".%x", b[at])
			}
			at += 13
		case 5:
			if at >= len(b) {
				return ""
			}
			return fmt.Sprintf(".40.%d", b[at]>>3)
		default:
			at += size
		}
	}
	return ""
}
