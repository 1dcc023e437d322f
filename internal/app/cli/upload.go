package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"millrace/internal/app/send"
	"millrace/internal/config"
)

// errInterrupted is that somebody ended a command that can go on later; how, was printed.
var errInterrupted = errors.New("interrupted")

// upload sends files to a running service, one after the other. One that fails does not keep the others back.
func upload(
	ctx context.Context, c config.Command, cfg config.Config, environ []string, stdout, stderr io.Writer,
) error {
	if cfg.TokenID == "" {
		return errors.New("upload needs an access token: set MILLRACE_TOKEN_ID and MILLRACE_TOKEN_SECRET " +
			"(millrace token create makes one)")
	}
	if err := look(c.Words); err != nil {
		return err
	}
	p := &progress{out: stderr, terminal: isTerminal(stderr)}
	o := send.Options{
		Server:  strings.TrimSuffix(cfg.PublicBase(cfg.HTTPAddr).String(), "/"),
		TokenID: cfg.TokenID, Secret: cfg.TokenSecret.Reveal(), Policy: c.Asset.Policy, Title: c.Asset.Title,
		Notes: notesFolder(environ), Progress: p.sent, Say: p.say,
	}
	sender := send.New(o)
	failed := 0
	for _, path := range c.Words {
		p.begin(path)
		made, err := sender.File(ctx, path)
		p.end()
		switch {
		case err != nil && ctx.Err() != nil:
			interrupted(stderr, p, o.Notes != "")
			return errInterrupted
		case err != nil && len(c.Words) == 1:
			return err
		case err != nil:
			failed++
			fmt.Fprintf(stderr, "millrace: %s: %v\n", printable(path), err)
			continue
		}
		if len(c.Words) > 1 {
			fmt.Fprintf(stdout, "FILE=%s\n", printable(path))
		}
		if _, err = fmt.Fprintf(stdout, "ASSET_ID=%s\nPLAYBACK_ID=%s\n", made.Asset, made.PlaybackID); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files were not sent: the same command sends those alone", failed, len(c.Words))
	}
	sender.Forget(c.Words...)
	return nil
}

// look finds what can't be sent before anything is.
func look(paths []string) error {
	var problems []error
	for _, path := range paths {
		f, _, err := send.Open(path)
		if err == nil {
			_ = f.Close() // it was only looked at
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// interrupted says how to go on.
func interrupted(stderr io.Writer, p *progress, remembered bool) {
	if !remembered {
		fmt.Fprintln(stderr, "millrace: interrupted; the same command starts from the first byte, because there is no "+
			"HOME to remember the upload in")
		return
	}
	fmt.Fprintf(stderr, "millrace: interrupted at %d %% of %s; the same command goes on there, until %s\n",
		p.percent(), printable(p.path), time.Now().Add(send.KeptFor).Format("Mon 15:04"))
}

// notesFolder is where unfinished uploads are remembered (XDG Base Directory Specification); empty: nowhere.
func notesFolder(environ []string) string {
	value := func(name string) (last string) {
		for _, e := range environ {
			if v, ok := strings.CutPrefix(e, name+"="); ok && filepath.IsAbs(v) {
				last = v
			}
		}
		return last
	}
	base := value("XDG_STATE_HOME")
	if base == "" {
		home := value("HOME")
		if home == "" {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "millrace", "uploads")
}

// printable is a path on one line: a name may have line feeds, and what terminals take for commands.
func printable(path string) string {
	if quoted := strconv.Quote(path); quoted[1:len(quoted)-1] != path {
		return quoted
	}
	return path
}

// isTerminal reports whether somebody looks at what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
