// Package style is the style sheet that the service's pages share: colours, sizes, type, and elements that several of
// them use. It must never know a page. It starts no goroutine.
package style

import "embed"

// Files holds style.css. A page links it before its own style sheet, which adds to the cascade layers that it names
// (CSS Cascading and Inheritance level 5, section 6.4).
//
//go:embed style.css
var Files embed.FS
