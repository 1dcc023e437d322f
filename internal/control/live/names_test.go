package live

import (
	"testing"

	"millrace/internal/control/assetopt"
)

// TestNamesOfEarlierVersions: a name that is refused now is refused when it is given, and where it is there already all
// else can be changed beside it.
func TestNamesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	two := assetopt.Meta{Title: "one\rtwo"}
	there := Settings{
		LatencyMode: Standard, ReconnectWindow: 60, MaxContinuous: MaxContinuous, Meta: two,
		NewAsset:          &assetopt.Options{Meta: two},
		EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{{Name: "a\nb", LanguageChannel: "cc1", LanguageCode: "en"}},
	}
	text := "x"
	for name, tt := range map[string]struct {
		in      PatchInput
		refused bool
	}{
		"something else": {PatchInput{Passthrough: &text}, false},
		"a right title":  {PatchInput{Meta: &assetopt.MetaPatch{Meta: assetopt.Meta{Title: "one"}}}, false},
		"a bad title":    {PatchInput{Meta: &assetopt.MetaPatch{Meta: assetopt.Meta{Title: "a\nb"}}}, true},
		"a bad title of recordings": {PatchInput{NewAsset: &NewAssetPatch{
			Meta: &assetopt.MetaPatch{Meta: assetopt.Meta{Title: "a\nb"}},
		}}, true},
		"bad subtitles": {PatchInput{EmbeddedSubtitles: &there.EmbeddedSubtitles}, true},
	} {
		if _, err := tt.in.apply(there, false); (err != nil) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
