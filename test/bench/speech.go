package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"millrace/test/bench/encoder"
	"millrace/test/bench/viewer"
)

// sentences are what is read aloud, one after the other. The last word of each is in no other one.
func sentences() []string {
	return []string{
		"good morning everyone and welcome to the weekly news program",
		"today we will talk about the weather in the north of the country",
		"heavy rain is expected and the rivers may rise on monday",
		"people who live near the water should listen to the radio",
		"the city council has decided to build a new library",
		"the work will begin in the spring and it will take two years",
		"many people think that it costs too much money",
	}
}

const (
	readAloud   = 48 * time.Second // a whole number of frames of picture and sound alike
	betweenThem = 1500 * time.Millisecond
	pcmRate     = 16000
)

// said is when each sentence's last word ends.
type said map[string]time.Duration

// spoken makes a clip in which the sentences are read aloud, and says when each ends.
func (b *bench) spoken(ctx context.Context) (*encoder.Clip, said, error) {
	ends, at := said{}, time.Duration(0)
	var sound []byte
	for i, text := range sentences() {
		path := filepath.Join(b.dir, fmt.Sprintf("sentence-%d-v1.raw", i))
		err := once(path, func(to string) error {
			return ffmpeg(ctx, "-f", "lavfi", "-i", "flite=text='"+text+"':voice=slt", "-ar", fmt.Sprint(pcmRate),
				"-ac", "1", "-f", "s16le", to)
		})
		if err != nil {
			return nil, nil, err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("read sentence: %w", err)
		}
		ends[text[strings.LastIndexByte(text, ' ')+1:]] = at + long(audible(raw))
		sound = append(append(sound, raw...), make([]byte, 2*pcmRate*betweenThem/time.Second)...)
		at = long(len(sound))
	}
	if at > readAloud {
		return nil, nil, fmt.Errorf("the sentences last %v, more than the clip", at)
	}
	path, whole := filepath.Join(b.dir, "spoken-v1.flv"), filepath.Join(b.dir, "spoken-v1.raw")
	if err := os.WriteFile(whole, sound, 0o600); err != nil {
		return nil, nil, fmt.Errorf("write speech: %w", err)
	}
	err := once(path, func(to string) error { return withPicture(ctx, whole, readAloud+time.Second, to) })
	if err != nil {
		return nil, nil, err
	}
	clip, err := encoder.ReadClip(path, int(readAloud.Seconds()*30), int(readAloud.Seconds()*48000/1024), readAloud)
	return clip, ends, err
}

// withPicture makes a clip of speech with a picture that moves.
func withPicture(ctx context.Context, speech string, length time.Duration, to string) error {
	return ffmpeg(
		ctx, "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30",
		"-f", "s16le", "-ar", fmt.Sprint(pcmRate), "-ac", "1", "-i", speech, "-af", "apad", "-t",
		fmt.Sprint(length.Seconds()), "-c:v", "libx264", "-preset", "veryfast",
		"-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "60", "-keyint_min", "60", "-sc_threshold", "0",
		"-b:v", "800k", "-c:a", "aac", "-ar", "48000", "-ac", "2", "-b:a", "128k", "-f", "flv", to,
	)
}

// audible is the length of samples without the silence at their end.
func audible(raw []byte) int {
	const quiet = 300
	n := len(raw) &^ 1
	for ; n > 0; n -= 2 {
		if v := int16(raw[n-2]) | int16(raw[n-1])<<8; v > quiet || v < -quiet {
			break
		}
	}
	return n
}

// long is how long so many bytes of samples last.
func long(bytes int) time.Duration { return time.Duration(bytes/2) * time.Second / pcmRate }

// speech measures how long after a sentence is spoken a live playlist lists the segment with its last word, in each
// latency mode, all at once.
func (b *bench) speech(ctx context.Context) error {
	clip, ends, err := b.spoken(ctx)
	if err != nil {
		return err
	}
	m, err := b.millrace()
	if err != nil {
		return err
	}
	defer m.stop()
	modes := []string{"low", "reduced", "standard"}
	delays, failed := make([][]float64, len(modes)), make([]error, len(modes))
	var wg sync.WaitGroup
	for i, mode := range modes {
		wg.Go(func() { delays[i], failed[i] = m.heard(ctx, mode, clip, ends) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	b.out.begin("Generated subtitles: from the end of a sentence's last word until a playlist lists its segment, 3 "+
		"streams at once", "-")
	for i, mode := range modes {
		goal := "at most 4"
		if mode == "standard" {
			goal = "a segment more"
		}
		b.out.alone(mode+", p50", "s", median(delays[i]), "")
		b.out.alone(mode+", p95", "s", percentile(delays[i], 0.95), goal)
		b.out.note("%d sentences of %d were recognised to their last word", len(delays[i]), repeats*len(ends))
	}
	return nil
}

// captioned makes a live stream with generated subtitles.
func (m *millrace) captioned(c *viewer.Client, latency string) (s liveStream, err error) {
	body := fmt.Sprintf(
		`{"playback_policies":["public"],"latency_mode":%q,"new_asset_settings":{"playback_policies":["public"]},`+
			`"generated_subtitles":[{"name":"English","language_code":"en"}]}`, latency)
	err = call(c, "POST", "/video/v1/live-streams", body, &s)
	return s, err
}

// repeats is how often the clip is sent.
const repeats = 3

// heard sends the clip and gives the delay of each sentence, in seconds.
func (m *millrace) heard(
	ctx context.Context, latency string, clip *encoder.Clip, ends said,
) (delays []float64, err error) {
	c := m.client()
	defer c.Close()
	s, err := m.captioned(c, latency)
	if err != nil {
		return nil, err
	}
	p, err := encoder.Dial(ctx, "rtmp://"+m.rtmp+"/app/"+s.StreamKey)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	const behind = 10 * time.Second // for what was said last
	sending, stop := context.WithTimeout(ctx, repeats*clip.Length+behind)
	began := time.Now()
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = p.Play(sending, clip, nil) })
	defer func() {
		stop()
		wg.Wait()
		err = errors.Join(err, failed)
	}()
	listed := map[time.Duration]bool{}
	err = m.texts(sending, c, "/"+s.PlaybackIDs[0].ID+".m3u8", func(text string, now time.Time) {
		for word, end := range ends {
			cycle := now.Sub(began.Add(end)).Truncate(clip.Length)
			at := end + cycle
			if strings.Contains(strings.ToLower(text), word) && now.After(began.Add(at)) && !listed[at] &&
				at < repeats*clip.Length {
				listed[at] = true
				delays = append(delays, now.Sub(began.Add(at)).Seconds())
			}
		}
	})
	return delays, err
}

var subtitlesURI = regexp.MustCompile(`(?m)^#EXT-X-MEDIA:TYPE=SUBTITLES.*URI="([^"]+)"`)

// texts reads each segment of a stream's subtitles once it is listed, until ctx ends.
func (m *millrace) texts(
	ctx context.Context, c *viewer.Client, play string, show func(text string, now time.Time),
) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	list, seen := "", map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			if list == "" {
				return errors.New("no subtitles are listed")
			}
			return nil
		case <-tick.C:
		}
		if list == "" {
			r, at, err := c.Get(play)
			if err != nil {
				return err
			}
			if found := subtitlesURI.FindSubmatch(r.Body); found != nil {
				list = viewer.Resolve(at, string(found[1]))
			}
			continue
		}
		r, _, err := c.Get(list)
		if err != nil {
			return err
		}
		now := time.Now()
		var fresh []string
		for line := range strings.Lines(string(r.Body)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !seen[line] {
				seen[line] = true
				fresh = append(fresh, viewer.Resolve(list, line))
			}
		}
		for _, segment := range fresh {
			if r, _, err = c.Get(segment); err != nil {
				return err
			}
			show(string(r.Body), now)
		}
	}
}
