// Package hostile makes files that nobody means well with, for tests of what takes files from outside: they lie about
// what is in them, ask for more than anybody has, or are something else. It starts no goroutine.
package hostile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// File is one of them.
type File struct {
	Name string
	Data []byte
	// Want is part of the reason that is given; empty: any reason will do.
	Want string
	// Plays says that the lie does no harm: the file may become an asset as well.
	Plays bool
	// Slow says that a decoder tries for as long as it is let.
	Slow bool
}

// Files are made of a well-meant MP4 with H.264 and nothing else, its moov box behind its media.
func Files(good []byte) []File {
	out := []File{
		{Name: "nothing", Want: "is empty"},
		{Name: "one byte", Data: []byte{0}},
		{Name: "half a file", Data: good[:len(good)/2], Want: "not complete"},
		{Name: "without its last byte", Data: good[:len(good)-1], Want: "not complete"},
		{Name: "media of two to the 62", Data: append(append([]byte{0, 0, 0, 1}, "mdat"...), u64(1<<62)...)},
	}
	out = append(out, playlists()...)
	out = append(out, tables(good)...)
	out = append(out, times(good)...)
	out = append(out, tooMany(good)...)
	return append(out, bombs(good)...)
}

// playlists are texts that make a careless demuxer open other files.
func playlists() []File {
	var out []File
	for name, text := range map[string]string{
		"M3U8":                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
		"M3U8 with a BOM":     "\ufeff#EXTM3U\n#EXTINF:4,\nhttp://169.254.169.254/latest\n",
		"M3U8 behind spaces":  "\n\n  #EXTM3U\n#EXTINF:4,\nhttp://127.0.0.1/\n",
		"ffconcat":            "ffconcat version 1.0\nfile /etc/passwd\n",
		"ffconcat, no header": "file '/etc/passwd'\nfile 'http://127.0.0.1/'\n",
		"SDP": "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video " +
			"5004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n",
		"XSPF":               `<?xml version="1.0"?><playlist version="1" xmlns="http://xspf.org/ns/0/"><trackList><track><location>file:///etc/passwd</location></track></trackList></playlist>`,
		"MPD":                `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period><BaseURL>file:///etc/passwd</BaseURL></Period></MPD>`,
		"PLS":                "[playlist]\nFile1=file:///etc/passwd\nNumberOfEntries=1\n",
		"ASX":                `<asx version="3.0"><entry><ref href="file:///etc/passwd"/></entry></asx>`,
		"SMIL":               `<smil><body><video src="file:///etc/passwd"/></body></smil>`,
		"metadata of ffmpeg": ";FFMETADATA1\ntitle=x\n",
		"subtitles":          "1\n00:00:01,000 --> 00:00:02,000\nHello\n",
		"SVG":                `<svg xmlns="http://www.w3.org/2000/svg" width="30000" height="30000"><image href="file:///etc/passwd"/></svg>`,
	} {
		out = append(out, File{Name: name, Data: []byte(text)})
	}
	return append(out,
		File{
			Name: "M3U8 in a media file's clothes",
			Data: append(box("ftyp", []byte("isom"), u32(0), []byte("isom")),
				"#EXTM3U\n#EXTINF:4,\nfile:///etc/passwd\n"...),
		},
		File{
			Name: "M3U8 behind a transport stream's first byte",
			Data: append([]byte{0x47}, "#EXTM3U\n#EXTINF:4,\nfile:///etc/passwd\n"...),
		})
}

// tables are sample tables that claim more than there is.
func tables(good []byte) []File {
	const most = 0xffffffff
	return []File{
		{Name: "stsz of four billion samples", Data: table(good, full("stsz", 0, u32(0, most)), "stsz")},
		{Name: "stsz of four billion equal samples", Data: table(good, full("stsz", 0, u32(1, most)), "stsz")},
		{Name: "ctts of four billion entries", Data: table(good, full("ctts", 0, u32(most)), "ctts")},
		{
			Name: "ctts of one entry for four billion", Data: table(good, full("ctts", 0, u32(1, most, 0)), "ctts"),
			Plays: true,
		},
		{Name: "stts of four billion entries", Data: table(good, full("stts", 0, u32(most)), "stts")},
		{
			Name: "stts of four billion samples", Data: table(good, full("stts", 0, u32(1, most, 1)), "stts"),
			Plays: true,
		},
		{Name: "stsc without end", Data: table(good, full("stsc", 0, u32(1, 1, most, 1)), "stsc"), Plays: true},
		{Name: "stco of four billion chunks", Data: table(good, full("stco", 0, u32(most)), "stco")},
		{Name: "samples behind the end", Data: table(good, full("co64", 0, u32(1), u64(1<<62)), "stco")},
		{Name: "stsd of another box", Data: table(good, full("stsd", 0, u32(most)), "stsd")},
		{Name: "samples of nobody", Data: table(good, full("stss", 0, u32(2, 0, most)), "stss"), Plays: true},
		{
			Name: "media in another file",
			Data: swap(good, full("dref", 0, u32(1), box("url ", u32(0), []byte("file:///etc/passwd\x00"))), "moov",
				"trak", "mdia", "minf", "dinf", "dref"), Plays: true,
		},
	}
}

// times are clocks that overflow, stand still or go back.
func times(good []byte) []File {
	const most, negative = 0xffffffff, 0x80000000
	mdhd := func(scale, length uint32) []byte { return full("mdhd", 0, u32(0, 0, scale, length, 0)) }
	elst := func(length uint64, at int64) []byte {
		return box("edts", full("elst", 1, u32(1), u64(length, uint64(at)), u32(0x10000)))
	}
	n := binary.BigEndian.Uint32(find(good, inTables("stsz")...)[8:])
	return []File{
		{Name: "a clock of zero ticks", Data: swap(good, mdhd(0, 1), "moov", "trak", "mdia", "mdhd")},
		{Name: "a clock of one tick", Data: swap(good, mdhd(1, most), "moov", "trak", "mdia", "mdhd"), Plays: true},
		{
			Name: "a clock of four billion ticks", Data: swap(good, mdhd(most, 1), "moov", "trak", "mdia", "mdhd"),
			Plays: true,
		},
		{Name: "samples that last for days", Data: table(good, full("stts", 0, u32(1, n, 0x7fffffff)), "stts")},
		{Name: "samples that go back", Data: table(good, full("stts", 0, u32(1, n, most)), "stts"), Plays: true},
		{Name: "samples that take no time", Data: table(good, full("stts", 0, u32(1, n, 0)), "stts"), Plays: true},
		{
			Name: "pictures long before they are decoded",
			Data: table(good, full("ctts", 1, u32(1, n, negative)), "ctts"), Plays: true,
		},
		{
			Name: "pictures long after they are decoded", Data: table(good, full("ctts", 0, u32(1, n, most)), "ctts"),
			Plays: true,
		},
		{
			Name: "an edit behind the end of time", Data: swap(good, elst(1<<62, 1<<62), "moov", "trak", "edts"),
			Plays: true,
		},
		{Name: "an edit before time", Data: swap(good, elst(1<<62, -1<<62), "moov", "trak", "edts"), Plays: true},
		{
			Name: "a movie of a thousand hours",
			Data: swap(good,
				full("mvhd", 0, u32(0, 0, 1000, 3600_000_000, 0x10000, 0x01000000, 0, 0), make([]byte, 64)), "moov",
				"mvhd"), Plays: true,
		},
		{Name: "a track as large as a wall", Data: wall(good), Plays: true},
	}
}

// wall says of a small picture that it is 65535 pixels wide.
func wall(good []byte) []byte {
	tkhd := bytes.Clone(find(good, "moov", "trak", "tkhd"))
	binary.BigEndian.PutUint32(tkhd[len(tkhd)-8:], 0xffff0000)
	binary.BigEndian.PutUint32(tkhd[len(tkhd)-4:], 0xffff0000)
	return swap(good, box("tkhd", tkhd), "moov", "trak", "tkhd")
}

// tooMany are files with too many of something.
func tooMany(good []byte) []File {
	const many = 10_000
	trak := box("trak", find(good, "moov", "trak"))
	moov := append(box("mvhd", find(good, "moov", "mvhd")), bytes.Repeat(trak, many)...)
	deep := func(typ string) []byte {
		var heads []byte
		for i := range 100_000 {
			heads = append(append(heads, u32(uint32(8*(100_000-i)))...), typ...)
		}
		return heads
	}
	millions := bytes.Repeat(box("free"), 2_000_000)
	samples := uint32(10_000_000)
	media := box("mdat", make([]byte, samples))
	long := append(append(box("ftyp", []byte("isom"), u32(0), []byte("isom")), media...),
		box("moov", find(good, "moov"))...)
	for name, b := range map[string][]byte{
		"stsz": full("stsz", 0, u32(1, samples)), "stts": full("stts", 0, u32(1, samples, 1)),
		"stsc": full("stsc", 0, u32(1, 1, samples, 1)),
		"stco": full("stco", 0, u32(1, 24)), "ctts": full("ctts", 0, u32(1, samples, 0)),
	} {
		long = table(long, b, name)
	}
	return []File{
		{Name: "ten thousand tracks", Data: swap(good, box("moov", moov), "moov")},
		{Name: "ten thousand tracks of Matroska", Data: matroska(many)},
		{Name: "ten thousand streams of AVI", Data: avi(many)},
		{
			Name: "moov in moov in moov",
			Data: append(box("ftyp", []byte("isom"), u32(0), []byte("isom")), deep("moov")...),
		},
		{
			Name: "boxes in boxes in a track", Data: swap(good, box("udta", deep("meta")), "moov", "trak", "udta"),
			Plays: true,
		},
		{Name: "two million boxes", Data: append(box("ftyp", []byte("isom"), u32(0), []byte("isom")), millions...)},
		{Name: "ten million samples", Data: long, Slow: true},
		{Name: "a million Matroska elements", Data: append(ebml(), bytes.Repeat([]byte{0xec, 0x80}, 1_000_000)...)},
	}
}

func ebml() []byte {
	doc := append([]byte{0x42, 0x82, 0x88}, "matroska"...)
	return append(append([]byte{0x1a, 0x45, 0xdf, 0xa3, 0x80 | byte(len(doc))}, doc...), 0x18, 0x53, 0x80, 0x67, 0x01,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
}

func matroska(n int) []byte {
	var tracks []byte
	for i := range n {
		entry := []byte{
			0xd7, 0x84, 0, 0, byte(i >> 8), byte(i + 1), 0x73, 0xc5, 0x84, 0, 1, byte(i >> 8), byte(i), 0x83, 0x81, 1,
			0x86, 0x8f,
		}
		entry = append(entry, "V_MPEG4/ISO/AVC"...)
		entry = append(entry, 0xe0, 0x88, 0xb0, 0x82, 1, 0, 0xba, 0x82, 1, 0)
		tracks = append(append(tracks, 0xae, 0x80|byte(len(entry))), entry...)
	}
	head := append(ebml(), 0x16, 0x54, 0xae, 0x6b, 0x10)
	size := len(tracks)
	return append(append(head, byte(size>>16), byte(size>>8), byte(size)), tracks...)
}

func riff(typ string, parts ...[]byte) []byte {
	b := append([]byte(typ), 0, 0, 0, 0)
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

func avi(n int) []byte {
	strl := riff("LIST", []byte("strl"), riff("strh", []byte("vidsH264"), make([]byte, 48)),
		riff("strf", make([]byte, 40)))
	hdrl := riff("LIST", []byte("hdrl"), riff("avih", make([]byte, 56)), bytes.Repeat(strl, n))
	return riff("RIFF", []byte("AVI "), hdrl, riff("LIST", []byte("movi")))
}

// bombs are pictures that are small as files and large in memory.
func bombs(good []byte) []File {
	const side = 30_000
	sps := hugeSPS(side)
	pps := []byte{0x68, 0xce, 0x3c, 0x80}
	avcC := box("avcC", []byte{1, 66, 0, 62, 0xff, 0xe1, 0, byte(len(sps))}, sps, []byte{1, 0, byte(len(pps))}, pps)
	stsd := find(good, inTables("stsd")...)
	entry := stsd[8+8 : 8+8+78]
	picture := png(side)
	startCode := []byte{0, 0, 0, 1}
	raw := bytes.Join([][]byte{
		nil, sps, pps, append([]byte{0x65}, bytes.Repeat([]byte{0x88, 0x84}, 500)...),
	}, startCode)
	return []File{
		{Name: "PNG of a billion pixels", Data: picture},
		{Name: "PNG of a billion pixels as a film", Data: movie("png ", side, side, picture)},
		{Name: "JPEG of a billion pixels as a film", Data: movie("jpeg", side, side, jpeg(side))},
		{Name: "GIF of a billion pixels", Data: append([]byte("GIF89a"), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x3b)},
		{Name: "AVIF of a billion pixels", Data: avif(side)},
		{
			Name: "H.264 of a billion pixels",
			Data: table(good, full("stsd", 0, u32(1), box("avc1", entry, avcC)), "stsd"),
		},
		{Name: "H.264 of a billion pixels in a transport stream", Data: transport(raw)},
		{
			Name: "gzip of nothing but zeros",
			Data: append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}, make([]byte, 1<<20)...),
		},
		{Name: "ZIP", Data: append([]byte("PK\x03\x04"), make([]byte, 1000)...)},
	}
}

// png is a picture of one bit for each pixel, all of them black.
func png(side uint32) []byte {
	var data bytes.Buffer
	z, _ := zlib.NewWriterLevel(&data, zlib.BestSpeed)
	_, _ = io.CopyN(z, zeros{}, int64(side)*int64(side/8+1))
	_ = z.Close()
	chunk := func(typ string, body []byte) []byte {
		b := append(u32(uint32(len(body))), typ...)
		b = append(b, body...)
		return append(b, u32(crc32.ChecksumIEEE(b[4:]))...)
	}
	head := append(u32(side, side), 1, 0, 0, 0, 0)
	return bytes.Join([][]byte{
		[]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head), chunk("IDAT", data.Bytes()), chunk("IEND", nil),
	}, nil)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// jpeg is a picture's head with next to nothing behind it.
func jpeg(side uint16) []byte {
	b := []byte{0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}
	b = append(b, bytes.Repeat([]byte{1}, 64)...)
	b = append(b, 0xff, 0xc0, 0, 11, 8, byte(side>>8), byte(side), byte(side>>8), byte(side), 1, 1, 0x11, 0)
	table := append([]byte{0, 1}, make([]byte, 15)...)
	for _, class := range []byte{0x00, 0x10} {
		b = append(append(append(b, 0xff, 0xc4, 0, 20, class), table[1:]...), 0)
		b = append(b, 0)
	}
	return append(b, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0, 0, 0xff, 0xd9)
}

func avif(side uint32) []byte {
	props := box("iprp", box("ipco", full("ispe", 0, u32(side, side))))
	meta := full("meta", 0, full("hdlr", 0, u32(0), []byte("pict"), u32(0, 0, 0), []byte{0}), props)
	return append(append(box("ftyp", []byte("avif"), u32(0), []byte("avifmif1")), meta...),
		box("mdat", make([]byte, 100))...)
}

// hugeSPS is an SPS of the Baseline profile for a square picture.
func hugeSPS(side int) []byte {
	var bits strings.Builder
	golomb := func(v int) {
		s := fmt.Sprintf("%b", v+1)
		bits.WriteString(strings.Repeat("0", len(s)-1) + s)
	}
	for _, v := range []int{0, 0, 2, 1} { // ID, frame numbers, order type, references
		golomb(v)
	}
	bits.WriteString("0")
	golomb(side/16 - 1)
	golomb(side/16 - 1)
	bits.WriteString("1" + "1" + "0" + "0" + "1")
	s := bits.String()
	s += strings.Repeat("0", (8-len(s)%8)%8)
	out := []byte{0x67, 66, 0, 62}
	for ; len(s) > 0; s = s[8:] {
		var v byte
		for _, c := range s[:8] {
			v = v<<1 | byte(c-'0')
		}
		out = append(out, v)
	}
	return out
}

// transport puts an elementary stream of H.264 into a transport stream, ISO 13818-1.
func transport(es []byte) []byte {
	table := func(pid uint16, section []byte) []byte {
		section = append(section, u32(crcMPEG(section))...)
		p := append([]byte{0x47, 0x40 | byte(pid>>8), byte(pid), 0x10, 0}, section...)
		return append(p, bytes.Repeat([]byte{0xff}, 188-len(p))...)
	}
	out := table(0, []byte{0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xe1, 0x00})
	out = append(out, table(0x100, []byte{2, 0xb0, 18, 0, 1, 0xc1, 0, 0, 0xe1, 1, 0xf0, 0, 0x1b, 0xe1, 1, 0xf0, 0})...)
	for k := range 20 {
		pes := append([]byte{0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21, 0, byte(1 + 2*k), 0, 1}, es...)
		for i := 0; len(pes) > 0; i++ {
			head := []byte{0x47, 0x01, 1, 0x10 | byte(i&15)}
			if i == 0 {
				head[1] |= 0x40
			}
			n := min(len(pes), 184)
			if n < 184 {
				stuff := bytes.Repeat([]byte{0xff}, 184-n)
				stuff[0] = byte(len(stuff) - 1)
				if len(stuff) > 1 {
					stuff[1] = 0
				}
				head[3] |= 0x20
				head = append(head, stuff...)
			}
			out = append(append(out, head...), pes[:n]...)
			pes = pes[n:]
		}
	}
	return out
}

func crcMPEG(b []byte) uint32 {
	crc := uint32(0xffffffff)
	for _, x := range b {
		crc ^= uint32(x) << 24
		for range 8 {
			if crc&0x80000000 != 0 {
				crc = crc<<1 ^ 0x04c11db7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
