package session

import (
	"errors"
	"slices"
	"testing"

	"millrace/internal/media/frame"
)

type tapped struct{ got []string }

func (p *tapped) Configure(frame.Config) { p.got = append(p.got, "configure") }
func (p *tapped) Write(frame.Frame)      { p.got = append(p.got, "write") }
func (p *tapped) Close()                 { p.got = append(p.got, "close") }

// refusing is an output that takes nothing once it is told to.
type refusing struct {
	Output
	err   error
	calls []string
}

func (o *refusing) call(what string) error {
	o.calls = append(o.calls, what)
	return o.err
}

func (o *refusing) Configure(frame.Config) error { return o.call("configure") }
func (o *refusing) Discontinuity(string) error   { return o.call("discontinuity") }
func (o *refusing) Rate(float64, bool) error     { return o.call("rate") }
func (o *refusing) Write(frame.Frame) error      { return o.call("write") }
func (o *refusing) Close(error) error            { return o.call("close") }

func TestTee(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{nil, errors.New("disk full")} {
		out, tap := &refusing{err: broken}, &tapped{}
		both := Tee(out, tap)
		for _, err := range []error{
			both.Configure(frame.Config{}), both.Rate(25, true), both.Discontinuity("jump"), both.Write(frame.Frame{}), both.Close(nil),
		} {
			if !errors.Is(err, broken) {
				t.Errorf("says %v, want %v", err, broken)
			}
		}
		want := []string{"configure", "write", "close"}
		if broken != nil { // what was not recorded is not forwarded
			want = []string{"close"}
		}
		if !slices.Equal(tap.got, want) || !slices.Equal(out.calls, []string{"configure", "rate", "discontinuity", "write", "close"}) {
			t.Errorf("the tap got %v, the output %v", tap.got, out.calls)
		}
	}
}
