package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	mux "github.com/muxinc/mux-go/v6"
)

const film = "https://example.com/film.mp4"

func (r run) create(request mux.CreateAssetRequest) (mux.Asset, error) {
	if request.Input == nil {
		request.Input = []mux.InputSettings{{Url: film}}
	}
	made, err := r.AssetsApi.CreateAsset(request)
	return made.Data, err
}

func (r run) asset() error {
	made, err := r.create(mux.CreateAssetRequest{PlaybackPolicy: []mux.PlaybackPolicy{mux.PUBLIC}})
	if err != nil {
		return err
	}
	again, err := r.AssetsApi.GetAsset(made.Id)
	if err != nil {
		return err
	}
	listed, err := r.AssetsApi.ListAssets(mux.WithParams(&mux.ListAssetsParams{Limit: 10}))
	if err != nil {
		return err
	}
	info, err := r.AssetsApi.GetAssetInputInfo(made.Id)
	if err != nil {
		return err
	}
	if len(made.PlaybackIds) != 1 || len(listed.Data) != 1 || len(info.Data) != 1 {
		return fmt.Errorf("%d playback IDs, %d listed, %d inputs", len(made.PlaybackIds), len(listed.Data),
			len(info.Data))
	}
	found, err := r.PlaybackIDApi.GetAssetOrLivestreamId(made.PlaybackIds[0].Id)
	if err != nil {
		return err
	}
	if err := errors.Join(want("status", made.Status, "preparing"), want("the ID got", again.Data.Id, made.Id),
		want("the ID listed", listed.Data[0].Id, made.Id),
		want("the input's URL", info.Data[0].Settings.Url, film),
		want("what the playback ID leads to", found.Data.Object.Id, made.Id)); err != nil {
		return err
	}
	if err := r.AssetsApi.DeleteAsset(made.Id); err != nil {
		return err
	}
	_, err = r.AssetsApi.GetAsset(made.Id)
	return refused[mux.NotFoundError]("a deleted asset", err)
}

func (r run) assetFields() error {
	signed := film + "?signature=" + strings.Repeat("s", 8000)
	made, err := r.create(mux.CreateAssetRequest{
		Input: []mux.InputSettings{
			{Url: signed, Name: "Main", LanguageCode: "en"},
			{
				Url:             "https://example.com/logo.png",
				OverlaySettings: mux.InputSettingsOverlaySettings{Width: "10%", HorizontalAlign: "right"},
			},
			{
				Url:            "https://example.com/de.srt",
				Type:           "text",
				TextType:       "subtitles",
				LanguageCode:   "de",
				ClosedCaptions: true,
			},
		},
		AdvancedPlaybackPolicies: []mux.CreatePlaybackIdRequest{{Policy: mux.PUBLIC}},
		Passthrough:              "p",
		MaxResolutionTier:        "1440p",
		VideoQuality:             "plus",
		Meta:                     mux.AssetMetadata{Title: "Film", CreatorId: "c", ExternalId: "e"},
		NormalizeAudio:           true,
		Test:                     true,
	})
	if err != nil {
		return err
	}
	info, err := r.AssetsApi.GetAssetInputInfo(made.Id)
	if err != nil {
		return err
	}
	return errors.Join(
		want("meta", made.Meta, mux.AssetMetadata{Title: "Film", CreatorId: "c", ExternalId: "e"}),
		want("passthrough", made.Passthrough, "p"),
		want("max_resolution_tier", made.MaxResolutionTier, "1440p"), want("video_quality", made.VideoQuality, "plus"),
		want("test", made.Test, true),
		want("inputs", len(info.Data), 3), want("the signed URL", info.Data[0].Settings.Url, signed),
		want("the overlay's width", info.Data[1].Settings.OverlaySettings.Width, "10%"),
		want("the main file's overlay", info.Data[0].Settings.OverlaySettings, mux.InputSettingsOverlaySettings{}),
		r.AssetsApi.DeleteAsset(made.Id))
}

func (r run) assetUpdate() error {
	made, err := r.create(mux.CreateAssetRequest{
		Passthrough: "first",
		Meta:        mux.AssetMetadata{Title: "Film", ExternalId: "e"},
	})
	if err != nil {
		return err
	}
	changed, err := r.AssetsApi.UpdateAsset(made.Id, mux.UpdateAssetRequest{Passthrough: "second"})
	if err != nil {
		return err
	}
	renamed, err := r.AssetsApi.UpdateAsset(made.Id, mux.UpdateAssetRequest{Meta: mux.AssetMetadata{Title: "Other"}})
	if err != nil {
		return err
	}
	return errors.Join(
		want("passthrough", changed.Data.Passthrough, "second"),
		want("meta of an update without it", changed.Data.Meta, made.Meta),
		want("meta", renamed.Data.Meta, mux.AssetMetadata{Title: "Other"}),
		want("passthrough of an update without it", renamed.Data.Passthrough, "second"),
		r.AssetsApi.DeleteAsset(made.Id))
}

func (r run) assetPlaybackIDs() error {
	made, err := r.create(mux.CreateAssetRequest{})
	if err != nil {
		return err
	}
	added, err := r.AssetsApi.CreateAssetPlaybackId(made.Id, mux.CreatePlaybackIdRequest{Policy: mux.SIGNED})
	if err != nil {
		return err
	}
	again, err := r.AssetsApi.GetAssetPlaybackId(made.Id, added.Data.Id)
	if err != nil {
		return err
	}
	if err := errors.Join(want("playback IDs", len(made.PlaybackIds), 0),
		want("the playback ID", again.Data, added.Data), want("policy", again.Data.Policy, mux.SIGNED),
		r.AssetsApi.DeleteAssetPlaybackId(made.Id, added.Data.Id)); err != nil {
		return err
	}
	_, err = r.AssetsApi.GetAssetPlaybackId(made.Id, added.Data.Id)
	return errors.Join(refused[mux.NotFoundError]("a deleted playback ID", err), r.AssetsApi.DeleteAsset(made.Id))
}

func (r run) tracks() error {
	made, err := r.create(mux.CreateAssetRequest{})
	if err != nil {
		return err
	}
	if err := r.world("/test/ready?asset=" + made.Id); err != nil {
		return err
	}
	text, err := r.AssetsApi.CreateAssetTrack(made.Id, mux.CreateTrackRequest{
		Url:          "https://example.com/en.srt",
		Type:         "text",
		LanguageCode: "en",
		Passthrough:  "p",
	})
	if err != nil {
		return err
	}
	sound, err := r.AssetsApi.CreateAssetTrack(made.Id, mux.CreateTrackRequest{
		Url:          "https://example.com/fr.m4a",
		Type:         "audio",
		LanguageCode: "fr",
	})
	if err != nil {
		return err
	}
	ready, err := r.AssetsApi.GetAsset(made.Id)
	if err != nil {
		return err
	}
	if err := errors.Join(
		want("text_type", text.Data.TextType, "subtitles"), want("name", text.Data.Name, "English"),
		want("status", text.Data.Status, "preparing"),
		want("name", sound.Data.Name, "French"), want("tracks", len(ready.Data.Tracks), 4),
		want("status", ready.Data.Status, "ready"),
		want("aspect_ratio", ready.Data.AspectRatio, "16:9"),
		want("resolution_tier", ready.Data.ResolutionTier, "720p"),
		r.AssetsApi.DeleteAssetTrack(made.Id, text.Data.Id),
		r.AssetsApi.DeleteAssetTrack(made.Id, sound.Data.Id)); err != nil {
		return err
	}
	primary := slices.IndexFunc(ready.Data.Tracks, func(t mux.Track) bool { return t.Type == "audio" })
	return errors.Join(
		refused[mux.BadRequestError]("deleting the main audio track",
			r.AssetsApi.DeleteAssetTrack(made.Id, ready.Data.Tracks[primary].Id)),
		r.AssetsApi.DeleteAsset(made.Id))
}

func (r run) files() error {
	made, err := r.create(mux.CreateAssetRequest{
		StaticRenditions: []mux.CreateStaticRenditionRequest{{Resolution: "highest"}},
	})
	if err != nil {
		return err
	}
	sound, err := r.AssetsApi.CreateAssetStaticRendition(made.Id, mux.CreateStaticRenditionRequest{
		Resolution:  "audio-only",
		Passthrough: "p",
	})
	if err != nil {
		return err
	}
	again, err := r.AssetsApi.GetAsset(made.Id)
	if err != nil {
		return err
	}
	files := again.Data.StaticRenditions.Files
	if len(files) != 2 {
		return fmt.Errorf("%d files", len(files))
	}
	if err := errors.Join(want("name", files[0].Name, "highest.mp4"),
		want("the other's name", sound.Data.Name, "audio.m4a"),
		r.AssetsApi.DeleteAssetStaticRendition(made.Id, files[0].Id),
		r.AssetsApi.DeleteAssetStaticRendition(made.Id, sound.Data.Id)); err != nil {
		return err
	}
	old, err := r.AssetsApi.UpdateAssetMp4Support(made.Id, mux.UpdateAssetMp4SupportRequest{Mp4Support: "capped-1080p"})
	if err != nil {
		return err
	}
	master, err := r.AssetsApi.UpdateAssetMasterAccess(made.Id, mux.UpdateAssetMasterAccessRequest{
		MasterAccess: "temporary",
	})
	if err != nil {
		return err
	}
	return errors.Join(want("mp4_support", old.Data.Mp4Support, "capped-1080p"),
		want("master", master.Data.Master.Status, "preparing"), r.AssetsApi.DeleteAsset(made.Id))
}

func (r run) assetRefused() error {
	_, err := r.create(mux.CreateAssetRequest{Input: []mux.InputSettings{{}}})
	if err := refused[mux.BadRequestError]("an input without a URL", err); err != nil {
		return err
	}
	_, err = r.create(mux.CreateAssetRequest{VideoQuality: "best"})
	return refused[mux.BadRequestError]("an unknown video_quality", err)
}
