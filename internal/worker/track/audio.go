package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/container/sniff"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/attempt"
)

func (w *Worker) audio(ctx context.Context, a asset.Asset, t *asset.Track) error {
	t.Object, t.Rendition = soundKey(a, t.ID), string(t.ID)
	if stored, err := w.stored(ctx, t); stored || err != nil {
		return err
	}
	raw := w.raw(a.ID, t.ID)
	if _, err := os.Stat(raw); err != nil { // not downloaded by an earlier attempt
		if _, err := w.opt.Fetch.Download(ctx, t.URL, raw, fetch.Limits{MaxBytes: w.opt.MaxSize}, nil); err != nil {
			return err
		}
	}
	path, err := w.convert(ctx, a, raw)
	if err != nil {
		return err
	}
	err = w.opt.ProbeLimiter.Examine(ctx, func() error {
		x, bad := index(path)
		if bad != nil {
			return fmt.Errorf("index audio: %w", bad)
		}
		return measure(x, t)
	})
	if err != nil {
		return err
	}
	if err := w.opt.Store.Adopt(ctx, t.Object, path); err != nil {
		return fmt.Errorf("store audio track: %w", err)
	}
	return nil
}

// convert gives the path of an M4A made of any file with audio. AAC of one or two channels is passed through, unless it
// is to be as loud as the rest of its asset and is not.
func (w *Worker) convert(ctx context.Context, a asset.Asset, raw string) (string, error) {
	format, err := formatOf(raw)
	if err != nil {
		return "", err
	}
	long := time.Duration(0) // of a fragmented file, whose clock ffprobe counts in
	if format == encode.MOV {
		ready := false
		err = w.opt.ProbeLimiter.Examine(ctx, func() (bad error) {
			ready, long, bad = isM4A(raw)
			return bad
		})
		if err != nil || ready && !a.Options.NormalizeAudio {
			return raw, err
		}
	}
	info, err := w.opt.ProbeLimiter.Probe(ctx, w.opt.Engine, raw, format)
	if err != nil {
		return "", err
	}
	fragmented := long > 0
	if !fragmented {
		long = info.Duration
	}
	if long > encode.MaxDuration {
		return "", tooLong()
	}
	for _, s := range info.Tracks { // the first
		if s.Kind != encode.Audio {
			continue
		}
		if !s.Decoder {
			return "", fault.New(fault.Invalid, "the file's audio is of a codec that is not supported (%s): "+
				"convert it to AAC, MP3, Opus or FLAC", cmp.Or(s.Codec, s.Tag, "unknown"))
		}
		args := encode.AudioArgs{
			Input:     raw,
			Format:    format,
			Output:    made(raw),
			Copy:      passable(s),
			Sound:     encode.Sound{SampleRate: s.SampleRate, Channels: s.Channels},
			FromStart: fragmented,
		}
		if a.Options.NormalizeAudio {
			as := args.Sound
			if args.Sound, err = w.opt.Engine.Level(ctx, encode.LoudnessArgs{Input: raw, Format: format, Sound: as},
				asset.Loudness); err != nil {
				return "", err
			}
			args.Copy = args.Copy && args.Sound == as
		}
		return args.Output, w.opt.Engine.EncodeAudio(ctx, encode.Ingest, args, nil)
	}
	return "", noAudio()
}

func tooLong() error {
	return fault.New(fault.Invalid, "the file lasts longer than 12 hours, which is the most that an asset may")
}

func noAudio() error { return fault.New(fault.Invalid, "the file has no audio") }

// passable reports whether a track is AAC that every player decodes.
func passable(s encode.Track) bool {
	return s.Codec == "aac" && s.Channels <= 2 &&
		(s.Profile == "LC" || s.Profile == "HE-AAC" || s.Profile == "HE-AACv2")
}

// formatOf refuses what can't hold audio before any other program sees it.
func formatOf(path string) (encode.Format, error) {
	f, _, err := attempt.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	kind, err := sniff.Read(f)
	if err != nil {
		return "", fmt.Errorf("read download: %w", err)
	}
	switch kind { //nolint:exhaustive // all others may hold audio
	case sniff.Playlist:
		return "", fault.New(fault.Invalid,
			"the URL leads to a playlist (M3U8, MPD or the like), not to an audio file: give the URL of the file itself")
	case sniff.HTML:
		return "", fault.New(fault.Invalid, "the URL leads to a web page or another document, not to an audio file")
	case sniff.Text:
		return "", fault.New(fault.Invalid, "the file is text, not audio; subtitles are added as a track of type text")
	case sniff.Unknown, sniff.GIF, sniff.H264, sniff.HEVC:
	default:
		return encode.Format(kind.Demuxer()), nil
	}
	if st, err := f.Stat(); err == nil && st.Size() == 0 {
		return "", fault.New(fault.Invalid, "the file is empty")
	}
	return "", fault.New(fault.Invalid,
		"the file is of no known audio format: M4A, MP3, WAV, AIFF, CAF, W64, AAC, AC-3, WMA, Opus and FLAC can be used")
}

// isM4A tells a whole file whose only media is AAC: it is used as it is. Of a file with more in it the audio is taken
// out. long is how long a fragmented file is.
func isM4A(path string) (ready bool, long time.Duration, err error) {
	index, err := index(path)
	switch {
	case errors.Is(err, mp4.ErrEncrypted):
		return false, 0, fault.Wrap(fault.Invalid, err, "the file is encrypted: only files without DRM can be used")
	case errors.Is(err, mp4.ErrTruncated):
		return false, 0, fault.Wrap(fault.Invalid, err, "the file is not complete, its end is missing (%s)", err)
	case errors.Is(err, mp4.ErrMalformed), errors.Is(err, mp4.ErrUnsupported), errors.Is(err, mp4.ErrNotMP4):
		return false, 0, nil // ffmpeg may get on with it
	case err != nil:
		return false, 0, err
	}
	sounds, others := 0, 0
	for _, t := range index.Tracks {
		if t.Kind == frame.Audio && t.Config.Codec == frame.AAC && t.Config.Channels <= 2 && t.Len() > 0 &&
			!t.NonStandardEdit {
			sounds++
		} else {
			others++
		}
	}
	if index.Fragmented {
		long = index.Length()
	}
	return sounds == 1 && others == 0, long, nil
}

func index(path string) (*mp4.File, error) {
	f, size, err := attempt.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return mp4.Index(f, size)
}

// measure fills in what the file tells of the track.
func measure(index *mp4.File, t *asset.Track) error {
	for _, tr := range index.Tracks {
		if tr.Kind != frame.Audio || tr.Len() == 0 {
			continue
		}
		t.Duration, t.MaxChannels = float64(tr.Duration())/float64(tr.Timescale), tr.Config.Channels
		if t.Duration > encode.MaxDuration.Seconds()+1 {
			return tooLong()
		}
		return nil
	}
	return fault.New(fault.Invalid, "the file has no audio that can be decoded")
}

// stored goes on where an earlier attempt had its file in the store already.
func (w *Worker) stored(ctx context.Context, t *asset.Track) (bool, error) {
	info, err := w.opt.Store.Stat(ctx, t.Object)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return false, err
	}
	r, err := blob.ReaderAt(ctx, w.opt.Store, t.Object, info.Size)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }() // it was only read
	return true, w.opt.ProbeLimiter.Examine(ctx, func() error {
		x, err := mp4.Index(r, info.Size)
		if err != nil {
			return fmt.Errorf("index stored audio: %w", err)
		}
		return measure(x, t)
	})
}
