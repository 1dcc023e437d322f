package app

import (
	"slices"
	"testing"

	"millrace/internal/control/job"
)

// TestEachKindHasAClass walks the kinds that a node works on, and those that have a class.
func TestEachKindHasAClass(t *testing.T) {
	t.Parallel()
	handlers, _ := new(node).handlers(t.TempDir(), 1)
	var worked, known []string
	for _, h := range handlers {
		worked = append(worked, h.Kind)
		if _, ok := job.AllClasses().Of(h.Kind); !ok {
			t.Errorf("kind %s is in no class", h.Kind)
		}
	}
	for _, c := range job.AllClasses() {
		known = append(known, c.Kinds...)
	}
	for _, kind := range known {
		if !slices.Contains(worked, kind) {
			t.Errorf("nobody works on %s of the classes", kind)
		}
	}
	if len(worked) == 0 {
		t.Error("there are no kinds")
	}
}
