package delivery

import (
	"context"
	"log/slog"
	"time"

	"millrace/internal/id"
)

// warnEvery is how long after a warning the next one of its kind about the same endpoint comes at the earliest.
const warnEvery = time.Minute

// warning is what of ours has failed, and the endpoint that it is about; empty: all of them.
type warning struct {
	doing   string
	webhook id.Webhook
}

// warned is when a warning was written last, and how often it has been left out since.
type warned struct {
	at      time.Time
	omitted int
}

// warn writes what went wrong of our own into the log, once in warnEvery with how often it has happened meanwhile:
// while a database is away every attempt fails.
func (d *Dispatcher) warn(ctx context.Context, about warning, err error) {
	now := d.o.Now()
	last, before := d.warned[about]
	if before && now.Sub(last.at) < warnEvery {
		last.omitted++
		d.warned[about] = last
		return
	}
	attributes := []slog.Attr{slog.String("doing", about.doing), slog.Any("error", err)}
	if about.webhook != "" {
		attributes = append(attributes, slog.Any("webhook_id", about.webhook))
	}
	if last.omitted > 0 {
		attributes = append(attributes, slog.Int("not_logged", last.omitted))
	}
	d.o.Logger.LogAttrs(ctx, slog.LevelWarn, "deliveries to webhooks are held up", attributes...)
	for other, w := range d.warned {
		if now.Sub(w.at) >= warnEvery && w.omitted == 0 {
			delete(d.warned, other)
		}
	}
	d.warned[about] = warned{at: now}
}
