package encode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTry has every encoder show itself. x264 is there; of the hardware it depends on the machine, but what is said to
// work has encoded, and what does not says why.
func TestTry(t *testing.T) {
	t.Parallel()
	ffmpeg := newEngine(t).opts.FFmpeg
	for _, h := range Encoders() {
		t.Run(string(h), func(t *testing.T) {
			t.Parallel()
			err := Try(t.Context(), ffmpeg, h)
			if h == X264 && err != nil {
				t.Error(err)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), string(h)+" does not encode") || len(err.Error()) > 400) {
				t.Errorf("said %q", err)
			}
			t.Log(err)
		})
	}
}

// TestTryLooks does not believe an encoder that ends well and gives nothing, or too little.
func TestTryLooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"nothing": "cat > /dev/null",
		"no MP4":  "cat > /dev/null; echo hello",
		"fails":   "echo 'Cannot load libcuda.so.1' >&2; echo 'and more' >&2; exit 1",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := Try(t.Context(), path, NVENC)
		if err == nil || name == "fails" && err.Error() != "nvenc does not encode: Cannot load libcuda.so.1" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
