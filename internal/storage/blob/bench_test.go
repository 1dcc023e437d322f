package blob_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"millrace/internal/storage/blob"
	"millrace/internal/storage/blob/blobtest"
)

// sizes are those of an LL-HLS part and of a short segment.
var sizes = []int{60_000, 600_000}

func backends(b *testing.B, run func(b *testing.B, s blob.Store)) {
	b.Helper()
	for name, open := range map[string]func(b *testing.B) blob.Store{
		"folder":        func(b *testing.B) blob.Store { b.Helper(); return openFolder(b, b.TempDir(), false) },
		"folder-nosync": func(b *testing.B) blob.Store { b.Helper(); return openFolder(b, b.TempDir(), true) },
		"s3":            func(b *testing.B) blob.Store { b.Helper(); return openS3(b) },
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b)
			run(b, s)
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	backends(b, func(b *testing.B, s blob.Store) {
		b.Helper()
		for _, size := range sizes {
			data := blobtest.Bytes(1, size)
			b.Run(fmt.Sprintf("%dKB", size/1000), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := s.Put(b.Context(), fmt.Sprintf("bench/put/%d", i%1000),
						bytes.NewReader(data)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

func BenchmarkGet(b *testing.B) {
	backends(b, func(b *testing.B, s blob.Store) {
		b.Helper()
		for _, size := range sizes {
			key := fmt.Sprintf("bench/get/%d", size)
			if err := s.Put(b.Context(), key, bytes.NewReader(blobtest.Bytes(1, size))); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%dKB", size/1000), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					r, err := s.Get(b.Context(), key, 0, -1)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, r); err != nil {
						b.Fatal(err)
					}
					_ = r.Close()
				}
			})
		}
	})
}
