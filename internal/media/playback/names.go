package playback

import "strings"

// kind is what a path behind a playback ID leads to. What follows from a name is decided by it alone: who may have it,
// whether a signed path leads to it, and what sends it.
type kind int

// The kinds. Whether there is such a thing is not said.
const (
	nothing kind = iota
	theMultivariant
	ofRendition // a media playlist, or what it lists
	aText
	aFile
	theMetadata
	anImage
)

// textPrefix is in front of the names of texts.
const textPrefix = "text/"

// imageNames are all names of images, and what they are for. No other name is ever an image's, however it ends: what
// somebody may have who has the token of an image is on this list.
var imageNames = map[string]Use{ //nolint:gochecknoglobals // a table
	"thumbnail.jpg": ToThumbnail, "thumbnail.png": ToThumbnail, "thumbnail.webp": ToThumbnail,
	"animated.gif": ToAnimated, "animated.webp": ToAnimated,
	"storyboard.jpg": ToStoryboard, "storyboard.png": ToStoryboard, "storyboard.webp": ToStoryboard,
	"storyboard.vtt": ToStoryboard, "storyboard.json": ToStoryboard,
}

// ImageUse says what an image is for, by its name. false: it is no image's name.
func ImageUse(name string) (Use, bool) {
	u, ok := imageNames[name]
	return u, ok
}

// kindOf reads the path behind a playback ID, or behind the segment of a permit.
func kindOf(rest string) kind {
	switch _, isImage := imageNames[rest]; {
	case strings.HasPrefix(rest, textPrefix):
		return aText
	case strings.Contains(rest, "/"):
		return ofRendition
	case isImage:
		return anImage
	case rest == metadataName:
		return theMetadata
	case isDownload(rest):
		return aFile
	}
	return nothing
}

// useOf is what the path behind a playback ID is for: to watch, but for images.
func useOf(rest string) Use { return imageNames[rest] }

// isBelow reports whether something is to be had by the path of a permit: all that players ask for of themselves when
// they have a playlist or the text of a storyboard. Images other than storyboards, and files, take their token.
func isBelow(rest string) bool {
	switch kindOf(rest) {
	case ofRendition, aText, theMetadata:
		return true
	case anImage:
		return useOf(rest) == ToStoryboard
	case nothing, theMultivariant, aFile:
	}
	return false
}
