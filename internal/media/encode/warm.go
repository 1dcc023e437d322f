package encode

import (
	"context"
)

// Warm runs short jobs on children with the same arguments that were started ahead.
type Warm struct {
	*Reserve
	engine *Engine
	args   []string
	keep   int
}

// NewWarm returns a Warm for programs with these arguments, of which keep are kept ready.
func NewWarm(e *Engine, args []string, keep int) *Warm {
	return &Warm{Reserve: NewReserve(keep), engine: e, args: args, keep: keep}
}

// Do does a job; the caller has a place of the Budget. When Output has all it wants, Do returns: nobody waits for the
// child's end.
func (w *Warm) Do(ctx context.Context, job ImageJob) error {
	return blame(w.do(ctx, w.engine.imageChild(w.args), w.keep, job), "the picture can't be decoded")
}
