package encode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/flv"
)

// TestStraight checks that what is encoded live and what is encoded later have the same parameter sets, bit for bit:
// they share an init segment.
func TestNoReorder(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	source, err := os.ReadFile(makeFile(t, "a.mp4", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=2",
		"-c:v", "libx264", "-preset", "ultrafast",
		"-pix_fmt", "yuv420p", "-video_track_timescale", "90000", "-use_editlist", "0", "-movflags",
		"+frag_every_frame+empty_moov+default_base_moof"))
	if err != nil {
		t.Fatal(err)
	}
	input := func(_ context.Context, in io.Writer) error {
		_, err := in.Write(source)
		return err
	}
	for _, preset := range []string{"veryfast", "faster"} {
		job := LadderArgs{Timescale: 90000}
		sets, pictures := make([][]byte, 2), make([]int, 2)
		var outputs []func(context.Context, io.Reader) error
		for i, width := range []int{480, 320} {
			job.Rungs = append(job.Rungs, RungArgs{
				Width: width, Height: width * 9 / 16 &^ 1, Preset: preset, CRF: 23, Bitrate: 400_000, Level: 30,
				Timescale: 90000, NoReorder: true, FrameRate: 25,
			})
			outputs = append(outputs, func(_ context.Context, in io.Reader) error {
				for tags := flv.NewReader(in, 1<<20); ; {
					tag, err := tags.Next()
					switch {
					case errors.Is(err, io.EOF):
						return nil
					case err != nil:
						return err
					case tag.Config && sets[i] == nil:
						sets[i] = tag.Data
					case !tag.Config:
						pictures[i]++
					}
				}
			})
		}
		if err := e.Ladder(t.Context(), job, input, outputs); err != nil {
			t.Fatal(err)
		}
		live, one := [2][]byte(sets), slices.Clone(pictures)
		sets[0], sets[1], pictures[0], pictures[1] = nil, nil, 0, 0
		job.Whole = true
		if err := e.Ladder(t.Context(), job, input, outputs); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(live[0], sets[0]) || !bytes.Equal(live[1], sets[1]) || !slices.Equal(one, pictures) {
			t.Errorf("%s: %d pictures with %x, of what is at hand as a whole %d with %x", preset, one, live, pictures,
				sets)
		}
		for i, a := range job.Rungs {
			err := e.Rung(t.Context(), OnDemand, RungJob{
				Prepare: func(context.Context, int) ([]RungArgs, error) { return []RungArgs{a}, nil },
				Input:   func(ctx context.Context, _ int, in io.Writer) error { return input(ctx, in) },
				Output: func(_ context.Context, _ int, in io.Reader) error {
					tracks, err := cmaf.NewReader(in, cmaf.ReaderOptions{MaxFragment: 1 << 20}).Tracks()
					if err != nil || len(tracks) != 1 {
						return errors.Join(err, errors.New("not one track"))
					}
					if sets[i] == nil || !bytes.Contains(tracks[0].SampleEntry, sets[i]) {
						t.Errorf("%s: live %x, later\n%x", preset, sets[i], tracks[0].SampleEntry)
					}
					return nil
				},
			})
			if err != nil {
				t.Error(err)
			}
			if pictures[i] != 50 {
				t.Errorf("%d pictures of 50", pictures[i])
			}
		}
	}
}

// TestLadderTimes says by the time of a frame what is made of it: it comes out, as a key frame too, or is decoded only.
func TestLadderTimes(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	source, err := os.ReadFile(makeFile(t, "a.mp4", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=2",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", "2", "-video_track_timescale", "90000",
		"-use_editlist", "0", "-movflags", "+frag_every_frame+empty_moov+default_base_moof"))
	if err != nil {
		t.Fatal(err)
	}
	const frame = 90000 / 25
	// By the number of the frame, as it is shown.
	remainders := map[int64]int64{0: 2, 1: 2, 2: 2, 5: 2, 20: 1, 21: 2, 30: 1}
	input := func(_ context.Context, in io.Writer) error {
		if _, err := in.Write(source[:bytes.Index(source, []byte("moof"))-4]); err != nil {
			return err
		}
		for mp4, n := cmaf.NewReader(bytes.NewReader(source), cmaf.ReaderOptions{}), uint32(1); ; n++ {
			fragments, err := mp4.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			f := &fragments[0]
			x := f.Samples[0]
			shown := (int64(f.BaseMediaDecodeTime)+int64(x.CompositionOffset))/frame - 2 // the B-frames
			x.CompositionOffset += int32(remainders[shown])
			moved := cmaf.AppendFragment(nil, n, cmaf.TrackID, f.BaseMediaDecodeTime, []cmaf.Sample{x})
			if _, err := in.Write(moved); err != nil {
				return err
			}
		}
	}
	var shown, keys []int64
	output := func(_ context.Context, in io.Reader) error {
		for tags := flv.NewReader(in, 1<<20); ; {
			tag, err := tags.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if n := tag.PTS.Milliseconds()/40 - 2; !tag.Config {
				shown = append(shown, n)
				if tag.Key {
					keys = append(keys, n)
				}
			}
		}
	}
	job := LadderArgs{Timescale: 90000, Rungs: []RungArgs{{
		Width: 160, Height: 90, CRF: 23, Bitrate: 100_000, Level: 30, NoReorder: true, FrameRate: 25,
	}}}
	if err := e.Ladder(t.Context(), job, input, []func(context.Context, io.Reader) error{output}); err != nil {
		t.Fatal(err)
	}
	var want []int64
	for n := range int64(50) {
		if remainders[n] != 2 {
			want = append(want, n)
		}
	}
	if !slices.Equal(shown, want) || !slices.Equal(keys, []int64{3, 20, 30}) {
		t.Errorf("frames %v, of them key frames %v", shown, keys)
	}
}

// TestFastPreset checks that what is encoded with the fast preset has the parameter sets of what is not, bit for bit,
// and as many pictures.
func TestFastPreset(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	source, err := os.ReadFile(makeFile(t, "a.mp4", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=2",
		"-c:v", "libx264", "-preset", "ultrafast",
		"-pix_fmt", "yuv420p", "-colorspace", "bt709", "-output_ts_offset", "10", "-avoid_negative_ts", "disabled",
		"-use_editlist", "0",
		"-movflags", "+frag_every_frame+empty_moov+default_base_moof+frag_discont"))
	if err != nil {
		t.Fatal(err)
	}
	for _, preset := range []string{"veryfast", "faster"} {
		for _, noReorder := range []bool{false, true} {
			var entries [2][]byte
			for i := range entries {
				a := RungArgs{
					Width: 320, Height: 180, Preset: preset, CRF: 23, Bitrate: 400_000, Level: 30, Timescale: 12800,
					Keys:      []float64{10, 11},
					NoReorder: noReorder, FrameRate: 25, FastPreset: i == 1,
				}
				pictures, keys := 0, 0
				err := e.Rung(t.Context(), OnDemand, RungJob{
					Prepare: func(context.Context, int) ([]RungArgs, error) { return []RungArgs{a}, nil },
					Input: func(_ context.Context, _ int, in io.Writer) error {
						_, err := in.Write(source)
						return err
					},
					Output: func(_ context.Context, _ int, in io.Reader) error {
						r := cmaf.NewReader(in, cmaf.ReaderOptions{MaxFragment: 1 << 20})
						tracks, err := r.Tracks()
						if err != nil || len(tracks) != 1 {
							return errors.Join(err, errors.New("not one track"))
						}
						entries[i] = tracks[0].SampleEntry
						for {
							fragments, err := r.Next()
							if errors.Is(err, io.EOF) {
								return nil
							}
							if err != nil {
								return err
							}
							for _, s := range fragments[0].Samples {
								if pictures++; s.Sync {
									keys++
								}
							}
						}
					},
				})
				if err != nil || pictures != 50 || keys != 2 {
					t.Errorf("%s: %v, %d pictures, %d key frames", preset, err, pictures, keys)
				}
			}
			if !bytes.Equal(entries[0], entries[1]) {
				t.Errorf("%s, no reordering %t: with the fast preset\n%x\nand otherwise\n%x", preset, noReorder,
					entries[1], entries[0])
			}
		}
	}
}
