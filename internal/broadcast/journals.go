package broadcast

import (
	"errors"
	"log/slog"
	"path/filepath"

	"millrace/internal/id"
	"millrace/internal/media/journal"
)

// journals is where the parts of open segments are kept; see Options.
type journals struct{ dir, marks string }

// open keeps the parts of one recording's open segments, and in another journal what is published of the renditions made
// of them; nil when there is no folder for it. What this node left in it is of use only when nobody else has recorded
// since.
func (j journals) open(m id.Media, goOn bool, log *slog.Logger) (own, derived *journal.Journal) {
	if j.dir == "" {
		return nil, nil
	}
	if !goOn {
		if err := j.sweep(func(name string) bool { return name != string(m) }); err != nil {
			log.Warn("delete old journal", "error", err)
		}
	}
	open := func(name string) *journal.Journal {
		o := journal.Options{Dir: filepath.Join(j.dir, name), Logger: log}
		if j.marks != "" {
			o.Mark = filepath.Join(j.marks, name)
		}
		return journal.New(o)
	}
	return open(string(m)), open(string(m) + journal.DerivedSuffix)
}

// sweep deletes the journals and marks that keep does not want.
func (j journals) sweep(keep func(media string) bool) error {
	err := journal.Sweep(j.dir, keep)
	if j.marks != "" {
		err = errors.Join(err, journal.Sweep(j.marks, keep))
	}
	return err
}
