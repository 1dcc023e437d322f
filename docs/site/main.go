// Command site writes the documentation as a static site: site [-source URL] FROM TO. Its pages refer to one another by
// relative links, so they work below any path and without a server.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"millrace/internal/web/docsite"
)

func main() {
	source := flag.String("source", "", "URL of the sources, for links to files that are not part of the site")
	version := flag.String("version", "", "version to name on each page")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "site: give the folder of the documents and a folder for the site")
		os.Exit(2)
	}
	if err := write(flag.Arg(0), flag.Arg(1), docsite.Options{Source: *source, Version: *version}); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func write(from, to string, o docsite.Options) error {
	files, err := docsite.Build(os.DirFS(from), o)
	if err != nil {
		return err
	}
	for name, b := range files {
		at := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // to be served by others
			return err
		}
		if err := os.WriteFile(at, b, 0o644); err != nil { //nolint:gosec // to be served by others
			return err
		}
	}
	return nil
}
