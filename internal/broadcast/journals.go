package broadcast

import (
	"errors"
	"log/slog"
	"path/filepath"

	"millrace/internal/id"
	"millrace/internal/media/journal"
)

// Journals is where the parts of open segments are kept over the end of the process.
type Journals struct {
	Dir string // a folder of this machine; empty: they are lost with the process
	// Marks is a folder in the machine's memory that says which were published (journal.OpenMemory); empty: the
	// database says it, less exactly.
	Marks string
}

// open keeps the parts of one recording's open segments, and in another journal what is published of the renditions
// made of them; nil when there is no folder for it. What this node left in it is of use only when nobody else has
// recorded since; then what other machines have copied counts, before a number. c is given all that is written.
func (j Journals) open(
	m id.Media, goOn bool, left Copied, before int64, c Copying, log *slog.Logger,
) (own, derived *journal.Journal) {
	if j.Dir == "" {
		return nil, nil
	}
	if !goOn {
		if err := j.sweep(func(name string) bool { return name != string(m) }); err != nil {
			log.Warn("delete old journal", "error", err)
		}
	}
	var taps [2]journal.Tap
	if c != nil {
		taps[0], taps[1] = c.Taps()
	}
	open := func(name string, tap journal.Tap, copied []byte) *journal.Journal {
		o := journal.Options{
			Dir: filepath.Join(j.Dir, name), Tap: tap, Logger: log,
			Copied: journal.Copied{Records: copied, Before: before},
		}
		if j.Marks != "" {
			o.Mark = filepath.Join(j.Marks, name)
		}
		return journal.New(o)
	}
	return open(string(m), taps[0], left.Own), open(string(m)+journal.DerivedSuffix, taps[1], left.Derived)
}

// sweep deletes the journals and marks that keep does not want.
func (j Journals) sweep(keep func(media string) bool) error {
	err := journal.Sweep(j.Dir, keep)
	if j.Marks != "" {
		err = errors.Join(err, journal.Sweep(j.Marks, keep))
	}
	return err
}
