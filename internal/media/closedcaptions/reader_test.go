package closedcaptions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/media/closedcaptions"
	"millrace/internal/media/codec"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

const (
	rate = 30
	gop  = 30
	zero = 10 * time.Second
)

func at(n int) time.Duration { return time.Duration(n) * time.Second / rate }

// film is pictures in the order of decoding. between of them are decoded behind the one that is shown after them.
func film(c frame.Codec, e *cea608test.Encoder, long, between int) (out []frame.Frame) {
	messages := make([][]byte, long)
	for n := range messages {
		messages[n] = e.Message(float64(n) / rate)
	}
	add := func(n int) {
		sei, slice := cea608test.SEI([]byte{6}, messages[n]), []byte{0x41, 0x9a}
		if c == frame.HEVC {
			sei, slice = cea608test.SEI([]byte{0x4e, 1}, messages[n]), []byte{0x02, 0x01, 0x80}
		}
		out = append(out, frame.Frame{
			Kind: frame.Video, Key: n%gop == 0, PTS: zero + at(n+between), DTS: zero + at(len(out)),
			Data: nal.Append(nil, sei, slice),
		})
	}
	for n := 0; n < long; {
		add(n)
		for n++; n < long && n%gop != 0; {
			ahead := min(n+between, long-1, n-n%gop+gop-1)
			add(ahead)
			for ; n < ahead; n++ {
				add(n)
			}
			n = ahead + 1
		}
	}
	return out
}

// texts notes the cues.
type texts []string

func (t *texts) Publish(rendition string, c captions.Cue) bool {
	*t = append(*t,
		fmt.Sprintf("%s %.2f-%.2f %s", rendition, c.Start.Seconds(), c.End.Seconds(),
			strings.ReplaceAll(c.Text, "\n", "/")))
	return true
}

var both = map[string]string{"cc1": "1", "cc3": "3", "service": "none"}

// read gives the cues of a film whose segments are as long as so many pictures.
func read(c frame.Codec, pictures []frame.Frame, segment int) []string {
	var out texts
	r := closedcaptions.New(zero, &out, both, nil)
	for n := range pictures {
		if n > 0 && n%segment == 0 {
			r.Cut(pictures[n].PTS)
		}
		r.Picture(c, &pictures[n])
	}
	r.Reset(zero + at(len(pictures)))
	return out
}

func script() *cea608test.Encoder {
	e := &cea608test.Encoder{}
	e.PopOn(1, 0, 2, 5, 14, "In the order of showing,", "not in that of decoding")
	e.Code(1, 3, 0x14, 0x25)
	e.Text(1, 3, "It rolls up, letter by letter")
	e.Code(3, 3, 0x14, 0x2d)
	e.Text(3, 3, "and again")
	return e
}

// TestPicturesAreReordered: captions are read in the order of presentation, whatever the codec and however many
// pictures are decoded before.
func TestPicturesAreReordered(t *testing.T) {
	t.Parallel()
	want := strings.Join(read(frame.H264, film(frame.H264, script(), 6*rate, 0), 6*rate), "\n")
	if !strings.Contains(want, "1 2.00-5.00 In the order of showing,/not in that of decoding") ||
		!strings.Contains(want, "and again") {
		t.Fatalf("in order:\n%s", want)
	}
	for _, c := range []frame.Codec{frame.H264, frame.HEVC} {
		for between := 1; between <= 3; between++ {
			pictures := film(c, script(), 6*rate, between)
			got := strings.Join(read(c, pictures, 6*rate), "\n")
			shifted := strings.Join(readShifted(c, pictures, between), "\n")
			if shifted != want {
				t.Errorf("%s, %d between:\n%s\nwant\n%s", c, between, got, want)
			}
		}
	}
}

// readShifted is read with the delay of presentation taken away.
func readShifted(c frame.Codec, pictures []frame.Frame, between int) []string {
	moved := make([]frame.Frame, len(pictures))
	for i, f := range pictures {
		f.PTS -= at(between)
		f.DTS -= at(between)
		moved[i] = f
	}
	return read(c, moved, 6*rate)
}

// TestSegments: what is shown at the end of a segment is in it up to there, and goes on in the next one.
func TestSegments(t *testing.T) {
	t.Parallel()
	got := read(frame.H264, film(frame.H264, script(), 6*rate, 2), 4*rate)
	var pop []string
	for _, c := range got {
		if strings.HasPrefix(c, "1 ") {
			pop = append(pop, c[:11])
		}
	}
	if strings.Join(pop, ",") != "1 2.07-4.07,1 4.07-5.07" {
		t.Errorf("%q in %q", pop, got)
	}
}

// TestService: captions of CEA-708 are those of CC1 where CEA-608 shows none in CC1, whatever else it has: some
// encoders erase in CEA-608 what they never send there.
func TestService(t *testing.T) {
	t.Parallel()
	packet := []byte{6, 1<<5 | 10, 0x98, 0x20, 0x80 | 90, 50, 0x70, 31, 0, 'd', 't', 'v'}
	const analog, dtv = "1 0.10-1.00 hi", "1 0.10-1.00 dtv"
	for name, tt := range map[string]struct{ beside, want string }{
		"nothing":           {"\xfc\x80\x80", dtv},
		"an erasure of CC1": {"\xfc\x94\x2c", dtv},
		"a caption of CC1":  {"\xfc\x94\x29\xfc\x68\xe9", analog},
		"one to CC2":        {"\xfc\x1c\x2c", dtv},
		"one to CC3":        {"\xfd\x15\x2c", dtv},
		"text":              {"\xfc\x94\x2a\xfc\x68\xe9", dtv},
		"XDS":               {"\xfd\x01\x83\xfd\xd3\x54\xfd\x8f\x1c", dtv},
		"letters to nobody": {"\xfc\x68\xe9", dtv},
		"without parity":    {"\xfc\x14\x2c", dtv},
	} {
		message := []byte("\xb5\x00\x31GA94\x03")
		message = append(message, 0x40|byte((len(tt.beside)+len(packet)*3/2)/3), 0xff)
		message = append(message, tt.beside...)
		for i := 0; i < len(packet); i += 2 {
			kind := byte(0xfe)
			if i == 0 {
				kind = 0xff
			}
			message = append(message, kind, packet[i], packet[i+1])
		}
		pictures := film(frame.H264, &cea608test.Encoder{}, 30, 0)
		pictures[3].Data = nal.Append(nil, cea608test.SEI([]byte{6}, append(message, 0xff)), []byte{0x41, 1})
		if got := strings.Join(read(frame.H264, pictures, 100), ","); got != tt.want {
			t.Errorf("beside %s: %q, want %q", name, got, tt.want)
		}
	}
}

// BenchmarkReader is the cost of captions for each picture: with text tracks, and of the search for some without.
func BenchmarkReader(b *testing.B) {
	pictures := film(frame.H264, script(), 60*rate, 2)
	for i := range pictures { // as large as of 5 Mbit/s
		pictures[i].Data = append(pictures[i].Data, make([]byte, 20_000)...)
	}
	r := closedcaptions.New(zero, &texts{}, both, nil)
	for name, look := range map[string]func(f *frame.Frame){
		"read":     func(f *frame.Frame) { r.Picture(frame.H264, f) },
		"searched": func(f *frame.Frame) { codec.CaptionsOf(frame.H264, f.Data) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				f := pictures[n%len(pictures)]
				turn := at(n / len(pictures) * len(pictures))
				f.PTS, f.DTS = f.PTS+turn, f.DTS+turn
				look(&f)
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)*rate/1e9*100, "%CPU/stream")
		})
	}
}
