package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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

// tokens runs a command about access tokens.
func tokens(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (err error) {
	t, closeDB, err := a.Access(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	switch c.Name {
	case config.TokenCreate:
		return createToken(ctx, c, t, time.Now(), stdout)
	case config.TokenRevoke:
		err = t.RevokeToken(ctx, id.Token(c.Words[0]), time.Now())
		return sayUnless(err, stdout, "Access token %s is revoked.", c.Words[0])
	default:
		return listTokens(ctx, t, stdout)
	}
}

// environments runs a command about environments.
func environments(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (err error) {
	t, closeDB, err := a.Access(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	switch c.Name {
	case config.EnvironmentCreate:
		made, failed := t.CreateEnvironment(ctx, c.Words[0], c.Access.Kind, time.Now())
		return sayUnless(failed, stdout, "%s", made.ID)
	case config.EnvironmentRename:
		_, err = t.RenameEnvironment(ctx, id.Environment(c.Words[0]), c.Words[1], time.Now())
		return sayUnless(err, stdout, "Environment %s is called %q now.", c.Words[0], c.Words[1])
	case config.EnvironmentList:
		return listEnvironments(ctx, t, stdout)
	default:
		return setEnvironment(ctx, c, t, stdout)
	}
}

// setEnvironment changes one setting of an environment, and says what it is now.
func setEnvironment(ctx context.Context, c config.Command, t Tokens, stdout io.Writer) (err error) {
	env, now, word := id.Environment(c.Access.Environment), time.Now(), c.Words[0]
	switch c.Name {
	case config.SetQuality:
		err = t.SetQuality(ctx, env, wanted(word), now)
	case config.SetCaptions:
		err = t.SetCaptions(ctx, env, wanted(word), now)
	case config.SetLiveRungs:
		err = t.SetLiveRungs(ctx, env, wanted(word), now)
	case config.SetFrameAncestors:
		err = t.SetFrameAncestors(ctx, env, strings.Split(word, ","), now)
	}
	whose := "the default environment"
	if env != "" {
		whose = "environment " + string(env)
	}
	if word == defaultWord {
		word += ", the service's own"
	}
	return sayUnless(err, stdout, "%s of %s: %s", strings.TrimPrefix(c.Name, "environment "), whose, word)
}

func createToken(ctx context.Context, c config.Command, t Tokens, now time.Time, stdout io.Writer) error {
	in := access.TokenInput{
		Environment: id.Environment(c.Access.Environment), Name: c.Label, Permissions: c.Access.Permissions, ExpiresAt: c.Access.ExpiresAt,
	}
	if c.Access.ExpiresIn > 0 {
		in.ExpiresAt = now.Add(c.Access.ExpiresIn)
	}
	if c.Access.Installation {
		if len(in.Permissions) > 0 || in.Environment != "" {
			return errors.New("an installation token belongs to no environment: leave out --permission and --environment")
		}
		in.Permissions = access.InstallationPermissions()
	}
	made, secret, err := t.CreateToken(ctx, in, now)
	if err != nil {
		return err
	}
	// In the form of a shell's or a container's environment, so that it can be kept as it is.
	_, err = fmt.Fprintf(stdout, "MILLRACE_TOKEN_ID=%s\nMILLRACE_TOKEN_SECRET=%s\n", made.ID, secret)
	return err
}

// defaultWord takes a setting back from an environment.
const defaultWord = "default"

// wanted is a setting of an environment by its word: default is the service's own.
func wanted(word string) string {
	if word == defaultWord {
		return ""
	}
	return word
}

func listTokens(ctx context.Context, t Tokens, stdout io.Writer) error {
	all, err := t.Tokens(ctx)
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "ID\tNAME\tENVIRONMENT\tPERMISSIONS\tCREATED\tEXPIRES\tLAST USED\tREVOKED")
	for _, token := range all {
		env, permissions := string(token.Environment), "all"
		switch {
		case token.Permits(access.InstallationWrite):
			env, permissions = none, "installation"
		case len(token.Permissions) < len(access.Permissions()):
			permissions = strings.Join(token.Permissions, ",")
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", token.ID, token.Name, env, permissions,
			timeOrNone(token.CreatedAt), timeOrNone(token.ExpiresAt), timeOrNone(token.LastUsedAt), timeOrNone(token.RevokedAt))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print tokens: %w", err)
	}
	return nil
}

func timeOrNone(at time.Time) string {
	if at.IsZero() {
		return none
	}
	return at.UTC().Format(time.RFC3339)
}

const environmentsPage = 100

func listEnvironments(ctx context.Context, t Tokens, stdout io.Writer) error {
	tab := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "ID\tNAME\tTYPE\tCREATED\tFRAME ANCESTORS")
	for page := 1; ; page++ {
		found, err := t.Environments(ctx, page, environmentsPage)
		if err != nil {
			return err
		}
		for _, e := range found {
			ancestors := "all"
			switch e.FrameAncestors {
			case "":
			case access.FrameNone:
				ancestors = "none"
			default:
				ancestors = strings.ReplaceAll(e.FrameAncestors, " ", ",")
			}
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", e.ID, e.Name, e.Kind, timeOrNone(e.CreatedAt), ancestors)
		}
		if len(found) < environmentsPage {
			break
		}
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print environments: %w", err)
	}
	return nil
}
