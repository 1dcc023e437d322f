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

// decode runs the newest segments through ffmpeg.
func (re *rendition) decode(ctx context.Context) error {
	if re.kind == "text" {
		return nil
	}
	list := slices.DeleteFunc(re.sorted(), func(s *segmentSeen) bool {
		return s.data == nil || s.init == nil || s.init.data == nil
	})
	list = list[max(0, len(list)-decodeSegments):]
	if len(list) == 0 {
		return nil
	}
	return re.decodeAll(ctx, list)
}

// decodeAll decodes segments in one process, which costs more than what it decodes. When that one complains, each is
// decoded alone. A sample that is no frame is not a sample.
func (re *rendition) decodeAll(ctx context.Context, list []*segmentSeen) error {
	said, frames, err := re.ffmpeg(ctx, list)
	if err != nil {
		return err
	}
	if said != "" && len(list) > 1 {
		for _, s := range list {
			if err := re.decodeAll(ctx, []*segmentSeen{s}); err != nil {
				return err
			}
		}
		return nil
	}
	for i, s := range list {
		if re.c.check("decodes", said == "", s.url, "%.400s", said) {
			// AAC's first frame primes the decoder and may not come out.
			re.c.check("decodes", frames[i] > 0 && frames[i] >= s.samples-2 && frames[i] <= s.samples, s.url,
				"%d samples give %d frames", s.samples, frames[i])
		}
	}
	return nil
}

// ffmpeg decodes segments, each behind its init segment and nothing else. It returns what ffmpeg complains of, and the
// number of frames of each. With more than one thread, the decoder of H.264 tells of a broken picture in some runs
// only.
func (re *rendition) ffmpeg(ctx context.Context, list []*segmentSeen) (said string, frames []int, err error) {
	dir, err := os.MkdirTemp("", "hlscheck-")
	if err != nil {
		return "", nil, fmt.Errorf("make folder for segments: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	inputs := []string{"-nostdin", "-v", "warning", "-xerror"}
	var outputs []string
	for i, s := range list {
		name := strconv.Itoa(i)
		if err = os.WriteFile(filepath.Join(dir, name), slices.Concat(s.init.data, s.data), 0o600); err != nil {
			return "", nil, fmt.Errorf("write segment: %w", err)
		}
		inputs = append(inputs, "-threads", "1", "-err_detect", "explode", "-f", "mp4", "-i", name)
		outputs = append(outputs, "-map", name)
		if re.kind == "audio" {
			outputs = append(outputs, "-af",
				fmt.Sprintf("ametadata=add:key=is:value=frame,ametadata=print:file=%s.frames", name))
		} else {
			outputs = append(outputs, "-vf",
				fmt.Sprintf("metadata=add:key=is:value=frame,metadata=print:file=%s.frames", name))
		}
		outputs = append(outputs, "-f", "null", "-")
	}
	cmd := exec.CommandContext(ctx, re.c.o.Decoder, append(inputs, outputs...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", nil, ctx.Err()
	}
	said = complaints(string(out))
	if err != nil {
		return fmt.Sprintf("%v: %s", err, said), nil, nil
	}
	for i := range list {
		printed, _ := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)+".frames")) // not there: no frame came
		frames = append(frames, bytes.Count(printed, []byte("frame:")))
	}
	return said, frames, nil
}

// complaints drops what ffmpeg says of any lone piece of a longer stream.
func complaints(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, "could not seek") || strings.Contains(line, "Timestamps are unset") ||
			strings.TrimSpace(line) == "" {
			continue
		}
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String())
}
