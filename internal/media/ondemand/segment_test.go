package ondemand_test

import (
	"bytes"
	"io"
	"testing"

	"millrace/internal/media/timeline"
)

// checkCopy holds a segment that is copied against the one that is made in memory, however it is read.
func (m media) checkCopy(t *testing.T, src timeline.Source, msn int64, c timeline.Chunk, want []byte) {
	t.Helper()
	for how, read := range map[string]func(io.Reader) ([]byte, error){
		"read": io.ReadAll,
		"written": func(r io.Reader) ([]byte, error) {
			var b bytes.Buffer
			_, err := r.(io.WriterTo).WriteTo(&b)
			return b.Bytes(), err
		},
	} {
		r, size, err := m.library.Segment(t.Context(), src, msn, c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(r)
		if err != nil || size != int64(len(want)) || !bytes.Equal(got, want) {
			t.Errorf("%s segment %d, %s: %d bytes of %d, want %d, %v", src.Object, msn, how, len(got), size, len(want), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
