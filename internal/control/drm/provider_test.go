package drm

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// memoryStore keeps one configuration and the keys of one resource.
type memoryStore struct {
	Store

	configuration Configuration
	stored        *Stored
}

func (m *memoryStore) Configuration(context.Context, id.DRMConfiguration) (Configuration, error) {
	return m.configuration, nil
}

func (m *memoryStore) Keys(context.Context, Resource, id.DRMConfiguration) (Stored, error) {
	if m.stored == nil {
		return Stored{}, fault.New(fault.NotFound, "there are none")
	}
	return *m.stored, nil
}

func (m *memoryStore) SaveKeys(_ context.Context, v Stored) (Stored, error) {
	v.Revision++
	m.stored = &v
	return v, nil
}

// TestKeyProvider: the provider's key IDs and signals win; while it is away at a change of keys the old ones go on.
func TestKeyProvider(t *testing.T) {
	t.Parallel()
	store := &memoryStore{configuration: Configuration{ID: "c", Environment: "env", Settings: Settings{
		Scheme: CBCS, EncryptAudio: true, ClearKey: true, Rotation: time.Hour,
		Vendors: Vendors{Widevine: &LicenceServer{}, KeyProvider: &KeyProvider{URL: "https://keys.example"}},
	}}}
	away := errors.New("away")
	var asked []KeyRequest
	fail := away
	s := New(Options{Store: store, Provider: func(_ context.Context, p KeyProvider, r KeyRequest) (Provided, error) {
		asked = append(asked, r)
		if p.URL != "https://keys.example" || fail != nil {
			return Provided{}, fail
		}
		out := Provided{Keys: slices.Clone(r.Keys)}
		for i := range out.Keys {
			out.Keys[i].ID = [16]byte{byte(10*r.Period + i + 1)}
			out.Keys[i].Class = "" // that of the request stands
			out.Signals = append(out.Signals, StoredSignal{
				System: Widevine, Signal: Signal{KeyID: out.Keys[i].ID, Media: "#EXT-X-KEY:x"},
			})
		}
		return out, nil
	}})
	r := Resource{Kind: playbackid.OfLiveStream, ID: "live1"}
	if _, err := s.Content(t.Context(), "env", r, "c", noon); !fault.Is(err, fault.Unavailable) {
		t.Errorf("away: %v", err)
	}
	fail = nil
	c, err := s.Content(t.Context(), "env", r, "c", noon)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := c.Key(HD, 0)
	audio, both := c.Key(Audio, 0)
	if !ok || !both || k.ID != [16]byte{1} || audio.ID != [16]byte{2} || len(c.Systems) != 2 ||
		len(c.Systems[0].Signals) != 0 || len(c.Systems[1].Signals) != 2 {
		t.Errorf("%+v", c)
	}
	if last := asked[len(asked)-1]; !slices.Equal(last.Systems, []SystemID{Widevine}) || last.Period != 0 ||
		last.Resource != r || len(last.Keys) != 2 {
		t.Errorf("asked %+v", last)
	}
	fail = away
	later := noon.Add(2 * time.Hour)
	if c, err = s.Content(t.Context(), "env", r, "c", later); err != nil || len(c.Periods) != 1 {
		t.Errorf("away at a change: %d periods, %v", len(c.Periods), err)
	}
	fail = nil
	later = later.Add(time.Minute)
	if c, err = s.Content(t.Context(), "env", r, "c", later); err != nil || len(c.Periods) != 2 ||
		c.PeriodAt(later) != 0 || c.PeriodAt(later.Add(lead)) != 1 {
		t.Errorf("behind a change: %+v, %v", c.Periods, err)
	}
}
