package encode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/container/cmaf"
)

// H264 names what encodes pictures as H.264: the processor, or hardware beside it.
type H264 string

// The encoders.
const (
	X264         H264 = "x264"
	NVENC        H264 = "nvenc"        // NVIDIA
	QSV          H264 = "qsv"          // Intel Quick Sync Video
	VAAPI        H264 = "vaapi"        // Intel and AMD on Linux
	VideoToolbox H264 = "videotoolbox" // macOS
)

// Encoders lists every one, the one that needs nothing first.
func Encoders() []H264 { return []H264{X264, NVENC, QSV, VAAPI, VideoToolbox} }

// name is ffmpeg's.
func (h H264) name() string {
	if h == X264 || h == "" {
		return "libx264"
	}
	return "h264_" + string(h)
}

// hardware reports whether an encoder has memory of its own, for which a driver takes addresses by the terabyte.
func (h H264) hardware() bool { return h != X264 && h != "" }

// addresses is the limit of a child that encodes.
func (h H264) addresses(limit uint64) uint64 {
	if h.hardware() {
		return 0
	}
	return limit
}

// device opens the hardware; it stands in front of the inputs.
func (h H264) device() []string {
	switch h { //nolint:exhaustive // the others find theirs
	case QSV:
		return []string{"-init_hw_device", "qsv=hw"}
	case VAAPI:
		return []string{"-vaapi_device", "/dev/dri/renderD128"}
	}
	return nil
}

// upload ends a chain of filters with what brings the picture to the hardware.
func (h H264) upload() string {
	switch h { //nolint:exhaustive // the others take a picture as it is
	case QSV:
		return ",format=nv12"
	case VAAPI:
		return ",format=nv12,hwupload"
	}
	return ""
}

// coding is what is asked of an encoder, whichever it is: High profile, key frames where they are forced and nowhere
// else.
type coding struct {
	preset  string // of x264: hardware has one speed
	crf     int    // 0: the bit rate is held all the time
	bitrate int    // the most over a second, bits per second
	level   int    // level_idc; 0: as the encoder finds
	live    bool   // no picture waits for another
	params  string // of x264
	threads string // of x264; empty: as it finds
}

// args encode. Hardware knows no constant quality under a bound that all of it shares: it aims at four fifths of the
// bound.
func (h H264) args(c coding) []string {
	rate := strconv.Itoa(c.bitrate)
	args := []string{"-c:v", h.name()}
	if h.hardware() {
		aim := rate
		if c.crf > 0 {
			aim = strconv.Itoa(c.bitrate / 5 * 4)
		}
		args = append(args, "-b:v", aim, "-maxrate", rate, "-bufsize", rate, "-bf", "0", "-g", "99999")
	}
	switch h {
	case NVENC:
		args = append(args, "-preset", "p4", "-rc", "vbr", "-forced-idr", "1", "-no-scenecut", "1")
		if c.live {
			args = append(args, "-tune", "ull", "-zerolatency", "1", "-delay", "0")
		}
	case QSV:
		args = append(args, "-preset", "veryfast", "-forced_idr", "1")
		if c.live {
			args = append(args, "-async_depth", "1")
		}
	case VAAPI:
		args = append(args, "-rc_mode", "VBR")
		if c.live {
			args = append(args, "-async_depth", "1")
		}
	case VideoToolbox:
		if c.live {
			args = append(args, "-realtime", "1")
		}
	case X264:
		fallthrough
	default:
		args = append(args, "-preset", c.preset)
		if c.live {
			args = append(args, "-tune", "zerolatency")
		}
		if c.crf > 0 {
			args = append(args, "-crf", strconv.Itoa(c.crf))
		} else {
			args = append(args, "-b:v", rate)
		}
		args = append(args, "-maxrate", rate, "-bufsize", rate, "-x264-params", c.params)
		if c.threads != "" {
			args = append(args, "-threads", c.threads)
		}
	}
	args = append(args, "-profile:v", "high")
	if c.level > 0 {
		args = append(args, "-level:v", fmt.Sprintf("%d.%d", c.level/10, c.level%10))
	}
	return args
}

// trial is a few pictures that an encoder shows itself with.
const (
	trialPictures = 12
	trialWidth    = 640
	trialHeight   = 360
	trialTime     = 20 * time.Second
)

func (h H264) trial() []string {
	args := append(common(), h.device()...)
	args = append(args,
		"-protocol_whitelist", "pipe", "-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size",
		fmt.Sprintf("%dx%d", trialWidth, trialHeight),
		"-framerate", "30", "-i", "pipe:0", "-vf", "format=yuv420p"+h.upload())
	args = append(args,
		h.args(coding{
			preset:  "superfast",
			bitrate: 1_000_000,
			level:   30,
			params:  "keyint=infinite:scenecut=0:open-gop=0",
		})...)
	return append(args, "-force_key_frames", "expr:eq(n,6)", "-f", "mp4", "-movflags",
		"+frag_every_frame+empty_moov+default_base_moof", "pipe:1")
}

// Try has an encoder encode some pictures and looks at what comes out: that it is in ffmpeg does not say that it works.
// The error says what is wrong with it.
func Try(ctx context.Context, ffmpeg string, h H264) error {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	var made bytes.Buffer
	err := NewProcess(ProcessOptions{
		Program:  ffmpeg,
		Args:     h.trial(),
		Priority: Live,
		Limits:   Limits{CPU: trialTime, AddressSpace: h.addresses(1 << 30)},
		Input: func(_ context.Context, w io.Writer) error {
			picture := make([]byte, trialWidth*trialHeight*3/2)
			for n := range trialPictures {
				for i := range picture {
					picture[i] = byte(i*(n+1)) | 16
				}
				if _, err := w.Write(picture); err != nil {
					return err // Run says what was written
				}
			}
			return nil
		},
		Output: func(_ context.Context, r io.Reader) error {
			_, err := io.Copy(&made, io.LimitReader(r, 16<<20))
			return err
		},
	}).Run(ctx)
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return fmt.Errorf("%s does not encode: %s", h, reason(exit.Stderr))
	}
	if err != nil {
		return fmt.Errorf("%s does not encode: %w", h, err)
	}
	return h.shown(made.Bytes())
}

// reason is the first line of what a child has said, which is nearest to the cause.
func reason(said string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if first == "" {
		return "ffmpeg gave up"
	}
	return first
}

// shown looks at a trial's outcome.
func (h H264) shown(mp4 []byte) error {
	r := cmaf.NewReader(bytes.NewReader(mp4), cmaf.ReaderOptions{})
	pictures, keys := 0, 0
	for {
		fragments, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s does not encode: %w", h, err)
		}
		for _, f := range fragments {
			for _, s := range f.Samples {
				pictures++
				if s.Sync {
					keys++
				}
			}
		}
	}
	if pictures != trialPictures || keys != 2 {
		return fmt.Errorf("%s does not encode as it should: %d pictures of %d, %d key frames of 2", h, pictures,
			trialPictures, keys)
	}
	return nil
}
