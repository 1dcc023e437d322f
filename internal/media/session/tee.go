package session

import "millrace/internal/media/frame"

// Tap takes a copy of what a session writes. It must not block and can not fail: one that forwards frames elsewhere
// queues them. A tap is not told of discontinuities and rates: the clock goes on over both.
type Tap interface {
	Configure(c frame.Config)
	Write(f frame.Frame)
	Close()
}

// Tee returns an output that hands everything to out, and what out has taken to tap.
func Tee(out Output, tap Tap) Output { return tee{out, tap} }

type tee struct {
	Output
	tap Tap
}

func (t tee) Configure(c frame.Config) error {
	if err := t.Output.Configure(c); err != nil {
		return err
	}
	t.tap.Configure(c)
	return nil
}

func (t tee) Write(f frame.Frame) error {
	if err := t.Output.Write(f); err != nil {
		return err
	}
	t.tap.Write(f)
	return nil
}

func (t tee) Close(cause error) error {
	defer t.tap.Close()
	return t.Output.Close(cause)
}
