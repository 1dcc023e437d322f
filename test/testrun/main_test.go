package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestSessionOfItsOwn: a busy program beside the tests is of another session, and leaves them half of the processors.
func TestSessionOfItsOwn(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\nread -r pid _ _ _ _ session _ </proc/self/stat\n[ \"$pid\" = \"$session\" ]\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if _, err := (phase{}).goTest(t.Context(), nil, newReport(io.Discard)); err != nil {
		t.Errorf("go test is not at the head of a session: %v", err)
	}
}
