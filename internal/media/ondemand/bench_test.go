package ondemand_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"millrace/internal/media/container/mp4"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
)

// hour is a file of 60 minutes with 30 pictures a second and a key frame every two seconds; small pictures, as many
// samples as any.
func hour(b *testing.B) string {
	b.Helper()
	minute := ffmpeg(b, "minute.mp4", args(picture("60", "30"), sound("60"), h264("60"))...)
	return ffmpeg(b, "hour.mp4", "-stream_loop", "59", "-i", minute, "-c", "copy")
}

// BenchmarkPlanHour is all it takes to make a file on local disk playable, without storing it.
func BenchmarkPlanHour(b *testing.B) {
	f, err := os.Open(hour(b))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		x, err := mp4.Index(f, st.Size())
		if err != nil {
			b.Fatal(err)
		}
		idrs, err := mp4.IDRs(f, x.Tracks[0])
		if err != nil {
			b.Fatal(err)
		}
		t, err := ondemand.Plan(x.Tracks[0], x.Tracks[1], idrs, "x")
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		if err := timeline.WriteIndex(&out, t.Entries()); err != nil {
			b.Fatal(err)
		}
		if n := len(t.Marks); n < 850 || n > 950 {
			b.Fatalf("%d segments", n)
		}
	}
}

// BenchmarkChunk makes segments of four seconds from the byte ranges of a file.
func BenchmarkChunk(b *testing.B) {
	m := plan(b,
		ffmpeg(b, "a.mp4",
			args([]string{
				"-f", "lavfi", "-i", "testsrc2=size=1280x720:duration=12:rate=30",
			}, sound("12"), h264("60", "-b:v", "4M"))...))
	for _, l := range m.timeline.Renditions {
		b.Run(l.ID, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(l.Chunks[1].Size)
			for b.Loop() {
				if _, err := m.library.Chunk(b.Context(), *l.Source, 1, l.Chunks[1]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSegment copies the same from the file; nobody takes the bytes by sendfile here.
func BenchmarkSegment(b *testing.B) {
	m := plan(b,
		ffmpeg(b, "a.mp4",
			args([]string{
				"-f", "lavfi", "-i", "testsrc2=size=1280x720:duration=12:rate=30",
			}, sound("12"), h264("60", "-b:v", "4M"))...))
	for _, l := range m.timeline.Renditions {
		b.Run(l.ID, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(l.Chunks[1].Size)
			for b.Loop() {
				r, size, err := m.library.Segment(b.Context(), *l.Source, 1, l.Chunks[1])
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, r); n != size || err != nil {
					b.Fatal(n, err)
				}
				_ = r.Close()
			}
		})
	}
}
