package main

import (
	"errors"
	"fmt"

	mux "github.com/muxinc/mux-go/v6"
)

func (r run) vocabularies() error {
	words := r.TranscriptionVocabulariesApi
	made, err := words.CreateTranscriptionVocabulary(mux.CreateTranscriptionVocabularyRequest{
		Name:        "Places",
		Phrases:     []string{"Quellimar"},
		Passthrough: "p",
	})
	if err != nil {
		return err
	}
	id := made.Data.Id
	changed, err := words.UpdateTranscriptionVocabulary(id, mux.UpdateTranscriptionVocabularyRequest{
		Phrases: []string{"Zorvex", "Tabrinko Bay"},
	})
	if err != nil {
		return err
	}
	got, err := words.GetTranscriptionVocabulary(id)
	if err != nil {
		return err
	}
	listed, err := words.ListTranscriptionVocabularies()
	if err != nil || len(listed.Data) == 0 {
		return fmt.Errorf("%d listed, %w", len(listed.Data), err)
	}
	_, empty := words.UpdateTranscriptionVocabulary(id, mux.UpdateTranscriptionVocabularyRequest{Name: "no phrases"})
	err = words.DeleteTranscriptionVocabulary(id)
	_, gone := words.GetTranscriptionVocabulary(id)
	return errors.Join(
		err, want("phrases", fmt.Sprint(changed.Data.Phrases), "[Zorvex Tabrinko Bay]"),
		want("phrases read", fmt.Sprint(got.Data.Phrases), "[Zorvex Tabrinko Bay]"),
		want("name", changed.Data.Name, "Places"), refused[mux.BadRequestError]("no phrases", empty),
		refused[mux.NotFoundError]("a deleted vocabulary", gone),
	)
}
