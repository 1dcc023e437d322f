package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/programtest"
	"millrace/test/bench/encoder"
	"millrace/test/bench/proc"
)

// recogniserName is the program that recognises speech, as the system lists it.
const recogniserName = "millrace-speech"

// reading measures what a person reads aloud in one stream with low latency: how long after each word a playlist lists
// the segment that has it, how many words are wrong, and what recognition takes of a processor.
func (b *bench) reading(ctx context.Context) error {
	folder := os.Getenv(programtest.ReadingsVariable)
	if folder == "" {
		return errors.New(programtest.ReadingsVariable + " names no folder of recordings")
	}
	all, err := programtest.ReadReadings(ctx, folder)
	if err != nil {
		return fmt.Errorf("read recordings: %w", err)
	}
	r := slices.MaxFunc(all, func(x, y programtest.Reading) int { return len(x.Sound) - len(y.Sound) })
	clip, err := b.reader(ctx, r)
	if err != nil {
		return err
	}
	m, err := b.millrace()
	if err != nil {
		return err
	}
	defer m.stop()
	got, err := m.listen(ctx, clip, long(len(r.Sound)))
	if err != nil {
		return err
	}
	wrong := programtest.WordErrors(r.Words, got.words)
	var delays []float64
	for i, same := range programtest.SameWords(r.Words, got.words) {
		if same >= 0 {
			delays = append(delays, (got.listed[i] - r.Ends[same]).Seconds())
		}
	}
	b.out.begin("Generated subtitles of a person who reads aloud: from a word's end until it is in a playlist, low",
		"-")
	b.out.alone("p50", "s", median(delays), "")
	b.out.alone("p95", "s", percentile(delays, 0.95), "at most 4")
	b.out.alone("words that are wrong", "%", 100*float64(wrong)/float64(len(r.Words)), "")
	b.out.alone("recognition", "% of a core", 100*got.cores, "")
	b.out.note("%d words in %s", len(r.Words), long(len(r.Sound)).Round(time.Second))
	return nil
}

// reader makes a clip of what a person reads aloud.
func (b *bench) reader(ctx context.Context, r programtest.Reading) (*encoder.Clip, error) {
	const whole = 8 * time.Second // has a whole number of frames of picture and sound alike
	length := (long(len(r.Sound)) + whole - 1).Truncate(whole)
	name := filepath.Join(b.dir, fmt.Sprintf("reading-%s-%d-v1", filepath.Base(r.Name), len(r.Sound)))
	if err := os.WriteFile(name+".raw", r.Sound, 0o600); err != nil {
		return nil, fmt.Errorf("write reading: %w", err)
	}
	err := once(name+".flv", func(to string) error {
		return withPicture(ctx, name+".raw", length+time.Second, to)
	})
	if err != nil {
		return nil, err
	}
	return encoder.ReadClip(name+".flv", int(length.Seconds()*30), int(length.Seconds()*48000/1024), length)
}

// heardWords is what became of what was read.
type heardWords struct {
	words  []string
	listed []time.Duration // when each was, since the beginning
	cores  float64
}

// listen publishes a clip once and reads its subtitles as they are listed.
func (m *millrace) listen(ctx context.Context, clip *encoder.Clip, spoken time.Duration) (got heardWords, err error) {
	c := m.client()
	defer c.Close()
	s, err := m.captioned(c, "low")
	if err != nil {
		return got, err
	}
	p, err := encoder.Dial(ctx, "rtmp://"+m.rtmp+"/app/"+s.StreamKey)
	if err != nil {
		return got, err
	}
	defer p.Close()
	const behind = 8 * time.Second // for what was said last
	sending, stop := context.WithTimeout(ctx, spoken+behind)
	began := time.Now()
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = p.Play(sending, clip, nil) })
	defer func() {
		stop()
		wg.Wait()
		err = errors.Join(err, failed)
	}()
	seen := map[string]bool{}
	err = m.texts(sending, c, "/"+s.PlaybackIDs[0].ID+".m3u8", func(text string, now time.Time) {
		for _, cue := range cuesOf(text) {
			if seen[cue.id] || cue.start >= spoken {
				continue
			}
			seen[cue.id] = true
			got.words = append(got.words, cue.words...)
			got.listed = append(got.listed, slices.Repeat([]time.Duration{now.Sub(began)}, len(cue.words))...)
		}
	})
	used, failedRead := proc.Named(m.p.PID(), recogniserName)
	got.cores = used.CPU.Seconds() / time.Since(began).Seconds()
	return got, errors.Join(err, failedRead)
}

// textCue is a cue of a segment.
type textCue struct {
	id    string // its times and text
	start time.Duration
	words []string
}

var cueTimes = regexp.MustCompile(`(?m)^(\d+):(\d\d):(\d\d\.\d{3}) --> .*\n((?:.+\n?)*)`)

// cuesOf are the cues of a WebVTT segment.
func cuesOf(text string) (all []textCue) {
	for _, f := range cueTimes.FindAllStringSubmatch(text, -1) {
		all = append(all, textCue{
			id: strings.TrimSpace(f[0]), start: cueTime(f[1:4]), words: programtest.Plain(f[4]),
		})
	}
	return all
}

// cueTime is hours, minutes and seconds, which are numbers.
func cueTime(parts []string) time.Duration {
	hours, _ := strconv.Atoi(parts[0])
	minutes, _ := strconv.Atoi(parts[1])
	seconds, _ := strconv.ParseFloat(parts[2], 64)
	whole := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	return whole + time.Duration(seconds*float64(time.Second))
}
