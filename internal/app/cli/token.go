package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/id"
)

// Tokens is the part of access.API that the commands about tokens and environments use.
type Tokens interface {
	CreateToken(ctx context.Context, in access.TokenInput, now time.Time) (access.Token, string, error)
	Tokens(ctx context.Context) ([]access.Token, error)
	RevokeToken(ctx context.Context, t id.Token, now time.Time) error
	CreateEnvironment(ctx context.Context, name, kind string, now time.Time) (access.Environment, error)
	RenameEnvironment(ctx context.Context, e id.Environment, name string, now time.Time) (access.Environment, error)
	Environments(ctx context.Context, page, limit int) ([]access.Environment, error)
	SetQuality(ctx context.Context, e id.Environment, quality string, now time.Time) error
	SetLiveRungs(ctx context.Context, e id.Environment, policy string, now time.Time) error
	SetCaptions(ctx context.Context, e id.Environment, rules string, now time.Time) error
	SetFrameAncestors(ctx context.Context, e id.Environment, origins []string, now time.Time) error
}

func tokenCommands() []command {
	return []command{
		of("token create", "create an access token and print its secret once",
			"Creates an access token for the API. The secret is printed once and can't be shown again. Without "+
				"--permission the token may do everything in its environment.", &tokenCreate{}),
		of("token list", "list the access tokens",
			"Lists the access tokens, without their secrets.", simply(tokenList)),
		of("token revoke TOKEN-ID", "revoke an access token",
			"Revokes an access token. Requests with it are refused within seconds.", simply(tokenRevoke)),
	}
}

// tokenCreate makes a token.
type tokenCreate struct {
	inEnvironment

	name         string
	permissions  []string
	expiresIn    time.Duration // one of the two; 0
	expiresAt    time.Time     // zero
	installation bool
}

func (tc *tokenCreate) flags(f *flags) {
	f.label(&tc.name)
	f.mayCreate()
	tc.inEnvironment.flags(f)
	all := []string{"video:read", "video:write", "data:read", "data:write", "system:read", "system:write"}
	permission := config.OneOf(all...)
	f.each(func(text string) (err error) {
		for p := range strings.SplitSeq(text, ",") {
			if _, err = permission(p); err != nil {
				return err
			}
			tc.permissions = append(tc.permissions, p)
		}
		return nil
	}, "permission", "permission,…", "",
		"What the token may do: "+strings.Join(all, ", ")+"; may be repeated. All of them unless given.")
	f.each(func(text string) (err error) {
		if tc.expiresAt, err = time.Parse(time.RFC3339, text); err == nil {
			return nil
		}
		if tc.expiresIn, err = days(text); err != nil {
			return errors.New("is neither a duration such as 90d nor a time such as 2027-01-02T15:04:05Z")
		}
		return nil
	}, "expires", "duration or time", "",
		"When the token expires: after 90d or 12h, or at 2027-01-02T15:04:05Z. Never unless given.")
	f.on(&tc.installation, "installation", "Make an installation token, which can make, rename and list environments "+
		"and list nodes over the API, and nothing else.")
}

func (tc *tokenCreate) run(ctx context.Context, r *request) error {
	in := access.TokenInput{
		Environment: tc.environment, Name: tc.name, Permissions: tc.permissions, ExpiresAt: tc.expiresAt,
	}
	if tc.expiresIn > 0 {
		in.ExpiresAt = r.now.Add(tc.expiresIn)
	}
	if tc.installation {
		if len(in.Permissions) > 0 || in.Environment != "" {
			return errors.New("an installation token belongs to no environment: " +
				"leave out --permission and --environment")
		}
		in.Permissions = access.InstallationPermissions()
	}
	t, closeDB, err := r.Access(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		made, secret, err := t.CreateToken(ctx, in, r.now)
		// In the form of a shell's or a container's environment, so that it can be kept as it is.
		return r.done(err, "MILLRACE_TOKEN_ID=%s\nMILLRACE_TOKEN_SECRET=%s", made.ID, secret)
	})
}

func tokenRevoke(ctx context.Context, r *request) error {
	t, closeDB, err := r.Access(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		err := t.RevokeToken(ctx, id.Token(r.words[0]), r.now)
		return r.done(err, "Access token %s is revoked.", r.words[0])
	})
}

func tokenList(ctx context.Context, r *request) error {
	t, closeDB, err := r.Access(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		all, err := t.Tokens(ctx)
		if err != nil {
			return err
		}
		tab := newTable(r.out)
		tab.row("ID", "NAME", "ENVIRONMENT", "PERMISSIONS", "CREATED", "EXPIRES", "LAST USED", "REVOKED")
		for _, token := range all {
			env, permissions := string(token.Environment), "all"
			switch {
			case token.Permits(access.InstallationWrite):
				env, permissions = none, "installation"
			case len(token.Permissions) < len(access.Permissions()):
				permissions = strings.Join(token.Permissions, ",")
			}
			tab.row(token.ID, token.Name, env, permissions, timeOrNone(token.CreatedAt), timeOrNone(token.ExpiresAt),
				timeOrNone(token.LastUsedAt), timeOrNone(token.RevokedAt))
		}
		return tab.end()
	})
}

// closing calls do with a database that was opened, and closes it.
func closing(closeDB func() error, err error, do func() error) error {
	if err != nil {
		return err
	}
	err = do()
	return errors.Join(err, closeDB())
}
