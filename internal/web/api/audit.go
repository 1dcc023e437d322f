package api

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const auditTag = "Audit log"

// AuditEntry is one change.
type AuditEntry struct {
	ID        string        `json:"id"`
	CreatedAt string        `json:"created_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	Actor     AuditActor    `json:"actor"`
	Operation string        `json:"operation" doc:"The operationId in this document, or the command." example:"delete-asset"`
	Resource  AuditResource `json:"resource"`
	Address   string        `json:"address,omitempty" doc:"The client's IP address; absent for commands." example:"192.0.2.1"`
	RequestID string        `json:"request_id,omitempty" doc:"The response's X-Request-Id; absent for commands."`
}

// AuditActor is who made a change.
type AuditActor struct {
	Type string `json:"type" enum:"access_token,command_line,dashboard,retention"`
	ID   string `json:"id,omitempty" doc:"ID of the access token."`
	Name string `json:"name,omitempty" doc:"Name of the access token, or of the system user who ran the command."`
}

// AuditResource is what was changed.
type AuditResource struct {
	Type string `json:"type,omitempty" example:"asset"`
	ID   string `json:"id,omitempty"`
}

// AuditLogResponse is the envelope of a list of changes.
type AuditLogResponse struct {
	Data       []AuditEntry `json:"data"`
	NextCursor *string      `json:"next_cursor" nullable:"true" doc:"The cursor of the next page; null on the last page."`
}

type auditLog struct{ audit audit.Log }

func (a auditLog) register(on *server) {
	handle(on, route{
		method:     http.MethodGet,
		path:       "/system/v1/audit-log",
		id:         "list-audit-log",
		tag:        auditTag,
		permission: systemRead,
		summary:    "List the audit log",
		text: "Who changed what in the environment, through the API or a command, newest first. Refused " +
			"requests are not listed.",
	}, a.list)
}

type listAuditInput struct {
	Actor     string    `query:"actor" doc:"Changes by this access token (ID or name) or user."`
	Operation string    `query:"operation" doc:"Changes by this operation."`
	Resource  string    `query:"resource_id" doc:"Changes of this resource."`
	Since     string    `query:"since" doc:"Changes from this time on: RFC 3339, or seconds since the Unix epoch."`
	Until     string    `query:"until" doc:"Changes before this time."`
	Cursor    string    `query:"cursor" doc:"The next_cursor of the previous response."`
	Limit     pageLimit `query:"limit" doc:"Changes per page, from 1 to 100."`
}

type listAuditOutput struct{ Body AuditLogResponse }

func (a auditLog) list(ctx context.Context, in *listAuditInput) (*listAuditOutput, error) {
	var problems fault.List
	q := audit.Query{
		Environment: environment(ctx),
		Actor:       in.Actor,
		Operation:   in.Operation,
		Resource:    in.Resource,
		Before:      in.Cursor,
		Since:       moment(&problems, "since", in.Since),
		Until:       moment(&problems, "until", in.Until),
		Limit:       readNumber(&problems, "limit", string(in.Limit), maxLimit, defaultLimit),
	}
	if len(in.Cursor) > 0 && len(in.Cursor) != len(id.FirstUUIDAt(time.Time{})) {
		problems.At("cursor", "must be the next_cursor of a response")
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	found, err := a.audit.AuditLog(ctx, q)
	if err != nil {
		return nil, err
	}
	out := AuditLogResponse{Data: convert(found, wireAudit)}
	if len(found) == q.Limit {
		out.NextCursor = &found[len(found)-1].ID
	}
	return &listAuditOutput{out}, nil
}

func wireAudit(e audit.Entry) AuditEntry {
	return AuditEntry{
		ID:        e.ID,
		CreatedAt: epoch(e.At),
		Actor:     AuditActor(e.Actor),
		Operation: e.Operation,
		Resource:  AuditResource(e.Resource),
		Address:   e.Address,
		RequestID: e.RequestID,
	}
}

// auditEntry is what the audit log says of a request, should it change something. The resource is the last one that the
// path names; what is made is named by the store.
func auditEntry(ctx huma.Context, who access.Identity, now time.Time, from netip.Addr) audit.Entry {
	op := ctx.Operation()
	e := audit.Entry{
		At: now, Environment: who.Environment.ID, Operation: op.OperationID, RequestID: requestID(ctx.Context()),
		Actor: audit.Actor{Type: audit.AccessToken, ID: string(who.Token.ID), Name: who.Token.Name},
	}
	if from.IsValid() {
		e.Address = from.String()
	}
	for part := range strings.SplitSeq(op.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			e.Resource = audit.Resource{Type: resourceType(name), ID: ctx.Param(name)}
		}
	}
	if who.Token.Permits(access.InstallationWrite) { // it is no member of the environment that it is kept in
		e.Environment = id.Environment(ctx.Param("environment_id"))
	}
	return e
}

// resourceType is the kind of resource whose ID a parameter of a path is.
func resourceType(param string) string {
	if param == "playback_id" { // this is what it is called
		return param
	}
	return strings.TrimSuffix(param, "_id")
}
