package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/id"
)

// generatedSubtitles are the operations of speech recognition, of assets and live streams.
type generatedSubtitles struct {
	assets  asset.API
	form    assetForm
	streams liveStreams
	now     func() time.Time
}

func (g generatedSubtitles) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       trackItem + "/generate-subtitles",
		id:         "generate-asset-track-subtitles",
		tag:        assetTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Generate subtitles for an audio track",
		text: "Adds one text track per entry, made by speech recognition. A track is preparing until it is done; " +
			"its transcript is then at /{playback_id}/text/{track_id}.txt. The asset must be ready.",
	}, g.generate)
	handle(on, route{
		method:     http.MethodPut,
		path:       liveItem + "/generated-subtitles",
		id:         "update-live-stream-generated-subtitles",
		tag:        liveTag,
		permission: videoWrite,
		summary:    "Replace the generated subtitles of a live stream",
		text:       "At most one entry; an empty list or null clears them. Refused while the live stream is active.",
	}, g.setOfStream)
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

func (g generatedSubtitles) generate(ctx context.Context, in *generateSubtitlesInput) (*many[Track], error) {
	wanted := subtitlesOf(in.Body.GeneratedSubtitles)
	made, err := g.assets.GenerateTracks(ctx, environment(ctx), in.id(), id.Track(in.Track), wanted, g.now())
	return all(convert(made, g.form.track)), err
}

// GeneratedSubtitlesUpdate replaces a live stream's generated_subtitles.
type GeneratedSubtitlesUpdate struct {
	GeneratedSubtitles OneOrMany[GeneratedSubtitle] `json:"generated_subtitles,omitempty" doc:"At most one; an empty list clears them."`
}

type putGeneratedSubtitlesInput struct {
	LiveRef
	Body GeneratedSubtitlesUpdate
}

func (g generatedSubtitles) setOfStream(ctx context.Context, in *putGeneratedSubtitlesInput) (*one[LiveStream], error) {
	wanted := subtitlesOf(in.Body.GeneratedSubtitles)
	stream, err := g.streams.live.SetGeneratedSubtitles(ctx, environment(ctx), in.id(), wanted, g.now())
	return g.streams.response(ctx, stream, err)
}
