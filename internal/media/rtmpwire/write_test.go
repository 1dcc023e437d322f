package rtmpwire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/bluenviron/gortmplib/pkg/bytecounter"
	"github.com/bluenviron/gortmplib/pkg/rawmessage"
)

func body(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// TestAppendMessage reads what is written with the reader of this package and with an independent one.
func TestAppendMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []Out{
		{ChunkStream: 4, Stream: 1, Kind: TypeAudio, Timestamp: 7, Head: []byte{0xaf, 1}, Body: body(5)},
		// a chunk to the byte
		{ChunkStream: 6, Stream: 1, Kind: TypeVideo, Timestamp: 0xfffffe, Head: body(5), Body: body(123)},
		{ChunkStream: 6, Stream: 1, Kind: TypeVideo, Timestamp: 0xffffff, Head: body(5), Body: body(124)},
		{ChunkStream: 6, Stream: 1, Kind: TypeVideo, Timestamp: 0xfffffff0, Head: body(200), Body: body(1000)},
		{ChunkStream: 3, Kind: TypeCommandAMF0, Body: body(300)},
	} {
		raw := AppendMessage(AppendMessage(nil, tt, 128), tt, 128)
		r := NewReader(bufio.NewReader(bytes.NewReader(raw)))
		r.AllowMedia(1 << 20)
		other := rawmessage.NewReader(bytes.NewReader(raw), bytecounter.NewReader(bytes.NewReader(nil)), nil)
		want := append(bytes.Clone(tt.Head), tt.Body...)
		for range 2 {
			p, err := r.Read()
			if err != nil || p.Kind != tt.Kind || p.Timestamp != tt.Timestamp || !bytes.Equal(p.Body, want) {
				t.Errorf("%d at %d: read kind %d at %d, %d bytes, %v", tt.Kind, tt.Timestamp, p.Kind, p.Timestamp,
					len(p.Body), err)
			}
			m, err := other.Read()
			if err != nil || m.Type != tt.Kind || uint32(m.Timestamp.Milliseconds()) != tt.Timestamp ||
				!bytes.Equal(m.Body, want) || m.ChunkStreamID != tt.ChunkStream {
				t.Errorf("%d at %d: the library reads %+v, %v", tt.Kind, tt.Timestamp, m, err)
			}
		}
		if _, err := r.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last message: %v", err)
		}
	}
}

// FuzzRead reads chunks from outside: it ends, and holds no more than it may.
func FuzzRead(f *testing.F) {
	f.Add(AppendMessage(nil, Out{
		ChunkStream: 6, Stream: 1, Kind: TypeVideo, Timestamp: 0xfffffff0, Body: body(1000),
	}, 128))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 6, 0, 0, 0, 0xff, 0xff, 0xff, 9, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bufio.NewReader(bytes.NewReader(b)))
		r.AllowMedia(1 << 16)
		for {
			p, err := r.Read()
			if held, most := r.Held(); held > most+1<<16 {
				t.Fatalf("%d bytes held", held)
			}
			if err != nil {
				return
			}
			if p.Kind == TypeSetChunkSize && len(p.Body) >= 4 {
				r.ChunkSize = max(1,
					uint32(p.Body[0]&0x7f)<<24|uint32(p.Body[1])<<16|uint32(p.Body[2])<<8|uint32(p.Body[3]))
			}
		}
	})
}
