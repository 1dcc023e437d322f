package nal_test

import (
	"bytes"
	"errors"
	"testing"

	"millrace/internal/media/codec/nal"
)

// units are those of a byte stream, with lengths.
func units(stream []byte) (au []byte) {
	for unit := range nal.AnnexB(stream) {
		au = nal.Append(au, unit)
	}
	return au
}

func TestAnnexB(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want string }{
		"three and four byte codes": {
			"\x00\x00\x01ab\x00\x00\x00\x01cd\x00\x00\x01e", "\x00\x00\x00\x02ab\x00\x00\x00\x02cd\x00\x00\x00\x01e",
		},
		"trailing zeros": {"\x00\x00\x00\x01ab\x00\x00\x00", "\x00\x00\x00\x02ab"},
		"garbage before": {"xy\x00\x00\x01ab", "\x00\x00\x00\x02ab"},
		"empty units":    {"\x00\x00\x01\x00\x00\x01a", "\x00\x00\x00\x01a"},
		"no code":        {"abcd", ""},
		"nothing":        {"", ""},
	} {
		if got := units([]byte(tt.in)); string(got) != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestUnescape(t *testing.T) {
	t.Parallel()
	if got := nal.Unescape([]byte{1, 0, 0, 3, 1, 0, 0, 3, 0, 0, 3, 3}); !bytes.Equal(got, []byte{
		1, 0, 0, 1, 0, 0, 0, 0, 3,
	}) {
		t.Errorf("%x", got)
	}
}

// TestUnescapeOfNothing: what has no such bytes, as most of what is looked at, costs no memory.
func TestUnescapeOfNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	unit := bytes.Repeat([]byte{1, 0, 0, 1, 0, 0, 2, 3}, 64)
	if n := testing.AllocsPerRun(100, func() { nal.Unescape(unit) }); n != 0 || !bytes.Equal(nal.Unescape(unit), unit) {
		t.Errorf("%x becomes %x, with %v allocations", unit, nal.Unescape(unit), n)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	au := nal.Append(nil, []byte("abc"), nil, []byte("d"))
	if err := nal.Check(au); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]byte{nil, au[:len(au)-1], append(bytes.Clone(au), 0)} {
		if err := nal.Check(bad); !errors.Is(err, nal.ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzAnnexB(f *testing.F) {
	f.Add([]byte("\x00\x00\x01ab\x00\x00\x00\x01cd\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		au := units(b)
		if len(au) > 0 && nal.Check(au) != nil {
			t.Fatal("not an access unit")
		}
		if len(au) > 2*len(b)+4 {
			t.Fatalf("%d bytes of %d", len(au), len(b))
		}
		if len(nal.Unescape(b)) > len(b) {
			t.Fatal("Unescape added bytes")
		}
	})
}
