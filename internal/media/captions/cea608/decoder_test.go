package cea608_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea608"
	"millrace/internal/media/captions/cea608/cea608test"
)

const rate = 30.0

// decode sends for so many seconds and gives the cues of each channel as "start end settings|text".
func decode(e *cea608test.Encoder, long float64, cuts ...float64) [5][]string {
	var out [5][]string
	d := cea608.New(func(c cea608.Channel, cue captions.Cue) {
		out[c] = append(out[c],
			fmt.Sprintf("%.2f %.2f %s|%s", cue.Start.Seconds(), cue.End.Seconds(), cue.Settings,
				strings.ReplaceAll(cue.Text, "\n", "/")))
	})
	at := 0.0
	for i := 0; at < long; i++ {
		at = float64(i) / rate
		if len(cuts) > 0 && at >= cuts[0] {
			d.Cut(seconds(cuts[0]))
			cuts = cuts[1:]
		}
		for field := 1; field <= 2; field++ {
			p := e.Next(at, field)
			d.Pair(seconds(at), field, p[0], p[1])
		}
	}
	d.Reset(seconds(long))
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func check(t *testing.T, name string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// bottom is where text at row 15 and column 4 is.
const bottom = "line:84.67% position:20.00% align:start"

func TestModes(t *testing.T) {
	t.Parallel()
	e := &cea608test.Encoder{}
	e.PopOn(1, 0, 2, 4, 14, "Hello from", "channel <1> & co")
	e.Code(0, 2, 0x14, 0x25) // two rows roll up
	e.Code(3, 2, 0x14, 0x2d)
	e.Text(3, 2, "line one")
	e.Code(5, 2, 0x14, 0x2d)
	e.Text(5, 2, "line two")
	e.Code(6, 2, 0x14, 0x2d)
	e.Text(6, 2, "line three")
	e.Code(8, 2, 0x14, 0x2c)
	e.XDS(0, 1, 3, "STAR TREK")
	e.Code(2, 3, 0x14, 0x29)
	e.Address(2, 3, 15, 4)
	e.Text(2, 3, "painted")
	e.XDS(3, 1, 3, "NOVA")
	e.Code(5, 3, 0x14, 0x2c)
	e.PopOn(4, 6, 8, 9, 15, "haha hehe") // letters that come twice are no control codes
	got := decode(e, 10)
	check(t, "CC1", got[cea608.CC1],
		"2.00 4.00 line:79.33% position:20.00% align:start|Hello from/channel &lt;1&gt; &amp; co")
	check(t, "CC2", got[cea608.CC2],
		"4.20 5.00 line:84.67% position:10.00% align:start|line one",
		"5.00 6.00 line:79.33% position:10.00% align:start|line one/line two",
		"6.00 8.00 line:79.33% position:10.00% align:start|line two/line three")
	check(t, "CC3", got[cea608.CC3], "2.13 5.00 "+bottom+"|painted")
	check(t, "CC4", got[cea608.CC4], "8.00 9.00 "+bottom+"|haha hehe")
}

// TestModeIsRepeated: encoders of broadcasters send the mode with each line. It makes no cue of its own, nor does a
// window that moves.
func TestModeIsRepeated(t *testing.T) {
	t.Parallel()
	e := &cea608test.Encoder{}
	line := func(at float64, rows byte, row int, text string) {
		e.Code(at, 1, 0x14, 0x23+rows)
		e.Code(at, 1, 0x14, 0x2d)
		e.Address(at, 1, row, 4)
		e.Text(at, 1, text)
	}
	line(1, 3, 15, "one")
	line(3, 3, 15, "two")
	e.Code(4, 1, 0x14, 0x26) // between lines
	line(5, 2, 15, "three")  // fewer rows, all of which are in use
	line(7, 2, 10, "four")
	e.Address(9, 1, 15, 4) // long after the line
	e.Code(11, 1, 0x14, 0x2c)
	check(t, "CC1", decode(e, 12)[cea608.CC1], "1.20 3.07 "+bottom+"|one",
		"3.07 5.07 line:79.33% position:20.00% align:start|one/two",
		"5.07 7.07 line:79.33% position:20.00% align:start|two/three",
		"7.07 9.00 line:52.67% position:20.00% align:start|three/four",
		"9.00 11.00 line:79.33% position:20.00% align:start|three/four")
}

// TestRowsThatArePaintedLater are not shown before: a cue ends there. Rows that come one after the other are one cue.
func TestRowsThatArePaintedLater(t *testing.T) {
	t.Parallel()
	e := &cea608test.Encoder{}
	e.Code(1, 1, 0x14, 0x29)
	for i, at := range []float64{1, 1, 4} {
		e.Address(at, 1, 13+i, 4)
		e.Text(at, 1, []string{"at once", "as well", "later"}[i])
	}
	e.Code(6, 1, 0x14, 0x2c)
	check(t, "CC1", decode(e, 7)[cea608.CC1], "1.13 4.00 line:74.00% position:20.00% align:start|at once/as well",
		"4.00 6.00 line:74.00% position:20.00% align:start|at once/as well/later")
}

func TestStyles(t *testing.T) {
	t.Parallel()
	e := &cea608test.Encoder{}
	e.Code(0, 1, 0x14, 0x20)
	e.Styled(0, 1, 1, 7, false)
	e.Text(0, 1, "slanted")
	e.Styled(0, 1, 2, 5, true)
	e.Text(0, 1, "yellow")
	e.Code(0, 1, 0x11, 0x20) // white again
	e.Text(0, 1, "white")
	e.Address(0, 1, 15, 28)
	e.Code(0, 1, 0x17, 0x23) // three columns on
	e.Text(0, 1, "end")      // behind the last column it replaces
	e.Code(2, 1, 0x14, 0x2f)
	check(t, "CC1", decode(e, 3)[cea608.CC1],
		"2.00 3.00 line:10.00% position:10.00% align:start|<i>slanted</i>/<c.yellow><u>yellow </u></c>white",
		"2.00 3.00 line:84.67% position:87.50% align:start|d")
}

func TestCharacters(t *testing.T) {
	t.Parallel()
	e := &cea608test.Encoder{}
	e.Code(0, 1, 0x14, 0x20)
	row := 0
	line := func() {
		row++
		e.Address(0, 1, row, 0)
	}
	line()
	e.Text(0, 1, "'*\\^_`{|}~\x7f")
	line()
	for b := byte(0x30); b < 0x40; b++ {
		e.Code(0, 1, 0x11, b)
	}
	for _, set := range []byte{0x12, 0x13} {
		line()
		for b := byte(0x20); b < 0x40; b++ {
			e.Text(0, 1, "?") // what decoders show that don't know it
			e.Code(0, 1, set, b)
		}
	}
	e.Code(18, 1, 0x14, 0x2f)
	check(t, "CC1", decode(e, 19)[cea608.CC1], "18.00 19.00 line:10.00% position:10.00% align:start|"+
		"’áéíóúç÷Ññ█/®°½¿™¢£♪à\u00a0èâêîôû/ÁÉÓÚÜü‘¡*'—©℠•“”ÀÂÇÈÊËëÎÏïÔÙùÛ«»/ÃãÍÌìÒòÕõ{}\\^_|~ÄäÖöß¥¤│ÅåØø┌┐└┘")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	raw := func(d *cea608.Decoder, at float64, pairs ...cea608test.Pair) {
		for i, p := range pairs {
			d.Pair(seconds(at+float64(i)/rate), 1, p[0], p[1])
		}
	}
	code := func(first, second byte) cea608test.Pair {
		return cea608test.Pair{cea608test.Parity(first), cea608test.Parity(second)}
	}
	var got []string
	d := cea608.New(func(_ cea608.Channel, c captions.Cue) {
		got = append(got, fmt.Sprintf("%.1f %.1f %s", c.Start.Seconds(), c.End.Seconds(), c.Text))
	})
	raw(d, 0, code('x', 'x'), code(0x14, 0x20), code(0x14, 0x20), code(0x14, 0x70), code(0x14, 0x70), code('a', 'b'))
	// a letter without parity is a block
	raw(d, 1, cea608test.Pair{'a' ^ 0x80 ^ cea608test.Parity('a') ^ 'a', cea608test.Parity('c')})
	raw(d, 2, cea608test.Pair{0x14, cea608test.Parity(0x2f)}) // a control code without parity is nothing
	raw(d, 3, code(0x14, 0x2f), code(0x14, 0x2f), code(0x14, 0x2e))
	raw(d, 30, code(0, 0)) // 16 s after the last word it is gone
	check(t, "what is shown", got, "3.0 19.1 ab█c")
	got = nil
	raw(d, 31, code(0x14, 0x29), code('z', 0), code(0x14, 0x2a), code('t', 't'), code(0x14, 0x29), code('y', 0))
	d.Reset(seconds(33))
	raw(d, 34, code('n', 'o'))
	check(t, "text mode is passed over", got, "31.0 33.0 zy")
	d.Pair(0, 3, 1, 1)
}

// TestPaddingInARepetition: encoders with more pictures than pairs send padding between the copies of a control code.
// What comes again later is no copy.
func TestPaddingInARepetition(t *testing.T) {
	t.Parallel()
	code := func(first, second byte) cea608test.Pair {
		return cea608test.Pair{cea608test.Parity(first), cea608test.Parity(second)}
	}
	padding := code(0, 0)
	for _, fps := range []float64{24, 30, 60} {
		var got []string
		d := cea608.New(func(_ cea608.Channel, c captions.Cue) {
			if c.End-c.Start > 150*time.Millisecond { // it was not shown by one copy and hidden by the other
				got = append(got, strings.ReplaceAll(c.Text, "\n", "/"))
			}
		})
		at := 0.0
		send := func(pairs ...cea608test.Pair) {
			for _, p := range pairs {
				d.Pair(seconds(at), 1, p[0], p[1])
				at += 1 / fps
			}
		}
		for _, word := range []string{"ab", "cd"} {
			for _, c := range []cea608test.Pair{code(0x14, 0x20), code(0x14, 0x2e)} {
				send(c, padding, c, padding)
			}
			send(code(word[0], word[1]), padding)
			end := code(0x14, 0x2f)
			send(end, padding, end, padding)
			at++
		}
		roll, back := code(0x14, 0x25), code(0x14, 0x2d)
		send(roll, roll, code('e', 'f'), back)
		at += 0.2
		send(back, code('g', 'h')) // once each: two rows further
		d.Reset(seconds(at + 1))
		if strings.Join(got, " ") != "ab cd ef gh" {
			t.Errorf("%.0f pictures a second: %q", fps, got)
		}
	}
}

// TestCut: what is shown at a cut is given up to there, and goes on behind it.
func TestCut(t *testing.T) {
	t.Parallel()
	e := &cea608test.Encoder{}
	e.PopOn(1, 0, 1, 5, 15, "long")
	e.Code(0, 3, 0x14, 0x25)
	e.Text(1, 3, "grow")
	e.Text(3, 3, "ing")
	got := decode(e, 6, 2, 4)
	check(t, "CC1", got[cea608.CC1], "1.00 2.00 "+bottom+"|long", "2.00 4.00 "+bottom+"|long",
		"4.00 5.00 "+bottom+"|long")
	const at = "line:84.67% position:10.00% align:start|"
	check(t, "CC3", got[cea608.CC3], "1.00 2.00 "+at+"grow", "2.00 4.00 "+at+"growing", "4.00 6.00 "+at+"growing")
}

func FuzzDecoder(f *testing.F) {
	e := &cea608test.Encoder{}
	e.PopOn(1, 0, 1, 2, 14, "Hello", "world")
	e.Code(0, 3, 0x14, 0x26)
	e.Text(0, 3, "rolling")
	var seed []byte
	for range 40 {
		a, b := e.Next(9, 1), e.Next(9, 2)
		seed = append(seed, 0, a[0], a[1], 1, b[0], b[1])
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		cues := 0
		d := cea608.New(func(_ cea608.Channel, c captions.Cue) {
			if cues++; c.Start >= c.End || len(c.Text) > captions.MaxCueText {
				t.Fatalf("cue %+v", c)
			}
			if again := captions.New([]captions.Cue{c}).Cues(); len(again) != 1 || again[0].Settings == "" {
				t.Fatalf("%+v became %+v", c, again)
			}
		})
		for i := 0; i+2 < len(b); i += 3 {
			at := time.Duration(i) * 10 * time.Millisecond
			if b[i]&0x10 != 0 {
				d.Cut(at)
			}
			d.Pair(at, int(b[i]&3), cea608test.Parity(b[i+1]), cea608test.Parity(b[i+2]))
		}
		d.Reset(time.Duration(len(b)) * 10 * time.Millisecond)
	})
}
