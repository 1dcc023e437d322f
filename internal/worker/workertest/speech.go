package workertest

import (
	"testing"

	"millrace/internal/control/asset"
)

// TextTrack is an asset's only text track of a language.
func TextTrack(t *testing.T, a asset.Asset, language string) asset.Track {
	t.Helper()
	for _, tr := range a.Tracks {
		if tr.Type == asset.TextTrack && tr.LanguageCode == language {
			return tr
		}
	}
	t.Fatalf("no text track in %s: %+v", language, a.Tracks)
	return asset.Track{}
}
