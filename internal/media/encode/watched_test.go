package encode

import (
	"errors"
	"os"
	"testing"
	"time"
)

// TestSilence: who has no processor can say nothing, and is not ended for it. Who is ended is at fault only where it
// has run.
func TestSilence(t *testing.T) {
	t.Parallel()
	const stall = 2 * time.Millisecond
	for name, tt := range map[string]struct {
		each  effort // in each half of the time
		looks int    // until it is ended; 0: it goes on
		why   error
	}{
		"sleeps":                   {effort{}, 2, ErrIdle},
		"runs":                     {effort{ran: stall / 2}, 2, ErrStalled},
		"runs on four":             {effort{ran: 2 * stall}, 2, ErrStalled},
		"shares one":               {effort{ran: stall, waited: stall}, 3, ErrStalled},
		"gets little of one":       {effort{ran: stall / 32, waited: 15 * stall / 32}, 17, ErrStalled},
		"waits for one":            {effort{waited: stall / 2}, 0, nil},
		"waits for something else": {effort{waited: stall / 8}, 2, ErrIdle},
		"waits for a disk":         {effort{ran: stall / 16}, 2, ErrIdle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const long = 40
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = out.Close(), in.Close() }()
			looks, ended := 0, error(nil)
			w := &watched{file: out, stall: stall, stalled: func(why error) { ended = why }, effort: func() effort {
				if looks++; looks == long {
					_, _ = in.WriteString("x")
				}
				return effort{tt.each.ran * time.Duration(looks), tt.each.waited * time.Duration(looks)}
			}}
			n, err := w.Read(make([]byte, 10))
			switch {
			case tt.looks == 0 && (n != 1 || err != nil || ended != nil):
				t.Errorf("ended after %d looks: %v", looks, err)
			case tt.looks > 0 && (looks != tt.looks || !errors.Is(err, tt.why) || !errors.Is(ended, tt.why)):
				t.Errorf("%d looks, want %d; then %v, %v", looks, tt.looks, err, ended)
			}
		})
	}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	if got := effortOf(os.Getpid()); got.ran <= 0 || got.waited < 0 || got.ran > 24*time.Hour {
		t.Errorf("got %+v", got)
	}
	if got := effortOf(-1); got != (effort{}) {
		t.Errorf("of no process %+v", got)
	}
}
