package rtmp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"millrace/internal/media/rtmpwire"
)

// stream makes n frames of video (6.5 KB, as 720p30 at 1.6 Mbit/s) in chunks of 4 KiB with format 0, 1 and 3 headers.
func stream(n int) []byte {
	const chunkSize = 4096
	body := append([]byte{0x27, 1, 0, 0, 0}, binary.BigEndian.AppendUint32(nil, 6500)...)
	body = append(body, append([]byte{0x41}, make([]byte, 6499)...)...)
	b := []byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, chunkSize >> 8, 0}
	for i := range n {
		if i == 0 {
			b = append(b, 6, 0, 0, 0, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)), 9, 1, 0, 0, 0)
		} else {
			b = append(b, 0x46, 0, 0, 33, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)), 9)
		}
		b = append(b, body[:chunkSize]...)
		b = append(b, 0xc6)
		b = append(b, body[chunkSize:]...)
	}
	return b
}

type repeat struct {
	b  []byte
	at int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.at == len(r.b) {
		return 0, io.EOF
	}
	n := copy(p, r.b[r.at:])
	r.at += n
	return n, nil
}

// ready is a publication whose video is configured.
func ready(t testing.TB) media {
	t.Helper()
	m := newMedia(&discard{t: t})
	if err := m.handle(rtmpwire.Packet{
		Kind: rtmpwire.TypeVideo, Body: cat([]byte{0x17, 0, 0, 0, 0}, testAvcC),
	}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// a frame costs one allocation: its bytes.
func TestAllocationsPerFrame(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	r := rtmpwire.NewReader(bufio.NewReaderSize(&repeat{b: stream(2000)}, readBuffer))
	r.AllowMedia(8 << 20)
	m := ready(t)
	p, err := r.Read()
	if err != nil || p.Kind != rtmpwire.TypeSetChunkSize {
		t.Fatal(p.Kind, err)
	}
	r.ChunkSize = binary.BigEndian.Uint32(p.Body)
	now := time.Now()
	allocs := testing.AllocsPerRun(1000, func() {
		p, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.handle(p, now); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 1 {
		t.Errorf("%v allocations per frame", allocs)
	}
}

func BenchmarkFrame(b *testing.B) {
	data := stream(1000)
	src := &repeat{b: data}
	r := rtmpwire.NewReader(bufio.NewReaderSize(src, readBuffer))
	r.AllowMedia(8 << 20)
	m := ready(b)
	b.SetBytes(6509)
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		p, err := r.Read()
		if errors.Is(err, io.EOF) {
			src.at = 0
			continue
		}
		if p.Kind == rtmpwire.TypeSetChunkSize {
			r.ChunkSize = binary.BigEndian.Uint32(p.Body)
			continue
		}
		if err := m.handle(p, now); err != nil {
			b.Fatal(err)
		}
	}
}
