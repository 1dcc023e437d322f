package aac_test

import (
	"bytes"
	"strings"
	"testing"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/bits"
)

// TestInspector: of sound that it does not know it says nothing, and of what it knows it takes what is whole.
func TestInspector(t *testing.T) {
	t.Parallel()
	for name, asc := range map[string][]byte{
		"nothing": nil, "960 samples": {0x11, 0x94}, "8 kHz": aac.LC(8000, 1), "7.1": {0x11, 0xb8},
		"an explicit rate": {0x17, 0x80, 0x5d, 0xc0, 0x10},
	} {
		if aac.NewInspector(asc) != nil {
			t.Errorf("%s has an Inspector", name)
		}
	}
	for channels := 1; channels <= 6; channels++ {
		asc := aac.LC(48000, channels)
		x, block := aac.NewInspector(asc), aac.Silence(asc)
		for name, tt := range map[string]struct {
			block []byte
			want  bool
		}{
			"silence": {block, true}, "the same again": {block, true},
			"padded":     {append(bytes.Clone(block), 0, 0), true},
			"two blocks": {append(bytes.Clone(block), block...), false}, "no end": {block[:len(block)-1], false},
			"nothing": {nil, false}, "zeros": {make([]byte, 100), false},
			"another layout": {aac.Silence(aac.LC(48000, 1+channels%6)), false},
			"too much":       {append(bytes.Clone(block), make([]byte, aac.MaxBlock)...), false},
		} {
			if got := x.Intact(tt.block); got != tt.want {
				t.Errorf("%d channels, %s: %t", channels, name, got)
			}
		}
	}
}

// TestInspectorReadsCodewords: of one band of sound, what a decoder refuses in its scale factor and its spectrum.
func TestInspectorReadsCodewords(t *testing.T) {
	t.Parallel()
	const plain = "0" // the codeword of codebook 1 for four values of 0
	for name, tt := range map[string]struct {
		gain, kind int
		after      string // the bits behind the codebook: scale factor, tools, spectrum
		want       bool
	}{
		"louder by one":         {254, 1, "1010 000" + plain, true},
		"too loud":              {255, 1, "1010 000" + plain, false},
		"softer by one":         {1, 1, "100 000" + plain, true},
		"too soft":              {0, 1, "100 000" + plain, false},
		"two escapes":           {100, 11, "0 000 00100 00 0 0000 0 0000 0000", true},
		"the longest escape":    {100, 11, "0 000 00100 00 11111111 0 000000000000 0 0000 0000", true},
		"an escape of too many": {100, 11, "0 000 00100 00 111111111 0 0000000000000 0 0000 0000", false},
		"a reserved codebook":   {100, 12, "0 000" + plain, false},
		"gain control":          {100, 1, "0 001" + plain, false},
		"noise, and nothing":    {100, 13, "000000000 000", true},
		"shaped":                {100, 1, "0 01 01 0 000000 00001 0 0 000 0" + plain, true},
		"shaped beyond measure": {100, 1, "0 01 01 0 000000 01101 0 0" + strings.Repeat("0", 40) + plain, false},
		"a pulse":               {100, 1, "0 1 00 000000 00000 0000 0 0" + plain, true},
		"a pulse beyond":        {100, 1, "0 1 00 111111 00000 0000 0 0" + plain, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w bits.Writer
			w.Bits(aac.SingleChannel, 3)
			w.Bits(0, 4)
			w.Bits(tt.gain, 8)
			w.Bits(0, 4) // a long window
			w.Bits(1, 6) // of one band
			w.Bits(0, 1)
			w.Bits(tt.kind, 4)
			w.Bits(1, 5) // one band has it
			for _, b := range strings.ReplaceAll(tt.after, " ", "") {
				w.Bits(int(b-'0'), 1)
			}
			w.Bits(7, 3)
			if got := aac.NewInspector(aac.LC(48000, 1)).Intact(w.Bytes()); got != tt.want {
				t.Errorf("intact is %t", got)
			}
		})
	}
}

func FuzzInspector(f *testing.F) {
	for channels := 1; channels <= 6; channels++ {
		f.Add(channels, aac.Silence(aac.LC(44100, channels)))
	}
	f.Add(1, bytes.Repeat([]byte{0x01, 0x7f, 0xff, 0x5a}, 300))
	f.Fuzz(func(t *testing.T, channels int, block []byte) {
		x := aac.NewInspector(aac.LC(44100, channels))
		if x == nil {
			return
		}
		if first := x.Intact(block); x.Intact(block) != first {
			t.Error("it remembers a block")
		}
	})
}

func BenchmarkInspector(b *testing.B) {
	asc := aac.LC(48000, 2)
	x, block := aac.NewInspector(asc), aac.Silence(asc)
	for b.Loop() {
		x.Intact(block)
	}
}
