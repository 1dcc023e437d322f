// Package vocabulary is the transcription vocabulary: words and names that speech recognition is told to expect. It
// must never know SQL, HTTP or the clock (`now` is an argument).
package vocabulary

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"millrace/internal/control/change"
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// The bounds of a vocabulary.
const (
	MaxPhrases = 1000 // of one, and of all that a stream uses
	MaxPhrase  = 32   // code points of a phrase
	// maxVocabularies is how many an environment may have.
	maxVocabularies = 1000
)

// Vocabulary is a list of phrases.
type Vocabulary struct {
	ID          id.TranscriptionVocabulary
	Environment id.Environment
	Name        string
	Phrases     []string // the most important first
	Passthrough string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Input is a request to create or to replace one; nil is what was not given.
type Input struct {
	Name        *string
	Phrases     *[]string
	Passthrough *string
}

// Store is implemented by storage/db; one call is one transaction. What is not there is fault.NotFound.
type Store interface {
	// Insert is fault.Conflict when the environment has `most` vocabularies.
	Insert(ctx context.Context, v Vocabulary, most int) error
	Get(ctx context.Context, env id.Environment, v id.TranscriptionVocabulary) (Vocabulary, error)
	List(ctx context.Context, env id.Environment, page, limit int) ([]Vocabulary, error) // newest first
	// Save replaces what change makes of a vocabulary.
	Save(
		ctx context.Context, env id.Environment, v id.TranscriptionVocabulary, change func(*Vocabulary),
	) (Vocabulary, error)
	Delete(ctx context.Context, env id.Environment, v id.TranscriptionVocabulary) error
}

// API is what the REST side calls.
type API interface {
	Create(ctx context.Context, env id.Environment, in Input, now time.Time) (Vocabulary, error)
	Get(ctx context.Context, env id.Environment, v id.TranscriptionVocabulary) (Vocabulary, error)
	List(ctx context.Context, env id.Environment, page, limit int) ([]Vocabulary, error)
	// Replace replaces the phrases, and what else is given.
	Replace(
		ctx context.Context, env id.Environment, v id.TranscriptionVocabulary, in Input, now time.Time,
	) (Vocabulary, error)
	Delete(ctx context.Context, env id.Environment, v id.TranscriptionVocabulary) error
}

// Service keeps vocabularies. All its methods may be called at the same time.
type Service struct{ store Store }

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(store Store) *Service { return &Service{store} }

func (in Input) check() error {
	var l fault.List
	if in.Name != nil {
		field.Name(&l, "name", *in.Name, field.MaxName)
	}
	if in.Passthrough != nil {
		field.Passthrough(&l, "passthrough", *in.Passthrough)
	}
	if in.Phrases == nil {
		l.At("phrases", "is required: 1 to %d phrases", MaxPhrases)
		return l.Err()
	}
	if len(*in.Phrases) == 0 {
		l.At("phrases", "must have 1 to %d phrases: delete a vocabulary that is to have none", MaxPhrases)
	}
	if field.Count(&l, "phrases", len(*in.Phrases), MaxPhrases) {
		for i, p := range *in.Phrases {
			if n := utf8.RuneCountInString(p); strings.TrimSpace(p) == "" || n > MaxPhrase {
				l.At(field.At("phrases", i), "must have 1 to %d characters", MaxPhrase)
			} else {
				field.Text(&l, field.At("phrases", i), p, MaxPhrase)
			}
		}
	}
	return l.Err()
}

func (in Input) apply(v *Vocabulary) {
	v.Phrases = slices.Clone(*in.Phrases)
	if in.Name != nil {
		v.Name = *in.Name
	}
	if in.Passthrough != nil {
		v.Passthrough = *in.Passthrough
	}
}

// Create makes a vocabulary; see API.
func (s *Service) Create(ctx context.Context, env id.Environment, in Input, now time.Time) (Vocabulary, error) {
	if err := in.check(); err != nil {
		return Vocabulary{}, err
	}
	now = change.Stamp(now)
	v := Vocabulary{ID: id.TranscriptionVocabulary(id.New()), Environment: env, CreatedAt: now, UpdatedAt: now}
	in.apply(&v)
	return v, s.store.Insert(ctx, v, maxVocabularies)
}

// Get reads a vocabulary; see API.
func (s *Service) Get(ctx context.Context, env id.Environment, v id.TranscriptionVocabulary) (Vocabulary, error) {
	return s.store.Get(ctx, env, v)
}

// List lists vocabularies, newest first; see API.
func (s *Service) List(ctx context.Context, env id.Environment, page, limit int) ([]Vocabulary, error) {
	page, limit, err := field.Page(page, limit)
	if err != nil {
		return nil, err
	}
	return s.store.List(ctx, env, page, limit)
}

// Replace replaces the phrases; see API.
func (s *Service) Replace(
	ctx context.Context, env id.Environment, v id.TranscriptionVocabulary, in Input, now time.Time,
) (Vocabulary, error) {
	if err := in.check(); err != nil {
		return Vocabulary{}, err
	}
	return s.store.Save(ctx, env, v, func(v *Vocabulary) {
		in.apply(v)
		v.UpdatedAt = change.Stamp(now)
	})
}

// Delete deletes a vocabulary; streams that run keep what they began with; see API.
func (s *Service) Delete(ctx context.Context, env id.Environment, v id.TranscriptionVocabulary) error {
	return s.store.Delete(ctx, env, v)
}

// Missing are those of some vocabularies that are not there.
func (s *Service) Missing(ctx context.Context, env id.Environment, all []string) (out []string, err error) {
	for _, v := range all {
		if _, err = s.store.Get(ctx, env, id.TranscriptionVocabulary(v)); fault.Is(err, fault.NotFound) {
			out = append(out, v)
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Phrases joins the phrases of vocabularies in their order, each once: the first MaxPhrases. One that is not there any
// more has none.
func (s *Service) Phrases(ctx context.Context, env id.Environment, all []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for _, v := range all {
		found, err := s.store.Get(ctx, env, id.TranscriptionVocabulary(v))
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range found.Phrases {
			if len(out) == MaxPhrases {
				return out, nil
			}
			if !seen[p] {
				seen[p], out = true, append(out, p)
			}
		}
	}
	return out, nil
}
