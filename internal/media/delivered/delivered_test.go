package delivered_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"millrace/internal/media/delivered"
)

// file counts how often it is closed.
type file struct {
	io.Reader
	closed *int
}

func (f file) Close() error { *f.closed++; return nil }

func TestBytes(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, tt := range map[string]struct {
		body   delivered.Body
		closed int
		err    error
		want   string
		wrong  bool
	}{
		"data": {body: delivered.Body{Data: []byte("abc")}, want: "abc"},
		"reader": {
			body: delivered.Body{Reader: io.NopCloser(strings.NewReader("abc")), Size: 3}, closed: 1, want: "abc",
		},
		"short": {
			body: delivered.Body{Reader: io.NopCloser(strings.NewReader("ab")), Size: 3}, closed: 1, wrong: true,
		},
		"too large": {
			body: delivered.Body{Reader: io.NopCloser(strings.NewReader("ab")), Size: delivered.MaxSize + 1}, closed: 1,
			wrong: true,
		},
		"error": {err: failed, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := 0
			if tt.body.Reader != nil {
				tt.body.Reader = file{tt.body.Reader, &closed}
			}
			data, err := delivered.Bytes(tt.body, tt.err)
			if string(data) != tt.want || (err != nil) != tt.wrong || closed != tt.closed {
				t.Errorf("%q, %v, closed %d times", data, err, closed)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]delivered.Body{
		"data": {Data: []byte("abc")}, "reader": {Reader: io.NopCloser(strings.NewReader("abc")), Size: 3},
	} {
		r, size := body.Open()
		if data, err := io.ReadAll(r); string(data) != "abc" || err != nil || size != 3 {
			t.Errorf("%s: %q of %d bytes, %v", name, data, size, err)
		}
	}
}
