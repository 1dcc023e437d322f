package cea708_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea708"
)

// send gives a decoder a packet with one block of a service.
func send(d *cea708.Decoder, at time.Duration, service byte, codes ...byte) {
	b := append([]byte{0, service<<5 | byte(len(codes))}, codes...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	b[0] = byte(len(b) / 2)
	for i := 0; i < len(b); i += 2 {
		d.Pair(at, i == 0, b[i], b[i+1])
	}
}

// define is the command that makes a window of two rows with its bottom at 90 % of the picture.
func define(i byte, visible bool) []byte {
	show := byte(0)
	if visible {
		show = 0x20
	}
	return []byte{0x98 | i, show, 0x80 | 90, 50, 0x70 | 1, 31, 0}
}

func TestService(t *testing.T) {
	t.Parallel()
	var got []string
	d := cea708.New(func(c captions.Cue) {
		got = append(got, fmt.Sprintf("%v-%v %s %s", c.Start, c.End, c.Settings, strings.ReplaceAll(c.Text, "\n", "/")))
	})
	send(d, time.Second, 1, append(define(0, false), "Hello <b>"...)...)
	send(d, 1100*time.Millisecond, 1, append([]byte{0x0d}, "caf\xe9 \x7f\x10\x33"...)...)
	send(d, 1200*time.Millisecond, 2, append(define(0, true), "other service"...)...)
	send(d, 2*time.Second, 1, 0x89, 1)
	d.Cut(3 * time.Second)
	send(d, 4*time.Second, 1, 0x0d)
	send(d, 4*time.Second, 1, []byte("rolls")...)
	send(d, 5*time.Second, 1, 0x8c, 0xff)
	send(d, 6*time.Second, 1, append(define(1, true), 0x90, 0, 0x80, 'x')...)
	d.Reset(7 * time.Second)
	want := []string{
		"2s-3s line:78% Hello &lt;b&gt;/café ♪“", "3s-4s line:78% Hello &lt;b&gt;/café ♪“",
		"4s-5s line:78% café ♪“/rolls", "6s-7s line:78% <i>x</i>",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRowsThatComeLater are not shown before: a cue ends there. Rows that come one after the other are one cue.
func TestRowsThatComeLater(t *testing.T) {
	t.Parallel()
	var got []string
	d := cea708.New(func(c captions.Cue) {
		got = append(got, fmt.Sprintf("%v-%v %s", c.Start, c.End, strings.ReplaceAll(c.Text, "\n", "/")))
	})
	send(d, time.Second, 1, append(define(0, true), "one"...)...)
	send(d, 1500*time.Millisecond, 1, []byte(" more")...)
	send(d, 3700*time.Millisecond, 1, append([]byte{0x0d}, "two"...)...)
	send(d, 4*time.Second, 1, []byte("!")...)
	send(d, 6*time.Second, 1, 0x8c, 0xff)
	send(d, 7*time.Second, 1, append(define(0, true), "at"...)...)
	send(d, 7300*time.Millisecond, 1, append([]byte{0x0d}, "once"...)...)
	d.Reset(8 * time.Second)
	want := []string{"1s-3.7s one more", "3.7s-6s one more/two!", "7s-8s at/once"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{5, 0x29, 0x98, 0x20, 0xda, 50, 0x71, 31, 0, 'h', 'i'})
	f.Add([]byte{3, 0x24, 0x10, 0x90, 0x1f, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := cea708.New(func(c captions.Cue) {
			if c.Start >= c.End || len(c.Text) > captions.MaxCueText {
				t.Fatalf("cue %+v", c)
			}
		})
		for i := 0; i+1 < len(b); i += 2 {
			d.Pair(time.Duration(i)*10*time.Millisecond, i%16 == 0, b[i], b[i+1])
			if b[i]&0xf0 == 0xf0 {
				d.Cut(time.Duration(i) * 10 * time.Millisecond)
			}
		}
		d.Reset(time.Hour)
	})
}
