// Package docs is the documentation: its Markdown files and what they show, as the program serves them. It must never
// know how they are shown. It starts no goroutine.
package docs

import "embed"

// Files has every page. Of the pictures it has those of pages that have no other way to show something: what the
// dashboard looks like, the program that serves these files shows itself. They may have 500 kB, compressed.
//
//go:embed *.md front fleet.sh pictures/publish.webp pictures/watch.webp
var Files embed.FS
