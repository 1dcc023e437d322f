package h2

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestBlock: a block of header fields is read as far as its list may be long, packed or not.
func TestBlock(t *testing.T) {
	t.Parallel()
	var f fields
	f.init(64 << 10)
	f.begin(1, true)
	var fragment bytes.Buffer
	packed := hpack.NewEncoder(&fragment)
	packed.SetMaxDynamicTableSize(0)
	_ = packed.WriteField(hpack.HeaderField{Name: "x", Value: string(make([]byte, 9000)), Sensitive: true})
	taken := 0
	for {
		if err := f.add(fragment.Bytes(), false); err != nil {
			if !errors.Is(err, http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)) {
				t.Error(err)
			}
			break
		}
		taken += fragment.Len()
	}
	if taken > 64<<10 {
		t.Errorf("%d bytes were taken", taken)
	}
}

// TestTable: what is remembered of fields that were sent follows what the peer allows, with the smallest in between.
func TestTable(t *testing.T) {
	t.Parallel()
	var w writer
	w.init(nil)
	said := func() (sizes []uint32) {
		w.table.take(func(n uint32) { sizes = append(sizes, n) })
		return sizes
	}
	if got := said(); len(got) > 0 {
		t.Errorf("%v at first", got)
	}
	w.table.set(0)
	w.table.set(1 << 30)
	if got := said(); len(got) != 2 || got[0] != 0 || got[1] != tableSize {
		t.Errorf("%v", got)
	}
	if got := said(); len(got) > 0 {
		t.Errorf("%v again", got)
	}
}
