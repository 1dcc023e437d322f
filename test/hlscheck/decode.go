package hlscheck

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// decodeSegments bounds how many segments of a rendition are decoded, the newest ones: each costs a process.
const decodeSegments = 12

// decode runs each segment, behind its init segment and nothing else, through ffmpeg.
func (v *rendition) decode(ctx context.Context) error {
	if v.kind == "text" {
		return nil
	}
	list := v.sorted()
	if len(list) > decodeSegments {
		list = list[len(list)-decodeSegments:]
	}
	for _, s := range list {
		if s.init == nil || s.init.data == nil || s.data == nil {
			continue
		}
		cmd := exec.CommandContext(ctx, v.c.o.Decoder, "-nostdin", "-v", "warning", "-xerror", "-err_detect", "explode", "-f", "mp4", "-i", "pipe:0",
			"-map", "0", "-f", "null", "-")
		cmd.Stdin = bytes.NewReader(append(bytes.Clone(s.init.data), s.data...))
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		said := complaints(string(out))
		v.c.check("decodes", err == nil && said == "", s.url, "%v: %.400s", err, said)
	}
	if n := len(list); n > 0 && list[n-1].data != nil && list[n-1].init != nil {
		return v.count(ctx, list[n-1])
	}
	return nil
}

// complaints drops what ffmpeg says of any lone piece of a longer stream.
func complaints(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, "could not seek") || strings.Contains(line, "Timestamps are unset") || strings.TrimSpace(line) == "" {
			continue
		}
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String())
}

// count decodes one segment with ffprobe and compares the number of frames: a sample that is no frame is not a sample.
func (v *rendition) count(ctx context.Context, s *segmentSeen) error {
	probe := strings.TrimSuffix(v.c.o.Decoder, "ffmpeg") + "ffprobe"
	cmd := exec.CommandContext(ctx, probe, "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", "-f", "mp4", "-i", "pipe:0")
	cmd.Stdin = bytes.NewReader(append(bytes.Clone(s.init.data), s.data...))
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var frames int
	if err == nil {
		_, err = fmt.Sscan(string(out), &frames)
	}
	if !v.c.check("decodes", err == nil, s.url, "ffprobe: %v: %s", err, out) {
		return nil
	}
	// AAC's first frame primes the decoder and may not come out.
	v.c.check("decodes", frames >= s.samples-2 && frames <= s.samples, s.url, "%d samples give %d frames", s.samples, frames)
	return nil
}
