package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/retention"
	"millrace/internal/fault"
)

const (
	retentionTag    = "Retention"
	retentionPath   = "/system/v1/retention"
	retentionExempt = retentionPath + "/exempt-assets/{asset_id}"
)

// RetentionInput asks for a retention policy.
type RetentionInput struct {
	MaxAgeDays *int64 `json:"max_age_days,omitempty" doc:"1 to 36500." example:"90"`
	MaxBytes   *int64 `json:"max_bytes,omitempty" doc:"At least 1048576." example:"500000000000"`
	GraceHours *int64 `json:"grace_hours,omitempty" doc:"1 to 2160. Default: 72."`
}

func (r RetentionInput) limits() (l retention.Limits, grace time.Duration) {
	if r.MaxAgeDays != nil {
		if l.MaxAgeDays = *r.MaxAgeDays; l.MaxAgeDays == 0 {
			l.MaxAgeDays = -1 // it must not be taken for none
		}
	}
	if r.MaxBytes != nil {
		if l.MaxBytes = *r.MaxBytes; l.MaxBytes == 0 {
			l.MaxBytes = -1
		}
	}
	if r.GraceHours != nil {
		grace = -1
		if h := *r.GraceHours; h > 0 && h <= int64(retention.MaxGrace/time.Hour) {
			grace = time.Duration(h) * time.Hour
		}
	}
	return l, grace
}

// Retention is a retention policy as it is shown.
type Retention struct {
	Enabled    bool   `json:"enabled" doc:"Without a policy nothing is deleted."`
	MaxAgeDays int64  `json:"max_age_days,omitempty"`
	MaxBytes   int64  `json:"max_bytes,omitempty"`
	StartsAt   string `json:"starts_at,omitempty" doc:"Unix time, in seconds, before which nothing is deleted."`
	UpdatedAt  string `json:"updated_at,omitempty" doc:"Unix time, in seconds." example:"1609869152"`
}

// RetentionPreview is what a retention policy would delete.
type RetentionPreview struct {
	Policy           Retention            `json:"policy"`
	StoredBytes      int64                `json:"stored_bytes" doc:"Size of all assets that have been measured."`
	UnmeasuredAssets int                  `json:"unmeasured_assets" doc:"Not measured yet, so not in stored_bytes."`
	Until            string               `json:"until" doc:"Unix time, in seconds. Later deletions are not shown."`
	AssetCount       int                  `json:"asset_count" doc:"How many assets would be deleted."`
	FreedBytes       int64                `json:"freed_bytes"`
	Incomplete       bool                 `json:"incomplete" doc:"More would be deleted than were counted."`
	Assets           []RetentionCandidate `json:"assets" doc:"The first 100, oldest first."`
}

// RetentionCandidate is an asset that a retention policy would delete.
type RetentionCandidate struct {
	AssetID   string `json:"asset_id"`
	Title     string `json:"title,omitempty"`
	CreatedAt string `json:"created_at" doc:"Unix time, in seconds." example:"1609869152"`
	DeletesAt string `json:"deletes_at" doc:"Unix time, in seconds." example:"1609869152"`
	Reason    string `json:"reason" enum:"max_age_days,max_bytes"`
	Bytes     *int64 `json:"bytes" nullable:"true" doc:"Size of its own media; null: not measured yet."`
}

type retentions struct {
	retention retention.API
	assets    asset.API
	now       func() time.Time
}

func (rs retentions) register(on *server) {
	handle(on, route{
		method: http.MethodGet, path: retentionPath, id: "get-retention", tag: retentionTag, permission: systemRead,
		summary: "Retrieve the retention policy",
		text:    "Says which assets of the environment are deleted automatically. There is no policy until one is set.",
	}, rs.get)
	handle(on, route{
		method: http.MethodPut, path: retentionPath, id: "set-retention", tag: retentionTag, permission: systemWrite,
		summary: "Set the retention policy",
		text: "With max_age_days, assets are deleted so many days after they were created or, for recordings, after " +
			"the broadcast ended. With max_bytes, the oldest assets are deleted as long as all assets together take " +
			"more bytes than that. At least one of the two must be given. The request replaces the whole policy and " +
			"starts a new grace period, in which nothing is deleted. Look at the preview first. Assets that are " +
			"live or still being made are never deleted.",
	}, rs.set)
	handle(on, route{
		method: http.MethodDelete, path: retentionPath, id: "delete-retention", tag: retentionTag,
		permission: systemWrite, status: http.StatusNoContent, summary: "Turn retention off",
		text: "Nothing is deleted automatically any more.",
	}, rs.off)
	handle(on, route{
		method: http.MethodGet, path: retentionPath + "/preview", id: "preview-retention", tag: retentionTag,
		permission: systemRead, summary: "Preview a retention policy",
		text: "What a policy with these limits would delete, and when, if it were set now. Without limits, what the " +
			"current policy will delete. Changes nothing.",
	}, rs.preview)
	handle(on, route{
		method: http.MethodPut, path: retentionExempt, id: "exempt-asset", tag: retentionTag,
		permission: systemWrite, status: http.StatusNoContent, summary: "Exempt an asset from retention",
		text: "The policy never deletes the asset. Its bytes still count toward max_bytes.",
	}, rs.exempt)
	handle(on, route{
		method: http.MethodDelete, path: retentionExempt, id: "include-asset", tag: retentionTag,
		permission: systemWrite, status: http.StatusNoContent, summary: "End the exemption of an asset",
	}, rs.include)
}

func (rs retentions) get(ctx context.Context, _ *struct{}) (*one[Retention], error) {
	p, err := rs.retention.Policy(ctx, environment(ctx))
	return just(wireRetention(p)), err
}

type setRetentionInput struct{ Body RetentionInput }

func (rs retentions) set(ctx context.Context, in *setRetentionInput) (*one[Retention], error) {
	l, grace := in.Body.limits()
	p, err := rs.retention.Set(ctx, environment(ctx), l, grace)
	return just(wireRetention(p)), err
}

func (rs retentions) off(ctx context.Context, _ *struct{}) (*none, error) {
	return &none{}, rs.retention.TurnOff(ctx, environment(ctx))
}

type previewRetentionInput struct {
	MaxAgeDays string `query:"max_age_days" doc:"As in the policy."`
	MaxBytes   string `query:"max_bytes" doc:"As in the policy."`
	GraceHours string `query:"grace_hours" doc:"As in the policy."`
}

func (p previewRetentionInput) read() (in RetentionInput, err error) {
	var problems fault.List
	for _, q := range []struct {
		name, text string
		to         **int64
	}{
		{"max_age_days", p.MaxAgeDays, &in.MaxAgeDays},
		{"max_bytes", p.MaxBytes, &in.MaxBytes},
		{"grace_hours", p.GraceHours, &in.GraceHours},
	} {
		if q.text == "" {
			continue
		}
		n, bad := strconv.ParseInt(q.text, 10, 64)
		if bad != nil {
			problems.At(q.name, "must be a whole number")
		}
		*q.to = &n
	}
	return in, problems.Err()
}

func (rs retentions) preview(ctx context.Context, in *previewRetentionInput) (*one[RetentionPreview], error) {
	asked, err := in.read()
	if err != nil {
		return nil, err
	}
	env := environment(ctx)
	l, grace := asked.limits()
	if !l.On() {
		var now retention.Policy
		if now, err = rs.retention.Policy(ctx, env); err != nil {
			return nil, err
		}
		l = now.Limits
	}
	found, err := rs.retention.Preview(ctx, env, l, grace)
	return just(wireRetentionPreview(found)), err
}

func (rs retentions) exempt(ctx context.Context, in *AssetRef) (*none, error) {
	return &none{}, rs.assets.SetExempt(ctx, environment(ctx), in.id(), true, rs.now())
}

func (rs retentions) include(ctx context.Context, in *AssetRef) (*none, error) {
	return &none{}, rs.assets.SetExempt(ctx, environment(ctx), in.id(), false, rs.now())
}

func wireRetention(p retention.Policy) Retention {
	if !p.On() {
		return Retention{}
	}
	return Retention{
		Enabled: true, MaxAgeDays: p.MaxAgeDays, MaxBytes: p.MaxBytes, StartsAt: epoch(p.StartsAt),
		UpdatedAt: epoch(p.UpdatedAt),
	}
}

func wireRetentionPreview(p retention.Preview) RetentionPreview {
	return RetentionPreview{
		Policy: wireRetention(p.Policy), StoredBytes: p.Stored.Bytes, UnmeasuredAssets: p.Stored.Unmeasured,
		Until: epoch(p.Until), AssetCount: p.Count, FreedBytes: p.Bytes, Incomplete: p.Partly,
		Assets: convert(p.First, wireRetentionCandidate),
	}
}

func wireRetentionCandidate(d retention.Due) RetentionCandidate {
	c := RetentionCandidate{
		AssetID: string(d.Asset.ID), Title: d.Asset.Options.Meta.Title, CreatedAt: epoch(d.Asset.CreatedAt),
		DeletesAt: epoch(d.At), Reason: d.Reason,
	}
	if d.Measured {
		c.Bytes = &d.Bytes
	}
	return c
}
