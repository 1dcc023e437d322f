// Package player has what the service's pages with a player share: playback, controls, menus for quality, captions,
// audio and speed, thumbnails over the seek bar, and keyboard shortcuts. What a page shows when nothing plays is up to
// the page. It must never know a page. It starts no goroutine.
package player

import (
	"embed"
	"maps"

	"millrace/internal/web/static"
)

// Files holds the modules, player.css, and controls.html: the template "player-controls", which takes no data and
// belongs into the element with id="stage" behind its video with id="video".
//
//go:embed assets
var Files embed.FS

// Template is the name of the file with the template in Files.
const Template = "assets/controls.html"

// modules are those in Files, each behind those that it imports.
var modules = []string{ //nolint:gochecknoglobals // a table
	"catchup.js", "engine.js", "controls.js", "menus.js", "storyboard.js", "captions.js", "keys.js",
}

// Into adds what a browser asks for to the assets of a page, and gives the names of the modules for static.Assets.Link.
// It panics when the page has an asset of such a name.
func Into(assets static.Assets) []string {
	for _, name := range append([]string{"player.css"}, modules...) {
		if _, taken := assets[name]; taken {
			panic("player: the page has an asset of this name, too: " + name)
		}
		maps.Copy(assets, static.Read(Files, "assets/"+name))
	}
	return modules
}
