package rtmpwire

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/bluenviron/gortmplib/pkg/amf0"
)

// TestAppendAMF0 reads what is written with the reader of this package, and compares it with what an independent
// library writes.
func TestAppendAMF0(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 1<<14)
	object := Object{{"app", "live"}, {"nested", Object{{"n", 1.0}}}, {"list", []any{"a", nil, true}}}
	ours := []any{"connect", 1.0, math.Inf(1), true, false, nil, object, ECMAArray(object), []any{}, "", long}
	library := amf0.Object{
		{Key: "app", Value: "live"},
		{Key: "nested", Value: amf0.Object{{Key: "n", Value: 1.0}}},
		{Key: "list", Value: amf0.StrictArray{"a", nil, true}},
	}
	got := AppendAMF0(nil, ours...)
	want, err := amf0.Data{
		"connect", 1.0, math.Inf(1), true, false, nil, library, amf0.ECMAArray(library), amf0.StrictArray{}, "",
	}.Marshal()
	if err != nil || !bytes.Equal(got[:len(want)], want) {
		t.Errorf("got  %q\nwant %q, %v", got[:len(want)], want, err)
	}
	read := DecodeAMF0(got)
	ours[7], ours[8] = object, []any(nil) // there is one type for what is read
	if !reflect.DeepEqual(read, ours) {
		t.Errorf("read %v", read)
	}
}

// FuzzAMF0 checks that decoding ends, and in bounded depth.
func FuzzAMF0(f *testing.F) {
	f.Add([]byte{2, 0, 1, 'x', 0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0, 1, 'a', 5, 0, 0, 9})
	f.Add(bytes.Repeat([]byte{10, 0, 0, 0, 1}, 100))
	f.Add([]byte{
		8, 0, 0, 0, 0, 0, 1, 'a', 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 1, 7, 0, 0, 12, 0, 0, 0, 1, 'x', 16, 0,
		0, 0, 0, 9,
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(DecodeAMF0(b)); n > maxAMFValues {
			t.Errorf("%d values", n)
		}
	})
}
