package programtest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNodePackages: what is in place stays, until the lock file names something else.
func TestNodePackages(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "local"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("local/package.json", `{"name":"local","version":"1.0.0"}`)
	write("package.json", `{"name":"a","version":"1.0.0"}`)
	write("package-lock.json", `{"name":"a","version":"1.0.0","lockfileVersion":3,"packages":{
		"":{"name":"a","version":"1.0.0"}}}`)
	if err := os.Mkdir(filepath.Join(folder, "node_modules"), 0o700); err != nil {
		t.Fatal(err)
	}
	NodePackages(t, folder)
	write("node_modules/mark", "it is not installed again")
	NodePackages(t, folder)
	read(t, filepath.Join(folder, "node_modules/mark"))
	write("package.json", `{"name":"a","version":"1.0.0","dependencies":{"local":"file:local"}}`)
	write("package-lock.json", `{"name":"a","version":"1.0.0","lockfileVersion":3,"packages":{
		"":{"name":"a","version":"1.0.0","dependencies":{"local":"file:local"}},
		"local":{"version":"1.0.0"},"node_modules/local":{"resolved":"local","link":true}}}`)
	NodePackages(t, folder)
	read(t, filepath.Join(folder, "node_modules/local/package.json"))
}
