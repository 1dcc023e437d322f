package protection_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"millrace/internal/media/container/cenc"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
)

// largeSegment is a segment of 2 s with 8 Mbit/s in parts of a third of a second: one key frame, ten slices a picture
// would be more work than most.
func largeSegment() (segment []byte, parts [][]byte) {
	for k := range 6 {
		var samples []cmaf.Sample
		for i := range 10 {
			n := 32000
			if k+i == 0 {
				n = 160000
			}
			data := append([]byte{
				byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 0x65, 0x88, 0x84,
			}, bytes.Repeat([]byte{0x5a}, n-3)...)
			samples = append(samples, cmaf.Sample{Duration: 3000, Sync: k+i == 0, Data: data})
		}
		part := cmaf.AppendFragment(nil, uint32(k+1), cmaf.TrackID, uint64(30000*k), samples)
		segment, parts = append(segment, part...), append(parts, part)
	}
	return segment, parts
}

// BenchmarkEncrypt is what a segment or a part costs that is encrypted for the first viewer.
func BenchmarkEncrypt(b *testing.B) {
	segment, parts := largeSegment()
	for _, scheme := range []cenc.Scheme{cenc.CBCS, cenc.CTR} {
		track, err := cenc.NewTrack(picture, scheme, videoKey)
		if err != nil {
			b.Fatal(err)
		}
		for name, data := range map[string][]byte{"segment": segment, "part": parts[1]} {
			b.Run(string(scheme)+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := track.Encrypt(data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// longVideo has the same segment under each number, in a file, as recordings have them.
type longVideo struct {
	*plain

	file string
}

func (l longVideo) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	if r.Init >= 0 {
		return l.plain.Chunk(ctx, rendition, r)
	}
	file, err := os.Open(l.file)
	if err != nil {
		return playback.Body{}, err
	}
	info, err := file.Stat()
	if err != nil {
		return playback.Body{}, err
	}
	return playback.Body{Reader: file, Size: info.Size()}, nil
}

// BenchmarkServe sends a segment of a file over TLS, as it is and encrypted for this one viewer: others get what was
// encrypted for the first. What counts is the sender's processor time, cpu-ns/op: the time that passes is as much that
// of what else runs on the machine.
func BenchmarkServe(b *testing.B) {
	segment, _ := largeSegment()
	film := longVideo{&plain{}, filepath.Join(b.TempDir(), "segment.m4s")}
	if err := os.WriteFile(film.file, segment, 0o600); err != nil {
		b.Fatal(err)
	}
	v := view(film.plain, cenc.CBCS, false)
	v.Presentation, v.Store = film, protection.NewStore(32<<20)
	for name, renditions := range map[string]playback.Renditions{"clear": film, "encrypted": v} {
		b.Run(name, func(b *testing.B) {
			msn := int64(0)
			send := func(to io.Writer) {
				msn++
				body, err := renditions.Chunk(b.Context(), "v", hls.Resource{Init: -1, MSN: msn, Part: -1, Ext: "m4s"})
				if err != nil {
					b.Fatal(err)
				}
				from, _ := body.Open()
				if _, err = io.Copy(to, from); err != nil {
					b.Fatal(err)
				}
				_ = from.Close()
			}
			server := httptest.NewTLSServer(nil)
			defer server.Close()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() { // the viewer, who reads records and does not open them
				to, dialErr := net.Dial("tcp", l.Addr().String())
				if dialErr == nil {
					_ = tls.Client(to, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(b.Context())
					_, _ = io.Copy(io.Discard, to)
				}
			}()
			raw, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			c := tls.Server(raw, &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS13})
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for range 80 { // the store is full, and memory is that of what was forgotten, as it is where people watch
				send(io.Discard)
			}
			b.SetBytes(int64(len(segment)))
			began := threadTime(b)
			for b.Loop() {
				send(c)
			}
			b.ReportMetric(float64(threadTime(b)-began)/float64(b.N), "cpu-ns/op")
			_ = raw.Close()
		})
	}
}

// threadTime is the processor time of this thread, in user and kernel mode.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
