package rtmpwire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzChunks reads arbitrary chunks, with media or without: it ends, gives no message that is larger than it may be or
// that was not sent, and holds no more than its budget.
func FuzzChunks(f *testing.F) {
	f.Add(false, uint16(128), []byte{3, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 16, 0, 0x43, 0, 0, 1, 0, 0, 2, 20, 1, 2})
	f.Add(true, uint16(2), []byte{
		4, 0xff, 0xff, 0xff, 0, 0, 5, 9, 1, 0, 0, 0, 1, 2, 3, 4, 7, 8, 0xc4, 1, 2, 3, 4, 9, 9, 0xc4, 0, 0, 0, 0, 1,
	})
	f.Add(true, uint16(1), []byte{
		0, 10, 0, 0, 7, 0, 0, 1, 9, 1, 0, 0, 0, 5, 1, 10, 2, 0, 0, 7, 0, 0, 1, 9, 1, 0, 0, 0, 5,
	})
	f.Add(true, uint16(9), []byte{0x46, 0, 0, 33, 0xff, 0xff, 0xff, 9, 1, 2, 3})
	f.Fuzz(func(t *testing.T, media bool, chunkSize uint16, b []byte) {
		const most = 1 << 14
		r := NewReader(bufio.NewReaderSize(bytes.NewReader(b), 16))
		if media {
			r.AllowMedia(most)
		}
		r.ChunkSize = uint32(chunkSize) + 1
		given := 0
		for range len(b) + 1 {
			p, err := r.Read()
			if held, budget := r.Held(); held > budget+max(most, maxCommand) || held < 0 {
				t.Fatalf("%d bytes held, budget %d", held, budget)
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrChunk) {
					t.Fatal(err)
				}
				return
			}
			given += len(p.Body)
			isMedia := p.Kind == TypeAudio || p.Kind == TypeVideo || p.Kind == TypeAggregate
			if given > len(b) || isMedia && (!media || len(p.Body) > most) || !isMedia && len(p.Body) > maxCommand {
				t.Fatalf("message of type %d with %d bytes", p.Kind, len(p.Body))
			}
			if p.Kind == TypeAbort && len(p.Body) >= 4 {
				r.Abort(uint32(p.Body[3]))
			}
		}
		t.Fatal("more messages than bytes")
	})
}
