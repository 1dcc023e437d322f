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
)

// errInterrupted is that somebody ended a command that can go on later; how, was printed.
var errInterrupted = errors.New("interrupted")

func uploadCommands() []command {
	return []command{
		of("upload FILE…", "upload files to a running service as assets",
			"Creates a direct upload for each file, sends them one after the other, and prints each asset's ID and "+
				"playback ID. Lost connections are retried. If the command is interrupted in any way, running it "+
				"again within a day resumes where it stopped: unfinished uploads are remembered in "+
				"$XDG_STATE_HOME/millrace/uploads, or ~/.local/state/millrace/uploads. Needs an access token in "+
				"MILLRACE_TOKEN_ID and MILLRACE_TOKEN_SECRET, and reaches the service at --public-url. Exit code "+
				"130 after Ctrl-C.", &upload{}),
	}
}

// upload sends files to a running service, one after the other. One that fails does not keep the others back.
type upload struct{ policy, title string } // no title: the name of the file

func (u *upload) flags(f *flags) {
	f.oneOf(&u.policy, []string{"public", "signed"}, "policy", "policy", "public",
		"Playback policy of the asset: public or signed.")
	add(f, &u.title, title, "title", "text", "",
		"Title of the asset; only with a single file. Default: the file's name.")
}

// check says what is wrong with the files.
func (u *upload) check(files []string) (problems []string) {
	if u.title != "" && len(files) > 1 {
		problems = []string{"--title is for one file: without it each asset has the name of its file"}
	}
	return problems
}

func (u *upload) run(ctx context.Context, r *request) error {
	if r.cfg.TokenID == "" {
		return errors.New("upload needs an access token: set MILLRACE_TOKEN_ID and MILLRACE_TOKEN_SECRET " +
			"(millrace token create makes one)")
	}
	if err := look(r.words); err != nil {
		return err
	}
	p := &progress{out: r.err, terminal: isTerminal(r.err)}
	o := send.Options{
		Server:  strings.TrimSuffix(r.cfg.PublicBase(r.cfg.HTTPAddr).String(), "/"),
		TokenID: r.cfg.TokenID, Secret: r.cfg.TokenSecret.Reveal(), Policy: u.policy, Title: u.title,
		Notes: notesFolder(r.environ), Progress: p.sent, Say: p.say,
	}
	sender := send.New(o)
	failed := 0
	for _, path := range r.words {
		p.begin(path)
		made, err := sender.File(ctx, path)
		p.end()
		switch {
		case err != nil && ctx.Err() != nil:
			interrupted(r.err, p, o.Notes != "")
			return errInterrupted
		case err != nil && len(r.words) == 1:
			return err
		case err != nil:
			failed++
			fmt.Fprintf(r.err, "millrace: %s: %v\n", printable(path), err)
			continue
		}
		if len(r.words) > 1 {
			fmt.Fprintf(r.out, "FILE=%s\n", printable(path))
		}
		if err = r.say("ASSET_ID=%s\nPLAYBACK_ID=%s", made.Asset, made.PlaybackID); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files were not sent: the same command sends those alone", failed, len(r.words))
	}
	sender.Forget(r.words...)
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
