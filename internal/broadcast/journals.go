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
// recorded since.
func (j Journals) open(m id.Media, goOn bool, log *slog.Logger) (own, derived *journal.Journal) {
	if j.Dir == "" {
		return nil, nil
	}
	if !goOn {
		if err := j.sweep(func(name string) bool { return name != string(m) }); err != nil {
			log.Warn("delete old journal", "error", err)
		}
	}
	open := func(name string) *journal.Journal {
		o := journal.Options{Dir: filepath.Join(j.Dir, name), Logger: log}
		if j.Marks != "" {
			o.Mark = filepath.Join(j.Marks, name)
		}
		return journal.New(o)
	}
	return open(string(m)), open(string(m) + journal.DerivedSuffix)
}

// sweep deletes the journals and marks that keep does not want.
func (j Journals) sweep(keep func(media string) bool) error {
	err := journal.Sweep(j.Dir, keep)
	if j.Marks != "" {
		err = errors.Join(err, journal.Sweep(j.Marks, keep))
	}
	return err
}
