package disk_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/disk"
)

// TestWriteback: what is begun are whole windows, each once, from where the file was when it was opened.
func TestWriteback(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	data := bytes.Repeat([]byte("millrace"), 20<<17) // 20 MiB
	w := disk.Writeback{From: 3}
	for _, tt := range []struct{ size, from int64 }{
		{1 << 20, 3}, {8<<20 + 2, 3}, {8<<20 + 3, 8<<20 + 3}, {9 << 20, 8<<20 + 3}, {20 << 20, 16<<20 + 3},
	} {
		if _, err := f.WriteAt(data[:tt.size], 0); err != nil {
			t.Fatal(err)
		}
		if w.UpTo(f, tt.size); w.From != tt.from {
			t.Errorf("of %d bytes those up to %d are begun, want %d", tt.size, w.From, tt.from)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v: not what was written", len(got), err)
	}
}
