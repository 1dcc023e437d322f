package broadcast

import (
	"context"
	"errors"
	"strings"
	"time"

	"millrace/internal/broadcast/subtitles"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/media/overlay"
	"millrace/internal/media/slate"
)

// explain says why an image can't be used, for its owner.
func explain(err error) string {
	if said := fault.Messages(err); len(said) > 0 {
		return strings.Join(said, "; ")
	}
	if errors.Is(err, slate.ErrImage) || errors.Is(err, overlay.ErrImage) {
		return err.Error()
	}
	return "it can't be fetched"
}

// warn tells both the stream and the asset that something of it is missing: an image of the owner's, or subtitles.
func (b *broadcast) warn(kind, message string) {
	now := b.opt.Now()
	b.tell("warning", func(ctx context.Context) error {
		return b.opt.Streams.Warn(ctx, b.id, b.by, live.Warning{Type: kind, Message: message}, now)
	})
	b.tell("warning", func(ctx context.Context) error {
		return b.opt.Assets.Warn(ctx, b.asset.ID, asset.Warning{Type: kind, Message: message}, now)
	})
}

// warnAtFirst is warn from another goroutine, unless an earlier process has recorded something: then the warning was
// told.
func (b *broadcast) warnAtFirst(kind, message string) {
	if b.fresh {
		b.mail.post(func() { b.warn(kind, message) })
	}
}

// SpeechMissing is the type of the warning that what was said is missing in generated subtitles.
const SpeechMissing = "generated_subtitles_incomplete"

// speechReports are told how recognition is getting on.
func (b *broadcast) speechReports() subtitles.Reports {
	return subtitles.Reports{
		Warn:   func(message string) { b.mail.post(func() { b.warn(SpeechMissing, message) }) },
		Missed: func(long time.Duration) { b.unheard.Add(int64(long)) },
		Broken: b.broken,
	}
}

// EncoderUnsteady is the type of the warning that an encoder was cut off because it broke off all the time.
const EncoderUnsteady = "encoder_unsteady"

// encoderUnsteady warns of that from any goroutine, once: an encoder calls again, and is cut off again.
func (b *broadcast) encoderUnsteady(message string) {
	b.mail.post(func() {
		if !b.unsteady {
			b.unsteady = true
			b.warn(EncoderUnsteady, message)
		}
	})
}
