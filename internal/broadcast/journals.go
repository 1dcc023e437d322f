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

// open keeps the parts of one recording's open segments; nil when there is no folder for it. What this node left in it
// is of use only when nobody else has recorded since.
func (j journals) open(m id.Media, goOn bool, log *slog.Logger) *journal.Journal {
	if j.dir == "" {
		return nil
	}
	if !goOn {
		if err := j.sweep(func(name string) bool { return name != string(m) }); err != nil {
			log.Warn("delete old journal", "error", err)
		}
	}
	o := journal.Options{Dir: filepath.Join(j.dir, string(m)), Logger: log}
	if j.marks != "" {
		o.Mark = filepath.Join(j.marks, string(m))
	}
	return journal.New(o)
}

// sweep deletes the journals and marks that keep does not want.
func (j journals) sweep(keep func(media string) bool) error {
	err := journal.Sweep(j.dir, keep)
	if j.marks != "" {
		err = errors.Join(err, journal.Sweep(j.marks, keep))
	}
	return err
}
