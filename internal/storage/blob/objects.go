package blob

import (
	"context"
	"iter"

	"millrace/internal/fault"
)

// Object is an object as a list has it.
type Object struct {
	Info

	Key string
}

// Sized is the further ability of a store that tells sizes while it lists.
type Sized interface {
	// Objects gives what List gives, with size and age of each.
	Objects(ctx context.Context, prefix string) iter.Seq2[Object, error]
}

// Objects lists what store.List does, with size and age of each object. A store that does not tell them in its lists is
// asked for each; what is deleted meanwhile is left out.
func Objects(ctx context.Context, store Store, prefix string) iter.Seq2[Object, error] {
	if s, ok := store.(Sized); ok {
		return s.Objects(ctx, prefix)
	}
	return func(yield func(Object, error) bool) {
		for key, err := range store.List(ctx, prefix) {
			var info Info
			if err == nil {
				info, err = store.Stat(ctx, key)
			}
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if !yield(Object{info, key}, err) || err != nil {
				return
			}
		}
	}
}

// Objects implements Sized.
func (rem *remote) Objects(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Object{}, err)
			return
		}
		for o, err := range rem.bucket.Objects(ctx, prefix) {
			if !yield(Object{Info{Size: o.Size, ModTime: o.ModTime}, o.Key}, err) {
				return
			}
		}
	}
}
