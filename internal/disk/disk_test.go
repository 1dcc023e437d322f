package disk_test

import (
	"path/filepath"
	"testing"

	"millrace/internal/disk"
)

func TestSpaceOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if s, err := disk.SpaceOf(dir); err != nil || s.Total == 0 || s.Free > s.Total || s.FreeFiles > s.TotalFiles {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := disk.SpaceOf(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has room")
	}
}
