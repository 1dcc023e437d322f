package player

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNoWorkers: each page of the service that makes an hls.js has it work without a worker. With one, hls.js leaves
// out the last part of a segment now and then and stalls: TestPlayersWithLateWorkers has it in a browser.
func TestNoWorkers(t *testing.T) {
	t.Parallel()
	web := os.DirFS("..")
	comments := regexp.MustCompile(`//[^\n]*`)
	var makers []string
	err := fs.WalkDir(web, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".js") && !strings.HasSuffix(name, ".html") {
			return err
		}
		text, err := fs.ReadFile(web, name)
		if err != nil {
			return err
		}
		for _, made := range strings.Split(comments.ReplaceAllString(string(text), ""), "new Hls(")[1:] {
			makers = append(makers, name)
			settings, _, _ := strings.Cut(made, "});")
			if !strings.Contains(settings, "enableWorker: false,") {
				t.Errorf("%s makes an hls.js without enableWorker: false", name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dashboard/assets/player.js", "watch/assets/watch.js"} {
		if !slices.Contains(makers, want) {
			t.Errorf("%s makes none; those that do are %q", want, makers)
		}
	}
}
