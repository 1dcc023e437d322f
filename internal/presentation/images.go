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
func (p *Source) image(ctx context.Context, f *images.Video, name, query, base string) (playback.Image, error) {
	if p.opt.Images == nil {
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
		out.Body, err = p.objects.Open(ctx, f.Prefix+"/"+plan.Name, 0, -1)
		if found = err == nil; err != nil && !fault.Is(err, fault.NotFound) {
			return playback.Image{}, err
		}
	}
	if plan.From = playback.Viewer(ctx); !found {
		if out.Data, err = p.opt.Images.Make(ctx, f, plan); err != nil {
			return playback.Image{}, err
		}
		if out.Data == nil {
			if out.Body, err = p.objects.Open(ctx, f.Prefix+"/"+plan.Name, 0, -1); err != nil {
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
func (v *recorded) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	f := &images.Video{Name: string(v.media), Timeline: v.timeline, Chosen: v.thumbnail}
	if video := v.timeline.Rendition(timeline.MainVideo); video != nil {
		f.Source = v.source(video)
	}
	if v.whole {
		f.Prefix = objectkey.Images(v.media)
	}
	return v.p.image(ctx, f, name, query, base)
}

// Image implements playback.Presentation.
func (v *live) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	from, err := v.Footage(ctx)
	if err != nil {
		return playback.Image{}, err
	}
	f := &images.Video{
		Name: v.Media() + "/live", Timeline: from.Timeline, Source: from.Source, Newest: from.Newest, Short: !v.event(),
	}
	if v.event() {
		f.Name = v.Media() + "/event"
	}
	return v.p.image(ctx, f, name, query, base)
}
