package api

import (
	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/control/playbackid"
)

// PlaybackPolicy says how a playback ID is played.
type PlaybackPolicy string

const policySchema = "PlaybackPolicy"

// Schema documents the policies once for all.
func (PlaybackPolicy) Schema(r huma.Registry) *huma.Schema {
	if r.Map()[policySchema] == nil {
		r.Map()[policySchema] = &huma.Schema{
			Type: huma.TypeString, Enum: []any{"public", "signed", "drm"},
			Description: "public: anyone with the URL. signed: with a token. drm: with a token, and a licence for " +
				"the encrypted media.",
		}
	}
	return &huma.Schema{Ref: "#/components/schemas/" + policySchema}
}

// PlaybackID is the public handle of a live stream or an asset.
type PlaybackID struct {
	ID                 string         `json:"id"`
	Policy             PlaybackPolicy `json:"policy"`
	DRMConfigurationID string         `json:"drm_configuration_id,omitempty" doc:"Only with the policy drm."`
}

// PlaybackIDCreate asks for a playback ID.
type PlaybackIDCreate struct {
	Policy             PlaybackPolicy `json:"policy,omitempty"`
	DRMConfigurationID string         `json:"drm_configuration_id,omitempty" doc:"Only with the policy drm. Default: the environment's DRM configuration, if it has exactly one."`
}

// PlaybackIDLookup says what a playback ID leads to.
type PlaybackIDLookup struct {
	ID     string         `json:"id"`
	Policy PlaybackPolicy `json:"policy"`
	Object PlaybackObject `json:"object"`
}

// PlaybackObject is what is played.
type PlaybackObject struct {
	Type string `json:"type" enum:"live_stream,asset"`
	ID   string `json:"id"`
}

func playbackIDOf(p playbackid.ID) PlaybackID {
	return PlaybackID{ID: string(p.ID), Policy: PlaybackPolicy(p.Policy), DRMConfigurationID: p.DRMConfigurationID}
}

// playbackIDsOf is nil, and so left out, when there are none.
func playbackIDsOf(list []playbackid.ID) []PlaybackID {
	if len(list) == 0 {
		return nil
	}
	return convert(list, playbackIDOf)
}

func lookupOf(o playbackid.Object) PlaybackIDLookup {
	return PlaybackIDLookup{
		ID: string(o.ID.ID), Policy: PlaybackPolicy(o.ID.Policy),
		Object: PlaybackObject{Type: string(o.Kind), ID: o.ObjectID},
	}
}

func (p PlaybackIDCreate) request() playbackid.Request {
	return playbackid.Request{Policy: playbackid.Policy(p.Policy), DRMConfigurationID: p.DRMConfigurationID}
}

func advancedOf(list []playbackid.Request) []PlaybackIDCreate {
	if len(list) == 0 {
		return nil
	}
	return convert(list, func(r playbackid.Request) PlaybackIDCreate {
		return PlaybackIDCreate{Policy: PlaybackPolicy(r.Policy), DRMConfigurationID: r.DRMConfigurationID}
	})
}
