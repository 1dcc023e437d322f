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

// pictures are images of what a source has.
type pictures struct{ *Source }

// image serves images of a video: what is kept is read, all else is made.
func (pi pictures) image(ctx context.Context, f *images.Video, o Order, base string) (playback.Image, error) {
	plan, err := pi.plan(f, o)
	if err != nil {
		return playback.Image{}, err
	}
	out := playback.Image{MaxAge: plan.MaxAge}
	if out.Body, err = pi.picture(ctx, f, plan, o); err != nil {
		return playback.Image{}, err
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

// plan is what an order for an image means.
func (pi pictures) plan(f *images.Video, o Order) (images.Plan, error) {
	if pi.opt.Images == nil {
		return images.Plan{}, fault.New(fault.NotFound, "this node makes no images")
	}
	r, err := images.Parse(o.Image, o.Query)
	if err != nil {
		return images.Plan{}, err
	}
	return f.Plan(r)
}

// picture is an image, or the layout of its text: kept, or made here or by another node.
func (pi pictures) picture(ctx context.Context, f *images.Video, plan images.Plan, o Order) (playback.Body, error) {
	if f.Prefix != "" {
		b, err := pi.objects.Open(ctx, f.Prefix+"/"+plan.Name, 0, -1)
		if !fault.Is(err, fault.NotFound) {
			return b, err
		}
	}
	var b playback.Body
	var err error
	if plan.From = playback.Viewer(ctx); pi.opt.Workers != nil {
		b.Data, err = pi.opt.Workers.Make(ctx, o)
	} else {
		b.Data, err = pi.opt.Images.Make(ctx, f, plan)
	}
	if err != nil || b.Data != nil {
		return b, err
	}
	if f.Prefix == "" { // the worker knows already that it has ended, and has stored it
		return b, fault.New(fault.Unavailable, "what was live has just ended: ask again in a moment")
	}
	return pi.objects.Open(ctx, f.Prefix+"/"+plan.Name, 0, -1)
}

// film is what there are images of.
func film(ctx context.Context, of playback.Presentation) (*images.Video, error) {
	switch p := of.(type) {
	case *recorded:
		f := &images.Video{Name: string(p.media), Timeline: p.timeline, Chosen: p.thumbnail}
		if video := p.timeline.Rendition(timeline.MainVideo); video != nil {
			f.Source = p.source(video)
		}
		if p.whole {
			f.Prefix = objectkey.Images(p.media)
		}
		return f, nil
	case *live:
		from, err := p.Footage(ctx)
		if err != nil {
			return nil, err
		}
		f := &images.Video{
			Name: p.Media() + "/live", Timeline: from.Timeline, Source: from.Source, Newest: from.Newest,
			Short: !p.event(),
		}
		if p.event() {
			f.Name = p.Media() + "/event"
		}
		return f, nil
	}
	return nil, fault.New(fault.Internal, "there are no images of %T", of)
}

// Image implements playback.Presentation.
func (rec *recorded) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	f, err := film(ctx, rec)
	if err != nil {
		return playback.Image{}, err
	}
	return pictures{rec.p}.image(ctx, f, rec.order.picture(name, query), base)
}

// Image implements playback.Presentation.
func (l *live) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	f, err := film(ctx, l)
	if err != nil {
		return playback.Image{}, err
	}
	o := Order{Stream: l.stream}
	if l.event() {
		o.Asset = l.about.Asset
	}
	return pictures{l.p}.image(ctx, f, o.picture(name, query), base)
}
