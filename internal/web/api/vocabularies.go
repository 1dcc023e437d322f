package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/vocabulary"
	"millrace/internal/id"
)

const (
	vocabularyTag  = "Transcription vocabularies"
	vocabularyPath = "/video/v1/transcription-vocabularies"
	vocabularyItem = vocabularyPath + "/{transcription_vocabulary_id}"
)

// VocabularyRef names a transcription vocabulary in a path; exported for huma, which reads embedded fields of exported
// types only.
type VocabularyRef struct {
	ID string `path:"transcription_vocabulary_id" maxLength:"255"`
}

func (v VocabularyRef) id() id.TranscriptionVocabulary { return id.TranscriptionVocabulary(v.ID) }

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

func (t TranscriptionVocabularyInput) domain() vocabulary.Input { return vocabulary.Input(t) }

type vocabularies struct {
	vocabularies vocabulary.API
	now          func() time.Time
}

func (v vocabularies) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       vocabularyPath,
		id:         "create-transcription-vocabulary",
		tag:        vocabularyTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Create a transcription vocabulary",
		text: "Live streams refer to it in generated_subtitles. Of all vocabularies of a live stream the first " +
			"1000 phrases are used, in order.",
	}, v.create)
	handle(on, route{
		method:     http.MethodGet,
		path:       vocabularyPath,
		id:         "list-transcription-vocabularies",
		tag:        vocabularyTag,
		permission: videoRead,
		summary:    "List transcription vocabularies",
		text:       "Newest first.",
	}, v.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       vocabularyItem,
		id:         "get-transcription-vocabulary",
		tag:        vocabularyTag,
		permission: videoRead,
		summary:    "Retrieve a transcription vocabulary",
	}, v.get)
	handle(on, route{
		method:     http.MethodPut,
		path:       vocabularyItem,
		id:         "update-transcription-vocabulary",
		tag:        vocabularyTag,
		permission: videoWrite,
		summary:    "Replace a transcription vocabulary",
		text: "Replaces the phrases and every other field that is sent. Active streams keep the vocabulary " +
			"they started with.",
	}, v.put)
	handle(on, route{
		method:     http.MethodDelete,
		path:       vocabularyItem,
		id:         "delete-transcription-vocabulary",
		tag:        vocabularyTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a transcription vocabulary",
		text:       "Active streams keep the vocabulary they started with; later ones that refer to it do without.",
	}, v.delete)
}

type createVocabularyInput struct{ Body TranscriptionVocabularyInput }

func (v vocabularies) create(ctx context.Context, in *createVocabularyInput) (*one[TranscriptionVocabulary], error) {
	made, err := v.vocabularies.Create(ctx, environment(ctx), in.Body.domain(), v.now())
	return just(wireVocabulary(made)), err
}

func (v vocabularies) list(ctx context.Context, in *struct{ Page }) (*many[TranscriptionVocabulary], error) {
	return listed(ctx, in.Page, v.vocabularies.List, wireVocabulary)
}

func (v vocabularies) get(ctx context.Context, in *VocabularyRef) (*one[TranscriptionVocabulary], error) {
	found, err := v.vocabularies.Get(ctx, environment(ctx), in.id())
	return just(wireVocabulary(found)), err
}

type putVocabularyInput struct {
	VocabularyRef
	Body TranscriptionVocabularyInput
}

func (v vocabularies) put(ctx context.Context, in *putVocabularyInput) (*one[TranscriptionVocabulary], error) {
	changed, err := v.vocabularies.Replace(ctx, environment(ctx), in.id(), in.Body.domain(), v.now())
	return just(wireVocabulary(changed)), err
}

func (v vocabularies) delete(ctx context.Context, in *VocabularyRef) (*none, error) {
	return &none{}, v.vocabularies.Delete(ctx, environment(ctx), in.id())
}

func wireVocabulary(v vocabulary.Vocabulary) TranscriptionVocabulary {
	return TranscriptionVocabulary{
		ID:          string(v.ID),
		CreatedAt:   epoch(v.CreatedAt),
		UpdatedAt:   epoch(v.UpdatedAt),
		Name:        v.Name,
		Phrases:     append([]string{}, v.Phrases...),
		Passthrough: v.Passthrough,
	}
}
