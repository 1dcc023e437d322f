package ingest

import (
	"context"
	"fmt"
	"io"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/encode"
	"millrace/internal/media/timeline"
)

// A browser's decoder refuses a packet in which anything is wrong, and that ends the playback for good: hls.js and
// Shaka can't go on behind it. What is encoded anew has no such packet. To find each takes a decode of all pictures,
// which takes as long as an encode: good files don't wait for that. What costs little tells of damage first: the
// headers of the pictures and the sound of a file's beginning, and the counters of MPEG-TS. Only a file of which that
// says that it is damaged is decoded as a browser does.

// looked is how much of a file is looked through, while somebody waits for it.
const looked = 2 * time.Minute

// lookThrough finds damage of an MP4 that could be played from its byte ranges: it is encoded then.
func (i *inspector) lookThrough(ctx context.Context, r io.ReaderAt, path string, t *timeline.Timeline, u *unfit) error {
	if u.video != nil {
		err := i.limiter.Examine(ctx, func() error {
			whole, err := mp4.Intact(r, u.video, looked)
			u.picture = err == nil && !whole
			return err
		})
		if err != nil {
			return fmt.Errorf("look through pictures: %w", err)
		}
	}
	if t.Rendition(timeline.MainAudio) != nil {
		if err := i.listenThrough(ctx, r, path, u); err != nil {
			return err
		}
	}
	if u.sound && !u.picture && u.video != nil {
		refused, err := i.engine.Refuses(ctx, path, encode.MOV, encode.Video, 0, 0)
		if err != nil {
			return err
		}
		u.picture = refused
	}
	if !u.picture && !u.sound {
		return nil
	}
	u.damaged, u.rewrite = true, true
	if u.video == nil {
		return i.decodes(ctx, path, encode.MOV, encode.Audio, u.nth)
	}
	return i.decodes(ctx, path, encode.MOV, encode.Video, 0)
}

// listenThrough finds damage of its sound. Of most files it can be told without a decoder, whose start alone takes
// longer. Where pictures are damaged all of the sound is decoded.
func (i *inspector) listenThrough(ctx context.Context, r io.ReaderAt, path string, u *unfit) error {
	length := looked
	if u.picture {
		length = 0
	} else if u.audio != nil {
		whole := false
		err := i.limiter.Examine(ctx, func() (failed error) {
			whole, failed = mp4.IntactSound(r, u.audio, looked)
			return failed
		})
		if err != nil {
			return fmt.Errorf("look through sound: %w", err)
		}
		if whole {
			return nil
		}
	}
	refused, err := i.engine.Refuses(ctx, path, encode.MOV, encode.Audio, u.nth, length)
	u.sound = refused
	return err
}

// mend has encoded what decoders refuse of a file whose packets would be put into segments. torn: its container shows
// that something is missing.
func (i *inspector) mend(ctx context.Context, a asset.Asset, c *conform, u unfit, torn bool) error {
	damaged, in, length := u.damaged, c.args, looked
	if torn {
		length = 0
	}
	if c.audio != nil && in.Sound == nil {
		refused, err := i.engine.Refuses(ctx, in.Input, in.Format, encode.Audio, in.Audio, length)
		if err != nil {
			return err
		}
		if refused {
			damaged = true
			c.args.Sound = &encode.Sound{SampleRate: c.audio.SampleRate, Channels: c.audio.Channels}
		}
	}
	if c.video != nil && in.Picture == nil && (torn || damaged && !u.damaged) {
		refused, err := i.engine.Refuses(ctx, in.Input, in.Format, encode.Video, 0, 0)
		if err == nil && refused {
			damaged = true
			err = i.conformPicture(ctx, a, c, true)
		}
		if err != nil {
			return err
		}
	}
	if !damaged {
		return nil
	}
	kind, n := c.leading()
	if err := i.decodes(ctx, in.Input, in.Format, kind, n); err != nil {
		return err
	}
	return i.report.warn(ctx, a, asset.InputDamaged,
		"packets of the file are damaged, and players would stop at them: "+
			"it is encoded anew, with faults where they are")
}
