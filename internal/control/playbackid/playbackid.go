// Package playbackid is the public handle of a live stream or an asset for playback. A leaf of the control plane.
package playbackid

import "millrace/internal/id"

// Policy says how a playback ID is played.
type Policy string

// The policies.
const (
	Public Policy = "public"
	Signed Policy = "signed"
	DRM    Policy = "drm"
)

// ID is one playback ID.
type ID struct {
	ID                 id.Playback `json:"id"`
	Policy             Policy      `json:"policy"`
	DRMConfigurationID string      `json:"drm_configuration_id,omitempty"` // only with DRM
}

// Request asks for a playback ID.
type Request struct {
	Policy             Policy `json:"policy"`
	DRMConfigurationID string `json:"drm_configuration_id,omitempty"`
}

// ObjectKind is what a playback ID plays.
type ObjectKind string

// The kinds.
const (
	OfLiveStream ObjectKind = "live_stream"
	OfAsset      ObjectKind = "asset"
)

// Object is what a playback ID leads to.
type Object struct {
	ID          ID
	Environment id.Environment
	Kind        ObjectKind
	ObjectID    string
}
