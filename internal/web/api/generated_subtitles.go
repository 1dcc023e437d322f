package api

import (
	"context"
	"net/http"

	"millrace/internal/id"
)

func (s *server) routeGeneratedSubtitles() {
	handle(s, route{
		method: http.MethodPost, path: trackItem + "/generate-subtitles", id: "generate-asset-track-subtitles", tag: assetTag,
		status: http.StatusCreated, permission: videoWrite, summary: "Generate subtitles for an audio track",
		text: "Adds one text track per entry, made by speech recognition. A track is preparing until it is done; " +
			"its transcript is then at /{playback_id}/text/{track_id}.txt. The asset must be ready.",
	}, s.generateSubtitles)
	handle(s, route{
		method: http.MethodPut, path: liveItem + "/generated-subtitles", id: "update-live-stream-generated-subtitles", tag: liveTag,
		permission: videoWrite, summary: "Replace the generated subtitles of a live stream",
		text: "At most one entry; an empty list or null clears them. Refused while the live stream is active.",
	}, s.putGeneratedSubtitles)
}

// GenerateSubtitles asks for text tracks of an audio track.
type GenerateSubtitles struct {
	GeneratedSubtitles OneOrMany[GeneratedSubtitle] `json:"generated_subtitles,omitempty" doc:"Required."`
}

type generateSubtitlesInput struct {
	AssetRef
	Track string `path:"track_id" maxLength:"255"`
	Body  GenerateSubtitles
}

func (s *server) generateSubtitles(ctx context.Context, in *generateSubtitlesInput) (*many[Track], error) {
	made, err := s.assets.GenerateTracks(ctx, environment(ctx), in.id(), id.Track(in.Track), subtitlesOf(in.Body.GeneratedSubtitles), s.now())
	return all(convert(made, s.track)), err
}

// GeneratedSubtitlesUpdate replaces a live stream's generated_subtitles.
type GeneratedSubtitlesUpdate struct {
	GeneratedSubtitles OneOrMany[GeneratedSubtitle] `json:"generated_subtitles,omitempty" doc:"At most one; an empty list clears them."`
}

type putGeneratedSubtitlesInput struct {
	LiveRef
	Body GeneratedSubtitlesUpdate
}

func (s *server) putGeneratedSubtitles(ctx context.Context, in *putGeneratedSubtitlesInput) (*one[LiveStream], error) {
	stream, err := s.live.SetGeneratedSubtitles(ctx, environment(ctx), in.id(), subtitlesOf(in.Body.GeneratedSubtitles), s.now())
	return s.liveStream(ctx, stream, err)
}
