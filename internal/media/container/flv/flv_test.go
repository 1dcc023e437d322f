package flv_test

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"testing"
	"testing/iotest"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/flv"
	"millrace/internal/programtest"
)

const head = "FLV\x01\x01\x00\x00\x00\x09"

func tag(kind byte, ms uint32, body string) string {
	n := len(body)
	return "\x00\x00\x00\x00" +
		string([]byte{
			kind, byte(n >> 16), byte(n >> 8), byte(n), byte(ms >> 16), byte(ms >> 8), byte(ms), byte(ms >> 24), 0, 0,
			0,
		}) + body
}

func all(in io.Reader, largest int) (tags []flv.Tag, err error) {
	r := flv.NewReader(in, largest)
	for {
		t, err := r.Next()
		if err != nil {
			return tags, err
		}
		tags = append(tags, t)
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	stream := head + tag(18, 0, "metadata") + tag(9, 0, "\x17\x00\x00\x00\x00avcC") +
		tag(9, 40, "\x17\x01\x00\x00\x50one") +
		tag(8, 41, "\xaf\x01sound") + tag(9, 1<<24|7, "\x27\x01\xff\xff\xf0two") +
		tag(9, 1<<24|8, "\x17\x02\x00\x00\x00") + "\x00\x00\x00\x00"
	got, err := all(iotest.OneByteReader(bytes.NewReader([]byte(stream))), 100)
	if !errors.Is(err, io.EOF) || len(got) != 3 {
		t.Fatalf("%d tags, %v", len(got), err)
	}
	ms := time.Millisecond
	for i, want := range []flv.Tag{
		{Key: true, Config: true, Data: []byte("avcC")},
		{DTS: 40 * ms, PTS: 120 * ms, Key: true, Data: []byte("one")},
		{DTS: (1<<24 + 7) * ms, PTS: (1<<24 - 9) * ms, Data: []byte("two")},
	} {
		g := got[i]
		if g.DTS != want.DTS || g.PTS != want.PTS || g.Key != want.Key || g.Config != want.Config ||
			!bytes.Equal(g.Data, want.Data) {
			t.Errorf("tag %d: %+v, want %+v", i, g, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"not FLV":     "RIFF\x00\x00\x00\x00WAVE",
		"large":       head + tag(9, 0, "\x17\x01\x00\x00\x00"+string(make([]byte, 200))),
		"other codec": head + tag(9, 0, "\x12\x01\x00\x00\x00"),
		"short":       head + tag(9, 0, "\x17"),
	} {
		if _, err := all(bytes.NewReader([]byte(stream)), 100); !errors.Is(err, flv.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := head + tag(9, 0, "\x17\x01\x00\x00\x00frame")
	for n := range whole {
		if tags, err := all(bytes.NewReader([]byte(whole[:n])), 100); err == nil || len(tags) > 0 {
			t.Errorf("cut at %d: %d tags, %v", n, len(tags), err)
		}
	}
}

// TestWhatFFmpegWrites reads what an encoder writes to a pipe.
func TestWhatFFmpegWrites(t *testing.T) {
	t.Parallel()
	ffmpeg := programtest.Path(t, "ffmpeg")
	out, err := exec.CommandContext(t.Context(), ffmpeg, "-v", "error", "-f", "lavfi", "-i",
		"testsrc2=size=320x180:rate=25:duration=2",
		"-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-flvflags", "no_duration_filesize", "-f", "flv",
		"pipe:1").Output()
	if err != nil {
		t.Fatal(err)
	}
	tags, err := all(bytes.NewReader(out), 1<<20)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	frames, keys := 0, 0
	for _, tag := range tags {
		if tag.Config {
			if _, _, size, err := h264.ParseAVCC(tag.Data); err != nil || size != 4 {
				t.Errorf("configuration: %v, lengths of %d bytes", err, size)
			}
			continue
		}
		if tag.Key {
			keys++
		}
		if want := time.Duration(frames) * 40 * time.Millisecond; tag.PTS != want {
			t.Errorf("frame %d at %v", frames, tag.PTS)
		}
		frames++
	}
	if frames != 50 || keys != 2 {
		t.Errorf("%d frames, %d keys", frames, keys)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(head + tag(9, 0, "\x17\x00\x00\x00\x00avcC") + tag(9, 40, "\x17\x01\x00\x00\x50one")))
	f.Fuzz(func(t *testing.T, b []byte) {
		tags, err := all(bytes.NewReader(b), 1<<16)
		if err == nil || len(tags)*15 > len(b) {
			t.Errorf("%d tags of %d bytes, %v", len(tags), len(b), err)
		}
	})
}
