package playbackid

import (
	"context"
	"slices"

	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Configuration is what a DRM configuration says of the resources whose playback IDs name it.
type Configuration struct {
	ID string
	// EncryptedOnly: media of such a resource leave the service encrypted only. All its playback IDs are drm, those of
	// its recordings and clips too, and there is no master of it.
	EncryptedOnly bool
}

// Configurations finds a DRM configuration of an environment by its ID, and with an empty one the environment's
// default: the only one that it has. fault.NotFound when there is none.
type Configurations func(ctx context.Context, env id.Environment, configuration string) (Configuration, error)

// Choose gives requests with the DRM configuration that each names, or that is the environment's default where it names
// none. One that the environment does not have is refused.
func (c Configurations) Choose(
	ctx context.Context, env id.Environment, path string, requests []Request,
) ([]Request, error) {
	var l fault.List
	chosen := slices.Clone(requests)
	for i, r := range requests {
		var err error
		chosen[i], err = c.ChooseOne(ctx, env, field.At(path, i), r)
		if err = l.Take(err); err != nil {
			return nil, err
		}
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	return chosen, nil
}

// ChooseOne is Choose of one request.
func (c Configurations) ChooseOne(ctx context.Context, env id.Environment, path string, r Request) (Request, error) {
	if r.Policy != DRM {
		return r, nil
	}
	if c == nil {
		return r, fault.At(fault.Conflict, field.Join(path, "policy"), ": there are no DRM configurations here")
	}
	at := field.Join(path, "drm_configuration_id")
	found, err := c(ctx, env, r.DRMConfigurationID)
	switch {
	case fault.Is(err, fault.NotFound) && r.DRMConfigurationID == "":
		return r, fault.At(fault.Invalid, at, "must be given when %s is drm, unless the environment has exactly one "+
			"DRM configuration; millrace drm-configuration lists and makes them", field.Join(path, "policy"))
	case fault.Is(err, fault.NotFound):
		return r, fault.At(fault.Invalid, at, "must be the ID of a DRM configuration; there is none with that ID")
	case err != nil:
		return r, err
	case r.DRMConfigurationID == "":
		r.DRMConfigurationID = found.ID
	}
	return r, nil
}

// EncryptedOnly reports whether one of some playback IDs has a configuration that says so.
func (c Configurations) EncryptedOnly(ctx context.Context, env id.Environment, requests ...Request) (bool, error) {
	var asked []string
	for _, r := range requests {
		if r.Policy != DRM || c == nil || slices.Contains(asked, r.DRMConfigurationID) {
			continue
		}
		asked = append(asked, r.DRMConfigurationID)
		found, err := c(ctx, env, r.DRMConfigurationID)
		if err != nil || found.EncryptedOnly {
			return err == nil, err
		}
	}
	return false, nil
}

// CheckClear refuses what would give media in clear, if a configuration of the requests has EncryptedOnly, or one by
// which those of whom the media are, as the source of a clip, are played: requests with another policy than drm, and a
// master. Where only the latter has one, the requests need one of their own, or a later one could be public.
func (c Configurations) CheckClear(
	ctx context.Context, env id.Environment, requests []Request, master bool, source ...Request,
) error {
	inherited, err := c.EncryptedOnly(ctx, env, source...)
	if err != nil {
		return err
	}
	only, err := c.EncryptedOnly(ctx, env, requests...)
	switch {
	case err != nil || !only && !inherited:
		return err
	case slices.ContainsFunc(requests, func(r Request) bool { return r.Policy != DRM }):
		return fault.New(fault.Conflict,
			"every playback policy must be drm: the DRM configuration lets nothing leave the "+
				"service in clear (encrypted-only)")
	case !only:
		return fault.At(fault.Conflict, "advanced_playback_policies",
			"must have a DRM configuration that is encrypted-only, "+
				"as the media have where they come from")
	case master:
		return ErrNoMaster()
	}
	return nil
}

// ErrNoMaster refuses the master of what leaves the service encrypted only.
func ErrNoMaster() error {
	return fault.New(fault.Conflict,
		"there is no master: the DRM configuration lets nothing leave the service in clear "+
			"(encrypted-only)")
}

// CheckDelete refuses to delete the last playback ID that has what it plays leave the service encrypted only: without
// it another could be added that gives it in clear.
func (c Configurations) CheckDelete(ctx context.Context, env id.Environment, all []ID, p id.Playback) error {
	i := Index(all, p)
	if i < 0 {
		return nil // which is said elsewhere
	}
	requests := RequestsOf(all)
	only, err := c.EncryptedOnly(ctx, env, requests[i])
	if err != nil || !only {
		return err
	}
	only, err = c.EncryptedOnly(ctx, env, slices.Delete(requests, i, i+1)...)
	if err == nil && !only {
		err = fault.New(fault.Conflict,
			"this playback ID has the media leave the service encrypted only: add another one "+
				"with its DRM configuration first, or delete what it plays")
	}
	return err
}
