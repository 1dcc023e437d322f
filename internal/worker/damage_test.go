package worker_test

import (
	"os"
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
