package hls_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"millrace/internal/media/hls"
)

func TestGzip(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"", "#EXTM3U\n", strings.Repeat("#EXTINF:2.00000,\n123.m4s\n", 10_000)} {
		for range 2 { // a writer that is used again
			r, err := gzip.NewReader(bytes.NewReader(hls.Gzip([]byte(want))))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != want {
				t.Errorf("%d bytes came back as %d, error %v", len(want), len(got), err)
			}
		}
	}
}

// BenchmarkGzip is what compressing a live playlist costs each time that it changes.
func BenchmarkGzip(b *testing.B) {
	text := []byte(strings.Repeat("#EXT-X-PART:DURATION=0.25000,URI=\"video/0-123.4.m4s\"\n", 80))
	b.ReportAllocs()
	for b.Loop() {
		hls.Gzip(text)
	}
}
