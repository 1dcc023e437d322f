package ingest

import (
	"testing"

	"millrace/internal/media/container/mp4"
)

func TestCodecOfAnMPEG4Entry(t *testing.T) {
	t.Parallel()
	entry := func(esds ...byte) []byte {
		return append([]byte("....mp4a..............................esds\x00\x00\x00\x00"), esds...)
	}
	for name, tt := range map[string]struct {
		entry []byte
		want  string
	}{
		"MP3":               {entry(3, 0x80, 0x80, 0x80, 0x25, 0, 1, 0, 4, 0x80, 0x80, 0x80, 0x11, 0x6b), "MP3"},
		"short lengths":     {entry(3, 0x25, 0, 1, 0, 4, 0x11, 0x69), "MP3"},
		"depends on others": {entry(3, 0x25, 0, 1, 0xa0, 9, 9, 9, 9, 4, 0x11, 0xdd), "Vorbis"},
		"AAC of some kind":  {entry(3, 0x25, 0, 1, 0, 4, 0x11, 0x40), "AAC that is not AAC-LC"},
		"another tag":       {entry(5, 0x25, 0, 1, 0, 4, 0x11, 0x6b), "AAC that is not AAC-LC"},
		"cut off":           {entry(3, 0x80, 0x80), "AAC that is not AAC-LC"},
		"cut off later":     {entry(3, 0x25, 0, 1, 0xa0, 9), "AAC that is not AAC-LC"},
		"no esds":           {[]byte("....mp4a"), "AAC that is not AAC-LC"},
		"nothing":           {nil, "AAC that is not AAC-LC"},
	} {
		if got, _ := codecOf(&mp4.Track{FourCC: "mp4a", SampleEntry: tt.entry}); got.title != tt.want {
			t.Errorf("%s: %s, want %s", name, got.title, tt.want)
		}
	}
}
