package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/restriction"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	restrictionTag  = "Playback restrictions"
	restrictionPath = "/video/v1/playback-restrictions"
	restrictionItem = restrictionPath + "/{playback_restriction_id}"
)

// RestrictionRef names a playback restriction in a path; exported for huma, which reads embedded fields of exported
// types only.
type RestrictionRef struct {
	ID string `path:"playback_restriction_id" maxLength:"255"`
}

func (r RestrictionRef) id() id.PlaybackRestriction { return id.PlaybackRestriction(r.ID) }

// PlaybackRestriction is a playback restriction as it is shown.
type PlaybackRestriction struct {
	ID        string               `json:"id"`
	CreatedAt string               `json:"created_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	UpdatedAt string               `json:"updated_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	Referrer  ReferrerRestriction  `json:"referrer"`
	UserAgent UserAgentRestriction `json:"user_agent"`
}

// ReferrerRestriction says on whose pages something may be watched.
type ReferrerRestriction struct {
	AllowedDomains  []string `json:"allowed_domains" required:"false" doc:"At most 10 host names. * matches all, *.example.com one level below example.com. An empty list allows none."`
	AllowNoReferrer bool     `json:"allow_no_referrer" required:"false" doc:"Whether requests without a Referer header, such as those of native players, are allowed. Default: false."`
}

// UserAgentRestriction says by which players something may be watched.
type UserAgentRestriction struct {
	AllowNone     *bool `json:"allow_no_user_agent,omitempty" doc:"Whether requests without a User-Agent header are allowed. Default: true."`
	AllowHighRisk *bool `json:"allow_high_risk_user_agent,omitempty" doc:"Whether download tools such as curl, yt-dlp and ffmpeg are allowed. Default: true."`
}

// PlaybackRestrictionCreate asks for a playback restriction.
type PlaybackRestrictionCreate struct {
	Referrer  *ReferrerRestriction  `json:"referrer,omitempty" doc:"Required."`
	UserAgent *UserAgentRestriction `json:"user_agent,omitempty" doc:"Required."`
}

type restrictions struct {
	restrictions restriction.API
	now          func() time.Time
}

func (r restrictions) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       restrictionPath,
		id:         "create-playback-restriction",
		tag:        restrictionTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Create a playback restriction",
		text:       "Tokens refer to it as playback_restriction_id. An environment can have up to 100.",
	}, r.create)
	handle(on, route{
		method:     http.MethodGet,
		path:       restrictionPath,
		id:         "list-playback-restrictions",
		tag:        restrictionTag,
		permission: videoRead,
		summary:    "List playback restrictions",
		text:       "Newest first.",
	}, r.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       restrictionItem,
		id:         "get-playback-restriction",
		tag:        restrictionTag,
		permission: videoRead,
		summary:    "Retrieve a playback restriction",
	}, r.get)
	handle(on, route{
		method:     http.MethodDelete,
		path:       restrictionItem,
		id:         "delete-playback-restriction",
		tag:        restrictionTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a playback restriction",
		text:       "Tokens that refer to it are refused from now on.",
	}, r.delete)
	handle(on, route{
		method:     http.MethodPut,
		path:       restrictionItem + "/referrer",
		id:         "update-referrer-domain-restriction",
		tag:        restrictionTag,
		permission: videoWrite,
		summary:    "Replace the referrer rules of a playback restriction",
	}, r.putReferrer)
	handle(on, route{
		method:     http.MethodPut,
		path:       restrictionItem + "/user_agent",
		id:         "update-user-agent-restriction",
		tag:        restrictionTag,
		permission: videoWrite,
		summary:    "Replace the user agent rules of a playback restriction",
	}, r.putUserAgent)
}

type createRestrictionInput struct{ Body PlaybackRestrictionCreate }

func (r restrictions) create(ctx context.Context, in *createRestrictionInput) (*one[PlaybackRestriction], error) {
	var problems fault.List
	if in.Body.Referrer == nil {
		problems.At("referrer", "must be given")
	}
	if in.Body.UserAgent == nil {
		problems.At("user_agent", "must be given")
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	made, err := r.restrictions.Create(ctx, environment(ctx), in.Body.Referrer.domain(), in.Body.UserAgent.domain(),
		r.now())
	return just(wireRestriction(made)), err
}

func (r restrictions) list(ctx context.Context, in *struct{ Page }) (*many[PlaybackRestriction], error) {
	return listed(ctx, in.Page, r.restrictions.List, wireRestriction)
}

func (r restrictions) get(ctx context.Context, in *RestrictionRef) (*one[PlaybackRestriction], error) {
	found, err := r.restrictions.Get(ctx, environment(ctx), in.id())
	return just(wireRestriction(found)), err
}

func (r restrictions) delete(ctx context.Context, in *RestrictionRef) (*none, error) {
	return &none{}, r.restrictions.Delete(ctx, environment(ctx), in.id())
}

type putReferrerInput struct {
	RestrictionRef
	Body ReferrerRestriction
}

func (r restrictions) putReferrer(ctx context.Context, in *putReferrerInput) (*one[PlaybackRestriction], error) {
	changed, err := r.restrictions.SetReferrer(ctx, environment(ctx), in.id(), in.Body.domain(), r.now())
	return just(wireRestriction(changed)), err
}

type putUserAgentInput struct {
	RestrictionRef
	Body UserAgentRestriction
}

func (r restrictions) putUserAgent(ctx context.Context, in *putUserAgentInput) (*one[PlaybackRestriction], error) {
	changed, err := r.restrictions.SetUserAgent(ctx, environment(ctx), in.id(), in.Body.domain(), r.now())
	return just(wireRestriction(changed)), err
}

func (r *ReferrerRestriction) domain() restriction.Referrer {
	return restriction.Referrer{
		AllowedDomains:  append([]string{}, r.AllowedDomains...),
		AllowNoReferrer: r.AllowNoReferrer,
	}
}

func (u *UserAgentRestriction) domain() restriction.UserAgent {
	given := func(v *bool) bool { return v == nil || *v }
	return restriction.UserAgent{AllowNone: given(u.AllowNone), AllowHighRisk: given(u.AllowHighRisk)}
}

func wireRestriction(r restriction.Restriction) PlaybackRestriction {
	return PlaybackRestriction{
		ID: string(r.ID), CreatedAt: epoch(r.CreatedAt), UpdatedAt: epoch(r.UpdatedAt),
		Referrer: ReferrerRestriction{
			AllowedDomains:  append([]string{}, r.Referrer.AllowedDomains...),
			AllowNoReferrer: r.Referrer.AllowNoReferrer,
		},
		UserAgent: UserAgentRestriction{AllowNone: &r.UserAgent.AllowNone, AllowHighRisk: &r.UserAgent.AllowHighRisk},
	}
}
