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

// TestRoom: files from outside may have what is free but for a twentieth of the disk, at most a GiB.
func TestRoom(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, tt := range []struct {
		space      disk.Space
		room, most int64
	}{
		{disk.Space{Free: 60, Total: 1000}, 10, 950},
		{disk.Space{Free: 50, Total: 1000}, 0, 950},
		{disk.Space{Free: 10, Total: 1000}, 0, 950},
		{disk.Space{Free: 68 * gib, Total: 100 * gib}, 67 * gib, 99 * gib},
		{disk.Space{}, 0, 0},
	} {
		if room, most := tt.space.Room(), tt.space.Most(); room != tt.room || most != tt.most {
			t.Errorf("%+v has room for %d of %d bytes", tt.space, room, most)
		}
		if tt.room > 0 && (!tt.space.Has(tt.room) || tt.space.Has(tt.room+1)) {
			t.Errorf("%+v: Has and Room are not of one mind", tt.space)
		}
	}
}
