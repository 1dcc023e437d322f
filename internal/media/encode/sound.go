package encode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Sound is AAC-LC that is made of any audio.
type Sound struct {
	SampleRate int     // of the input, in Hz: 44100 stays, all else becomes 48000
	Channels   int     // of the input: one stays one, all else becomes two
	Gain       float64 // dB that it is made louder by
	Limit      bool    // its peaks are held below the ceiling
}

// steady fills gaps and a late start with silence: packet n then stands for the samples from 1024n on.
const steady = "aresample=async=1:first_pts=0"

// downmix brings any number of channels down to two with the coefficients of ITU-R BS.775 (centre and surrounds at -3
// dB, no LFE), and everything by as much that the sum of all channels at their loudest does not clip.
const downmix = ":center_mix_level=0.7071:surround_mix_level=0.7071:lfe_mix_level=0:rematrix_maxval=1"

// ceiling is what no peak may exceed between the samples either, in dBTP: AAC adds a little to it.
const ceiling = -1.5

func (s Sound) rate() string {
	if s.SampleRate == 44100 {
		return "44100"
	}
	return "48000"
}

func (s Sound) layout() string {
	if s.Channels == 1 {
		return "mono"
	}
	return "stereo"
}

// filters give what is encoded. The limiter sees four samples for each, and so what is between them; it takes none and
// adds none.
func (s Sound) filters() string {
	chain := steady
	if s.Channels > 2 {
		chain += downmix
	}
	chain += ",aformat=channel_layouts=" + s.layout() + ":sample_rates=" + s.rate()
	if s.Gain != 0 {
		chain += fmt.Sprintf(",volume=%.2fdB", s.Gain)
	}
	if s.Limit {
		chain += fmt.Sprintf(",aresample=192000,alimiter=limit=%.4f:level=false:latency=true,aresample=%s",
			math.Pow(10, ceiling/20), s.rate())
	}
	return chain
}

func (s Sound) encoder() []string {
	channels, bits := "2", "128k"
	if s.Channels == 1 {
		channels, bits = "1", "96k"
	}
	return []string{
		"-af", s.filters(),
		"-c:a", "aac", "-profile:a", "aac_low", "-b:a", bits, "-ar", s.rate(), "-ac", channels, "-threads", "1",
	}
}

// kept is about what AAC keeps of a sound at its bit rate: noise has a part of its loudness above that.
func (s Sound) kept() string {
	top := 16000 // Hz
	if s.Channels == 1 {
		top = 18000
	}
	return fmt.Sprintf(",lowpass=f=%d,lowpass=f=%d", top, top)
}

// LoudnessArgs describe the audio stream of a file whose loudness is measured, as it would be encoded.
type LoudnessArgs struct {
	Input  string // path
	Format Format
	Audio  int // which of its audio streams, from 0
	Sound  Sound
	Length time.Duration // how much of it; 0: all
}

// Build returns the arguments for ffmpeg, which says the outcome as its last words. Progress comes on descriptor 3.
func (l LoudnessArgs) Build() []string {
	args := append([]string{
		"-hide_banner", "-nostdin", "-nostats", "-loglevel", "info", "-progress", "pipe:3",
	}, input(l.Format, l.Input)...)
	length := MaxDuration
	if l.Length > 0 {
		length = l.Length
	}
	return append(args,
		"-map", "0:a:"+strconv.Itoa(l.Audio), "-vn", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1",
		"-af", l.Sound.filters()+l.Sound.kept()+",ebur128=peak=true:framelog=verbose", "-t", seconds(length), "-f",
		"null", "-")
}

// loudness is what EBU R 128 says of a sound: its integrated loudness in LUFS, and its true peak in dBTP.
type loudness struct{ integrated, peak float64 }

const (
	// silent is what is measured where nothing is heard: below the absolute gate of ITU-R BS.1770.
	silent = -70
	// even is by how much a sound may miss its loudness, in LU, and be left as it is.
	even = 0.2
	// rounds is how often a limited sound is measured: what is limited is less loud than what is not.
	rounds = 4
	// mostGain bounds what noise is made of, in dB.
	mostGain = 50
)

// Level finds what brings a sound to a loudness in LUFS: a gain, and a limiter where the gain alone would bring its
// peaks above the ceiling. It is the sound as it was given when it is as loud as that already, or silent.
func (e *Engine) Level(ctx context.Context, job LoudnessArgs, target float64) (Sound, error) {
	now, err := e.loudness(ctx, job)
	if err != nil {
		return Sound{}, err
	}
	off := target - now.integrated
	if now.integrated <= silent || math.Abs(off) <= even {
		return job.Sound, nil
	}
	s := job.Sound
	s.Gain = min(off, mostGain)
	if now.peak+s.Gain <= ceiling {
		return s, nil
	}
	s.Limit = true
	for range rounds {
		job.Sound = s
		if now, err = e.loudness(ctx, job); err != nil {
			return Sound{}, err
		}
		off = target - now.integrated
		if math.Abs(off) <= even || s.Gain >= mostGain && off > 0 {
			break
		}
		s.Gain = min(s.Gain+off, mostGain)
	}
	return s, nil
}

// loudness measures a file that becomes an asset.
func (e *Engine) loudness(ctx context.Context, job LoudnessArgs) (loudness, error) {
	release, err := e.opts.Budget.Acquire(ctx, Ingest, 1)
	if err != nil {
		return loudness{}, err
	}
	defer release()
	said := ""
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: job.Build(), Limits: e.opts.Limits, Priority: Ingest,
		Progress: func(time.Duration) {}, Stall: e.opts.Stall, Said: func(s string) { said = s },
	}).RunAs(ctx, "loudness")
	if err != nil {
		return loudness{}, blame(err, "the file's audio can't be decoded")
	}
	return parseLoudness(said)
}

// parseLoudness reads the summary of ffmpeg's ebur128, which is the last of what it says.
func parseLoudness(said string) (loudness, error) {
	said, ok := cutLast(said, "Summary:")
	l := loudness{integrated: math.NaN(), peak: math.NaN()}
	for line := range strings.Lines(said) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		v, err := strconv.ParseFloat(fields[1], 64)
		switch {
		case err != nil || math.IsNaN(v):
		case fields[0] == "I:" && fields[2] == "LUFS":
			l.integrated = max(v, silent)
		case fields[0] == "Peak:" && fields[2] == "dBFS":
			l.peak = max(v, -200) // silence has -inf
		}
	}
	if !ok || math.IsNaN(l.integrated) || math.IsNaN(l.peak) || l.integrated > 100 || l.peak > 100 {
		return loudness{}, errors.New("measure loudness: ffmpeg gave no summary")
	}
	return l, nil
}

// cutLast is what stands behind the last sep of s, and whether there is one.
func cutLast(s, sep string) (after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", false
	}
	return s[i+len(sep):], true
}
