package packager_test

import (
	"slices"
	"testing"
	"time"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/packager"
	"millrace/internal/media/window"
)

// told notes what an edge is told of captions.
type told struct {
	*window.Edge
	text []bool
}

func (t *told) Captions(rendition string, text bool) {
	t.text = append(t.text, text)
	t.Edge.Captions(rendition, text)
}

// TestCaptionsAreSearched: pictures are looked into only as long as there is something to learn from it. Each picture
// here has captions of a kind that would be told if it was looked into.
func TestCaptionsAreSearched(t *testing.T) {
	t.Parallel()
	const (
		padding = "\xfc\x80\x80"
		text    = "\xfc\x94\x2c"
		search  = 600 // pictures
		gop     = 50
	)
	at := func(n int, kind string) map[int]string { return map[int]string{n: kind} }
	for name, tt := range map[string]struct {
		captions map[int]string // by picture, from 0
		want     []bool
	}{
		"text at once":                     {at(0, text), []bool{true}},
		"text while it is searched":        {at(search-1, text), []bool{true}},
		"text behind that":                 {at(search+1, text), nil},
		"text in a key frame behind that":  {at(search+2*gop, text), []bool{true}},
		"padding, then text":               {map[int]string{7: padding, 9: text, 11: padding}, []bool{false, true}},
		"padding, and text behind":         {map[int]string{7: padding, search + 1: text}, []bool{false}},
		"padding, and text in a key frame": {map[int]string{7: padding, search + 2*gop: text}, []bool{false}},
		"padding in a key frame, then text": {
			map[int]string{search + gop: padding, search + 2*gop: text}, []bool{false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			edge := &told{Edge: b.edge}
			p := packager.New(packager.Options{Edge: edge, Segment: 2 * time.Second, Part: part})
			if err := p.Configure(video()); err != nil {
				t.Fatal(err)
			}
			for i, f := range (script{fps: 50, gop: gop, seconds: 16, noAudio: true}).frames() {
				if triple, is := tt.captions[i]; is {
					message := "\xb5\x00\x31GA94\x03\x41\xff" + triple + "\xff"
					sei := append([]byte{6, 4, byte(len(message))}, message+"\x80"...)
					f.Data = nal.Append(nil, sei, []byte{0x65, 1})
				}
				if err := p.Write(f); err != nil {
					t.Fatal(err)
				}
			}
			closed(t, p)
			b.finish()
			if !slices.Equal(edge.text, tt.want) {
				t.Errorf("told %v, want %v", edge.text, tt.want)
			}
		})
	}
}
