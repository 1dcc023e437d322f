package justintime

import "context"

// known remembers which segments are stored, of the renditions that were asked for last.
type known struct {
	sets  map[string]map[int64]struct{}
	order []string // prefixes, oldest first
}

// maxKnown is how many renditions are remembered.
const maxKnown = 1024

func newKnown() *known { return &known{sets: map[string]map[int64]struct{}{}} }

// seen reports whether something of a rendition is known.
func (k *known) seen(prefix string) bool { return k.sets[prefix] != nil }

func (k *known) has(prefix string, msn int64) bool {
	_, ok := k.sets[prefix][msn]
	return ok
}

func (k *known) add(prefix string, msn int64) {
	set := k.sets[prefix]
	if set == nil {
		if len(k.order) >= maxKnown {
			delete(k.sets, k.order[0])
			k.order = k.order[1:]
		}
		set = map[int64]struct{}{}
		k.sets[prefix] = set
		k.order = append(k.order, prefix)
	}
	set[msn] = struct{}{}
}

// drop forgets a segment.
func (k *known) drop(prefix string, msn int64) { delete(k.sets[prefix], msn) }

// has reports whether a segment is stored, and remembers it.
func (m *Maker) has(ctx context.Context, w *Work, msn int64) (bool, error) {
	m.mu.Lock()
	known := m.known.has(w.Prefix, msn)
	m.mu.Unlock()
	if known {
		return true, nil
	}
	stored, err := m.opt.Store.Has(ctx, w.SegmentKey(msn))
	if stored {
		m.mu.Lock()
		m.known.add(w.Prefix, msn)
		m.mu.Unlock()
	}
	return stored, err
}

// Forget says that a segment is not stored, whatever was known of it.
func (m *Maker) Forget(w *Work, msn int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.drop(w.Prefix, msn)
}
