package encode

import (
	"context"
	"path/filepath"

	"millrace/internal/trace"
)

// span begins what a trace shows of a child: not its arguments, which name files.
func (p *Process) span(ctx context.Context, kind string) (context.Context, trace.Span) {
	name := filepath.Base(p.opts.Program)
	if kind != "" {
		name += " " + kind
	}
	ctx, span := trace.Begin(ctx, name, trace.Internal)
	if kind != "" {
		span.Text(trace.EncodeKey, kind)
	}
	return ctx, span
}

// describe says how the child ended and what it took.
func (r *run) describe(span trace.Span) {
	ended := r.cmd.ProcessState
	if ended == nil || !span.Kept() {
		return
	}
	span.Text(trace.ExecutableKey, filepath.Base(r.cmd.Path))
	span.Number(trace.ExitKey, int64(ended.ExitCode()))
	span.Seconds(trace.CPUKey, (ended.UserTime() + ended.SystemTime()).Seconds())
}
