package ondemand_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/timeline"
)

// Samples without bytes, which some writers leave where nothing new is shown, are in no segment, and all else keeps its
// time.
func TestEmptySamplesAreLeftOut(t *testing.T) {
	t.Parallel()
	path := ffmpeg(t, "a.mp4", args(picture("3", "30"), sound("3"), h264("30"))...)
	whole := plan(t, path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for rest := data; ; { // the last size of each table
		_, after, found := bytes.Cut(rest, []byte("stsz"))
		if !found {
			break
		}
		n := binary.BigEndian.Uint32(after[8:])
		binary.BigEndian.PutUint32(after[8+4*n:], 0)
		rest = after
	}
	path = filepath.Join(t.TempDir(), "a.mp4")
	if err = os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m := plan(t, path)
	if got, want := m.timeline.Duration(), whole.timeline.Duration(); got != want {
		t.Errorf("lasts %v, want %v", got, want)
	}
	for _, id := range []string{timeline.MainVideo, timeline.MainAudio} {
		stream, count := map[string]string{timeline.MainVideo: "v", timeline.MainAudio: "a"}[id], 0
		joined := m.join(t, id)
		data, err := os.ReadFile(joined)
		if err != nil {
			t.Fatal(err)
		}
		fragments, err := cmaf.ParseFragments(data[bytes.Index(data, []byte("moof"))-4:])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fragments {
			for k, s := range f.Samples {
				if len(s.Data) == 0 {
					t.Errorf("%s: sample %d is empty", id, k)
				}
			}
			count += len(f.Samples)
		}
		if want := len(packets(t, whole.join(t, id), stream)) - 1; count != want {
			t.Errorf("%s: %d samples, want %d", id, count, want)
		}
	}
}
