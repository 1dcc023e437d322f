package api

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/vocabulary"
	"millrace/internal/id"
)

// fakeVocabularies has one vocabulary.
type fakeVocabularies struct{ *notebook }

func (fakeVocabularies) one() vocabulary.Vocabulary {
	return vocabulary.Vocabulary{
		ID: "vocabulary1", Name: "Places", Phrases: []string{"Zorvex"}, CreatedAt: noon, UpdatedAt: noon,
	}
}

func (f fakeVocabularies) Create(
	_ context.Context, _ id.Environment, in vocabulary.Input, _ time.Time,
) (vocabulary.Vocabulary, error) {
	f.note("vocabularies.Create", in)
	return f.one(), nil
}

func (f fakeVocabularies) Get(
	_ context.Context, _ id.Environment, v id.TranscriptionVocabulary,
) (vocabulary.Vocabulary, error) {
	f.note("vocabularies.Get", v)
	return f.one(), outcome(string(v))
}

func (f fakeVocabularies) List(_ context.Context, _ id.Environment, page, limit int) ([]vocabulary.Vocabulary, error) {
	f.note("vocabularies.List", page, limit)
	return []vocabulary.Vocabulary{f.one()}, nil
}

func (f fakeVocabularies) Replace(
	_ context.Context, _ id.Environment, v id.TranscriptionVocabulary, in vocabulary.Input, _ time.Time,
) (vocabulary.Vocabulary, error) {
	f.note("vocabularies.Replace", v, in)
	return f.one(), outcome(string(v))
}

func (f fakeVocabularies) Delete(_ context.Context, _ id.Environment, v id.TranscriptionVocabulary) error {
	f.note("vocabularies.Delete", v)
	return outcome(string(v))
}

func (f *fakeAssets) GenerateTracks(
	_ context.Context, _ id.Environment, a id.Asset, _ id.Track, _ []assetopt.GeneratedSubtitle, _ time.Time,
) ([]asset.Track, error) {
	return nil, outcome(string(a))
}
