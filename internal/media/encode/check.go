package encode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"millrace/internal/media/frame"
)

// Find looks for a program in the search path, unless path already says where it is.
func Find(name, path string) (string, error) {
	if path != "" {
		name = path
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return found, nil
}

// Report is the state of ffmpeg on this machine.
type Report struct {
	FFmpeg, FFprobe string   // paths; empty when not found
	Version         string   // such as 5.1.9-0+deb12u1
	Problems        []string // each a sentence with how to mend it; none when all is well
	Late            []string // programs that did not respond in time: whether something is wrong with them nobody knows
	Limits          []string // what can't be done without encoders that only some streams and files need, alike
}

const (
	again     = "Install it again: apt-get install -y --reinstall ffmpeg"
	install   = "Install it with: apt-get install -y ffmpeg"
	checkTime = 20 * time.Second
)

// Check looks for ffmpeg and ffprobe at the given paths, or in the search path where a path is empty, and for every
// encoder, muxer and demuxer that the service uses.
func Check(ctx context.Context, ffmpeg, ffprobe string) Report {
	var r Report
	r.FFmpeg = r.find("ffmpeg", ffmpeg)
	r.FFprobe = r.find("ffprobe", ffprobe)
	if r.FFmpeg == "" {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	version, err := ask(ctx, r.FFmpeg, "-version")
	if err != nil {
		r.failed(r.FFmpeg, err, "%s does not run (%v). "+again, r.FFmpeg, err)
		return r
	}
	r.Version = versionIn(version)
	formats := make([]string, 0, len(Formats()))
	for _, f := range Formats() {
		formats = append(formats, string(f))
	}
	r.lookForEncoders(ctx)
	r.lookFor(ctx, "filter", "-filters", "scale", "zscale", "tonemap", "yadif", "movie", "overlay")
	r.lookFor(ctx, "muxer", "-muxers", "mp4")
	r.lookFor(ctx, "demuxer", "-demuxers", formats...)
	if r.FFprobe != "" {
		if _, err := ask(ctx, r.FFprobe, "-version"); err != nil {
			r.failed(r.FFprobe, err, "%s does not run (%v). "+again, r.FFprobe, err)
		}
	}
	return r
}

// failed notes that a program did not do what it was asked, or that it had not done it in time.
func (r *Report) failed(program string, err error, problem string, args ...any) {
	switch {
	case !IsLate(err):
		r.Problems = append(r.Problems, fmt.Sprintf(problem, args...))
	case !slices.Contains(r.Late, program):
		r.Late = append(r.Late, program)
	}
}

// IsLate reports whether a child was ended because a time on the clock was over: that says nothing about the child, as
// a busy machine, a slow disk or a process that was stopped take as long as that lasts.
func IsLate(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLate) || errors.Is(err, ErrIdle)
}

// versionIn reads "ffmpeg version 5.1.9-0+deb12u1 Copyright …".
func versionIn(said string) string {
	if fields := strings.Fields(said); len(fields) > 2 {
		return fields[2]
	}
	return ""
}

func (r *Report) find(name, path string) string {
	found, err := Find(name, path)
	if err != nil {
		where := "in the search path"
		if path != "" {
			where = "at " + path
		}
		r.Problems = append(r.Problems, fmt.Sprintf("%s is not found %s. %s", name, where, install))
	}
	return found
}

// lookForEncoders looks for those without which nothing goes, and for those of codecs that are played as they come:
// where something has to be put into such a stream, it must be encoded as the rest is.
func (r *Report) lookForEncoders(ctx context.Context) {
	have, ok := r.list(ctx, "encoder", "-encoders")
	if !ok {
		return
	}
	for _, name := range []string{"libx264", "aac"} {
		r.want(have, "encoder", name)
	}
	for _, o := range []struct {
		codec frame.Codec
		name  string
	}{{frame.HEVC, "HEVC"}, {frame.VP9, "VP9"}, {frame.AV1, "AV1"}} {
		if encoder := stillEncoders[o.codec][0]; !have[encoder] {
			r.Limits = append(r.Limits,
				fmt.Sprintf("%s lacks the encoder %s, so clips of %s assets can't be cut to the picture and %s "+
					"streams have no slate. %s",
					r.FFmpeg, encoder, o.name, o.name, packaged))
		}
	}
}

func (r *Report) lookFor(ctx context.Context, kind, flag string, names ...string) {
	have, ok := r.list(ctx, kind, flag)
	for _, name := range names {
		if ok {
			r.want(have, kind, name)
		}
	}
}

const packaged = "The ffmpeg package of Debian and Ubuntu has it: apt-get install -y ffmpeg"

func (r *Report) want(have map[string]bool, kind, name string) {
	if !have[name] {
		r.Problems = append(r.Problems, fmt.Sprintf("%s lacks the %s %s. %s", r.FFmpeg, kind, name, packaged))
	}
}

// list asks ffmpeg what it has of a kind.
func (r *Report) list(ctx context.Context, kind, flag string) (have map[string]bool, ok bool) {
	said, err := ask(ctx, r.FFmpeg, flag)
	if err != nil {
		r.failed(r.FFmpeg, err, "%s can't list its %ss (%v)", r.FFmpeg, kind, err)
		return nil, false
	}
	have = map[string]bool{}
	for line := range strings.Lines(said) {
		// " V....D libx264   libx264 H.264 …", " D  matroska,webm   Matroska / WebM"
		if fields := strings.Fields(line); len(fields) > 1 {
			for name := range strings.SplitSeq(fields[1], ",") {
				have[name] = true
			}
		}
	}
	return have, true
}

// ask runs a program that prints a list.
func ask(ctx context.Context, program string, args ...string) (string, error) {
	var out bytes.Buffer
	err := NewProcess(ProcessOptions{
		Program: program, Args: append([]string{"-hide_banner"}, args...), Priority: Live,
		Limits: Limits{CPU: checkTime, AddressSpace: 1 << 30},
		Output: func(_ context.Context, r io.Reader) error {
			_, err := io.Copy(&out, io.LimitReader(r, 1<<20))
			return err // Run says what was read
		},
	}).RunAs(ctx, "list")
	return out.String(), err
}
