// Package origin is a made-up HLS and LL-HLS server over a clip that ffmpeg encodes, right in every rule its author
// knows. It is what the conformance checker is tested against, and what the watch page plays before a real server is
// there. Its clock is time.Now, so it runs in a testing/synctest bubble as well. It starts no goroutine.
package origin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/Eyevinn/mp4ff/mp4"
)

// Clip is one encoded video with its sound, cut into single samples.
type Clip struct {
	Video, Audio Track
	Seconds      int // length
}

// Track is one rendition's init segment and samples.
type Track struct {
	Init      []byte
	Timescale uint32
	Samples   []mp4.FullSample
	Codec     string // RFC 6381
}

// Seconds is the length of a clip that is long enough for most, GOPSeconds the distance of its key frames, FrameRate
// its pictures per second.
const (
	Seconds    = 30
	GOPSeconds = 2
	FrameRate  = 30
	Width      = 640
	Height     = 360
)

// Generate encodes a clip of so many seconds, with a key frame every gop seconds (GOPSeconds for what New cuts): moving
// test picture that shows its number, whose B-frames take a delay of two pictures, a beeping tone of the given frequency
// in Hz.
func Generate(ctx context.Context, ffmpeg string, frequency, seconds, gop int) (Clip, error) {
	dir, err := os.MkdirTemp("", "millrace-clip-")
	if err != nil {
		return Clip{}, fmt.Errorf("make folder for clip: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	v, a := filepath.Join(dir, "v.mp4"), filepath.Join(dir, "a.mp4")
	cmaf := []string{"-movflags", "empty_moov+default_base_moof+cmaf+frag_every_frame"}
	args := []string{
		"-nostdin", "-loglevel", "error",
		"-f", "lavfi", "-i", fmt.Sprintf("testsrc2=s=%dx%d:r=%d:d=%d%s", Width, Height, FrameRate, seconds, numbered()),
		"-f", "lavfi", "-i", fmt.Sprintf("sine=f=%d:b=4:r=48000:d=%d", frequency, seconds),
		"-map", "0:v", "-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "main", "-pix_fmt", "yuv420p", "-bf",
		"3", "-b:v", "600k",
		"-g", fmt.Sprint(gop * FrameRate), "-keyint_min", fmt.Sprint(gop * FrameRate), "-sc_threshold", "0",
	}
	args = append(append(args, cmaf...), v, "-map", "1:a", "-c:a", "aac", "-ac", "2", "-b:a", "96k")
	args = append(append(args, cmaf...), a)
	out, err := exec.CommandContext(ctx, ffmpeg, args...).CombinedOutput()
	if err != nil {
		return Clip{}, fmt.Errorf("encode clip: %w: %s", err, out)
	}
	c := Clip{Seconds: seconds}
	if c.Video, err = readTrack(v); err != nil {
		return Clip{}, err
	}
	if c.Audio, err = readTrack(a); err != nil {
		return Clip{}, err
	}
	return c, nil
}

// numbered is a filter that writes a picture's number at the bottom, in twelve squares of 32 pixels, the lowest bit at
// the left: white is 1.
func numbered() string {
	const bits, size = 12, 32
	var f strings.Builder
	fmt.Fprintf(&f, ",drawbox=x=0:y=%d:w=%d:h=%d:color=black:t=fill", Height-size, bits*size, size)
	for k := range bits {
		fmt.Fprintf(&f, ",drawbox=x=%d:y=%d:w=%d:h=%d:color=white:t=fill:enable='mod(floor(n/%d),2)'", k*size,
			Height-size, size, size, 1<<k)
	}
	return f.String()
}

func readTrack(file string) (Track, error) {
	f, err := mp4.ReadMP4File(file)
	if err != nil {
		return Track{}, fmt.Errorf("read clip: %w", err)
	}
	var b bytes.Buffer
	if err := f.Init.Encode(&b); err != nil {
		return Track{}, fmt.Errorf("write init segment: %w", err)
	}
	trak := f.Init.Moov.Trak
	t := Track{Init: b.Bytes(), Timescale: trak.Mdia.Mdhd.Timescale, Codec: "mp4a.40.2"}
	if avc := trak.Mdia.Minf.Stbl.Stsd.AvcX; avc != nil {
		t.Codec = fmt.Sprintf("avc1.%02x%02x%02x", avc.AvcC.AVCProfileIndication, avc.AvcC.ProfileCompatibility,
			avc.AvcC.AVCLevelIndication)
	}
	trex, _ := f.Init.Moov.Mvex.GetTrex(trak.Tkhd.TrackID)
	for _, s := range f.Segments {
		for _, frag := range s.Fragments {
			samples, err := frag.GetFullSamples(trex)
			if err != nil {
				return Track{}, fmt.Errorf("read samples of clip: %w", err)
			}
			t.Samples = append(t.Samples, samples...)
		}
	}
	return t, nil
}

// part is a CMAF chunk: one moof and mdat.
type part struct {
	data       []byte
	start, end float64 // seconds on the media's timeline
	sync       bool
}

// segment is a run of parts that starts with a key frame.
type segment struct {
	msn   int
	parts []part
}

func (s segment) start() float64 { return s.parts[0].start }
func (s segment) end() float64   { return s.parts[len(s.parts)-1].end }

func (s segment) data() []byte {
	var b []byte
	for _, p := range s.parts {
		b = append(b, p.data...)
	}
	return b
}

// cut makes segments of the given length in seconds, each of parts of the given length. A cut is at the first sample at
// or after its time, so that audio is cut where video is, up to the clip's length. Samples from gapAt seconds on are
// later by gap seconds.
func (t Track) cut(length int, segmentSeconds, partSeconds, gapAt, gap float64) ([]segment, error) {
	var segments []segment
	scale := float64(t.Timescale)
	first := 0
	perSegment := int(segmentSeconds/partSeconds + 0.5)
	// sound that is longer than the picture is left out
	for n := 0; first < len(t.Samples) && n < length*perSegment/GOPSeconds; n++ {
		// A sample's time may be just under its boundary by rounding.
		until := partSeconds*float64(n+1) - 1e-4
		next := first + 1
		for next < len(t.Samples) && float64(t.Samples[next].DecodeTime)/scale < until {
			next++
		}
		p, err := t.chunk(uint32(n+1), first, next, gapAt, gap)
		if err != nil {
			return nil, err
		}
		if n%perSegment == 0 {
			segments = append(segments, segment{msn: n / perSegment})
		}
		last := &segments[len(segments)-1]
		last.parts = append(last.parts, p)
		first = next
	}
	return segments, nil
}

func (t Track) chunk(number uint32, from, to int, gapAt, gap float64) (part, error) {
	frag, err := mp4.CreateFragment(number, 1)
	if err != nil {
		return part{}, fmt.Errorf("make chunk: %w", err)
	}
	shift := 0.0
	scale := float64(t.Timescale)
	if gap > 0 && float64(t.Samples[from].DecodeTime)/scale >= gapAt-0.01 {
		shift = gap
	}
	length := 0.0
	for _, s := range t.Samples[from:to] {
		s.DecodeTime += uint64(shift * scale)
		frag.AddFullSample(s)
		length += float64(s.Dur) / scale
	}
	var b bytes.Buffer
	if err := frag.Encode(&b); err != nil {
		return part{}, fmt.Errorf("write chunk: %w", err)
	}
	start := float64(t.Samples[from].DecodeTime)/scale + shift
	return part{data: b.Bytes(), start: start, end: start + length, sync: t.Samples[from].IsSync()}, nil
}
