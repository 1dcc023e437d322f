package assetopt

import (
	"context"

	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Recognition finds what stands in the way of a generated subtitle in an environment as things are: a vocabulary that
// is not there, a language that no engine takes. None: nothing does. nil is not asked.
type Recognition func(ctx context.Context, env id.Environment, g GeneratedSubtitle) ([]Obstacle, error)

// Obstacle is one of that: the field of the entry that asks for it, and a sentence that says what to do.
type Obstacle struct{ Field, Message string }

// Check refuses generated subtitles that could never be made.
func (r Recognition) Check(ctx context.Context, env id.Environment, path string, all []GeneratedSubtitle) error {
	if r == nil {
		return nil
	}
	var l fault.List
	for i, g := range all {
		found, err := r(ctx, env, g.Named())
		if err != nil {
			return err
		}
		for _, o := range found {
			l.At(field.Join(field.At(path, i), o.Field), ": %s", o.Message)
		}
	}
	return l.Err()
}

// CheckInputs is Check of an asset's inputs.
func (r Recognition) CheckInputs(ctx context.Context, env id.Environment, path string, all []Input) error {
	var l fault.List
	for i, in := range all {
		at := field.Join(field.At(path, i), "generated_subtitles")
		if err := l.Take(r.Check(ctx, env, at, in.GeneratedSubtitles)); err != nil {
			return err
		}
	}
	return l.Err()
}
