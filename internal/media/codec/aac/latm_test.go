package aac_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"

	"millrace/internal/media/codec/aac"
)

// element is an AudioMuxElement as another implementation writes it.
func element(t testing.TB, same bool, subframes int, blocks ...[]byte) []byte {
	t.Helper()
	config := &mpeg4audio.StreamMuxConfig{
		NumSubFrames: uint(subframes - 1),
		Programs: []*mpeg4audio.StreamMuxConfigProgram{{Layers: []*mpeg4audio.StreamMuxConfigLayer{{
			AudioSpecificConfig: &mpeg4audio.AudioSpecificConfig{Type: 2, SampleRate: 44100, ChannelConfig: 2},
			LatmBufferFullness:  255,
		}}}},
	}
	e := mpeg4audio.AudioMuxElement{MuxConfigPresent: true, UseSameStreamMux: same, StreamMuxConfig: config}
	for _, b := range blocks {
		e.Payloads = append(e.Payloads, [][][]byte{{b}})
	}
	out, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLATM(t *testing.T) {
	t.Parallel()
	short, long := []byte{1, 2, 3, 0xff}, bytes.Repeat([]byte{0xa5, 7}, 400)
	var l aac.LATM
	if got, err := l.Read(element(t, true, 1, short)); got != nil || err != nil || l.ASC() != nil {
		t.Errorf("before the first configuration: %x, %v", got, err)
	}
	for _, tt := range []struct {
		same   bool
		blocks [][]byte
	}{
		{false, [][]byte{short}},
		{true, [][]byte{long}},
		{false, [][]byte{long, short, long}},
		{true, [][]byte{short, long, short}},
	} {
		got, err := l.Read(element(t, tt.same, len(tt.blocks), tt.blocks...))
		if err != nil || len(got) != len(tt.blocks) {
			t.Fatalf("%d blocks, %v", len(got), err)
		}
		for i := range got {
			if !bytes.Equal(got[i], tt.blocks[i]) {
				t.Errorf("block %d: %x", i, got[i])
			}
		}
		if !bytes.Equal(l.ASC(), []byte{0x12, 0x10}) {
			t.Errorf("ASC %x", l.ASC())
		}
	}
	whole := element(t, false, 1, long)
	for n := range whole {
		var l aac.LATM
		if _, err := l.Read(whole[:n]); err == nil {
			t.Fatalf("cut at %d is read", n)
		}
	}
}

func TestLOAS(t *testing.T) {
	t.Parallel()
	if n, err := aac.ParseLOAS([]byte{0x56, 0xff, 0xfe}); n != 0x1ffe || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, b := range [][]byte{nil, {0x56, 0xe0}, {0x57, 0xe0, 0}, {0x56, 0xc0, 0}} {
		if _, err := aac.ParseLOAS(b); !errors.Is(err, aac.ErrMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

func FuzzLATM(f *testing.F) {
	f.Add(element(f, false, 1, []byte{1, 2, 3}), element(f, true, 1, []byte{4}))
	f.Add(element(f, false, 2, []byte{1, 2, 3}, []byte{5}), []byte{0x80})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var l aac.LATM
		for _, b := range [][]byte{first, second} {
			blocks, _ := l.Read(b)
			total := 0
			for _, block := range blocks {
				total += len(block)
			}
			if total > len(b) || len(blocks) > 64 || len(blocks) > 0 && l.ASC() == nil {
				t.Fatalf("%d bytes in %d blocks out of %d", total, len(blocks), len(b))
			}
			if l.ASC() != nil {
				if _, err := aac.Parse(l.ASC()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
