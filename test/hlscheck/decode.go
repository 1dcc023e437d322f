package hlscheck

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// decodeSegments bounds how many segments of a rendition are decoded, the newest ones.
const decodeSegments = 12

// decode runs the segments through ffmpeg. It does so with all of them at once, as a process costs more than what it
// decodes; if that one complains, with each alone.
func (v *rendition) decode(ctx context.Context) error {
	if v.kind == "text" {
		return nil
	}
	list := slices.DeleteFunc(v.sorted(), func(s *segmentSeen) bool { return s.data == nil || s.init == nil || s.init.data == nil })
	list = list[max(0, len(list)-decodeSegments):]
	if len(list) == 0 {
		return nil
	}
	said, err := v.c.decodeAtOnce(ctx, list)
	if err != nil {
		return err
	}
	for _, s := range list {
		about := said
		if said != "" && len(list) > 1 {
			if about, err = v.c.decodeAtOnce(ctx, []*segmentSeen{s}); err != nil {
				return err
			}
		}
		v.c.check("decodes", about == "", s.url, "%.400s", about)
	}
	return v.count(ctx, list[len(list)-1])
}

// decodeAtOnce has one ffmpeg decode the segments, each behind its init segment and nothing else, and returns what it
// complains of.
func (c *checker) decodeAtOnce(ctx context.Context, list []*segmentSeen) (string, error) {
	dir, err := os.MkdirTemp("", "hlscheck-")
	if err != nil {
		return "", fmt.Errorf("make folder for segments: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{"-nostdin", "-v", "warning", "-xerror"}
	var outputs []string
	for i, s := range list {
		file := filepath.Join(dir, strconv.Itoa(i))
		if err = os.WriteFile(file, slices.Concat(s.init.data, s.data), 0o600); err != nil {
			return "", fmt.Errorf("write segment: %w", err)
		}
		args = append(args, "-err_detect", "explode", "-f", "mp4", "-i", file)
		outputs = append(outputs, "-map", strconv.Itoa(i), "-f", "null", "-")
	}
	out, err := exec.CommandContext(ctx, c.o.Decoder, append(args, outputs...)...).CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	said := complaints(string(out))
	if err != nil {
		said = fmt.Sprintf("%v: %s", err, said)
	}
	return said, nil
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
	cmd.Stdin = bytes.NewReader(slices.Concat(s.init.data, s.data))
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
