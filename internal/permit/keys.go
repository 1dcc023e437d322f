package permit

import (
	"context"
	"time"

	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/container/cenc"
	"millrace/internal/media/protection"
)

// KeySource has content keys; drm.Service fits.
type KeySource interface {
	Content(
		ctx context.Context, env id.Environment, r drm.Resource, c id.DRMConfiguration, now time.Time,
	) (drm.Content, error)
}

// Keys gives media/protection the content keys of playback IDs with the policy drm.
type Keys struct{ Source KeySource }

// Content is how the media of a playback ID is encrypted. fault.Invalid: it names no DRM configuration.
func (k Keys) Content(ctx context.Context, o playbackid.Object, now time.Time) (protection.Content, error) {
	configuration, resource := id.DRMConfiguration(o.ID.DRMConfigurationID), drm.ResourceOf(o)
	if configuration == "" {
		return protection.Content{}, fault.New(fault.Invalid,
			"the playback ID names no DRM configuration: make one with drm_configuration_id")
	}
	c, err := k.Source.Content(ctx, o.Environment, resource, configuration, now)
	if err != nil {
		return protection.Content{}, err
	}
	out := protection.Content{
		Name:   string(resource.Kind) + "/" + resource.ID + "/" + string(configuration),
		Scheme: cenc.Scheme(c.Scheme),
		First:  c.Periods[0].Number,
		KeyOf: func(m cenc.Media, period int) (cenc.Key, bool) {
			class := drm.Audio
			if m.Video {
				class = drm.ClassOf(m.Width, m.Height)
			}
			key, ok := c.Key(class, period)
			return valueOf(key), ok
		},
	}
	if c.Rotates { // in the first period too: a segment of it is encrypted alike before and after the second one begins
		out.PeriodAt = c.PeriodAt
	}
	newest := c.Periods[len(c.Periods)-1].Number
	for _, key := range c.Keys {
		if key.Period >= newest-1 { // players are now in the one before, or in the newest
			out.Keys = append(out.Keys, valueOf(key))
		}
	}
	for _, s := range c.Systems {
		system := protection.System{ID: s.ID}
		for _, x := range s.Signals {
			system.Signals = append(system.Signals, protection.Signal{
				KeyID:   x.KeyID,
				Header:  x.PSSH,
				Media:   x.Media,
				Session: x.Master,
			})
		}
		out.Systems = append(out.Systems, system)
	}
	return out, nil
}

func valueOf(k drm.Key) cenc.Key { return cenc.Key{ID: k.ID, Value: k.Value, IV: k.IV} }
