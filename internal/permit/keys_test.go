package permit_test

import (
	"context"
	"testing"
	"time"

	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/container/cenc"
	"millrace/internal/permit"
)

type source drm.Content

func (s source) Content(
	context.Context, id.Environment, drm.Resource, id.DRMConfiguration, time.Time,
) (drm.Content, error) {
	return drm.Content(s), nil
}

// TestContent: media has the key of its class and period, players are told beforehand of the last two periods, and keys
// have to be configured.
func TestContent(t *testing.T) {
	t.Parallel()
	began := time.Unix(1e9, 0)
	from := source{Scheme: drm.CBCS, Rotates: true, Systems: []drm.System{{ID: drm.ClearKey}}}
	for period := range 3 {
		from.Periods = append(from.Periods, drm.Period{
			Number: period, From: began.Add(time.Duration(period) * time.Hour),
		})
		for i, class := range []drm.Class{drm.SD, drm.HD, drm.UHD1} {
			from.Keys = append(from.Keys, drm.Key{ID: [16]byte{byte(period), byte(i)}, Class: class, Period: period})
		}
	}
	keys := permit.Keys{Source: from}
	o := playbackid.Object{ID: playbackid.ID{Policy: playbackid.DRM}, Kind: playbackid.OfLiveStream, ObjectID: "s"}
	if _, err := keys.Content(t.Context(), o, began); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a configuration: %v", err)
	}
	o.ID.DRMConfigurationID = "c"
	c, err := keys.Content(t.Context(), o, began)
	if err != nil || c.Name != "live_stream/s/c" || len(c.Keys) != 6 || len(c.Systems) != 1 || c.PeriodAt == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	for want, m := range []cenc.Media{
		{Video: true, Width: 640, Height: 360},
		{Video: true, Width: 1080, Height: 1920},
		{Video: true, Width: 3840, Height: 2160},
	} {
		if k, ok := c.KeyOf(m, c.PeriodAt(began.Add(90*time.Minute))); !ok || k.ID != [16]byte{1, byte(want)} {
			t.Errorf("%+v: %x, %t", m, k.ID, ok)
		}
	}
	if k, ok := c.KeyOf(cenc.Media{}, 0); ok {
		t.Errorf("sound has the key %x", k.ID)
	}
}
