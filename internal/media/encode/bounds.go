package encode

import "time"

// Bound is how much time a child may take for a short piece of work. Processor time is what the file costs, on a busy
// machine as on an idle one. Time on the clock says of the file nothing at all: a process that has no processor, waits
// for a disk or was stopped takes as long as that lasts. It is bounded only so that it does not hold its place for
// ever, and by enough that a busy machine gets there.
type Bound struct {
	CPU  time.Duration // of all threads; what takes more is the file's fault: fault.Invalid
	Wall time.Duration // on the clock; what takes more may be tried again: fault.Unavailable
}

func (b Bound) limits(addressSpace uint64) Limits {
	return Limits{AddressSpace: addressSpace, CPU: b.CPU, Wall: b.Wall, FileSize: 1 << 20}
}

// Bounds are those of an Engine.
type Bounds struct {
	Probe     Bound // reads a few megabytes
	Decodes   Bound // something that can be decoded is found at once where there is anything
	Subtitles Bound // a whole file is read for them, from a disk that may be slow
	Image     Bound // tenths of a second
	Still     Bound // a second or two
}

// DefaultBounds fit a slow machine.
func DefaultBounds() Bounds {
	return Bounds{
		Probe:     Bound{30 * time.Second, 5 * time.Minute},
		Decodes:   Bound{30 * time.Second, 5 * time.Minute},
		Subtitles: Bound{30 * time.Minute, 2 * time.Hour},
		Image:     Bound{5 * time.Second, 2 * time.Minute},
		Still:     Bound{time.Minute, 10 * time.Minute},
	}
}
