package main

import (
	"errors"
	"fmt"

	mux "github.com/muxinc/mux-go/v6"
)

func (r run) open(request mux.CreateLiveStreamRequest) (mux.LiveStream, error) {
	made, err := r.LiveStreamsApi.CreateLiveStream(request)
	return made.Data, err
}

func (r run) stream() error {
	made, err := r.open(mux.CreateLiveStreamRequest{
		PlaybackPolicy: []mux.PlaybackPolicy{mux.PUBLIC}, LatencyMode: "low", Passthrough: "p",
		NewAssetSettings: mux.CreateAssetRequest{
			PlaybackPolicy: []mux.PlaybackPolicy{mux.PUBLIC, mux.SIGNED}, Meta: mux.AssetMetadata{Title: "Recording"},
			Input: []mux.InputSettings{{Name: "Main", LanguageCode: "en"}, {
				Url:             "https://example.com/logo.png",
				OverlaySettings: mux.InputSettingsOverlaySettings{VerticalAlign: "bottom"},
			}},
		},
	})
	if err != nil {
		return err
	}
	again, err := r.LiveStreamsApi.GetLiveStream(made.Id)
	if err != nil {
		return err
	}
	listed, err := r.LiveStreamsApi.ListLiveStreams(mux.WithParams(&mux.ListLiveStreamsParams{
		StreamKey: made.StreamKey,
	}))
	if err != nil {
		return err
	}
	if len(listed.Data) != 1 || len(made.PlaybackIds) != 1 {
		return fmt.Errorf("%d listed, %d playback IDs", len(listed.Data), len(made.PlaybackIds))
	}
	found, err := r.PlaybackIDApi.GetAssetOrLivestreamId(made.PlaybackIds[0].Id)
	if err != nil {
		return err
	}
	if err := errors.Join(
		want("status", made.Status, mux.LiveStreamStatus("idle")), want("latency_mode", made.LatencyMode, "low"),
		want("the ID got", again.Data.Id, made.Id),
		want("the ID listed", listed.Data[0].Id, made.Id),
		want("max_continuous_duration", made.MaxContinuousDuration, 43200),
		want("title of recordings", again.Data.NewAssetSettings.Meta.Title, "Recording"),
		want("what the playback ID leads to", found.Data.Object.Id, made.Id),
		r.LiveStreamsApi.DeleteLiveStream(made.Id)); err != nil {
		return err
	}
	_, err = r.LiveStreamsApi.GetLiveStream(made.Id)
	return refused[mux.NotFoundError]("a deleted live stream", err)
}

func (r run) streamUpdate() error {
	made, err := r.open(mux.CreateLiveStreamRequest{NewAssetSettings: mux.CreateAssetRequest{
		PlaybackPolicy: []mux.PlaybackPolicy{mux.PUBLIC}, Meta: mux.AssetMetadata{Title: "Recording"},
	}})
	if err != nil {
		return err
	}
	changed, err := r.LiveStreamsApi.UpdateLiveStream(made.Id, mux.UpdateLiveStreamRequest{
		Passthrough:     "second",
		ReconnectWindow: 30,
	})
	if err != nil {
		return err
	}
	renamed, err := r.LiveStreamsApi.UpdateLiveStream(made.Id, mux.UpdateLiveStreamRequest{
		NewAssetSettings: mux.UpdateLiveStreamNewAssetSettings{
			Meta:         mux.AssetMetadata{Title: "Other"},
			MasterAccess: "temporary",
		},
	})
	if err != nil {
		return err
	}
	return errors.Join(
		want("passthrough", changed.Data.Passthrough, "second"),
		want("reconnect_window", changed.Data.ReconnectWindow, 30),
		want("title of recordings after an update without it", changed.Data.NewAssetSettings.Meta.Title, "Recording"),
		want("title of recordings", renamed.Data.NewAssetSettings.Meta.Title, "Other"),
		want("reconnect_window", renamed.Data.ReconnectWindow, 30),
		want("master_access", renamed.Data.NewAssetSettings.MasterAccess, "temporary"),
		r.LiveStreamsApi.DeleteLiveStream(made.Id))
}

func (r run) streamParts() error {
	made, err := r.open(mux.CreateLiveStreamRequest{})
	if err != nil {
		return err
	}
	reset, err := r.LiveStreamsApi.ResetStreamKey(made.Id)
	if err != nil {
		return err
	}
	added, err := r.LiveStreamsApi.CreateLiveStreamPlaybackId(made.Id, mux.CreatePlaybackIdRequest{Policy: mux.PUBLIC})
	if err != nil {
		return err
	}
	again, err := r.LiveStreamsApi.GetLiveStreamPlaybackId(made.Id, added.Data.Id)
	if err != nil {
		return err
	}
	if reset.Data.StreamKey == made.StreamKey {
		return errors.New("the stream key is the old one")
	}
	if err := errors.Join(want("the playback ID", again.Data, added.Data),
		r.LiveStreamsApi.DeleteLiveStreamPlaybackId(made.Id, added.Data.Id)); err != nil {
		return err
	}
	for _, set := range []struct {
		do   func() error
		then mux.LiveStreamStatus
	}{
		{func() error { _, err := r.LiveStreamsApi.DisableLiveStream(made.Id); return err }, "disabled"},
		{func() error { _, err := r.LiveStreamsApi.EnableLiveStream(made.Id); return err }, "idle"},
	} {
		if err := set.do(); err != nil {
			return err
		}
		now, err := r.LiveStreamsApi.GetLiveStream(made.Id)
		if err := errors.Join(err, want("status", now.Data.Status, set.then)); err != nil {
			return err
		}
	}
	kept, err := r.LiveStreamsApi.UpdateLiveStreamNewAssetSettingsStaticRenditions(made.Id,
		mux.UpdateLiveStreamNewAssetSettingsStaticRenditionsRequest{
			StaticRenditions: []mux.CreateStaticRenditionRequest{{Resolution: "highest"}},
		})
	if err != nil {
		return err
	}
	captioned, err := r.LiveStreamsApi.UpdateLiveStreamEmbeddedSubtitles(made.Id,
		mux.UpdateLiveStreamEmbeddedSubtitlesRequest{
			EmbeddedSubtitles: []mux.LiveStreamEmbeddedSubtitleSettings{{LanguageChannel: "cc3"}},
		})
	if err != nil {
		return err
	}
	return errors.Join(want("captions", len(captioned.Data.EmbeddedSubtitles), 1),
		want("files of recordings", len(kept.Data.NewAssetSettings.StaticRenditions), 1),
		r.LiveStreamsApi.DeleteLiveStreamNewAssetSettingsStaticRenditions(made.Id),
		r.LiveStreamsApi.DeleteLiveStream(made.Id))
}

func (r run) targets() error {
	made, err := r.open(mux.CreateLiveStreamRequest{
		SimulcastTargets: []mux.CreateSimulcastTargetRequest{{Url: "rtmp://example.com/app", StreamKey: "k"}},
	})
	if err != nil {
		return err
	}
	added, err := r.LiveStreamsApi.CreateLiveStreamSimulcastTarget(made.Id, mux.CreateSimulcastTargetRequest{
		Url:         "rtmps://example.com/app",
		StreamKey:   "l",
		Passthrough: "p",
	})
	if err != nil {
		return err
	}
	again, err := r.LiveStreamsApi.GetLiveStreamSimulcastTarget(made.Id, added.Data.Id)
	if err != nil {
		return err
	}
	if err := errors.Join(want("targets", len(made.SimulcastTargets), 1), want("the target", again.Data, added.Data),
		r.LiveStreamsApi.DeleteLiveStreamSimulcastTarget(made.Id, added.Data.Id)); err != nil {
		return err
	}
	_, err = r.LiveStreamsApi.GetLiveStreamSimulcastTarget(made.Id, added.Data.Id)
	return errors.Join(refused[mux.NotFoundError]("a deleted target", err), r.LiveStreamsApi.DeleteLiveStream(made.Id))
}

func (r run) broadcast() error {
	made, err := r.open(mux.CreateLiveStreamRequest{
		NewAssetSettings: mux.CreateAssetRequest{PlaybackPolicy: []mux.PlaybackPolicy{mux.PUBLIC}},
	})
	if err != nil {
		return err
	}
	if err := r.world("/test/encoder/connect?key=" + made.StreamKey); err != nil {
		return err
	}
	active, err := r.LiveStreamsApi.GetLiveStream(made.Id)
	if err != nil {
		return err
	}
	if _, err := r.LiveStreamsApi.SignalLiveStreamComplete(made.Id); err != nil {
		return err
	}
	if err := r.world("/test/encoder/end?key=" + made.StreamKey); err != nil {
		return err
	}
	recorded, err := r.AssetsApi.GetAsset(active.Data.ActiveAssetId)
	if err != nil {
		return err
	}
	if len(recorded.Data.RecordingTimes) != 1 {
		return fmt.Errorf("recording_times %v", recorded.Data.RecordingTimes)
	}
	return errors.Join(want("status", active.Data.Status, mux.LiveStreamStatus("active")),
		want("live_stream_id", recorded.Data.LiveStreamId, made.Id),
		want("is_live", recorded.Data.IsLive, false),
		want("recorded seconds", recorded.Data.RecordingTimes[0].Duration, 10),
		r.LiveStreamsApi.DeleteLiveStream(made.Id))
}

func (r run) drm() error {
	if err := r.world("/test/drm"); err != nil {
		return err
	}
	listed, err := r.DRMConfigurationsApi.ListDrmConfigurations()
	if err != nil || len(listed.Data) != 1 {
		return fmt.Errorf("%d listed, %w", len(listed.Data), err)
	}
	first := listed.Data[0].Id
	got, err := r.DRMConfigurationsApi.GetDrmConfiguration(first)
	if err != nil {
		return err
	}
	made, err := r.open(mux.CreateLiveStreamRequest{})
	if err != nil {
		return err
	}
	p, err := r.LiveStreamsApi.CreateLiveStreamPlaybackId(made.Id, mux.CreatePlaybackIdRequest{
		Policy:             mux.DRM,
		DrmConfigurationId: first,
	})
	if err != nil {
		return err
	}
	_, err = r.DRMConfigurationsApi.GetDrmConfiguration("absent")
	return errors.Join(want("the ID got", got.Data.Id, first),
		want("drm_configuration_id", p.Data.DrmConfigurationId, first),
		refused[mux.NotFoundError]("an absent DRM configuration", err), r.LiveStreamsApi.DeleteLiveStream(made.Id))
}
