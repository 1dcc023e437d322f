package mp4_test

import (
	"encoding/binary"
	"io"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
)

var (
	avcConfig = frame.Config{
		Kind: frame.Video, Codec: frame.H264, PPS: []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}, SPS: []byte{
			0x67, 0x64, 0x00, 0x0d, 0xac, 0xd9, 0x41, 0x41, 0xfb, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
			0x03, 0x03, 0x20, 0xf1, 0x42, 0x99, 0x60,
		},
	}
	aacConfig = frame.Config{Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x11, 0x90}}
)

// trak is a track to build a file from; what is nil gets a sound default for n samples of size bytes.
type trak struct {
	id, timescale          uint32
	handler                string
	entries                [][]byte
	n, size                uint32
	stts, ctts, stss, stsz []byte
	stsc, chunks           []byte // bodies without version and flags
	edits                  []byte // a whole elst
	dref                   []byte
	offset                 uint32 // of the one chunk
	more                   []byte // further boxes of the stbl
}

func entry(c frame.Config) []byte {
	b, err := cmaf.SampleEntry(c)
	if err != nil {
		panic(err)
	}
	return b
}

func video(n, size uint32) trak {
	return trak{id: 1, timescale: 90000, handler: "vide", entries: [][]byte{entry(avcConfig)}, n: n, size: size}
}

func (t trak) stbl() []byte {
	or := func(b []byte, words ...uint32) []byte {
		if b != nil {
			return b
		}
		return bmff.U32(words...)
	}
	sizes := make([]uint32, 2, 2+t.n)
	sizes[1] = t.n
	for range t.n {
		sizes = append(sizes, t.size)
	}
	stsd := bmff.U32(uint32(len(t.entries)))
	for _, e := range t.entries {
		stsd = append(stsd, e...)
	}
	b := [][]byte{
		bmff.Full("stsd", 0, 0, stsd),
		bmff.Full("stts", 0, 0, or(t.stts, 1, t.n, 3000)),
		bmff.Full("stsc", 0, 0, or(t.stsc, 1, 1, t.n, 1)),
		bmff.Full("stsz", 0, 0, or(t.stsz, sizes...)),
		bmff.Full("stco", 0, 0, or(t.chunks, 1, t.offset)),
		t.more,
	}
	if t.ctts != nil {
		b = append(b, bmff.Full("ctts", 0, 0, t.ctts))
	}
	if t.stss != nil {
		b = append(b, bmff.Full("stss", 0, 0, t.stss))
	}
	return bmff.Make("stbl", b...)
}

func (t trak) box() []byte {
	var edts []byte
	if t.edits != nil {
		edts = bmff.Make("edts", t.edits)
	}
	dref := t.dref
	if dref == nil {
		dref = bmff.Full("url ", 0, 1)
	}
	return bmff.Make("trak",
		bmff.Full("tkhd", 0, 3,
			bmff.U32(0, 0, t.id, 0, 0, 0, 0, 0, 0, 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000, 320<<16, 240<<16)),
		edts,
		bmff.Make("mdia",
			bmff.Full("mdhd", 0, 0, bmff.U32(0, 0, t.timescale, 0, 0x55c40000)),
			bmff.Full("hdlr", 0, 0, bmff.U32(0), []byte(t.handler), bmff.U32(0, 0, 0), []byte{0}),
			bmff.Make("minf", bmff.Make("dinf", bmff.Full("dref", 0, 0, bmff.U32(1), dref)), t.stbl())))
}

func mvhd() []byte {
	return bmff.Full("mvhd", 0, 0, bmff.U32(0, 0, 1000, 0), make([]byte, 80))
}

// file puts the moov in front of an mdat of media bytes; offsets of chunks given as 0 are set to the media's start.
func file(media int, traks ...trak) []byte {
	build := func() []byte {
		moov := [][]byte{mvhd()}
		for _, t := range traks {
			moov = append(moov, t.box())
		}
		return append(bmff.Make("ftyp", []byte("isom\x00\x00\x02\x00isom")), bmff.Make("moov", moov...)...)
	}
	start := uint32(len(build()) + 8)
	for i := range traks {
		if traks[i].offset == 0 {
			traks[i].offset = start
		}
	}
	return append(build(), bmff.Make("mdat", make([]byte, media))...)
}

func index(b []byte) (*mp4.File, error) { return mp4.Index(readerAt(b), int64(len(b))) }

type readerAt []byte

func (r readerAt) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(r)) {
		return 0, io.EOF
	}
	n := copy(p, r[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// hour is a 60-minute file of 30 pictures a second and AAC, interleaved by the second, whose media is all zeros and
// takes no memory.
type hour struct {
	head []byte
	size int64
}

func (h hour) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	if at < int64(len(h.head)) {
		copy(p, h.head[at:])
	}
	return len(p), nil
}

func newHour() hour {
	const seconds, fps, aps = 3600, 30, 47
	const videoSize, audioSize = 16000, 370
	v := trak{
		id: 1, timescale: 15360, handler: "vide", entries: [][]byte{entry(avcConfig)}, n: seconds * fps,
		size: videoSize, stts: bmff.U32(1, seconds*fps, 512),
	}
	a := trak{
		id: 2, timescale: 48000, handler: "soun", entries: [][]byte{entry(aacConfig)}, n: seconds * aps,
		size: audioSize, stts: bmff.U32(1, seconds*aps, 1024),
	}
	v.stsc, a.stsc = bmff.U32(1, 1, fps, 1), bmff.U32(1, 1, aps, 1)
	v.ctts = bmff.U32(v.n)
	v.stss = bmff.U32(v.n / 60)
	for i := range v.n {
		v.ctts = append(v.ctts, bmff.U32(1, i%3*512)...)
		if i%60 == 0 {
			v.stss = append(v.stss, bmff.U32(i+1)...)
		}
	}
	chunks := func(start, skip uint32) []byte {
		b := bmff.U32(seconds)
		for i := range uint32(seconds) {
			b = binary.BigEndian.AppendUint32(b, start+i*(fps*videoSize+aps*audioSize)+skip)
		}
		return b
	}
	v.chunks, a.chunks = chunks(0, 0), chunks(0, fps*videoSize)
	start := uint32(len(file(0, v, a)))
	v.chunks, a.chunks = chunks(start, 0), chunks(start, fps*videoSize)
	head := file(0, v, a)
	media := int64(seconds) * (fps*videoSize + aps*audioSize)
	binary.BigEndian.PutUint32(head[len(head)-8:], uint32(media+8))
	return hour{head: head, size: int64(len(head)) + media}
}
