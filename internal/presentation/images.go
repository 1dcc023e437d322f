package presentation

import (
	"context"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/images"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// image serves images of a video: what is kept is read, all else is made.
func (src *Source) image(ctx context.Context, f *images.Video, name, query, base string) (playback.Image, error) {
	if src.opt.Images == nil {
		return playback.Image{}, fault.New(fault.NotFound, "this node makes no images")
	}
	r, err := images.Parse(name, query)
	if err != nil {
		return playback.Image{}, err
	}
	plan, err := f.Plan(r)
	if err != nil {
		return playback.Image{}, err
	}
	out := playback.Image{MaxAge: plan.MaxAge}
	found := false
	if f.Prefix != "" {
		out.Body, err = src.objects.Open(ctx, f.Prefix+"/"+plan.Name, 0, -1)
		if found = err == nil; err != nil && !fault.Is(err, fault.NotFound) {
			return playback.Image{}, err
		}
	}
	if plan.From = playback.Viewer(ctx); !found {
		if out.Data, err = src.opt.Images.Make(ctx, f, plan); err != nil {
			return playback.Image{}, err
		}
		if out.Data == nil {
			if out.Body, err = src.objects.Open(ctx, f.Prefix+"/"+plan.Name, 0, -1); err != nil {
				return playback.Image{}, err
			}
		}
	}
	if plan.Text() {
		data, err := delivered.Bytes(out.Body, nil)
		if err != nil {
			return playback.Image{}, err
		}
		if data, err = plan.Words(data, base); err != nil {
			return playback.Image{}, err
		}
		out.Body = playback.Body{Data: data}
	}
	out.Type = plan.Type()
	return out, nil
}

// Image implements playback.Presentation.
func (rec *recorded) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	f := &images.Video{Name: string(rec.media), Timeline: rec.timeline, Chosen: rec.thumbnail}
	if video := rec.timeline.Rendition(timeline.MainVideo); video != nil {
		f.Source = rec.source(video)
	}
	if rec.whole {
		f.Prefix = objectkey.Images(rec.media)
	}
	return rec.p.image(ctx, f, name, query, base)
}

// Image implements playback.Presentation.
func (l *live) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	from, err := l.Footage(ctx)
	if err != nil {
		return playback.Image{}, err
	}
	f := &images.Video{
		Name: l.Media() + "/live", Timeline: from.Timeline, Source: from.Source, Newest: from.Newest, Short: !l.event(),
	}
	if l.event() {
		f.Name = l.Media() + "/event"
	}
	return l.p.image(ctx, f, name, query, base)
}
