package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/retention"
	"millrace/internal/id"
)

// Retention is the retention of an environment.
type Retention interface {
	Policy(ctx context.Context) (retention.Policy, error)
	Set(ctx context.Context, l retention.Limits, grace time.Duration) (retention.Policy, error)
	TurnOff(ctx context.Context) error
	Preview(ctx context.Context, l retention.Limits, grace time.Duration) (retention.Preview, error)
	SetExempt(ctx context.Context, a id.Asset, exempt bool) error
}

func retentionCommands() []command {
	return []command{
		of("retention preview", "show what the retention policy will delete",
			"Shows the environment's retention policy, which assets it will delete, and when. With --max-age or "+
				"--max-bytes, shows what a policy with these would delete. Changes nothing.", &retentionPolicy{}),
		of("retention on", "delete old assets automatically",
			"Sets the environment's retention policy. It deletes assets that are older than --max-age and, as long as "+
				"all assets together take more than --max-bytes, the oldest ones. Without --yes the command "+
				"only shows what would be deleted. Each change of the policy starts a new grace period, in "+
				"which nothing is deleted. Assets that are live or still being made are never deleted.",
			&retentionPolicy{sets: true}),
		of("retention off", "stop deleting old assets",
			"Removes the environment's retention policy: nothing is deleted automatically any more.",
			&retentionChange{do: func(ctx context.Context, keep Retention, r *request) error {
				return r.done(keep.TurnOff(ctx), "Retention is off.")
			}}),
		of("retention exempt ASSET-ID", "exempt an asset from retention",
			"The retention policy will never delete this asset. Its bytes still count toward --max-bytes.",
			&retentionChange{do: func(ctx context.Context, keep Retention, r *request) error {
				return r.done(keep.SetExempt(ctx, id.Asset(r.words[0]), true), "Asset %s is exempt.", r.words[0])
			}}),
		of("retention include ASSET-ID", "end the exemption of an asset",
			"Ends the exemption of an asset from retention.",
			&retentionChange{do: func(ctx context.Context, keep Retention, r *request) error {
				return r.done(keep.SetExempt(ctx, id.Asset(r.words[0]), false), "Asset %s is not exempt.", r.words[0])
			}}),
	}
}

// retentionChange is a command that changes something at once.
type retentionChange struct {
	inEnvironment

	do func(ctx context.Context, keep Retention, r *request) error
}

func (rc *retentionChange) run(ctx context.Context, r *request) error {
	keep, closeDB, err := r.Retention(ctx, r.cfg, rc.environment)
	return closing(closeDB, err, func() error { return rc.do(ctx, keep, r) })
}

// retentionPolicy shows what a policy deletes, and may set it.
type retentionPolicy struct {
	inEnvironment

	sets, yes bool
	limits    retention.Limits
	grace     time.Duration
}

func (rp *retentionPolicy) flags(f *flags) {
	rp.inEnvironment.flags(f)
	add(f, &rp.limits.MaxAgeDays, wholeDays, "max-age", "days", "",
		"Delete assets this many days after they were created or, for recordings, after the broadcast ended: 90d.")
	add(f, &rp.limits.MaxBytes, config.ParseBytes, "max-bytes", "size", "",
		"As long as all assets together take more than this, delete the oldest: 500GiB.")
	add(f, &rp.grace, days, "grace", "duration", "", "Grace period: nothing is deleted in it. 1h to 90d. Default: 3d.")
	if rp.sets {
		f.on(&rp.yes, "yes", "Set the policy. Without it, only show what it would delete.")
	}
}

// wholeDays reads a number of days.
func wholeDays(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, "d"), 10, 64)
	if err != nil || n < 1 || n > 36500 {
		return 0, errors.New("is not a number of days from 1 to 36500: write 90d")
	}
	return n, nil
}

func (rp *retentionPolicy) run(ctx context.Context, r *request) error {
	if rp.sets && !rp.limits.On() {
		return errors.New("retention on needs --max-age, --max-bytes or both")
	}
	keep, closeDB, err := r.Retention(ctx, r.cfg, rp.environment)
	return closing(closeDB, err, func() error {
		limits := rp.limits
		if !limits.On() && !rp.sets {
			p, err := keep.Policy(ctx)
			if err != nil {
				return err
			}
			if !p.On() {
				return r.say("Retention is off: nothing is deleted automatically.")
			}
			limits = p.Limits
		}
		if err := limits.Check(); err != nil {
			return err
		}
		p, err := keep.Preview(ctx, limits, rp.grace)
		if err == nil {
			err = printPreview(r, p)
		}
		if err != nil || !rp.sets {
			return err
		}
		if !rp.yes {
			return r.say("Nothing has changed. The same command with --yes sets this policy.")
		}
		set, err := keep.Set(ctx, limits, rp.grace)
		return r.done(err, "Retention is on. Nothing is deleted before %s.", timeOrNone(set.StartsAt))
	})
}

func printPreview(r *request, p retention.Preview) error {
	var limits []string
	if p.Policy.MaxAgeDays > 0 {
		limits = append(limits, fmt.Sprintf("assets are kept for %d days", p.Policy.MaxAgeDays))
	}
	if p.Policy.MaxBytes > 0 {
		limits = append(limits, fmt.Sprintf("all assets may take %s", bytesText(float64(p.Policy.MaxBytes))))
	}
	least := ""
	if p.Partly {
		least = "at least "
	}
	err := errors.Join(
		r.say("Policy: %s; nothing is deleted before %s.", strings.Join(limits, ", "), timeOrNone(p.Policy.StartsAt)),
		r.say("Stored: %s%s.", bytesText(float64(p.Stored.Bytes)), unmeasuredText(p.Stored.Unmeasured)),
		r.say("Deleted by %s: %s%d assets, which frees %s%s.", timeOrNone(p.Until), least, p.Count, least,
			bytesText(float64(p.Bytes))),
	)
	if err != nil || p.Count == 0 {
		return err
	}
	tab := newTable(r.out)
	tab.row("ASSET", "CREATED", "DELETED AT", "BECAUSE OF", "SIZE", "TITLE")
	for _, d := range p.First {
		size := none
		if d.Measured {
			size = bytesText(float64(d.Bytes))
		}
		tab.row(d.Asset.ID, timeOrNone(d.Asset.CreatedAt), timeOrNone(d.At), d.Reason, size,
			textOrNone(printable(d.Asset.Options.Meta.Title)))
	}
	if err = tab.end(); err == nil && p.Count > len(p.First) {
		err = r.say("… and %s%d more", least, p.Count-len(p.First))
	}
	return err
}

func unmeasuredText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (1 asset is not measured yet and counts as 0)"
	}
	return fmt.Sprintf(" (%d assets are not measured yet and count as 0)", n)
}
