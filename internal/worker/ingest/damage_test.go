package ingest_test

import (
	"os"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// Files of which nothing can be decoded are refused, whatever their containers say.
func TestNothingDecodes(t *testing.T) {
	t.Parallel()
	good := filmtest.File(t, "good.mkv", filmtest.Args(filmtest.Picture("4"), filmtest.Sound("4"), filmtest.H264)...)
	for name, tt := range map[string]struct {
		file string
		args []string
		want string
	}{
		"MP4": {
			"a.mp4",
			[]string{"-c", "copy", "-bsf:v", "noise=amount=1", "-bsf:a", "noise=amount=1"},
			"nothing of the file's video can be decoded",
		},
		"fragmented MP4": {
			"a.mp4",
			[]string{"-c", "copy", "-bsf:v", "noise=amount=1", "-movflags", "+frag_keyframe+empty_moov"},
			"nothing of the file's video can be decoded",
		},
		"Matroska": {
			"a.mkv", []string{"-c", "copy", "-bsf:v", "noise=amount=1"}, "nothing of the file's video can be decoded",
		},
		"sound in MP4": {
			"a.m4a",
			[]string{"-map", "0:a", "-c", "copy", "-bsf:a", "noise=amount=1"},
			"nothing of the file's audio can be decoded",
		},
		"MPEG-4 in AVI": {
			"a.avi",
			[]string{"-map", "0:v", "-c:v", "mpeg4", "-bsf:v", "noise=amount=1"},
			"the file can't be read as AVI",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			w.refused(w.Site.Offer(filmtest.File(t, tt.file, append([]string{"-i", good}, tt.args...)...)), tt.want)
		})
	}
}

// Codecs that nothing here decodes are named, and told from damage. What else is in the file is kept, but for its
// picture.
func TestUnsupportedCodecs(t *testing.T) {
	t.Parallel()
	twice := []string{"-map", "0", "-map", "1", "-map", "1"}
	good := filmtest.File(t, "good.mp4",
		filmtest.Args(filmtest.Picture("4"), filmtest.Sound("4"), filmtest.H264, twice)...)
	for name, tt := range map[string]struct {
		entries [3]string // sample entries of the picture and of both sounds; empty: they stay
		refused string    // why; empty: it is not
		warned  string    // of what is left out; empty: nothing is
	}{
		"VVC": {
			[3]string{"vvc1"}, "the file's video is VVC (H.266), which is not supported: convert it to H.264", "",
		},
		"no known one": {
			[3]string{"zzz9"}, "the file's video is of the unknown codec zzz9, which is not supported", "",
		},
		"IAMF": {
			[3]string{"", "iamf", "iamf"}, "", "the file's audio is IAMF, which is not supported: the asset has none",
		},
		"IAMF and AAC": {[3]string{"", "iamf", ""}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			path := workertest.Renamed(t, good, tt.entries)
			if tt.refused != "" {
				w.refused(w.Site.Offer(path), tt.refused)
				return
			}
			a := w.ReadyAsset(path)
			if !a.Facts.HasVideo || a.Facts.HasAudio != (tt.warned == "") {
				t.Errorf("the asset has %+v", a.Facts)
			}
			var warned string
			for _, x := range w.Jobs.Warn {
				warned += x.Message
				if x.Type != asset.InputUndecodable {
					t.Errorf("told %s", x.Type)
				}
			}
			if warned != tt.warned {
				t.Errorf("told: %q, want %q", warned, tt.warned)
			}
		})
	}
}

// Of what ends before it says that it does, the owner is told; what is whole is kept silent about.
func TestCutOffIsReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		args []string
		keep float64 // of its bytes
		want string  // of the warning; empty: there is none
	}{
		"Matroska":        {"a.mkv", filmtest.Video(), 0.5, "the file says that it lasts 13."},
		"Matroska, whole": {"a.mkv", filmtest.Video(), 1, ""},
		"Matroska to encode": {
			"a.mkv",
			filmtest.Args(filmtest.Picture("13"), filmtest.Sound("13"), []string{"-c:v", "mpeg4", "-c:a", "aac"}), 0.5,
			"the file says that it lasts 13.",
		},
		"FLV": {"a.flv", filmtest.Video(), 0.5, "the file says that it lasts 13."},
		"WAV": {"a.wav", filmtest.Sound("13"), 0.5, "the file says that it has "},
		"MP4 of fragments": {
			"a.mp4", filmtest.Video("-movflags", "+frag_keyframe+empty_moov"), 0.5,
			"the file ends inside of a fragment",
		},
		"fragments, of Opus": {
			"a.mp4", filmtest.Video("-c:a", "libopus", "-movflags", "+frag_keyframe+empty_moov"), 0.5,
			"the file ends inside of a fragment",
		},
		"MP4 of fragments, ok": {"a.mp4", filmtest.Video("-movflags", "+frag_keyframe+empty_moov"), 1, ""},
		"MPEG-TS, whole":       {"a.ts", filmtest.Video(), 1, ""},
		"AIFF":                 {"a.aiff", filmtest.Sound("13"), 0.5, "the file says that it "},
		"AVI": {
			"a.avi",
			filmtest.Args(filmtest.Picture("13"), filmtest.Sound("13"), []string{"-c:v", "mpeg4", "-c:a", "mp3"}), 0.5,
			"the file says that it ",
		},
		"AVI, whole": {
			"a.avi",
			filmtest.Args(filmtest.Picture("13"), filmtest.Sound("13"), []string{"-c:v", "mpeg4", "-c:a", "mp3"}), 1,
			"",
		},
		"AIFF, whole": {"a.aiff", filmtest.Sound("13"), 1, ""},
		"WAV, whole":  {"a.wav", filmtest.Sound("13"), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			path := filmtest.File(t, tt.file, tt.args...)
			st, err := os.Stat(path)
			w.Must(err)
			w.Must(os.Truncate(path, int64(float64(st.Size())*tt.keep)))
			a := w.ReadyAsset(path)
			if tt.keep < 1 && (a.Facts.Duration < 4 || a.Facts.Duration > 9) {
				t.Errorf("it lasts %.3f s", a.Facts.Duration)
			}
			warnings := w.Jobs.Warn
			switch {
			case tt.want == "" && len(warnings) > 0:
				t.Errorf("told: %v", warnings)
			case tt.want != "" &&
				(len(warnings) != 1 || warnings[0].Type != asset.InputTruncated ||
					!strings.HasPrefix(warnings[0].Message, tt.want)):
				t.Errorf("told: %v, want %q", warnings, tt.want)
			}
		})
	}
}
