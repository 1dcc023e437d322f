package api

import (
	"context"
	"net/http"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
)

// routeSubtitles registers which subtitles a live stream gets.
func (s *server) routeSubtitles() {
	handle(s, route{
		method: http.MethodPut, path: liveItem + "/embedded-subtitles", id: "update-live-stream-embedded-subtitles", tag: liveTag, permission: videoWrite,
		summary: "Replace the embedded subtitles of a live stream",
		text:    "Sets which captions in the video become text tracks. An empty list clears them. Only while the live stream is idle.",
	}, s.setEmbeddedSubtitles)
}

// EmbeddedSubtitlesUpdate replaces a live stream's embedded_subtitles. Clients whose language leaves empty lists out, as Go's does, clear them with an
// empty object.
type EmbeddedSubtitlesUpdate struct {
	EmbeddedSubtitles []EmbeddedSubtitle `json:"embedded_subtitles,omitempty" nullable:"true" doc:"At most one per channel; an empty list clears them."`
}

type setEmbeddedSubtitlesInput struct {
	LiveRef
	Body EmbeddedSubtitlesUpdate
}

func (s *server) setEmbeddedSubtitles(ctx context.Context, in *setEmbeddedSubtitlesInput) (*one[LiveStream], error) {
	list := make([]assetopt.EmbeddedSubtitle, 0, len(in.Body.EmbeddedSubtitles))
	for _, e := range in.Body.EmbeddedSubtitles {
		list = append(list, assetopt.EmbeddedSubtitle(e))
	}
	stream, err := s.live.Patch(ctx, environment(ctx), in.id(), live.PatchInput{EmbeddedSubtitles: &list}, s.now())
	return s.liveStream(ctx, stream, err)
}
