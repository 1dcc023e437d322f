package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"millrace/internal/app/send"
	"millrace/internal/config"
)

// upload sends a file to a running service.
func upload(ctx context.Context, c config.Command, cfg config.Config, stdout, stderr io.Writer) error {
	if cfg.TokenID == "" {
		return errors.New("upload needs an access token: set MILLRACE_TOKEN_ID and MILLRACE_TOKEN_SECRET (millrace token create makes one)")
	}
	o := send.Options{Server: strings.TrimSuffix(cfg.PublicBase(cfg.HTTPAddr).String(), "/"), TokenID: cfg.TokenID, Secret: cfg.TokenSecret.Reveal(), Policy: c.Policy}
	if isTerminal(stderr) {
		o.Progress = func(sent, size int64) {
			fmt.Fprintf(stderr, "\r%5.1f %% of %.1f MB", 100*float64(sent)/float64(size), float64(size)/1e6)
			if sent == size {
				fmt.Fprintln(stderr)
			}
		}
	}
	made, err := send.New(o).File(ctx, c.Words[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "ASSET_ID=%s\nPLAYBACK_ID=%s\n", made.Asset, made.PlaybackID)
	return err
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
