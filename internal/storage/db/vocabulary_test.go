package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/vocabulary"
	"millrace/internal/fault"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func TestVocabularies(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		env, err := d.Access().EnsureDefault(ctx, access.Environment{
			ID: "env", Name: "Default", Kind: "production", CreatedAt: at(0),
		})
		must(t, err)
		s := vocabulary.New(d.Vocabularies())
		phrases := func(all ...string) *[]string { return &all }
		numbered := func(prefix string, n int) *[]string {
			var out []string
			for i := range n {
				out = append(out, fmt.Sprint(prefix, i))
			}
			return &out
		}
		text := "Places"
		v, err := s.Create(ctx, env.ID, vocabulary.Input{
			Name: &text, Phrases: phrases("Quellimar", "Ōkami Bay"),
		}, at(1))
		must(t, err)
		for what, in := range map[string]vocabulary.Input{
			"no phrases": {Name: &text}, "an empty list": {Phrases: phrases()},
			"an empty one": {Phrases: phrases(" ")}, "a long one": {Phrases: phrases(strings.Repeat("é", 33))},
			"too many": {Phrases: numbered("p", 1001)}, "a control character": {Phrases: phrases("a\x00b")},
		} {
			if _, err = s.Replace(ctx, env.ID, v.ID, in, at(2)); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		v, err = s.Replace(ctx, env.ID, v.ID, vocabulary.Input{
			Phrases: phrases("Zorvex", strings.Repeat("é", 32)),
		}, at(3))
		must(t, err)
		got, err := s.Get(ctx, env.ID, v.ID)
		must(t, err)
		if got.Name != "Places" || !slices.Equal(got.Phrases, v.Phrases) || !got.UpdatedAt.Equal(at(3)) ||
			!got.CreatedAt.Equal(at(1)) {
			t.Errorf("got %+v", got)
		}
		if _, err = s.Get(ctx, "other", v.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("of another environment: %v", err)
		}
		many, err := s.Create(ctx, env.ID, vocabulary.Input{Phrases: numbered("p", 1000)}, at(4))
		must(t, err)
		joined, err := s.Phrases(ctx, env.ID, []string{string(v.ID), "gone", string(many.ID), string(v.ID)})
		must(t, err)
		if len(joined) != 1000 || joined[0] != "Zorvex" || joined[2] != "p0" || joined[999] != "p997" {
			t.Errorf("%d joined, from %q to %q", len(joined), joined[0], joined[len(joined)-1])
		}
		listed, err := s.List(ctx, env.ID, 1, 10)
		must(t, err)
		if len(listed) != 2 || listed[0].ID != many.ID {
			t.Errorf("listed %d", len(listed))
		}
		must(t, s.Delete(ctx, env.ID, v.ID))
		if err = s.Delete(ctx, env.ID, v.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("deleted twice: %v", err)
		}
		must(t, d.Access().SetCaptions(ctx, env.ID, "en=none"))
		if e, err := d.Access().Environment(ctx, env.ID); err != nil || e.Captions != "en=none" {
			t.Errorf("captions %q, %v", e.Captions, err)
		}
	})
}
