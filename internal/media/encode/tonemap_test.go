package encode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"testing"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// greys encodes a picture of 10 bits in HEVC, all of one luma code value, with a colour description as given;
// fragmented as rungs get it.
func greys(t *testing.T, value int, colours string) string {
	t.Helper()
	return makeFile(t, "hdr.mp4", "-f", "lavfi", "-i",
		fmt.Sprintf("color=s=320x180:r=25:d=0.2,format=yuv420p10le,geq=lum=%d:cb=512:cr=512", value),
		"-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params", "log-level=none:pools=1:"+colours,
		"-movflags", "+frag_every_frame+empty_moov+default_base_moof")
}

// luma is the mean of a file's first picture, 0 to 255.
func luma(t *testing.T, path string) float64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-i", path,
		"-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-").Output()
	if err != nil || len(out) == 0 {
		t.Fatal(len(out), err)
	}
	sum := 0
	picture := out[:len(out)*2/3]
	for _, v := range picture {
		sum += int(v)
	}
	return float64(sum) / float64(len(picture))
}

// TestToneMapped: H.264 that is made of high dynamic range is BT.709 and says so, live, just in time and of a file
// alike, whatever else the stream says of its colours.
func TestToneMapped(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	const described = ":colorprim=bt2020:colormatrix=bt2020nc"
	for name, tt := range map[string]struct {
		value   int // of its luma, 10 bits: in PQ white paper, 203 nits (ITU-R BT.2408), in HLG a light
		colours string
		want    frame.VideoRange
	}{
		"PQ":                     {573, "transfer=smpte2084" + described, frame.PQ},
		"HLG":                    {900, "transfer=arib-std-b67" + described, frame.HLG},
		"PQ, nothing else said":  {573, "transfer=smpte2084", frame.PQ},
		"HLG, nothing else said": {900, "transfer=arib-std-b67", frame.HLG},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := greys(t, tt.value, tt.colours)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tracks, err := cmaf.NewReader(bytes.NewReader(data), cmaf.ReaderOptions{}).Tracks()
			if err != nil || len(tracks) != 1 {
				t.Fatal(len(tracks), err)
			}
			probed, err := e.Probe(t.Context(), file, MOV)
			if err != nil || len(probed.Tracks) != 1 || probed.Tracks[0].Range != tt.want {
				t.Fatalf("%+v, %v", probed, err)
			}
			rung := RungArgs{
				Width: 160, Height: 90, Range: tt.want, Preset: "veryfast", CRF: 18, Bitrate: 1_000_000, Level: 30,
				Timescale: tracks[0].Timescale, NoReorder: true, FrameRate: 25,
			}
			picture := Picture{
				Width: 160, Height: 90, Range: tt.want, Preset: "veryfast", CRF: 18, Bitrate: 1_000_000, Level: 30,
			}
			input := func(_ context.Context, w io.Writer) error {
				_, werr := w.Write(data)
				return werr
			}
			outputs := map[string]func(func(context.Context, io.Reader) error) error{
				"rung": func(read func(context.Context, io.Reader) error) error {
					return e.Rung(t.Context(), OnDemand, RungJob{
						Threads: 1,
						Prepare: func(context.Context, int) ([]RungArgs, error) { return []RungArgs{rung}, nil },
						Input:   func(ctx context.Context, _ int, w io.Writer) error { return input(ctx, w) },
						Output:  func(ctx context.Context, _ int, r io.Reader) error { return read(ctx, r) },
					})
				},
				"live ladder": func(read func(context.Context, io.Reader) error) error {
					job := LadderArgs{Rungs: []RungArgs{rung}, Timescale: tracks[0].Timescale}
					return e.Ladder(t.Context(), job, input, []func(context.Context, io.Reader) error{read})
				},
				"live": func(read func(context.Context, io.Reader) error) error {
					job := LiveArgs{Format: MOV, Width: 320, Height: 180, Range: tt.want, FrameRate: 25}
					return e.Live(t.Context(), job, input, read)
				},
				"file": func(read func(context.Context, io.Reader) error) error {
					return e.Rewrite(t.Context(), RewriteArgs{Input: file, Format: MOV, Picture: &picture}, read)
				},
			}
			for how, encode := range outputs {
				path := t.TempDir() + "/out"
				err := encode(func(_ context.Context, r io.Reader) error {
					out, err := io.ReadAll(r)
					if err == nil {
						err = os.WriteFile(path, out, 0o600)
					}
					return err
				})
				if err != nil {
					t.Errorf("%s: %v", how, err)
					continue
				}
				if c := colourOf(t, path); c.Transfer != 1 || c.Primaries != 1 || c.Matrix != 1 {
					t.Errorf("%s: it says of its colours %+v", how, c)
				}
				// By Hable's curve; untouched it were 143 and 225.
				if got := luma(t, path); math.Abs(got-mapped[tt.want]) > 2 {
					t.Errorf("%s: it has luma %.1f, not %.1f", how, got, mapped[tt.want])
				}
			}
		})
	}
}

// mapped is what luma becomes of the grey.
var mapped = map[frame.VideoRange]float64{frame.PQ: 181, frame.HLG: 228}

// colourOf is what H.264 of a file says of its colours.
func colourOf(t *testing.T, path string) h264.Colour {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-i", path, "-c", "copy", "-frames:v", "1",
		"-f", "mp4", "-movflags", "+empty_moov", "pipe:1").Output()
	if err != nil {
		t.Fatal(err)
	}
	tracks, err := cmaf.NewReader(bytes.NewReader(out), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 {
		t.Fatal(len(tracks), err)
	}
	info, err := h264.Info(tracks[0].Config.SPS)
	if err != nil {
		t.Fatal(err)
	}
	return info.Colour
}
