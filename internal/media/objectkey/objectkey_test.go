package objectkey_test

import (
	"testing"

	"millrace/internal/id"
	"millrace/internal/media/objectkey"
)

// The keys are stored in rows and indexes: they never change.
func TestKeys(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"media/m/":               objectkey.Media("m"),
		"media/m/v/7-1.m4s":      objectkey.Resource("m", "v/7-1.m4s"),
		"media/m/360p-0a":        objectkey.Rendition("m", "360p-0a"),
		"media/m/timeline.jsonl": objectkey.Index("m"),
		"media/m/source.mp4":     objectkey.SourceFile("m"),
		"media/m/source.crc32c":  objectkey.Checksums("m"),
		"media/m/tracks/":        objectkey.Tracks("m"),
		"media/m/tracks/t.vtt":   objectkey.Track("m", "t", "vtt"),
		"media/m/files/":         objectkey.Files("m"),
		"media/m/files/f.mp4":    objectkey.File("m", "f", "mp4"),
		"media/m/files/f/":       objectkey.FileParts("m", "f"),
		"media/m/images":         objectkey.Images("m"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]id.Media{
		"media/m/v/7.m4s": "m", "media/m/": "m", "media/m": "", "other/m/x": "", "": "",
	} {
		if got, ok := objectkey.Owner(key); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", key, got, ok)
		}
	}
}
