// Package objectkey names the stored objects of media: everything of one media set is below media/{id}/. Pure; it must
// never know what storage there is.
package objectkey

import (
	"strings"

	"millrace/internal/id"
)

// Root is the prefix of all keys.
const Root = "media/"

// Media is the prefix of every key of a media set. It ends in a slash, as every prefix here does.
func Media(m id.Media) string { return Root + string(m) + "/" }

// Resource is the key of an init segment or a segment, by its URI relative to the media's playlists.
func Resource(m id.Media, uri string) string { return Media(m) + uri }

// Rendition is the folder of a rendition that is made of another one, without a slash at the end.
func Rendition(m id.Media, rendition string) string { return Media(m) + rendition }

// Index is the key of a whole timeline's index.
func Index(m id.Media) string { return Media(m) + "timeline.jsonl" }

// SourceFile is the key of a file that is played from its byte ranges.
func SourceFile(m id.Media) string { return Media(m) + "source.mp4" }

// Checksums is the key of the checksums of an uploaded file's blocks.
func Checksums(m id.Media) string { return Media(m) + "source.crc32c" }

// Tracks is the prefix of an asset's text and alternate audio tracks.
func Tracks(m id.Media) string { return Media(m) + "tracks/" }

// Track is the key of a text or alternate audio track; ext is vtt or m4a.
func Track(m id.Media, t id.Track, ext string) string { return Tracks(m) + string(t) + "." + ext }

// Files is the prefix of the files to download.
func Files(m id.Media) string { return Media(m) + "files/" }

// File is the key of a file to download; ext is mp4 or m4a.
func File(m id.Media, f id.StaticRendition, ext string) string {
	return Files(m) + string(f) + "." + ext
}

// FileParts is the prefix of what is made for one file to download alone.
func FileParts(m id.Media, f id.StaticRendition) string { return Files(m) + string(f) + "/" }

// Images is the folder of the images that are made of a recording, without a slash at the end.
func Images(m id.Media) string { return Media(m) + "images" }

// Owner is the media set that a key belongs to; ok is false for any other key.
func Owner(key string) (m id.Media, ok bool) {
	rest, ok := strings.CutPrefix(key, Root)
	if !ok {
		return "", false
	}
	set, _, ok := strings.Cut(rest, "/")
	return id.Media(set), ok
}
