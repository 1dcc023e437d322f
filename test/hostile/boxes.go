package hostile

import (
	"bytes"
	"encoding/binary"
)

func box(typ string, parts ...[]byte) []byte {
	b := append(make([]byte, 4, 64), typ...)
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

func full(typ string, version byte, parts ...[]byte) []byte {
	return box(typ, append([][]byte{{version, 0, 0, 0}}, parts...)...)
}

func u32(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func u64(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	return b
}

// swap is an MP4 with the first box at a path in place of another, or without it; all sizes around it are true. One
// that is not there is put at the end of its parent.
func swap(b []byte, with []byte, path ...string) []byte {
	var out []byte
	done := false
	for len(b) >= 8 {
		n := binary.BigEndian.Uint32(b)
		typ := string(b[4:8])
		switch {
		case done || typ != path[0]:
			out = append(out, b[:n]...)
		case len(path) == 1:
			out, done = append(out, with...), true
		default:
			out, done = append(out, box(typ, swap(b[8:n], with, path[1:]...))...), true
		}
		b = b[n:]
	}
	if !done {
		out = append(out, with...)
	}
	return out
}

// find is the body of the first box at a path.
func find(b []byte, path ...string) []byte {
	for _, want := range path {
		for {
			if len(b) < 8 {
				return nil
			}
			n := binary.BigEndian.Uint32(b)
			if string(b[4:8]) == want {
				b = b[8:n]
				break
			}
			b = b[n:]
		}
	}
	return b
}

func table(b, with []byte, name string) []byte { return swap(b, with, inTables(name)...) }

// inTables is the way to a box of a track's sample tables.
func inTables(name string) []string { return []string{"moov", "trak", "mdia", "minf", "stbl", name} }

// movie is a QuickTime file of one picture.
func movie(entry string, width, height uint16, picture []byte) []byte {
	head := make([]byte, 78)
	binary.BigEndian.PutUint16(head[6:], 1)
	binary.BigEndian.PutUint16(head[24:], width)
	binary.BigEndian.PutUint16(head[26:], height)
	binary.BigEndian.PutUint16(head[40:], 1)
	binary.BigEndian.PutUint16(head[74:], 24)
	binary.BigEndian.PutUint16(head[76:], 0xffff)
	matrix := u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
	ftyp := box("ftyp", []byte("qt  "), u32(0), []byte("qt  "))
	mdat := box("mdat", picture)
	return bytes.Join([][]byte{ftyp, mdat, box("moov",
		full("mvhd", 0, u32(0, 0, 1000, 1000, 0x10000, 0x01000000, 0, 0), matrix, u32(0, 0, 0, 0, 0, 0, 2)),
		box("trak",
			full("tkhd", 0, u32(0, 0, 1, 0, 1000, 0, 0, 0, 0), matrix, u32(uint32(width)<<16, uint32(height)<<16)),
			box("mdia",
				full("mdhd", 0, u32(0, 0, 1000, 1000, 0)),
				full("hdlr", 0, []byte("mhlrvide"), u32(0, 0, 0), []byte{0}),
				box("minf", full("vmhd", 0, u32(0, 0)), box("dinf", full("dref", 0, u32(1), box("url ", u32(1)))),
					box("stbl",
						full("stsd", 0, u32(1), box(entry, head)),
						full("stts", 0, u32(1, 1, 1000)), full("stsc", 0, u32(1, 1, 1, 1)),
						full("stsz", 0, u32(0, 1, uint32(len(picture)))),
						full("stco", 0, u32(1, uint32(len(ftyp)+8))))))))}, nil)
}
