package api

import (
	"context"
	"net/http"
	"slices"

	"millrace/internal/control/access"
	"millrace/internal/id"
)

// Whoami is the access token of the request and where it belongs.
type Whoami struct {
	AccessTokenName  string   `json:"access_token_name"`
	EnvironmentID    string   `json:"environment_id"`
	EnvironmentName  string   `json:"environment_name"`
	EnvironmentType  string   `json:"environment_type"`
	OrganizationID   string   `json:"organization_id"`
	OrganizationName string   `json:"organization_name"`
	Permissions      []string `json:"permissions" example:"[\"video:read\",\"video:write\"]"`
}

// organizationID is the one organization of an installation: clients expect an ID.
const organizationID = "default"

// PlaybackRef names a playback ID in a path; exported for huma, which reads embedded fields of exported types only.
type PlaybackRef struct {
	ID string `path:"playback_id" maxLength:"255"`
}

type system struct {
	access access.API
	name   string // of the service
}

func (s system) register(on *server) {
	handle(on, route{
		method:     http.MethodGet,
		path:       "/video/v1/playback-ids/{playback_id}",
		id:         "get-playback-id",
		tag:        "Playback IDs",
		permission: videoRead,
		summary:    "Find the asset or live stream of a playback ID",
	}, s.lookupPlaybackID)
	handle(on, route{
		method: http.MethodGet, path: "/system/v1/whoami", id: "whoami", tag: "System", permission: anyToken,
		summary: "Show the calling access token", text: "Needs no permission.",
	}, s.whoami)
}

func (s system) lookupPlaybackID(ctx context.Context, in *PlaybackRef) (*one[PlaybackIDLookup], error) {
	o, err := s.access.Lookup(ctx, environment(ctx), id.Playback(in.ID))
	return just(lookupOf(o)), err
}

func (s system) whoami(ctx context.Context, _ *struct{}) (*one[Whoami], error) {
	who := caller(ctx)
	return just(Whoami{
		AccessTokenName:  who.Token.Name,
		EnvironmentID:    string(who.Environment.ID),
		EnvironmentName:  who.Environment.Name,
		EnvironmentType:  who.Environment.Kind,
		OrganizationID:   organizationID,
		OrganizationName: s.name,
		Permissions:      slices.AppendSeq([]string{}, slices.Values(who.Token.Permissions)),
	}), nil
}
