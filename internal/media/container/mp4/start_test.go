package mp4_test

import (
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
)

// fragmentedTrack is a track of four samples, each of 0.04 s.
type fragmentedTrack struct {
	handler   string // vide, soun or text
	timescale uint32
	tfdt      int64
	edits     []byte // a whole elst
}

func picturesFrom(timescale uint32, tfdt int64, edits ...[]byte) fragmentedTrack {
	return fragmentedTrack{"vide", timescale, tfdt, slices.Concat(edits...)}
}

func soundFrom(tfdt int64, edits ...[]byte) fragmentedTrack {
	return fragmentedTrack{"soun", 48000, tfdt, slices.Concat(edits...)}
}

// edited is an edit list: a pause in milliseconds, then a cut of so many ticks.
func edited(pause, cut uint32) []byte {
	if pause == 0 {
		return bmff.Full("elst", 0, 0, bmff.U32(1, 0, cut, 0x10000))
	}
	return bmff.Full("elst", 0, 0, bmff.U32(2, pause, 0xffffffff, 0x10000, 0, cut, 0x10000))
}

func fragmentedFile(tracks []fragmentedTrack) []byte {
	moov := [][]byte{mvhd()}
	var trex, media []byte
	for i, t := range tracks {
		x := trak{
			id: uint32(i + 1), timescale: t.timescale, handler: t.handler, stts: bmff.U32(0), edits: t.edits,
			entries: [][]byte{bmff.Make("tx3g", make([]byte, 8))},
		}
		switch t.handler {
		case "vide":
			x.entries = [][]byte{entry(avcConfig)}
		case "soun":
			x.entries = [][]byte{entry(aacConfig)}
		}
		moov = append(moov, x.box())
		trex = append(trex, bmff.Full("trex", 0, 0, bmff.U32(x.id, 1, 0, 0, 0))...)
		sample := cmaf.Sample{Duration: t.timescale / 25, Sync: true, Data: []byte{1}}
		media = cmaf.AppendFragment(media, 1, x.id, uint64(t.tfdt), []cmaf.Sample{sample, sample, sample, sample})
	}
	return slices.Concat(bmff.Make("moov", append(moov, bmff.Make("mvex", trex))...), media)
}

const epoch = 1767225600 // seconds, the beginning of 2026

// TestStart: the times of a fragmented file count from where the first of its sound and pictures begins.
func TestStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tracks []fragmentedTrack
		starts []int64 // of each track,
		pts    []int64 // and when its first sample is shown; both in its ticks
		length time.Duration
	}{
		"at 0": {
			[]fragmentedTrack{picturesFrom(90000, 0), soundFrom(0)},
			[]int64{0, 0},
			[]int64{0, 0},
			160 * time.Millisecond,
		},
		"at 10 s": {
			[]fragmentedTrack{picturesFrom(90000, 900000), soundFrom(480000)},
			[]int64{900000, 480000},
			[]int64{0, 0},
			160 * time.Millisecond,
		},
		"in this year": {
			[]fragmentedTrack{picturesFrom(90000, 90000*epoch), soundFrom(48000 * epoch)},
			[]int64{90000 * epoch, 48000 * epoch},
			[]int64{0, 0},
			160 * time.Millisecond,
		},
		"in this year by ticks of 100 ns, the sound a tick later": {
			[]fragmentedTrack{picturesFrom(10000000, 10000000*epoch+1), soundFrom(48000*epoch + 1)},
			[]int64{10000000*epoch + 1, 48000 * epoch},
			[]int64{0, 1},
			160*time.Millisecond + time.Second/48000,
		},
		"the sound first, by less than a float64 can tell": {
			[]fragmentedTrack{picturesFrom(10000000, 10000000*epoch+300), soundFrom(48000*epoch + 1)},
			[]int64{10000000*epoch + 208, 48000*epoch + 1},
			[]int64{92, 0},
			160*time.Millisecond + 9200*time.Nanosecond,
		},
		"sound two seconds later": {
			[]fragmentedTrack{picturesFrom(90000, 900000), soundFrom(576000)},
			[]int64{900000, 480000},
			[]int64{0, 96000},
			2160 * time.Millisecond,
		},
		"picture two seconds later": {
			[]fragmentedTrack{picturesFrom(90000, 1080000), soundFrom(480000)},
			[]int64{900000, 480000},
			[]int64{180000, 0},
			2160 * time.Millisecond,
		},
		"one track at 0": {
			[]fragmentedTrack{picturesFrom(90000, 0), soundFrom(480000)},
			[]int64{0, 0},
			[]int64{0, 480000},
			10160 * time.Millisecond,
		},
		"what encoders need in front is left out": {
			[]fragmentedTrack{picturesFrom(90000, 900000, edited(0, 7200)), soundFrom(480000, edited(0, 1024))},
			[]int64{900000, 480000},
			[]int64{-7200, -1024},
			139 * time.Millisecond,
		},
		"an edit list that goes to the start": {
			[]fragmentedTrack{picturesFrom(90000, 900000, edited(0, 900000)), soundFrom(480000, edited(0, 481024))},
			[]int64{0, 0},
			[]int64{0, -1024},
			160 * time.Millisecond,
		},
		"an edit list that goes to a place in front of the start": {
			[]fragmentedTrack{picturesFrom(90000, 900000, edited(0, 450000)), soundFrom(480000, edited(0, 240000))},
			[]int64{450000, 240000},
			[]int64{0, 0},
			160 * time.Millisecond,
		},
		"an edit list with a pause": { // as ffmpeg writes HLS and DASH whose times don't start at 0
			[]fragmentedTrack{picturesFrom(90000, 0, edited(10000, 7200)), soundFrom(0, edited(9978, 0))},
			[]int64{898020, 478944},
			[]int64{-7200 + 1980, 0},
			160 * time.Millisecond,
		},
		"a pause in one track": {
			[]fragmentedTrack{picturesFrom(90000, 0), soundFrom(0, edited(10000, 0))},
			[]int64{0, 0},
			[]int64{0, 480000},
			10160 * time.Millisecond,
		},
		"a start and a pause": {
			[]fragmentedTrack{picturesFrom(90000, 900000, edited(5000, 0)), soundFrom(480000, edited(6000, 0))},
			[]int64{1350000, 720000},
			[]int64{0, 48000},
			1160 * time.Millisecond,
		},
		"priming in front of everything": { // as ffmpeg writes it with frag_discont
			[]fragmentedTrack{picturesFrom(90000, 7200, edited(0, 7200)), soundFrom(-1024)},
			[]int64{0, 0},
			[]int64{0, -1024},
			160 * time.Millisecond,
		},
		"text does not count": {
			[]fragmentedTrack{picturesFrom(90000, 900000), {handler: "text", timescale: 1000, tfdt: 2000}},
			[]int64{900000, 10000},
			[]int64{0, -8000},
			160 * time.Millisecond,
		},
	} {
		x, err := index(fragmentedFile(tt.tracks))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var starts, pts, said []int64
		for i, tr := range x.Tracks {
			starts, pts, said = append(starts, tr.Start), append(pts, tr.PTS(0)), append(said, tr.CountedFrom(0).PTS(0))
			back := tr.CountedFrom(0).CountedFrom(tr.Start)
			if back.PTS(0) != tr.PTS(0) || back.EditStart() != tr.EditStart() {
				t.Errorf("%s: track %d counted from 0 and back is at %d, was at %d", name, i+1, back.PTS(0), tr.PTS(0))
			}
			if said[i]-tr.Start != tr.PTS(0) {
				t.Errorf("%s: track %d from %d is at %d, in the file at %d", name, i+1, tr.Start, tr.PTS(0), said[i])
			}
		}
		if !slices.Equal(starts, tt.starts) || !slices.Equal(pts, tt.pts) {
			t.Errorf("%s: starts at %d, first samples at %d; want %d and %d", name, starts, pts, tt.starts, tt.pts)
		}
		if off := x.Length() - tt.length; off.Abs() > time.Millisecond {
			t.Errorf("%s: lasts %s, want %s", name, x.Length(), tt.length)
		}
	}
}

// TestStartOfProgressive: what a file that is not fragmented says of its pauses stays.
func TestStartOfProgressive(t *testing.T) {
	t.Parallel()
	v := video(4, 1)
	v.edits = edited(10000, 0)
	x, err := index(file(4, v))
	if err != nil {
		t.Fatal(err)
	}
	if tr := x.Tracks[0]; tr.Start != 0 || tr.PTS(0) != 900000 || tr.EditStart() != 900000 {
		t.Errorf("starts at %d, its first picture is at %d, its edit at %d", tr.Start, tr.PTS(0), tr.EditStart())
	}
}

// TestFarStart: the farthest times that a file can have neither wrap nor keep its tracks apart.
func TestFarStart(t *testing.T) {
	t.Parallel()
	x, err := index(fragmentedFile([]fragmentedTrack{
		picturesFrom(1, 1<<62), picturesFrom(1<<31, 1<<62), {handler: "text", timescale: 1 << 31},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if first := x.Tracks[1]; first.Start != 1<<62 || first.PTS(0) != 0 {
		t.Errorf("the first track starts at %d, its first picture is at %d", first.Start, first.PTS(0))
	}
	if second := x.Tracks[0]; second.Start != 1<<31 || second.PTS(0) != 1<<62-1<<31 {
		t.Errorf("the second track starts at %d, its first picture is at %d", second.Start, second.PTS(0))
	}
}
