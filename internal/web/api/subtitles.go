package api

import (
	"context"
	"net/http"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
)

// embeddedSubtitles are those of live streams.
type embeddedSubtitles struct{ streams liveStreams }

// register registers which subtitles a live stream gets.
func (e embeddedSubtitles) register(on *server) {
	handle(on, route{
		method:     http.MethodPut,
		path:       liveItem + "/embedded-subtitles",
		id:         "update-live-stream-embedded-subtitles",
		tag:        liveTag,
		permission: videoWrite,
		summary:    "Replace the embedded subtitles of a live stream",
		text: "Sets which captions in the video become text tracks. An empty list clears them. Only while the " +
			"live stream is idle.",
	}, e.set)
}

// EmbeddedSubtitlesUpdate replaces a live stream's embedded_subtitles. Clients whose language leaves empty lists out,
// as Go's does, clear them with an empty object.
type EmbeddedSubtitlesUpdate struct {
	EmbeddedSubtitles []EmbeddedSubtitle `json:"embedded_subtitles,omitempty" nullable:"true" doc:"At most one per channel; an empty list clears them."`
}

type setEmbeddedSubtitlesInput struct {
	LiveRef
	Body EmbeddedSubtitlesUpdate
}

func (e embeddedSubtitles) set(ctx context.Context, in *setEmbeddedSubtitlesInput) (*one[LiveStream], error) {
	list := make([]assetopt.EmbeddedSubtitle, 0, len(in.Body.EmbeddedSubtitles))
	for _, sub := range in.Body.EmbeddedSubtitles {
		list = append(list, assetopt.EmbeddedSubtitle(sub))
	}
	patch := live.PatchInput{EmbeddedSubtitles: &list}
	stream, err := e.streams.live.Patch(ctx, environment(ctx), in.id(), patch, e.streams.now())
	return e.streams.response(ctx, stream, err)
}
