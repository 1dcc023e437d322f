package mpegts_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/frame"
)

// seeds are short streams with a bit of everything.
func seeds() [][]byte {
	m := newMux()
	m.pat(0, 1, mapPID)
	m.pmt(mapPID, 1, 0, es{0x24, videoPID, ""}, es{0x06, audioPID, "\x05\x04Opus\x7f\x02\x80\x02"})
	hevc := []byte(
		"\x00\x00\x00\x01\x46\x01\x10\x00\x00\x01\x40\x01\x0c\x01\x00\x00\x01\x42\x01\x01\x01\x00\x00\x01\x44\x01\xc1\x00\x00\x01\x26\x01\xaf")
	m.pes(videoPID, 0xe0, 90000, 87000, hevc)
	m.pes(audioPID, 0xbd, 90000, 90000, []byte("\x7f\xe0\x04\xfc\x01\x02\x03\x7f\xf0\x03\x00\x10\xfc\x01\x02"))
	m.pmt(mapPID, 1, 1, es{0x1b, videoPID, ""}, es{0x11, audioPID, ""})
	m.pes(videoPID, 0xe0, 93600, 90000, h264Unit(true, 200))
	m.pes(audioPID, 0xc0, 90000, 90000, []byte("\x56\xe0\x0a\x20\x00\x11\x90\x0c\x60\x21\x1b\x8f\x30"))
	ac3 := newMux()
	ac3.pat(0, 1, mapPID)
	ac3.pmt(mapPID, 1, 0, es{0x81, audioPID, ""})
	ac3.pes(audioPID, 0xbd, 90000, 90000, append([]byte("\x0b\x77\xf7\x46\x00\x40\x43"), make([]byte, 121)...))
	mp3 := newMux()
	mp3.pat(0, 1, mapPID)
	mp3.pmt(mapPID, 1, 0, es{0x03, audioPID, ""})
	mp3.pes(audioPID, 0xc0, 90000, 90000, append([]byte("\xff\xfb\x14\xc4"), make([]byte, 200)...))
	whole := usual(12, 1<<33-5*tick).b
	return [][]byte{
		whole, drop(whole, 7, 20, 21), append([]byte("garbage\x47\x47"), whole[:3000]...), m.b, ac3.b, mp3.b,
	}
}

// FuzzDemuxer: nothing panics, no frame is malformed, and it makes no difference how the bytes are portioned.
func FuzzDemuxer(f *testing.F) {
	for i, s := range seeds() {
		f.Add(s, uint64(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		whole := newRecorder()
		d := mpegts.NewDemuxer(whole)
		first := d.Write(b, time.Time{})
		_ = d.Flush()
		total := 0
		for kind, frames := range whole.frames {
			if len(whole.configs[kind]) == 0 {
				t.Fatalf("%v without a configuration", kind)
			}
			for _, fr := range frames {
				total += len(fr.Data)
				if len(fr.Data) == 0 || kind == frame.Video && nal.Check(fr.Data) != nil {
					t.Fatalf("%v frame %x", kind, fr.Data)
				}
			}
		}
		if total > 2*len(b) { // start codes of three bytes become lengths of four
			t.Fatalf("%d bytes of frames out of %d", total, len(b))
		}
		parts := newRecorder()
		e := mpegts.NewDemuxer(parts)
		random := rand.New(rand.NewPCG(seed, 1))
		var second error
		for rest := b; len(rest) > 0 && second == nil; {
			n := min(1+random.IntN(500), len(rest))
			second = e.Write(bytes.Clone(rest[:n]), time.Time{})
			rest = rest[n:]
		}
		_ = e.Flush()
		if (first == nil) != (second == nil) || !reflect.DeepEqual(whole, parts) || d.Stats() != e.Stats() {
			t.Fatalf("in portions: %v %+v, at once: %v %+v", second, e.Stats(), first, d.Stats())
		}
	})
}

// FuzzPackets is the same for streams whose packets are in order but for a few, so that more comes through.
func FuzzPackets(f *testing.F) {
	for i, s := range seeds() {
		f.Add(s, uint64(i))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 2))
		packets := slices.Collect(slices.Chunk(b, mpegts.PacketSize))
		for range min(len(packets), 5) {
			i, j := random.IntN(len(packets)), random.IntN(len(packets))
			packets[i], packets[j] = packets[j], packets[i]
		}
		r := newRecorder()
		d := mpegts.NewDemuxer(r)
		for _, p := range packets {
			if random.IntN(20) == 0 {
				d.Missing(random.IntN(1 << 14))
			}
			if d.Write(p, time.Time{}) != nil {
				return
			}
		}
		_ = d.Flush()
		if s := d.Stats(); s.Video+s.Replaced+s.Repeated != len(r.frames[frame.Video]) ||
			s.Audio != len(r.frames[frame.Audio]) {
			t.Fatalf("%+v", s)
		}
	})
}

type discard struct{}

func (discard) Configure(frame.Config) error { return nil }
func (discard) Write(frame.Frame) error      { return nil }

// BenchmarkDemuxer shows that a byte costs the same whatever the size of the pictures.
func BenchmarkDemuxer(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"10KB", 10_000}, {"100KB", 100_000}, {"1MB", 1_000_000}, {"4MB", 4_000_000}} {
		b.Run(size.name, func(b *testing.B) {
			m := newMux()
			m.tables()
			for i := range max(2, 4_000_000/int64(size.bytes)) {
				m.pes(videoPID, 0xe0, i*tick, i*tick, h264Unit(i%30 == 0, size.bytes))
				m.pes(audioPID, 0xc0, i*tick, i*tick, adtsFrames(2, 200))
			}
			b.SetBytes(int64(len(m.b)))
			b.ReportAllocs()
			for b.Loop() {
				d := mpegts.NewDemuxer(discard{})
				for part := range slices.Chunk(m.b, 7*mpegts.PacketSize) {
					if err := d.Write(part, time.Time{}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
