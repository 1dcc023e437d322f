package images

import (
	"context"
	"testing"
	"testing/synctest"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
)

// stuck decodes nothing until it is given up.
type stuck struct{}

func (stuck) Do(ctx context.Context, _ encode.ImageJob) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestTooBusy: what does not get its turn, or is not done, in the time that an image may take is to be asked for again,
// and nobody is told that something broke.
func TestTooBusy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pictures Spares
		taken    int // cores that others have
	}{
		"no processor": {small4{}, 2},
		"no end":       {stuck{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, _ := crowded(t, tt.pictures, &fat{})
				if tt.taken > 0 {
					release, err := m.opt.Budget.Acquire(t.Context(), encode.Images, tt.taken)
					if err != nil {
						t.Fatal(err)
					}
					defer release()
				}
				f := bare(t)
				f.Source = blank{}
				r, err := Parse("thumbnail.png", "")
				if err != nil {
					t.Fatal(err)
				}
				p, err := f.Plan(r)
				if err != nil {
					t.Fatal(err)
				}
				if _, err = m.Make(t.Context(), f, p); !fault.Is(err, fault.Unavailable) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
