package sniff_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"millrace/internal/media/container/sniff"
	"millrace/internal/programtest"
)

func TestKindOfBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		head string
		want sniff.Format
	}{
		"empty":             {"", sniff.Unknown},
		"zeros":             {string(make([]byte, 4096)), sniff.Unknown},
		"M3U8":              {"#EXTM3U\n#EXT-X-VERSION:7\n", sniff.Playlist},
		"M3U8 with BOM":     {"\xef\xbb\xbf#EXTM3U\n", sniff.Playlist},
		"M3U8 after spaces": {"\r\n  #extm3u\nfile:///etc/passwd", sniff.Playlist},
		"M3U8 after a line": {"hello\n#EXTM3U\nfile:///etc/passwd", sniff.Playlist},
		"M3U8 before bytes": {"#EXTM3U\n\x00\x01\x02", sniff.Playlist},
		"concat":            {"ffconcat version 1.0\nfile /etc/passwd\n", sniff.Playlist},
		"DASH": {
			"<?xml version=\"1.0\"?>\n<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\">", sniff.Playlist,
		},
		"SDP":             {"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\n", sniff.Playlist},
		"PLS":             {"[playlist]\nFile1=http://x/", sniff.Playlist},
		"HTML":            {"\n<!DOCTYPE html>\n<html>", sniff.HTML},
		"XML":             {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", sniff.HTML},
		"SRT":             {"1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\n", sniff.Text},
		"WebVTT":          {"WEBVTT\n\n00:01.000 --> 00:02.000\nGr\xc3\xbc\xc3\x9fe\n", sniff.Text},
		"Latin-1":         {"1\n00:00:01,000 --> 00:00:02,000\nGr\xfc\xdfe\n", sniff.Text},
		"UTF-16":          {"\xff\xfe1\x00\r\x00\n\x00", sniff.Text},
		"JSON":            {`{"error": "not found"}`, sniff.Text},
		"EBML":            {"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01", sniff.Matroska},
		"ID3, long tag":   {"ID3\x04\x00\x00\x00\x7f\x7f\x7f\x00\x00\x00", sniff.MP3},
		"ID3 before FLAC": {"ID3\x04\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00fLaC\x00\x00", sniff.FLAC},
		"two ID3": {
			"ID3\x04\x00\x00\x00\x00\x00\x02\x00\x00ID3\x04\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00fLaC\x00\x00",
			sniff.FLAC,
		},
		"ID3 before HTML":    {"ID3\x04\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00<html>abcdefg", sniff.Unknown},
		"PNG":                {"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", sniff.Unknown},
		"JPEG":               {"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01", sniff.Unknown},
		"ZIP":                {"PK\x03\x04\x14\x00\x00\x00", sniff.Unknown},
		"box without a size": {"\x00\x00\x00\x05ftypisom", sniff.Unknown},
		"long mdat":          {"\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\x01\x00", sniff.MP4},
		"AIFF":               {"FORM\x00\x00\x00\x2eAIFCFVER", sniff.AIFF},
		"RIFF as AIFF":       {"RIFF\x00\x00\x00\x2eAIFFCOMM", sniff.Unknown},
		"video without PS":   {"\x00\x00\x01\xb3\x14\x00\xf0\xc4", sniff.Unknown},
		"start codes":        {"\x00\x00\x01\x67\x00\x00\x01\x68\x00\x00\x01\x65", sniff.Unknown},
		"playlist in a NAL":  {"\x00\x00\x00#EXTM3U\n", sniff.Playlist},
		"AC-3, one frame":    {"\x0b\x77\x00\x00\x14\x40", sniff.AC3},
		"AC-3, no other":     {"\x0b\x77\x00\x00\x00\x40" + string(make([]byte, 200)), sniff.Unknown},
		"RIFF of other kind": {"RIFF\x00\x00\x00\x00WEBPVP8 ", sniff.Unknown},
	} {
		if got := sniff.Kind([]byte(tt.head)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestKindOfRealFiles(t *testing.T) {
	t.Parallel()
	ffmpeg := programtest.Path(t, "ffmpeg")
	dir := t.TempDir()
	film := func(how ...string) []string {
		return append([]string{"-f", "lavfi", "-i", "testsrc2=d=1:s=128x96:r=25", "-map", "1:v", "-map", "0:a"}, how...)
	}
	for name, tt := range map[string]struct {
		args []string
		want sniff.Format
	}{
		"a.mp4":     {[]string{"-c:a", "aac"}, sniff.MP4},
		"a.mov":     {[]string{"-c:a", "aac"}, sniff.MP4},
		"a.m4a":     {nil, sniff.MP4},
		"f.mp4":     {[]string{"-c:a", "aac", "-movflags", "+frag_keyframe+empty_moov"}, sniff.MP4},
		"a.mkv":     {[]string{"-c:a", "aac"}, sniff.Matroska},
		"a.webm":    {[]string{"-c:a", "libopus"}, sniff.Matroska},
		"a.ts":      {[]string{"-c:a", "aac"}, sniff.MPEGTS},
		"a.m2ts":    {[]string{"-c:a", "aac"}, sniff.MPEGTS},
		"a.wav":     {nil, sniff.WAV},
		"a.mp3":     {nil, sniff.MP3},
		"mpeg2.mp3": {[]string{"-ar", "22050"}, sniff.MP3},
		"bare.mp3":  {[]string{"-id3v2_version", "0", "-write_xing", "0"}, sniff.MP3},
		"a.aac":     {nil, sniff.ADTS},
		"a.ogg":     {[]string{"-c:a", "libvorbis"}, sniff.Ogg},
		"a.opus":    {nil, sniff.Ogg},
		"a.flac":    {nil, sniff.FLAC},
		"a.aiff":    {nil, sniff.AIFF},
		"a.caf":     {nil, sniff.CAF},
		"a.w64":     {nil, sniff.W64},
		"a.wma":     {nil, sniff.ASF},
		"a.ac3":     {nil, sniff.AC3},
		"44.ac3":    {[]string{"-ar", "44100", "-b:a", "192k"}, sniff.AC3},
		"32.ac3":    {[]string{"-ar", "32000"}, sniff.AC3},
		"a.eac3":    {nil, sniff.EAC3},
		"v.mpg":     {film(), sniff.MPEGPS},
		"v.vob":     {film(), sniff.MPEGPS},
		"v.wmv":     {film(), sniff.ASF},
		"v.mxf":     {film("-ac", "2"), sniff.MXF},
		"v.nut":     {film(), sniff.NUT},
		"v.gif":     {film("-an"), sniff.GIF},
		"v.h264":    {film("-an", "-c:v", "libx264", "-g", "5"), sniff.H264},
		"aud.h264":  {film("-an", "-c:v", "libx264", "-x264-params", "aud=1"), sniff.H264},
		"v.hevc":    {film("-an", "-c:v", "libx265", "-x265-params", "log-level=none"), sniff.HEVC},
		"a.flv":     {[]string{"-c:a", "aac"}, sniff.FLV},
		"a.avi":     {[]string{"-c:a", "mp3"}, sniff.AVI},
		"a.mp2":     {nil, sniff.MP3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := filepath.Join(dir, name)
			args := append([]string{
				"-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=2:sample_rate=48000",
			}, tt.args...)
			if out, err := exec.CommandContext(t.Context(), ffmpeg, append(args, p)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{sniff.HeadSize, 1024} {
				got := sniff.Kind(b[:min(n, len(b))])
				if got != tt.want {
					t.Errorf("%d bytes: %s, want %s", n, got, tt.want)
				}
				if out, err := exec.CommandContext(t.Context(), ffmpeg, "-nostdin", "-loglevel", "error", "-f",
					got.Demuxer(), "-i", p, "-f", "null", "-").CombinedOutput(); err != nil {
					t.Errorf("demuxer %q: %v\n%s", got.Demuxer(), err, out)
				}
			}
		})
	}
}

func FuzzKind(f *testing.F) {
	f.Add([]byte("#EXTM3U\n"))
	f.Add([]byte("ID3\x04\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\xff\xfb\x90\x64"))
	f.Add(bytes.Repeat(append([]byte{0x47}, make([]byte, 187)...), 5))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := sniff.Kind(b)
		if got == "" {
			t.Fatal("no format")
		}
		if bytes.HasPrefix(b, []byte("#EXTM3U")) && got != sniff.Playlist {
			t.Fatalf("a playlist is %s", got)
		}
		if got == sniff.Playlist && got.Demuxer() != "" {
			t.Fatal("ffmpeg would read a playlist")
		}
	})
}

// A tag with a cover picture in it is passed over.
func TestReadBehindLongTag(t *testing.T) {
	t.Parallel()
	tag := append([]byte("ID3\x04\x00\x00\x00\x02\x00\x00"), make([]byte, 2<<14)...)
	for want, behind := range map[sniff.Format]string{
		sniff.FLAC: "fLaC\x00\x00\x00\x22", sniff.Playlist: "#EXTM3U\n", sniff.MP3: "\xff",
	} {
		file := append(bytes.Clone(tag), behind...)
		if got, err := sniff.Read(bytes.NewReader(file)); got != want || err != nil {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if got, err := sniff.Read(bytes.NewReader(nil)); got != sniff.Unknown || err != nil {
		t.Errorf("nothing is %s, %v", got, err)
	}
}
