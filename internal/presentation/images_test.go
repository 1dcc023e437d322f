package presentation

import (
	"context"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/images"
)

// storing is workers that have stored what is ordered.
type storing struct{}

func (storing) Make(context.Context, Order) ([]byte, error) { return nil, nil }

func (storing) Ahead(context.Context, Order) {}

// opened notes which objects are opened.
type opened struct {
	delivered.Objects
	keys []string
}

func (o *opened) Open(_ context.Context, key string, _, _ int64) (delivered.Body, error) {
	o.keys = append(o.keys, key)
	return delivered.Body{}, fault.New(fault.NotFound, "no object")
}

// TestImageOfWhatHasEnded: a worker may know before this node that a broadcast has ended, and have stored the image.
// This node does not know under which key, and asks no storage for one that can't be.
func TestImageOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	objects := &opened{}
	by := pictures{&Source{opt: Options{Workers: storing{}}, objects: objects}}
	_, err := by.picture(t.Context(), &images.Video{Name: "m/event"}, images.Plan{Name: "name"}, Order{Image: "name"})
	if !fault.Is(err, fault.Unavailable) || len(objects.keys) > 0 {
		t.Errorf("%v, opened %q", err, objects.keys)
	}
	_, err = by.picture(t.Context(), &images.Video{Prefix: "media/m"}, images.Plan{Name: "name"}, Order{Image: "name"})
	if !fault.Is(err, fault.NotFound) || len(objects.keys) != 2 || objects.keys[1] != "media/m/name" {
		t.Errorf("of a recording: %v, opened %q", err, objects.keys)
	}
}
