package live_test

import (
	"strings"
	"testing"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/fault"
)

// TestGeneratedSubtitles: they are replaced as a whole, checked together with the captions that there are, and never
// while the stream is active.
func TestGeneratedSubtitles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{{Name: "Captions"}}})
	set := func(list ...assetopt.GeneratedSubtitle) (live.Stream, error) {
		return w.SetGeneratedSubtitles(w.ctx(), env, s.ID, list, w.now())
	}
	french := assetopt.GeneratedSubtitle{
		LanguageCode: "fr-CA", Name: "Français", Passthrough: "p", VocabularyIDs: []string{"v1", "v2"},
	}
	got, err := set(french)
	w.must(err)
	if g := got.Settings.GeneratedSubtitles; len(g) != 1 || g[0].LanguageCode != "fr" || g[0].Name != "Français" ||
		len(g[0].VocabularyIDs) != 2 || !same(got, w.find(s.ID)) {
		t.Errorf("set: %+v", g)
	}
	for name, tt := range map[string]struct {
		list []assetopt.GeneratedSubtitle
		want string
	}{
		"two": {make([]assetopt.GeneratedSubtitle, 2), "generated_subtitles may have at most 1 entries"},
		"a language": {
			[]assetopt.GeneratedSubtitle{{LanguageCode: "ja"}}, "generated_subtitles[0].language_code must be one of",
		},
		"a name in use": {
			[]assetopt.GeneratedSubtitle{{Name: "Captions"}},
			"generated_subtitles[0].name must be unique among the text tracks",
		},
		"a name too long": {
			[]assetopt.GeneratedSubtitle{{Name: strings.Repeat("x", 513)}}, "generated_subtitles[0].name",
		},
	} {
		if _, refused := set(tt.list...); !fault.Is(refused, fault.Invalid) ||
			!strings.Contains(refused.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, refused, tt.want)
		}
	}
	if g := w.find(s.ID).Settings.GeneratedSubtitles; len(g) != 1 || g[0].Name != "Français" {
		t.Errorf("what was refused has changed them: %+v", g)
	}
	got, err = set()
	w.must(err)
	if len(got.Settings.GeneratedSubtitles) != 0 || len(got.Settings.EmbeddedSubtitles) != 1 {
		t.Errorf("cleared: %+v", got.Settings)
	}
	_, err = set(assetopt.GeneratedSubtitle{})
	w.must(err)
	w.events("updated", "updated", "updated")
	s = w.on(live.Active)
	for _, list := range [][]assetopt.GeneratedSubtitle{{french}, {}} {
		if _, err := set(list...); !fault.Is(err, fault.Conflict) {
			t.Errorf("%d while active: %v", len(list), err)
		}
	}
}
