package programtest

import (
	"os"
	"path/filepath"
	"testing"
)

// SpeechModel is the folder of the model of the speech engine that comes with the system's packages.
const SpeechModel = "/usr/share/pocketsphinx/model/en-us"

// Speech has a test go on where speech can be recognised, and otherwise be skipped, or fail where MILLRACE_TEST_REQUIRE
// is set.
func Speech(t testing.TB) {
	t.Helper()
	Path(t, "ffmpeg") // it brings the library
	if _, err := os.Stat(filepath.Join(SpeechModel, "en-us.lm.bin")); err == nil {
		return
	}
	if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
		t.Fatal("pocketsphinx-en-us is not installed")
	}
	t.Skip("pocketsphinx-en-us is not installed")
}

// SpeechArgs are ffmpeg's arguments for an input that is a text, read aloud by one of its voices: slt, rms, awb, kal16.
func SpeechArgs(voice, text string) []string {
	return []string{"-f", "lavfi", "-i", "flite=text='" + text + "':voice=" + voice}
}
