package worker_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/control/asset"
)

// Files of which nothing can be decoded are refused, whatever their containers say.
func TestNothingDecodes(t *testing.T) {
	t.Parallel()
	good := ffmpeg(t, "good.mkv", args(picture("4"), sound("4"), h264)...)
	for name, tt := range map[string]struct {
		file string
		args []string
		want string
	}{
		"MP4":            {"a.mp4", []string{"-c", "copy", "-bsf:v", "noise=amount=1", "-bsf:a", "noise=amount=1"}, "nothing of the file's video can be decoded"},
		"fragmented MP4": {"a.mp4", []string{"-c", "copy", "-bsf:v", "noise=amount=1", "-movflags", "+frag_keyframe+empty_moov"}, "nothing of the file's video can be decoded"},
		"Matroska":       {"a.mkv", []string{"-c", "copy", "-bsf:v", "noise=amount=1"}, "nothing of the file's video can be decoded"},
		"sound in MP4":   {"a.m4a", []string{"-map", "0:a", "-c", "copy", "-bsf:a", "noise=amount=1"}, "nothing of the file's audio can be decoded"},
		"MPEG-4 in AVI":  {"a.avi", []string{"-map", "0:v", "-c:v", "mpeg4", "-bsf:v", "noise=amount=1"}, "the file can't be read as AVI"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			w.refused(w.site.offer(ffmpeg(t, tt.file, append([]string{"-i", good}, tt.args...)...)), tt.want)
		})
	}
}

// Codecs that nothing here decodes are named, and told from damage. What else is in the file is kept, but for its picture.
func TestUnsupportedCodecs(t *testing.T) {
	t.Parallel()
	twice := []string{"-map", "0", "-map", "1", "-map", "1"}
	good := ffmpeg(t, "good.mp4", args(picture("4"), sound("4"), h264, twice)...)
	for name, tt := range map[string]struct {
		entries [3]string // sample entries of the picture and of both sounds; empty: they stay
		refused string    // why; empty: it is not
		warned  string    // of what is left out; empty: nothing is
	}{
		"VVC": {
			[3]string{"vvc1"}, "the file's video is VVC (H.266), which is not supported: convert it to H.264", "",
		},
		"no known one": {[3]string{"zzz9"}, "the file's video is of the unknown codec zzz9, which is not supported", ""},
		"IAMF": {
			[3]string{"", "iamf", "iamf"}, "", "the file's audio is IAMF, which is not supported: the asset has none",
		},
		"IAMF and AAC": {[3]string{"", "iamf", ""}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			path := renamed(t, good, tt.entries)
			if tt.refused != "" {
				w.refused(w.site.offer(path), tt.refused)
				return
			}
			a := w.ready(path)
			if !a.Facts.HasVideo || a.Facts.HasAudio != (tt.warned == "") {
				t.Errorf("the asset has %+v", a.Facts)
			}
			var warned string
			for _, x := range w.jobs.warn {
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

// renamed is an MP4 whose sample entries have other names, and nothing that says what they really are.
func renamed(t *testing.T, path string, entries [3]string) string {
	t.Helper()
	data, err := os.ReadFile(path)
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
	if err := os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
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
		"Matroska":             {"a.mkv", video(), 0.5, "the file says that it lasts 13."},
		"Matroska, whole":      {"a.mkv", video(), 1, ""},
		"Matroska to encode":   {"a.mkv", args(picture("13"), sound("13"), []string{"-c:v", "mpeg4", "-c:a", "aac"}), 0.5, "the file says that it lasts 13."},
		"FLV":                  {"a.flv", video(), 0.5, "the file says that it lasts 13."},
		"WAV":                  {"a.wav", sound("13"), 0.5, "the file says that it has "},
		"MP4 of fragments":     {"a.mp4", video("-movflags", "+frag_keyframe+empty_moov"), 0.5, "the file ends inside of a fragment"},
		"fragments, of Opus":   {"a.mp4", video("-c:a", "libopus", "-movflags", "+frag_keyframe+empty_moov"), 0.5, "the file ends inside of a fragment"},
		"MP4 of fragments, ok": {"a.mp4", video("-movflags", "+frag_keyframe+empty_moov"), 1, ""},
		"MPEG-TS, whole":       {"a.ts", video(), 1, ""},
		"AIFF":                 {"a.aiff", sound("13"), 0.5, "the file says that it "},
		"AVI":                  {"a.avi", args(picture("13"), sound("13"), []string{"-c:v", "mpeg4", "-c:a", "mp3"}), 0.5, "the file says that it "},
		"AVI, whole":           {"a.avi", args(picture("13"), sound("13"), []string{"-c:v", "mpeg4", "-c:a", "mp3"}), 1, ""},
		"AIFF, whole":          {"a.aiff", sound("13"), 1, ""},
		"WAV, whole":           {"a.wav", sound("13"), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			path := ffmpeg(t, tt.file, tt.args...)
			st, err := os.Stat(path)
			w.must(err)
			w.must(os.Truncate(path, int64(float64(st.Size())*tt.keep)))
			a := w.ready(path)
			if tt.keep < 1 && (a.Facts.Duration < 4 || a.Facts.Duration > 9) {
				t.Errorf("it lasts %.3f s", a.Facts.Duration)
			}
			warnings := w.jobs.warn
			switch {
			case tt.want == "" && len(warnings) > 0:
				t.Errorf("told: %v", warnings)
			case tt.want != "" && (len(warnings) != 1 || warnings[0].Type != asset.InputTruncated || !strings.HasPrefix(warnings[0].Message, tt.want)):
				t.Errorf("told: %v, want %q", warnings, tt.want)
			}
		})
	}
}
