package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// film makes minutes of 1080p30 with texture and movement, 4 Mbit/s, H.264 or HEVC, out of the same one over and over.
func (b *bench) film(ctx context.Context, codec string, minutes int) (string, error) {
	encoder := []string{"-c:v", "libx264", "-preset", "veryfast", "-g", "60"}
	name := "1080"
	if codec == "HEVC" {
		encoder = []string{
			"-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "keyint=60:log-level=error", "-tag:v", "hvc1",
		}
		name = "1080-hevc"
	}
	minute := filepath.Join(b.dir, "minute-"+name+".mp4")
	err := once(minute, func(to string) error {
		return ffmpeg(ctx, slices.Concat(
			[]string{
				"-f", "lavfi", "-i", "testsrc2=size=1920x1080:rate=30,noise=alls=6:allf=t", "-f", "lavfi", "-i",
				"sine=frequency=440:sample_rate=48000", "-t", "60",
			},
			encoder, []string{
				"-pix_fmt", "yuv420p", "-b:v", "3900k", "-maxrate", "3900k", "-bufsize", "7800k", "-c:a", "aac", "-ac",
				"2", "-b:a", "96k",
				"-movflags", "+faststart", "-f", "mp4", to,
			},
		)...)
	})
	if err != nil || minutes == 1 {
		return minute, err
	}
	long := filepath.Join(b.dir, fmt.Sprintf("minutes-%d-%s.mp4", minutes, name))
	return long, once(long, func(to string) error {
		return ffmpeg(ctx, "-stream_loop", fmt.Sprint(minutes-1), "-i", minute, "-c", "copy", "-movflags", "+faststart",
			"-f", "mp4", to)
	})
}
