// Package cli turns a command line into one action and an exit code: it prints help, versions, settings, tokens and findings, and
// hands the long-running commands on. It must never know how the service is built; it is given functions for that.
// It owns no goroutines.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"millrace/internal/app/demo"
	"millrace/internal/app/doctor"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/blob"
)

// Actions are what the commands do beyond printing.
type Actions struct {
	// Serve runs the service until ctx ends, drains, and returns nil.
	Serve func(ctx context.Context, cfg config.Config) error
	// Access opens the tokens of the configured database; close lets go of it.
	Access func(ctx context.Context, cfg config.Config) (tokens Tokens, closeDB func() error, err error)
	// OpenStorage opens a storage as Serve would, but at the given URL.
	OpenStorage func(ctx context.Context, cfg config.Config, url config.Secret) (blob.Store, error)
}

// Tokens is the part of access.API that the commands about tokens and their environment use.
type Tokens interface {
	CreateToken(ctx context.Context, name string, now time.Time) (access.Token, string, error)
	Tokens(ctx context.Context) ([]access.Token, error)
	RevokeToken(ctx context.Context, t id.Token, now time.Time) error
	SetQuality(ctx context.Context, quality string, now time.Time) error
	SetLiveRungs(ctx context.Context, policy string, now time.Time) error
}

// oneWish is how long a signal counts as the same wish as the one before: timeout(1) and some supervisors send each twice.
const oneWish = 300 * time.Millisecond

// Main runs one command line and returns the exit code. The first Ctrl-C or SIGTERM ends the context, a second one the process.
func Main(args, environ []string, stdout, stderr io.Writer, a Actions) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(oneWish, stop) })() // from then on a signal does what it does by itself
	return Run(ctx, args, environ, stdout, stderr, a)
}

// Run is Main without signals.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer, a Actions) int {
	c, cfg, err := config.Load(args, environ, os.ReadFile)
	if ce, is := errors.AsType[*config.Error](err); is {
		fmt.Fprintln(stderr, ce.Report())
		return config.ExitUsage
	}
	if c.Name != config.Check && c.Name != config.Doctor { // those two show them in their own way
		for _, w := range cfg.Warnings {
			fmt.Fprintln(stderr, "millrace: warning:", w)
		}
	}
	healthy, err := run(ctx, c, cfg, stdout, a)
	if err != nil {
		for _, line := range sentences(err) {
			fmt.Fprintln(stderr, "millrace:", line)
		}
		return config.ExitFailed
	}
	if !healthy {
		return config.ExitFailed
	}
	return config.ExitOK
}

// sentences is what a person is told of an error: its own sentences where it has some, else all of it.
func sentences(err error) []string {
	if m := fault.Messages(err); len(m) > 0 && fault.KindOf(err) != fault.Internal {
		if fault.KindOf(err) == fault.Unavailable {
			m = append(slices.Clone(m), "millrace doctor with the same settings says what is wrong")
		}
		return m
	}
	return []string{err.Error()}
}

func run(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (healthy bool, err error) {
	switch c.Name {
	case config.Help:
		_, err = fmt.Fprintln(stdout, c.Text)
	case config.Version:
		_, err = fmt.Fprintf(stdout, "millrace %s (%s, %s/%s)\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	case config.Check:
		err = cfg.Print(stdout)
	case config.Doctor:
		open := func(ctx context.Context, url config.Secret) (blob.Store, error) { return a.OpenStorage(ctx, cfg, url) }
		return doctor.Run(ctx, doctor.Checks(doctor.Options{Config: cfg, OpenStorage: open}), stdout, c.JSON)
	case config.Demo:
		err = demo.Run(ctx, demo.Options{Config: cfg, Flags: c.SettingFlags, Duration: c.Duration, Out: stdout})
	case config.Serve:
		err = a.Serve(ctx, cfg)
	case config.TokenCreate, config.TokenList, config.TokenRevoke, config.SetQuality, config.SetLiveRungs:
		err = tokens(ctx, c, cfg, stdout, a)
	default:
		err = fmt.Errorf("command %q has no action", c.Name)
	}
	return true, err
}

// tokens runs a command about tokens or their environment.
func tokens(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (err error) {
	t, closeDB, err := a.Access(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	switch c.Name {
	case config.TokenCreate:
		made, secret, createErr := t.CreateToken(ctx, c.Label, time.Now())
		if createErr != nil {
			return createErr
		}
		// In the form of a shell's or a container's environment, so that it can be kept as it is.
		_, err = fmt.Fprintf(stdout, "MILLRACE_TOKEN_ID=%s\nMILLRACE_TOKEN_SECRET=%s\n", made.ID, secret)
	case config.SetQuality:
		err = t.SetQuality(ctx, wanted(c.Words[0]), time.Now())
	case config.SetLiveRungs:
		err = t.SetLiveRungs(ctx, wanted(c.Words[0]), time.Now())
	case config.TokenRevoke:
		err = t.RevokeToken(ctx, id.Token(c.Words[0]), time.Now())
	default:
		err = listTokens(ctx, t, stdout)
	}
	return err
}

// wanted is a setting of an environment by its word: default is the service's own.
func wanted(word string) string {
	if word == "default" {
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
	fmt.Fprintln(tab, "ID\tNAME\tCREATED\tREVOKED")
	for _, token := range all {
		revoked := "-"
		if !token.RevokedAt.IsZero() {
			revoked = token.RevokedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", token.ID, token.Name, token.CreatedAt.UTC().Format(time.RFC3339), revoked)
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print tokens: %w", err)
	}
	return nil
}

// Version is the module's version, or the commit it was built from, or dev.
func Version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "dev"
}
