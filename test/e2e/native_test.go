package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"millrace/test/rig"
)

// What is played natively: more than a live playlist lists.
const (
	nativeSeconds = 9
	nativePicture = 320 * 180 * 3 / 2 // bytes of one in I420
	nativeLoud    = 300               // of 32767, which silence does not reach
)

// native plays some seconds in GStreamer, a client of AVPlayer's kind: it has no page and no Media Source, is given one
// URL with its token, and finds everything else by the playlists. The pictures are 320x180, 30 a second.
func native(t *testing.T, what, url string) {
	t.Helper()
	for _, element := range []string{"hlsdemux", "souphttpsrc", "openh264dec", "faad"} {
		if exec.CommandContext(t.Context(), "gst-inspect-1.0", "--exists", element).Run() == nil {
			continue
		}
		if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
			t.Fatalf("GStreamer's %s is not installed", element)
		}
		t.Logf("%s: not played natively: GStreamer's %s is not installed", what, element)
		return
	}
	dir := t.TempDir()
	picture, sound := filepath.Join(dir, "picture"), filepath.Join(dir, "sound")
	least := map[string]int{picture: nativeSeconds * 30 * nativePicture, sound: nativeSeconds * 48000 * 2} // bytes
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var out bytes.Buffer
	player := exec.CommandContext(ctx, "gst-launch-1.0", "-q", "uridecodebin", "name=d", "uri="+url,
		"d.", "!", "queue", "!", "videoconvert", "!", "video/x-raw,format=I420", "!",
		"filesink", "buffer-mode=unbuffered", "location="+picture,
		"d.", "!", "queue", "!", "audioconvert", "!", "audio/x-raw,format=S16LE", "!",
		"filesink", "buffer-mode=unbuffered", "location="+sound)
	player.Stdout, player.Stderr = &out, &out
	if err := player.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = player.Wait() // it is killed, unless it comes to the end
	}()
	for playing := true; playing; rig.Pause(50 * time.Millisecond) {
		missing := false
		for file, size := range least {
			info, err := os.Stat(file)
			missing = missing || err != nil || info.Size() < int64(size)
		}
		select {
		case <-ended:
			playing = false
		default:
			playing = missing
		}
	}
	stop()
	<-ended
	pictures, sounds := readSome(t, picture, least[picture]), readSome(t, sound, least[sound])
	if len(pictures) < least[picture] || bytes.Equal(pictures[:nativePicture], pictures[len(pictures)-nativePicture:]) {
		t.Errorf("%s: %d pictures, want %d that move\n%s", what, len(pictures)/nativePicture, nativeSeconds*30, &out)
	}
	loudest := int16(0)
	for at := 0; at+1 < len(sounds); at += 2 {
		loudest = max(loudest, int16(binary.LittleEndian.Uint16(sounds[at:])))
	}
	if len(sounds) < least[sound] || loudest < nativeLoud {
		t.Errorf("%s: %d bytes of sound, as loud as %d\n%s", what, len(sounds), loudest, &out)
	}
}

// readSome reads the beginning of a file; nothing where there is none.
func readSome(t *testing.T, path string, most int) []byte {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
