package session

import (
	"errors"
	"slices"
	"testing"

	"millrace/internal/media/frame"
)

type tapped struct{ got []string }

func (t *tapped) Configure(frame.Config) { t.got = append(t.got, "configure") }
func (t *tapped) Write(frame.Frame)      { t.got = append(t.got, "write") }
func (t *tapped) Close()                 { t.got = append(t.got, "close") }

// refusing is an output that takes nothing once it is told to.
type refusing struct {
	Output
	err   error
	calls []string
}

func (r *refusing) call(what string) error {
	r.calls = append(r.calls, what)
	return r.err
}

func (r *refusing) Configure(frame.Config) error { return r.call("configure") }
func (r *refusing) Discontinuity(string) error   { return r.call("discontinuity") }
func (r *refusing) Rate(float64, bool) error     { return r.call("rate") }
func (r *refusing) Write(frame.Frame) error      { return r.call("write") }
func (r *refusing) Close(error) error            { return r.call("close") }

func TestTee(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{nil, errors.New("disk full")} {
		out, tap := &refusing{err: broken}, &tapped{}
		both := Tee(out, tap)
		for _, err := range []error{
			both.Configure(frame.Config{}), both.Rate(25, true), both.Discontinuity("jump"), both.Write(frame.Frame{}),
			both.Close(nil),
		} {
			if !errors.Is(err, broken) {
				t.Errorf("says %v, want %v", err, broken)
			}
		}
		want := []string{"configure", "write", "close"}
		if broken != nil { // what was not recorded is not forwarded
			want = []string{"close"}
		}
		if !slices.Equal(tap.got, want) ||
			!slices.Equal(out.calls, []string{"configure", "rate", "discontinuity", "write", "close"}) {
			t.Errorf("the tap got %v, the output %v", tap.got, out.calls)
		}
	}
}
