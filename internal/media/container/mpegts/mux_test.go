package mpegts_test

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// mux writes transport streams packet by packet.
type mux struct {
	b        []byte
	counters map[uint16]byte
}

func newMux() *mux { return &mux{counters: map[uint16]byte{}} }

// packet appends one packet with up to 184 bytes of payload; shorter ones are stuffed.
func (m *mux) packet(pid uint16, start bool, payload []byte) {
	p := []byte{0x47, byte(pid >> 8), byte(pid), 0x10 | m.counters[pid]}
	m.counters[pid] = (m.counters[pid] + 1) & 15
	if start {
		p[1] |= 0x40
	}
	if n := 184 - len(payload); n > 0 {
		p[3] |= 0x20
		p = append(p, byte(n-1))
		if n > 1 {
			p = append(p, 0)
			for range n - 2 {
				p = append(p, 0xff)
			}
		}
	}
	m.b = append(append(m.b, p...), payload...)
}

func (m *mux) split(pid uint16, whole []byte) {
	for start := true; len(whole) > 0; start = false {
		n := min(len(whole), 184)
		m.packet(pid, start, whole[:n])
		whole = whole[n:]
	}
}

// crcMPEG is CRC-32/MPEG-2 by way of the reflected one.
func crcMPEG(b []byte) uint32 {
	r := make([]byte, len(b))
	for i, c := range b {
		r[i] = bits.Reverse8(c)
	}
	return bits.Reverse32(^crc32.ChecksumIEEE(r))
}

func section(table byte, number uint16, version byte, body []byte) []byte {
	s := []byte{table, 0xb0, byte(len(body) + 9), byte(number >> 8), byte(number), 0xc1 | version<<1, 0, 0}
	binary.BigEndian.PutUint16(s[1:], uint16(0xb000|len(body)+9))
	s = append(s, body...)
	return binary.BigEndian.AppendUint32(s, crcMPEG(s))
}

// pat lists programs as pairs of number and PID.
func (m *mux) pat(version byte, pairs ...uint16) {
	var body []byte
	for i := 0; i < len(pairs); i += 2 {
		body = binary.BigEndian.AppendUint16(body, pairs[i])
		body = binary.BigEndian.AppendUint16(body, 0xe000|pairs[i+1])
	}
	m.split(0, append([]byte{0}, section(0, 1, version, body)...))
}

// es is an entry of a program map.
type es struct {
	typ         byte
	pid         uint16
	descriptors string
}

func programMap(number uint16, version byte, streams ...es) []byte {
	body := []byte{0xe1, 0x00, 0xf0, 0x00}
	for _, s := range streams {
		body = append(body, s.typ, 0xe0|byte(s.pid>>8), byte(s.pid), 0xf0, byte(len(s.descriptors)))
		body = append(body, s.descriptors...)
	}
	return section(2, number, version, body)
}

func (m *mux) pmt(pid, number uint16, version byte, streams ...es) {
	m.split(pid, append([]byte{0}, programMap(number, version, streams...)...))
}

func stamp(prefix byte, v int64) []byte {
	return []byte{prefix<<4 | byte(v>>30&7)<<1 | 1, byte(v >> 22), byte(v>>15)<<1 | 1, byte(v >> 7), byte(v)<<1 | 1}
}

// pes appends a PES packet. Video (id 0xe0) has no length. A negative pts is left out, dts too when it equals pts.
func (m *mux) pes(pid uint16, id byte, pts, dts int64, data []byte) {
	var times []byte
	flags := byte(0)
	switch {
	case pts >= 0 && dts != pts:
		times, flags = append(stamp(3, pts), stamp(1, dts)...), 0xc0
	case pts >= 0:
		times, flags = stamp(2, pts), 0x80
	}
	h := []byte{0, 0, 1, id, 0, 0, 0x80, flags, byte(len(times))}
	h = append(append(h, times...), data...)
	if id != 0xe0 {
		binary.BigEndian.PutUint16(h[4:], uint16(len(h)-6))
	}
	m.split(pid, h)
}

const (
	videoPID, audioPID, mapPID = 0x100, 0x101, 0x1000
)

// h264Unit is an access unit of x264's with this picture: an IDR with its parameter sets, or one that refers to the one
// before.
func h264Unit(key bool, fill int) []byte {
	b := []byte{0, 0, 0, 1, 9, 0xf0}
	if key {
		b = append(append(b, 0, 0, 0, 1), testSPS...)
		b = append(append(b, 0, 0, 0, 1), testPPS...)
		b = append(b, 0, 0, 1, 0x65)
	} else {
		b = append(b, 0, 0, 1, 0x41)
	}
	for i := range fill {
		b = append(b, byte(i%251+1))
	}
	return b
}

var (
	// 1280x720.
	testSPS = []byte(
		"\x67\x64\x00\x1f\xac\xd9\x40\x50\x05\xbb\x01\x10\x00\x00\x03\x00\x10\x00\x00\x03\x03\x20\xf1\x83\x19\x60")
	// smallSPS is of 320x240 at 25 frames per second.
	smallSPS = []byte(
		"\x67\x64\x00\x0d\xac\xd9\x41\x41\xfb\x01\x10\x00\x00\x03\x00\x10\x00\x00\x03\x03\x20\xf1\x42\x99\x60")
	testPPS = []byte("\x68\xeb\xe3\xcb\x22\xc0")
)

// adtsFrames are n frames of AAC-LC, 48 kHz stereo, of size bytes each with the header.
func adtsFrames(n, size int) []byte {
	var b []byte
	for i := range n {
		b = append(b, 0xff, 0xf1, 0x4c, 0x80|byte(size>>11), byte(size>>3), byte(size<<5)|0x1f, 0xfc)
		for j := range size - 7 {
			b = append(b, byte(i*31+j)&0x7f)
		}
	}
	return b
}
