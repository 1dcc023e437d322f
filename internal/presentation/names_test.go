package presentation

import (
	"testing"

	"millrace/internal/fault"
	"millrace/internal/media/images"
	"millrace/internal/media/playback"
)

// TestImageNames: the names that playback permits as images are those that images are made for. What was on one list
// alone would be refused to who may have it, or permitted to the wrong audience.
func TestImageNames(t *testing.T) {
	t.Parallel()
	uses := map[images.Kind]playback.Use{
		images.Thumbnail: playback.ToThumbnail, images.Animated: playback.ToAnimated,
		images.Storyboard: playback.ToStoryboard,
	}
	extensions := []string{
		"", "jpg", "jpeg", "png", "webp", "gif", "avif", "vtt", "json", "txt", "layout", "mp4", "m3u8", "JPG",
	}
	for kind, use := range uses {
		for _, ext := range extensions {
			name := string(kind) + "." + ext
			_, err := images.Parse(name, "")
			made := !fault.Is(err, fault.NotFound)
			if got, ok := playback.ImageUse(name); ok != made || ok && got != use {
				t.Errorf("%s: made %v; permitted as an image %v, for use %d, want %d", name, made, ok, got, use)
			}
		}
	}
}
