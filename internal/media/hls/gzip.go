package hls

import (
	"bytes"
	"compress/gzip"
	"sync"
)

var packers = sync.Pool{New: func() any { //nolint:gochecknoglobals // scratch memory (1 MB each), no state that anyone could see
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// Gzip is a playlist as it is sent with "Content-Encoding: gzip", compressed fast: a live one is read a few times a
// second.
func Gzip(playlist []byte) []byte {
	b := bytes.NewBuffer(make([]byte, 0, len(playlist)/4+128))
	w, _ := packers.Get().(*gzip.Writer)
	defer packers.Put(w)
	w.Reset(b)
	_, _ = w.Write(playlist) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
