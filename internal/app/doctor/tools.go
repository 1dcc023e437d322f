package doctor

import (
	"context"
	"slices"
	"strings"

	"millrace/internal/media/encode"
)

// FFmpeg checks that ffmpeg and ffprobe run, and that ffmpeg was built with everything the service uses.
type FFmpeg struct {
	Inspect func(ctx context.Context, ffmpeg, ffprobe string) encode.Report
}

// Name implements Check.
func (FFmpeg) Name() string { return "ffmpeg" }

// Run implements Check.
func (f FFmpeg) Run(ctx context.Context) Finding {
	r := f.Inspect(ctx, "", "")
	if len(r.Problems) == 0 {
		return ok("version %s, with every encoder, muxer and demuxer that is used", r.Version)
	}
	var texts, mends []string
	for _, p := range r.Problems { // what is wrong, a full stop, how to mend it
		text, mend, _ := strings.Cut(p, ". ")
		texts = append(texts, text)
		if mend != "" && !slices.Contains(mends, mend) {
			mends = append(mends, mend)
		}
	}
	if len(mends) == 0 {
		mends = []string{"Install it again with: apt-get install -y --reinstall ffmpeg"}
	}
	return problem(strings.Join(mends, "; "), "%s", strings.Join(texts, "; "))
}
