package sniff

import (
	"bytes"
	"errors"
	"io"
)

// Read tells the format of a file by its first bytes and, where an ID3 tag longer than these stands in front, by what
// follows the tag. An empty file is Unknown. Errors are the reader's.
func Read(r io.ReaderAt) (Format, error) {
	head, err := window(r, 0)
	if err != nil {
		return Unknown, err
	}
	f := Kind(head)
	if f != MP3 || !bytes.HasPrefix(head, []byte("ID3")) || len(head) < 10 {
		return f, nil
	}
	size := int64(0)
	for _, c := range head[6:10] {
		size = size<<7 | int64(c&0x7f)
	}
	if size+10 < int64(len(head)) {
		return f, nil
	}
	behind, err := window(r, size+10)
	if err != nil {
		return Unknown, err
	}
	if g := Kind(behind); g != Unknown && g != Text {
		return g, nil
	}
	return f, nil
}

func window(r io.ReaderAt, at int64) ([]byte, error) {
	b := make([]byte, HeadSize)
	n, err := r.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}
