package api

import (
	"context"
	"net/http"

	"millrace/internal/control/vocabulary"
	"millrace/internal/id"
)

const (
	vocabularyTag  = "Transcription vocabularies"
	vocabularyPath = "/video/v1/transcription-vocabularies"
	vocabularyItem = vocabularyPath + "/{transcription_vocabulary_id}"
)

// VocabularyRef names a transcription vocabulary in a path; exported for huma, which reads embedded fields of exported types only.
type VocabularyRef struct {
	ID string `path:"transcription_vocabulary_id" maxLength:"255"`
}

func (r VocabularyRef) id() id.TranscriptionVocabulary { return id.TranscriptionVocabulary(r.ID) }

// TranscriptionVocabulary is a transcription vocabulary as it is shown.
type TranscriptionVocabulary struct {
	ID          string   `json:"id"`
	CreatedAt   string   `json:"created_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	UpdatedAt   string   `json:"updated_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	Name        string   `json:"name,omitempty"`
	Phrases     []string `json:"phrases" doc:"Most important first."`
	Passthrough string   `json:"passthrough,omitempty"`
}

// TranscriptionVocabularyInput asks for a transcription vocabulary, or replaces one.
type TranscriptionVocabularyInput struct {
	Name        *string   `json:"name,omitempty"`
	Phrases     *[]string `json:"phrases,omitempty" doc:"Required. 1 to 1000 phrases of 1 to 32 characters, most important first."`
	Passthrough *string   `json:"passthrough,omitempty" maxLength:"255"`
}

func (in TranscriptionVocabularyInput) domain() vocabulary.Input { return vocabulary.Input(in) }

func (s *server) routeVocabularies() {
	handle(s, route{
		method: http.MethodPost, path: vocabularyPath, id: "create-transcription-vocabulary", tag: vocabularyTag, status: http.StatusCreated,
		permission: videoWrite, summary: "Create a transcription vocabulary",
		text: "Live streams refer to it in generated_subtitles. Of all vocabularies of a live stream the first 1000 phrases are used, in order.",
	}, s.createVocabulary)
	handle(s, route{
		method: http.MethodGet, path: vocabularyPath, id: "list-transcription-vocabularies", tag: vocabularyTag, permission: videoRead,
		summary: "List transcription vocabularies", text: "Newest first.",
	}, s.listVocabularies)
	handle(s, route{
		method: http.MethodGet, path: vocabularyItem, id: "get-transcription-vocabulary", tag: vocabularyTag, permission: videoRead,
		summary: "Retrieve a transcription vocabulary",
	}, s.getVocabulary)
	handle(s, route{
		method: http.MethodPut, path: vocabularyItem, id: "update-transcription-vocabulary", tag: vocabularyTag, permission: videoWrite,
		summary: "Replace a transcription vocabulary", text: "Replaces the phrases and every other field that is sent. Active streams keep the vocabulary they started with.",
	}, s.putVocabulary)
	handle(s, route{
		method: http.MethodDelete, path: vocabularyItem, id: "delete-transcription-vocabulary", tag: vocabularyTag, status: http.StatusNoContent,
		permission: videoWrite, summary: "Delete a transcription vocabulary", text: "Active streams keep the vocabulary they started with; later ones that refer to it do without.",
	}, s.deleteVocabulary)
}

type createVocabularyInput struct{ Body TranscriptionVocabularyInput }

func (s *server) createVocabulary(ctx context.Context, in *createVocabularyInput) (*one[TranscriptionVocabulary], error) {
	v, err := s.vocabularies.Create(ctx, environment(ctx), in.Body.domain(), s.now())
	return just(wireVocabulary(v)), err
}

func (s *server) listVocabularies(ctx context.Context, in *struct{ Page }) (*many[TranscriptionVocabulary], error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	found, err := s.vocabularies.List(ctx, environment(ctx), page, limit)
	return all(convert(found, wireVocabulary)), err
}

func (s *server) getVocabulary(ctx context.Context, in *VocabularyRef) (*one[TranscriptionVocabulary], error) {
	v, err := s.vocabularies.Get(ctx, environment(ctx), in.id())
	return just(wireVocabulary(v)), err
}

type putVocabularyInput struct {
	VocabularyRef
	Body TranscriptionVocabularyInput
}

func (s *server) putVocabulary(ctx context.Context, in *putVocabularyInput) (*one[TranscriptionVocabulary], error) {
	v, err := s.vocabularies.Replace(ctx, environment(ctx), in.id(), in.Body.domain(), s.now())
	return just(wireVocabulary(v)), err
}

func (s *server) deleteVocabulary(ctx context.Context, in *VocabularyRef) (*none, error) {
	return &none{}, s.vocabularies.Delete(ctx, environment(ctx), in.id())
}

func wireVocabulary(v vocabulary.Vocabulary) TranscriptionVocabulary {
	return TranscriptionVocabulary{
		ID: string(v.ID), CreatedAt: epoch(v.CreatedAt), UpdatedAt: epoch(v.UpdatedAt), Name: v.Name, Phrases: append([]string{}, v.Phrases...),
		Passthrough: v.Passthrough,
	}
}
