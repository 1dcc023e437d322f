package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"millrace/internal/app/cleanup"
	"millrace/internal/clientaddr"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/lifecycle"
	"millrace/internal/web/api"
	"millrace/internal/web/limit"
	"millrace/internal/worker/prune"
)

// inJournal reports whether what is shown goes to systemd's journal, which keeps everything and is read by others than
// the operator: JOURNAL_STREAM names its device and inode (systemd.exec(5)). Whatever else standard output is, such as
// the socket of a parent process, is the operator's own.
func inJournal(show io.Writer) bool {
	f, is := show.(*os.File)
	if !is {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	stream := os.Getenv("JOURNAL_STREAM") //nolint:forbidigo // systemd's own, not this program's
	return is && stream == fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// firstToken seeds the configured token, or makes the first one and shows it this once, where no log would keep it.
func firstToken(ctx context.Context, service access.API, cfg config.Config, log *slog.Logger, show io.Writer) error {
	if cfg.TokenID != "" {
		revoked, err := service.SeedToken(ctx, id.Token(cfg.TokenID), cfg.TokenSecret.Reveal(), clock())
		if revoked {
			log.WarnContext(ctx,
				"the token of the settings was revoked and stays so: take token-id and token-secret out, or name "+
					"another one", "token_id", cfg.TokenID)
		}
		return err
	}
	all, err := service.Tokens(ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	if inJournal(show) {
		log.InfoContext(ctx, "there is no access token for the API yet: make one with millrace token create")
		return nil
	}
	t, secret, err := service.CreateToken(ctx, access.TokenInput{Name: "first"}, clock())
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "made the first access token", "token_id", t.ID)
	fmt.Fprintf(show,
		"\nAccess token for the API (the secret is shown only once):\n  MILLRACE_TOKEN_ID=%s\n  "+
			"MILLRACE_TOKEN_SECRET=%s\n\n", t.ID, secret)
	return nil
}

// tidy adds what keeps the database small and up to date.
func (n *node) tidy(g *lifecycle.Group) {
	g.Add(&prune.Pruner{What: "events", Prune: n.db.PruneEvents, Keep: n.cfg.EventRetention, Now: clock, Logger: n.log})
	g.Add(&prune.Pruner{
		What:   "audit log",
		Prune:  n.db.PruneAuditLog,
		Keep:   n.cfg.AuditRetention,
		Now:    clock,
		Logger: n.log,
	})
	g.Add(&prune.Pruner{What: "uploads", Prune: n.db.PruneUploads, Keep: upload.Keep, Now: clock, Logger: n.log})
	g.Add(cleanup.Clock(n.db, n.log))
	g.Add(&tokenUse{access: n.access, log: n.log})
	g.Add(n.storageUsers())
}

// tokenUse writes from time to time when tokens were last used.
type tokenUse struct {
	access *access.Service
	log    *slog.Logger
}

// useEvery is how exact the time of a token's last use is.
const useEvery = time.Minute

// Name implements lifecycle.Service.
func (*tokenUse) Name() string { return "token use" }

// Run implements lifecycle.Service.
func (t *tokenUse) Run(ctx context.Context) error {
	tick := time.NewTicker(useEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.write(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastUse)
			defer cancel()
			t.write(last)
			return context.Cause(ctx)
		}
	}
}

// lastUse is how long it may take when the service stops.
const lastUse = 2 * time.Second

func (t *tokenUse) write(ctx context.Context) {
	if err := t.access.WriteUse(ctx); err != nil && ctx.Err() == nil {
		t.log.WarnContext(ctx, "note when tokens were used", "error", err)
	}
}

// clients finds the addresses of clients behind proxies.
func (n *node) clients() clientaddr.Finder { return clientaddr.Finder{Proxies: n.cfg.TrustedProxies} }

// callers is who may call the API, and how often.
func (n *node) callers() api.Callers {
	c := api.Callers{
		Access: n.access, Audit: n.db, Clients: n.clients(),
		Limits: api.Limits{Token: limit.New(n.cfg.APIRateToken), Address: limit.New(n.cfg.APIRateAddress)},
	}
	if n.tracing != nil {
		c.Tracing = n.tracing
	}
	return c
}
