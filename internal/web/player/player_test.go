package player

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestOneEngine: engine.js alone makes an hls.js for the service's pages, with the settings without which parts are
// left out. TestPlayersWithLateWorkers and TestPlayersWithLateUpdates have that in a browser.
func TestOneEngine(t *testing.T) {
	t.Parallel()
	const engine = "player/assets/engine.js"
	web := os.DirFS("..")
	var makers []string
	err := fs.WalkDir(web, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".js") && !strings.HasSuffix(name, ".html") {
			return err
		}
		text, err := fs.ReadFile(web, name)
		if strings.Contains(string(text), "new Hls(") {
			makers = append(makers, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(makers, []string{engine}) {
		t.Errorf("%q make an hls.js, want %s alone", makers, engine)
	}
	text, err := fs.ReadFile(web, engine)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"\n    enableWorker: false,", "\n    bufferController: oneByOne("} {
		if !strings.Contains(string(text), setting) {
			t.Errorf("%s lacks %q", engine, strings.TrimSpace(setting))
		}
	}
}
