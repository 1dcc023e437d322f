package encode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"millrace/internal/fault"
)

// Options of an Engine.
type Options struct {
	FFmpeg, FFprobe string // absolute paths; see Find
	Budget          *Budget
	Reserve         *Reserve      // of what encodes with the fast preset; nil: there is none
	Limits          Limits        // of encodes; zero means DefaultLimits
	H264            H264          // what encodes pictures; empty: X264. Stills and the ends of clips are always X264's
	Stall           time.Duration // an encode that gives no sign of life for so long is killed; zero means a minute
	Bounds          Bounds        // of short work; zero means DefaultBounds
}

// Engine runs the jobs that need ffmpeg. It keeps nothing but what ffmpeg can do, and may be used from many goroutines.
//
// Errors are of kind fault.Invalid when the file is at fault, with a message fit for the person who sent it, of kind
// fault.Unavailable when the machine was too busy for it, and unmarked when it may be us otherwise. But for the first,
// and as always when ctx ends, trying again may help.
type Engine struct {
	opts     Options
	decoders decoders
}

// NewEngine checks the options; nothing runs yet.
func NewEngine(opts Options) (*Engine, error) {
	if opts.FFmpeg == "" || opts.FFprobe == "" || opts.Budget == nil {
		return nil, errors.New("make encode engine: ffmpeg, ffprobe and a budget are needed")
	}
	if opts.Limits == (Limits{}) {
		opts.Limits = DefaultLimits()
	}
	if opts.Stall == 0 {
		opts.Stall = time.Minute
	}
	if opts.Bounds == (Bounds{}) {
		opts.Bounds = DefaultBounds()
	}
	return &Engine{opts: opts}, nil
}

// Budget is what the engine's children share.
func (e *Engine) Budget() *Budget { return e.opts.Budget }

// Version is ffmpeg's, such as 5.1.9-0+deb12u1.
func (e *Engine) Version(ctx context.Context) (string, error) {
	said, err := ask(ctx, e.opts.FFmpeg, "-version")
	if err != nil {
		return "", err
	}
	return versionIn(said), nil
}

// Encoder names what writes parameter sets: ffmpeg's version, and what encodes where that is not x264.
func (e *Engine) Encoder(ctx context.Context) (string, error) {
	version, err := e.Version(ctx)
	if e.opts.H264.hardware() {
		version += "+" + string(e.opts.H264)
	}
	return version, err
}

// Probe tells what a local file holds.
func (e *Engine) Probe(ctx context.Context, path string, format Format) (Info, error) {
	var output bytes.Buffer
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFprobe, Args: ProbeArgs(path, format), Priority: OnDemand,
		Limits: e.opts.Bounds.Probe.limits(1 << 30),
		Output: func(_ context.Context, r io.Reader) error {
			n, err := io.Copy(&output, io.LimitReader(r, maxProbe+1))
			if err == nil && n > maxProbe {
				return fault.New(fault.Invalid, "the file describes more tracks than can be read")
			}
			return err // Run says what was read
		},
	}).RunAs(ctx, "probe")
	if err != nil {
		return Info{}, blameFile(err, path, "the file can't be read as "+format.Name())
	}
	info, err := parseProbe(output.Bytes(), format)
	if err != nil {
		return Info{}, err
	}
	if len(info.Tracks) == 0 {
		return Info{}, fault.New(fault.Invalid, "the file holds neither video nor audio")
	}
	decodable, err := e.decoders.of(ctx, e.opts.FFmpeg)
	if err != nil {
		return Info{}, err
	}
	for i := range info.Tracks {
		t := &info.Tracks[i]
		t.Decoder = (t.Kind == Video || t.Kind == Audio) && decodable[t.Codec]
	}
	return info, nil
}

// inputOutput is what ffmpeg's programs say of EIO.
const inputOutput = "Input/output error"

// blameFile is blame for what reads a file on our disk: ffmpeg's programs say the same of a disk that fails as of a
// file that breaks off.
func blameFile(err error, path, message string) error {
	if exit, ok := errors.AsType[*ExitError](err); ok && strings.Contains(exit.Stderr, inputOutput) && readable(path) {
		return fault.Wrap(fault.Invalid, err, "%s", message)
	}
	return blame(err, message)
}

// readable reports whether the disk gives what a probe reads of a file.
func readable(path string) bool {
	f, err := os.Open(path) //nolint:gosec // the file that was probed
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read from
	_, err = io.CopyN(io.Discard, f, probeBytes)
	return err == nil || errors.Is(err, io.EOF)
}

// EncodeAudio makes an M4A file, for an asset or a track (Ingest) or for a download (Background); progress may be nil.
func (e *Engine) EncodeAudio(ctx context.Context, p Priority, job AudioArgs, progress func(time.Duration)) error {
	release, err := e.opts.Budget.Acquire(ctx, p, 1)
	if err != nil {
		return err
	}
	defer release()
	if progress == nil {
		progress = func(time.Duration) {}
	}
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: job.Build(), Writes: []string{job.Output},
		Limits: e.opts.Limits, Priority: p, Progress: progress, Stall: e.opts.Stall,
	}).RunAs(ctx, "audio")
	return blame(err, "the file's audio can't be decoded")
}

// blame marks an error as the file's fault: ffmpeg gave up by itself and did not lack anything, or it has used all the
// processor time that it may. What has only taken long on the clock may be tried again. An error that is marked already
// comes from what a child read or wrote.
func blame(err error, message string) error {
	if _, marked := errors.AsType[*fault.Error](err); marked {
		return err
	}
	switch {
	case errors.Is(err, ErrStalled):
		return fault.Wrap(fault.Invalid, err, "%s: the decoder makes no progress", message)
	case errors.Is(err, ErrIdle), errors.Is(err, ErrLate):
		return fault.Wrap(fault.Unavailable, err, "%s in time: the service is busy, or its disk is slow", message)
	}
	exit, ok := errors.AsType[*ExitError](err)
	switch {
	case ok && exit.CPU > 0 && exit.Signal != "":
		return spent(exit, message)
	case !ok, exit.Signal == "killed": // the system's memory killer, most likely
		return err
	}
	for _, lack := range []string{
		"No space left on device", inputOutput, "Permission denied", "No such file or directory", "Too many open files",
		"error while loading shared libraries",
	} {
		if strings.Contains(exit.Stderr, lack) {
			return err
		}
	}
	if exit.CPU > 0 {
		return spent(exit, message)
	}
	return fault.Wrap(fault.Invalid, err, "%s", message)
}

// spent is said of a file that takes more processor time than there is for one.
func spent(exit *ExitError, message string) error {
	return fault.Wrap(fault.Invalid, exit, "%s: that takes more than %s of processor time", message, exit.CPU)
}

// Name is what a format is called in a sentence.
func (f Format) Name() string {
	if name, ok := map[Format]string{
		MOV:      "MP4 or MOV",
		Matroska: "Matroska or WebM",
		MPEGTS:   "MPEG-TS",
		ADTS:     "AAC (ADTS)",
		Ogg:      "Ogg",
		MPEGPS:   "MPEG-PS",
		ASF:      "WMV or WMA",
		AC3:      "AC-3",
		EAC3:     "E-AC-3",
		RawH264:  "H.264",
		RawHEVC:  "HEVC",
	}[f]; ok {
		return name
	}
	return strings.ToUpper(string(f)) // MP3, WAV, FLAC, AVI, FLV, MXF, AIFF, CAF, W64, GIF, NUT, IVF
}
