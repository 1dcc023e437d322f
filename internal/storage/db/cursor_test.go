package db

import (
	"testing"

	"millrace/internal/fault"
)

// FuzzCursor says that a cursor is read back as it was written, and that anything else is the caller's fault.
func FuzzCursor(f *testing.F) {
	f.Add("MTIzNC5hYmM", int64(1234), "abc")
	f.Fuzz(func(t *testing.T, raw string, at int64, key string) {
		if _, k, err := readCursor(raw); err != nil && !fault.Is(err, fault.Invalid) || !possible(k) {
			t.Errorf("%q gives %q, %v", raw, k, err)
		}
		if key == "" || !possible(key) || len(key) > 255 {
			return
		}
		gotAt, gotKey, err := readCursor(cursor(at, key))
		if err != nil || gotAt != at || gotKey != key {
			t.Errorf("%d, %q is read back as %d, %q, %v", at, key, gotAt, gotKey, err)
		}
	})
}
