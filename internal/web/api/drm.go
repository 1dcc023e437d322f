package api

import (
	"context"
	"net/http"

	"millrace/internal/control/drm"
	"millrace/internal/id"
)

const (
	drmTag  = "DRM configurations"
	drmPath = "/video/v1/drm-configurations"
)

// DRMConfiguration is a DRM configuration as it is shown.
type DRMConfiguration struct {
	ID string `json:"id" doc:"Playback IDs with the policy drm refer to it as drm_configuration_id."`
}

// DRMConfigurationRef names a DRM configuration in a path; exported for huma, which reads embedded fields of exported
// types only.
type DRMConfigurationRef struct {
	ID string `path:"drm_configuration_id" maxLength:"255"`
}

type drmConfigurations struct{ drm drm.API }

func (d drmConfigurations) register(on *server) {
	const made = "DRM configurations are created with the command millrace drm-configuration."
	handle(on, route{
		method: http.MethodGet, path: drmPath, id: "list-drm-configurations", tag: drmTag, permission: videoRead,
		summary: "List DRM configurations", text: "Newest first. " + made,
	}, d.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       drmPath + "/{drm_configuration_id}",
		id:         "get-drm-configuration",
		tag:        drmTag,
		permission: videoRead,
		summary:    "Retrieve a DRM configuration",
		text:       made,
	}, d.get)
}

func (d drmConfigurations) list(ctx context.Context, in *struct{ Page }) (*many[DRMConfiguration], error) {
	return listed(ctx, in.Page, d.drm.List, wireDRM)
}

func (d drmConfigurations) get(ctx context.Context, in *DRMConfigurationRef) (*one[DRMConfiguration], error) {
	c, err := d.drm.Get(ctx, environment(ctx), id.DRMConfiguration(in.ID))
	return just(wireDRM(c)), err
}

func wireDRM(c drm.Configuration) DRMConfiguration { return DRMConfiguration{ID: string(c.ID)} }
