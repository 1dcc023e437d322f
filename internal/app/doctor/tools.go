package doctor

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"

	"millrace/internal/media/encode"
)

// FFmpeg checks that ffmpeg and ffprobe run, and that ffmpeg was built with everything the service uses.
type FFmpeg struct {
	Inspect func(ctx context.Context, ffmpeg, ffprobe string) encode.Report
	Load    Load
}

// Name implements Check.
func (FFmpeg) Name() string { return "ffmpeg" }

// Run implements Check.
func (f FFmpeg) Run(ctx context.Context) Finding {
	r := f.Inspect(ctx, "", "")
	if len(r.Problems) == 0 && len(r.Late) > 0 {
		return f.Load.late(strings.Join(r.Late, " and "))
	}
	if len(r.Problems) == 0 && len(r.Limits) > 0 {
		text, mend := summary(r.Limits)
		return warning(mend, "version %s: %s", r.Version, text)
	}
	if len(r.Problems) == 0 {
		return ok("version %s, with every encoder, muxer and demuxer that is used", r.Version)
	}
	text, mend := summary(slices.Concat(r.Problems, r.Limits))
	return problem(mend, "%s", text)
}

// summary joins sentences of what is wrong, and of how to mend it: each has the two, with a full stop between them.
func summary(sentences []string) (text, mend string) {
	var texts, mends []string
	for _, p := range sentences {
		wrong, how, _ := strings.Cut(p, ". ")
		texts = append(texts, wrong)
		if how != "" && !slices.Contains(mends, how) {
			mends = append(mends, how)
		}
	}
	if len(mends) == 0 {
		mends = []string{"Install it again with: apt-get install -y --reinstall ffmpeg"}
	}
	return strings.Join(texts, "; "), strings.Join(mends, "; ")
}

// Confinement checks that the kernel can keep ffmpeg, which decodes what strangers send, from everything but its own
// files.
type Confinement struct{ Offered func() encode.Confinement }

// Name implements Check.
func (Confinement) Name() string { return "confinement" }

// Run implements Check.
func (c Confinement) Run(context.Context) Finding {
	can := c.Offered()
	if missing := can.Missing(); len(missing) > 0 {
		return warning("Use a kernel of 5.13 or newer with landlock in its lsm= list, and in a container a seccomp "+
			"profile that allows landlock_create_ruleset, "+
			"landlock_add_rule, landlock_restrict_self and seccomp.",
			"ffmpeg is less confined than it could be: this kernel does not offer %s, so a file that takes over a "+
				"decoder gets further", strings.Join(missing, ", "))
	}
	return ok("this kernel can keep ffmpeg to its own files, and off the network")
}

// Priorities checks that the system lets the service raise again what it has lowered.
type Priorities struct{ MayRaise func() bool }

// Name implements Check.
func (Priorities) Name() string { return "priorities" }

// Run implements Check.
func (p Priorities) Run(context.Context) Finding {
	if !p.MayRaise() {
		return warning("Set LimitNICE=+0 in the systemd unit; in a container use --ulimit nice=20.",
			"this user may not raise the priority of a process again, so beside busy programs speech recognition of "+
				"files, files to download and files that become assets may take very long")
	}
	return ok("what yields to live streams and viewers gets its least share")
}

// H264Encoder checks that the encoder that was chosen does encode, and says which hardware would.
type H264Encoder struct {
	Chosen encode.H264
	Try    func(context.Context, encode.H264) error
	Load   Load
}

// Name implements Check.
func (H264Encoder) Name() string { return "H.264 encoder" }

// Run implements Check.
func (he H264Encoder) Run(ctx context.Context) Finding {
	err := he.Try(ctx, he.Chosen)
	if errors.Is(err, exec.ErrNotFound) {
		return problem("Install it with: apt-get install -y ffmpeg",
			"%s could not be tried: ffmpeg is not found in the search path", he.Chosen)
	}
	if encode.IsLate(err) {
		return he.Load.late(string(he.Chosen))
	}
	if err != nil {
		return problem("Install its driver and let the user that runs millrace use the device, or leave out "+
			"--h264-encoder.", "%v", err)
	}
	var more []string
	for _, h := range encode.Encoders() {
		if h != encode.X264 && h != he.Chosen && he.Try(ctx, h) == nil {
			more = append(more, string(h))
		}
	}
	if len(more) > 0 {
		return ok("%s encodes; so would, with --h264-encoder: %s", he.Chosen, strings.Join(more, ", "))
	}
	if he.Chosen == encode.X264 {
		return ok("%s encodes; there is no hardware here that would", he.Chosen)
	}
	return ok("%s encodes", he.Chosen)
}

// tryEncoder tries one as serve would use it.
func tryEncoder(ctx context.Context, h encode.H264) error {
	ffmpeg, err := encode.Find("ffmpeg", "")
	if err != nil {
		return err
	}
	return encode.Try(ctx, ffmpeg, h)
}
