package workertest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Renamed is an MP4 whose sample entries have other names, and nothing that says what they really are.
func Renamed(t *testing.T, path string, entries [3]string) string {
	t.Helper()
	data, err := os.ReadFile(path) //nolint:gosec // a file of the test
	if err != nil {
		t.Fatal(err)
	}
	from := bytes.Index(data, []byte("moov"))
	for _, name := range entries {
		if name == "" && !bytes.Contains(data[from:], []byte("stsd")) {
			break
		}
		entry := from + bytes.Index(data[from:], []byte("stsd")) + 16 // behind version, count and size
		from = entry + 4
		if name == "" {
			continue
		}
		copy(data[entry:], name)
		for _, config := range []string{"avcC", "esds"} {
			if at := bytes.Index(data[from:][:400], []byte(config)); at >= 0 {
				copy(data[from+at:], "xxxx")
			}
		}
	}
	out := filepath.Join(t.TempDir(), "renamed.mp4")
	if err := os.WriteFile(out, data, 0o600); err != nil { //nolint:gosec // in a folder of the test
		t.Fatal(err)
	}
	return out
}
