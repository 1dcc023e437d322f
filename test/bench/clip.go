package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"millrace/test/bench/encoder"
)

// The clip that every encoder sends: 16 s, which is a whole number of frames of picture and sound alike.
const (
	clipFrames  = 480 // 30 per second
	clipSamples = 750 // frames of 1024 samples at 48 kHz
	clipLength  = 16 * time.Second
	clipGOP     = 2 * time.Second
)

// clip makes the clip once: 720p30 at 2.5 Mbit/s without B-frames, noisy so that it needs them, and a tone.
func (b *bench) clip(ctx context.Context) (*encoder.Clip, error) {
	path := filepath.Join(b.dir, "clip-v1.flv")
	err := once(path, func(to string) error {
		return ffmpeg(
			ctx, "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30,noise=alls=12:allf=t", "-f", "lavfi", "-i",
			"sine=frequency=440:sample_rate=48000",
			"-t", "17", "-c:v", "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-profile:v", "main",
			"-pix_fmt", "yuv420p",
			"-g", "60", "-keyint_min", "60", "-sc_threshold", "0", "-b:v", "2500k", "-maxrate", "2500k", "-bufsize",
			"2500k",
			"-c:a", "aac", "-ac", "2", "-b:a", "128k", "-f", "flv", to,
		)
	})
	if err != nil {
		return nil, err
	}
	return encoder.ReadClip(path, clipFrames, clipSamples, clipLength)
}

// hour makes a file of 60 minutes out of a short one, without encoding it again.
func (b *bench) hour(ctx context.Context) (string, error) {
	short, long := filepath.Join(b.dir, "minute-v1.mp4"), filepath.Join(b.dir, "hour-v1.mp4")
	err := once(short, func(to string) error {
		return ffmpeg(
			ctx, "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30", "-f", "lavfi", "-i",
			"sine=frequency=440:sample_rate=48000",
			"-t", "60", "-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "main", "-pix_fmt", "yuv420p", "-bf",
			"2", "-g", "60",
			"-b:v", "600k", "-maxrate", "600k", "-bufsize", "1200k", "-c:a", "aac", "-ac", "2", "-b:a", "96k", "-f",
			"mp4", to,
		)
	})
	if err != nil {
		return "", err
	}
	return long, once(long, func(to string) error {
		return ffmpeg(ctx, "-stream_loop", "59", "-i", short, "-c", "copy", "-movflags", "+faststart", "-f", "mp4", to)
	})
}

// once makes a file that a run before may have made already.
func once(path string, fill func(to string) error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	tmp := path + ".tmp"
	if err := fill(tmp); err != nil {
		return errors.Join(fmt.Errorf("make %s: %w", filepath.Base(path), err), os.Remove(tmp))
	}
	return os.Rename(tmp, path)
}

func ffmpeg(ctx context.Context, args ...string) error {
	args = append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-y"}, args...)
	out, err := exec.CommandContext(ctx, "ffmpeg", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ffmpeg: %w: %s", err, out)
	}
	return nil
}
