package tlsrecord

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// sends is a sender that remembers what it was given.
type sends struct {
	all [][]byte
	err error
}

func (s *sends) Write(a, b []byte) error {
	s.all = append(s.all, append(bytes.Clone(a), b...))
	return s.err
}

func (*sends) Patience(time.Duration, time.Time) bool { return false }

// TestRecords: what is written while records are held goes out together, in order, as far as there is room; what failed
// once fails for good.
func TestRecords(t *testing.T) {
	t.Parallel()
	out := &sends{}
	r := Over(nil, nil, out)
	write := func(b byte, n int) {
		t.Helper()
		if got, err := r.Write(bytes.Repeat([]byte{b}, n)); got != n || err != nil {
			t.Fatal(got, err)
		}
	}
	write('a', 10) // as in the handshake
	r.Hold()
	write('b', 20)
	write('c', 30)
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	r.Hold()
	write('d', Gathered-1)
	write('e', 16000)
	write('f', 5)
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, p := range out.all {
		sizes = append(sizes, len(p))
	}
	want := []int{10, 50, Gathered - 1 + 16000, 5}
	if len(sizes) != len(want) {
		t.Fatalf("%v", sizes)
	}
	for i := range want {
		if sizes[i] != want[i] {
			t.Errorf("%v, want %v", sizes, want)
		}
	}
	if p := out.all[1]; p[19] != 'b' || p[20] != 'c' {
		t.Errorf("%q", p)
	}
	out.err = errors.New("the connection is lost")
	r.Hold()
	write('g', 1)
	if err := r.Release(); !errors.Is(err, out.err) {
		t.Error(err)
	}
	if _, err := r.Write([]byte("h")); !errors.Is(err, out.err) {
		t.Error(err)
	}
}
