package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/id"
)

const (
	environmentTag  = "Environments"
	environmentPath = "/system/v1/environments"
	environmentItem = environmentPath + "/{environment_id}"
)

// EnvironmentRef names an environment in a path; exported for huma, which reads embedded fields of exported types only.
type EnvironmentRef struct {
	ID string `path:"environment_id" maxLength:"255"`
}

func (e EnvironmentRef) id() id.Environment { return id.Environment(e.ID) }

// Environment is an environment as it is shown.
type Environment struct {
	ID        string `json:"id"`
	Name      string `json:"name" example:"Shop"`
	Type      string `json:"type" enum:"production,development"`
	CreatedAt string `json:"created_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
}

// EnvironmentCreate asks for an environment.
type EnvironmentCreate struct {
	Name string `json:"name" doc:"The name of the environment; at most 255 characters." example:"Shop"`
	Type string `json:"type,omitempty" enum:"production,development" doc:"A label. Default: production."`
}

// EnvironmentUpdate changes an environment.
type EnvironmentUpdate struct {
	Name string `json:"name" doc:"The name of the environment; at most 255 characters." example:"Shop"`
}

const installationText = "Requires an installation token (millrace token create --installation)."

type environments struct {
	access access.API
	tokens accessTokens
	now    func() time.Time
}

func (e environments) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       environmentPath,
		id:         "create-environment",
		tag:        environmentTag,
		status:     http.StatusCreated,
		permission: access.InstallationWrite,
		summary:    "Create an environment",
		text:       installationText,
	}, e.create)
	handle(on, route{
		method:     http.MethodGet,
		path:       environmentPath,
		id:         "list-environments",
		tag:        environmentTag,
		permission: access.InstallationRead,
		summary:    "List environments",
		text:       "Oldest first. " + installationText,
	}, e.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       environmentItem,
		id:         "get-environment",
		tag:        environmentTag,
		permission: access.InstallationRead,
		summary:    "Retrieve an environment",
		text:       installationText,
	}, e.get)
	handle(on, route{
		method:     http.MethodPatch,
		path:       environmentItem,
		id:         "update-environment",
		tag:        environmentTag,
		permission: access.InstallationWrite,
		summary:    "Rename an environment",
		text:       installationText,
	}, e.rename)
	handle(on, route{
		method:     http.MethodPost,
		path:       environmentItem + "/access-tokens",
		id:         "create-environment-access-token",
		tag:        environmentTag,
		status:     http.StatusCreated,
		permission: access.InstallationWrite,
		summary:    "Create an access token of an environment",
		text: "Without permissions it gets all permissions of an environment. The secret is shown only in this " +
			"response. " + installationText,
	}, e.createToken)
}

type createEnvironmentInput struct{ Body EnvironmentCreate }

func (e environments) create(ctx context.Context, in *createEnvironmentInput) (*one[Environment], error) {
	made, err := e.access.CreateEnvironment(ctx, in.Body.Name, in.Body.Type, e.now())
	return just(wireEnvironment(made)), err
}

func (e environments) list(ctx context.Context, in *struct{ Page }) (*many[Environment], error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	found, err := e.access.Environments(ctx, page, limit)
	return all(convert(found, wireEnvironment)), err
}

func (e environments) get(ctx context.Context, in *EnvironmentRef) (*one[Environment], error) {
	found, err := e.access.Environment(ctx, in.id())
	return just(wireEnvironment(found)), err
}

type renameEnvironmentInput struct {
	EnvironmentRef
	Body EnvironmentUpdate
}

func (e environments) rename(ctx context.Context, in *renameEnvironmentInput) (*one[Environment], error) {
	renamed, err := e.access.RenameEnvironment(ctx, in.id(), in.Body.Name, e.now())
	return just(wireEnvironment(renamed)), err
}

type createEnvironmentTokenInput struct {
	EnvironmentRef
	Body AccessTokenCreate
}

func (e environments) createToken(ctx context.Context, in *createEnvironmentTokenInput) (*one[AccessToken], error) {
	return e.tokens.make(ctx, in.id(), in.Body)
}

func wireEnvironment(e access.Environment) Environment {
	return Environment{ID: string(e.ID), Name: e.Name, Type: e.Kind, CreatedAt: epoch(e.CreatedAt)}
}
