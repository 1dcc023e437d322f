package ingest_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// What a phone has cut away at the beginning without encoding anything again is not shown, though the sound can't stay
// as it is.
func TestTrimmedVideoOfOtherSound(t *testing.T) {
	t.Parallel()
	whole := filmtest.File(t, "a.mov",
		filmtest.Args(filmtest.Picture("6"), filmtest.Sound("6"), filmtest.H264, []string{
			"-g", "60", "-c:a", "pcm_s16le",
		})...)
	path := filmtest.File(t, "trimmed.mov", "-ss", "1.5", "-i", whole, "-c", "copy")
	w := newWorld(t, workertest.Options{})
	a := w.ReadyAsset(path)
	if got, want := w.Samples(a)["v"], decoded(t, path); got != want {
		t.Errorf("%d pictures, the file shows %d", got, want)
	}
	if math.Abs(a.Facts.Duration-4.5) > 0.05 {
		t.Errorf("lasts %.3f s, want 4.5", a.Facts.Duration)
	}
	if a.NonStandard == nil || *a.NonStandard != (asset.NonStandard{AudioCodec: "pcm_s16le"}) {
		t.Errorf("unusual: %+v", a.NonStandard)
	}
}

// Recordings in one file of which each has a clock of its own last as long as they do, whatever the clocks say.
func TestClocksThatGoBack(t *testing.T) {
	t.Parallel()
	one := filmtest.File(t, "one.ts", filmtest.Args(filmtest.Picture("3"), filmtest.Sound("3"), filmtest.H264)...)
	late := filmtest.File(t, "late.ts", "-i", one, "-c", "copy", "-output_ts_offset", "3000")
	path := filepath.Join(t.TempDir(), "joined.ts")
	var all []byte
	for _, from := range []string{late, one} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, workertest.Options{})
	a := w.ReadyAsset(path)
	if math.Abs(a.Facts.Duration-6) > 0.1 || w.Samples(a)["v"] != 180 {
		t.Errorf("lasts %.3f s with %d pictures, want 6 s with 180", a.Facts.Duration, w.Samples(a)["v"])
	}
	for _, x := range a.InputInfo[0].File.Tracks {
		if x.Duration > 60 {
			t.Errorf("%s is said to last %.3f s", x.Type, x.Duration)
		}
	}
}

// Of a recording that was cut off inside of a picture all pictures before it are shown, and nothing of that one:
// players stop at a piece.
func TestCutOffInsideOfAPicture(t *testing.T) {
	t.Parallel()
	for name, how := range map[string][]string{
		"a.mp4": {"-c:a", "libopus", "-movflags", "+frag_keyframe+empty_moov+default_base_moof"},
		"a.flv": {"-c:a", "aac", "-flvflags", "no_duration_filesize"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filmtest.File(t, name,
				filmtest.Args(filmtest.Picture("6"), filmtest.Sound("6"), filmtest.H264,
					[]string{"-g", "30", "-bf", "0", "-b:v", "1M"}, how)...)
			if err := os.Truncate(path, insideOf(t, path, 100)); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, workertest.Options{})
			a := w.ReadyAsset(path)
			line, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
			w.Must(err)
			if n := w.Samples(a)["v"]; n < 60 || line.Rendition(timeline.MainVideo) == nil {
				t.Errorf("%d pictures", n)
			}
			plays(t, w, line)
		})
	}
}

// insideOf is a place in the middle of a picture, as a byte of the file.
func insideOf(t *testing.T, path string, picture int) int64 {
	t.Helper()
	var probed struct {
		Packets []struct {
			Position string `json:"pos"`
			Size     string `json:"size"`
		} `json:"packets"`
	}
	out := programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pos,size",
		"-of", "json", path)
	if err := json.Unmarshal(out, &probed); err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseInt(probed.Packets[picture].Position, 10, 64)
	size, err2 := strconv.ParseInt(probed.Packets[picture].Size, 10, 64)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return at + size/2
}

// A video put together of clips with descriptions of their own is encoded again: its parameters change inside of the
// track.
func TestVideoOfSeveralDescriptions(t *testing.T) {
	t.Parallel()
	path := filmtest.File(t, "a.mp4", filmtest.Args(filmtest.Picture("5"), filmtest.Sound("5"), filmtest.H264)...)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	moov := bytes.LastIndex(data, []byte("moov")) - 4 // behind the media, whose place stays
	if err = os.WriteFile(path, append(data[:moov:moov], described(data[moov:], false)...), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, workertest.Options{})
	a := w.ReadyAsset(path)
	if got, want := w.Samples(a)["v"], decoded(t, path); got != want || want != 150 {
		t.Errorf("%d pictures, the file shows %d", got, want)
	}
	line, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
	w.Must(err)
	plays(t, w, line)
}

// described gives boxes with the sample description of video doubled, and the second one in use from the middle of its
// chunks on.
func described(boxes []byte, video bool) []byte {
	var out []byte
	for len(boxes) >= 8 {
		size := binary.BigEndian.Uint32(boxes)
		kind, body := string(boxes[4:8]), boxes[8:size]
		switch kind {
		case "trak":
			body = described(body, bytes.Contains(body, []byte("vide")))
		case "moov", "mdia", "minf", "stbl":
			body = described(body, video)
		case "stsd":
			if video {
				body = slices.Concat(bmff.U32(0, 2), body[8:], body[8:])
			}
		case "stsc":
			if video {
				last := body[len(body)-12:]
				first := binary.BigEndian.Uint32(last) + 1
				body = slices.Concat(bmff.U32(0, binary.BigEndian.Uint32(body[4:])+1), body[8:], bmff.U32(first),
					last[4:8], bmff.U32(2))
			}
		}
		out = append(out, bmff.Make(kind, body)...)
		boxes = boxes[size:]
	}
	return out
}
