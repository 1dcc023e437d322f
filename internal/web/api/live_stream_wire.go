package api

import (
	"strconv"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// EmbeddedSubtitle asks for the CEA-608 captions of the incoming video.
type EmbeddedSubtitle struct {
	Name            string `json:"name,omitempty"`
	LanguageCode    string `json:"language_code,omitempty" doc:"BCP 47."`
	LanguageChannel string `json:"language_channel,omitempty" enum:"cc1,cc2,cc3,cc4"`
	Passthrough     string `json:"passthrough,omitempty" maxLength:"255"`
}

// SimulcastTargetCreate asks for the stream to be forwarded.
type SimulcastTargetCreate struct {
	URL         string `json:"url,omitempty" doc:"rtmp://host/app, rtmps://host/app or srt://host:port?streamid=…&passphrase=…. An SRT destination is fed only while the encoder connects over SRT."`
	StreamKey   string `json:"stream_key,omitempty" doc:"RTMP and RTMPS only."`
	Passthrough string `json:"passthrough,omitempty" maxLength:"255"`
}

// SimulcastTarget is a destination that the stream is forwarded to.
type SimulcastTarget struct {
	ID            string `json:"id"`
	Status        string `json:"status" enum:"idle,starting,broadcasting,errored" doc:"starting: an encoder is connected. broadcasting: the destination accepts the stream."`
	ErrorSeverity string `json:"error_severity,omitempty" enum:"normal,fatal" doc:"Only while errored. normal: retried. fatal: the destination can't take what the encoder sends; not retried for the current asset."`
	URL           string `json:"url"`
	StreamKey     string `json:"stream_key,omitempty" doc:"RTMP and RTMPS only. Keep it secret."`
	Passthrough   string `json:"passthrough,omitempty"`
}

// LiveStream is a live stream as responses have it.
type LiveStream struct {
	ID                 string              `json:"id"`
	CreatedAt          string              `json:"created_at" doc:"Seconds since the Unix epoch, as a string." example:"1767225600"`
	StreamKey          string              `json:"stream_key" doc:"The key that encoders connect with. Keep it secret."`
	Status             string              `json:"status" enum:"idle,active,disabled"`
	LatencyMode        string              `json:"latency_mode" enum:"standard,reduced,low"`
	MaxContinuous      int                 `json:"max_continuous_duration" doc:"Seconds."`
	ActiveAssetID      string              `json:"active_asset_id,omitempty" doc:"Only during a broadcast."`
	RecentAssetIDs     []string            `json:"recent_asset_ids,omitempty" doc:"Recordings, newest last."`
	PlaybackIDs        []PlaybackID        `json:"playback_ids,omitempty"`
	NewAssetSettings   *AssetOptions       `json:"new_asset_settings,omitempty"`
	Passthrough        string              `json:"passthrough,omitempty"`
	Meta               Meta                `json:"meta,omitzero"`
	AudioOnly          bool                `json:"audio_only,omitempty"`
	EmbeddedSubtitles  []EmbeddedSubtitle  `json:"embedded_subtitles,omitempty"`
	GeneratedSubtitles []GeneratedSubtitle `json:"generated_subtitles,omitempty"`
	ReconnectWindow    float64             `json:"reconnect_window" doc:"Seconds; fractions are allowed."`
	SlateForStandard   bool                `json:"use_slate_for_standard_latency,omitempty"`
	ReconnectSlateURL  string              `json:"reconnect_slate_url,omitempty"`
	SimulcastTargets   []SimulcastTarget   `json:"simulcast_targets,omitempty"`
	Test               bool                `json:"test,omitempty"`
	SRTPassphrase      string              `json:"srt_passphrase,omitempty" doc:"The passphrase for SRT encryption. Keep it secret."`
	IngestProtocol     string              `json:"active_ingest_protocol,omitempty" enum:"rtmp,srt,whip" doc:"Only while an encoder is connected."`
	LowLatency         bool                `json:"low_latency,omitempty" deprecated:"true" doc:"True if latency_mode is low."`
	ReducedLatency     bool                `json:"reduced_latency,omitempty" deprecated:"true" doc:"True if latency_mode is reduced."`
}

// LiveStreamCreate asks for a live stream; no field is needed.
type LiveStreamCreate struct {
	PlaybackPolicies   OneOrMany[PlaybackPolicy]    `json:"playback_policies,omitempty" doc:"One playback ID is created for each. Without any the live stream can't be played."`
	PlaybackPolicy     OneOrMany[PlaybackPolicy]    `json:"playback_policy,omitempty" deprecated:"true" doc:"An alias of playback_policies."`
	Advanced           []PlaybackIDCreate           `json:"advanced_playback_policies,omitempty" doc:"Use instead of playback_policies for the policy drm."`
	NewAssetSettings   *NewAssetSettings            `json:"new_asset_settings,omitempty" doc:"Settings of the recorded assets."`
	ReconnectWindow    *float64                     `json:"reconnect_window,omitempty" minimum:"0" maximum:"1800" doc:"How many seconds to wait for a disconnected encoder; fractions are allowed. Default: 60 with standard latency, otherwise 0."`
	SlateForStandard   bool                         `json:"use_slate_for_standard_latency,omitempty" doc:"Show a slate while a stream with standard latency waits for its encoder."`
	ReconnectSlateURL  string                       `json:"reconnect_slate_url,omitempty" doc:"The slate's image; downloaded when a recording starts."`
	Passthrough        string                       `json:"passthrough,omitempty" maxLength:"255" doc:"Your own free text, included in responses and events."`
	AudioOnly          bool                         `json:"audio_only,omitempty" doc:"Drop the video."`
	EmbeddedSubtitles  []EmbeddedSubtitle           `json:"embedded_subtitles,omitempty" doc:"Make text tracks from the CEA-608 captions in the video, at most one per channel. Works with every latency_mode and protocol."`
	GeneratedSubtitles OneOrMany[GeneratedSubtitle] `json:"generated_subtitles,omitempty" doc:"Make a text track by speech recognition; at most one."`
	LatencyMode        string                       `json:"latency_mode,omitempty" enum:"standard,reduced,low" doc:"Default: standard."`
	LowLatency         *bool                        `json:"low_latency,omitempty" deprecated:"true" doc:"Use latency_mode."`
	ReducedLatency     *bool                        `json:"reduced_latency,omitempty" deprecated:"true" doc:"Use latency_mode."`
	Test               bool                         `json:"test,omitempty" doc:"At most 5 minutes; recordings are deleted after 24 hours."`
	SimulcastTargets   []SimulcastTargetCreate      `json:"simulcast_targets,omitempty" doc:"Where to forward the stream; at most 6."`
	MaxContinuous      *int                         `json:"max_continuous_duration,omitempty" minimum:"60" maximum:"43200" doc:"Seconds. Default: 43200."`
	Meta               Meta                         `json:"meta,omitzero" doc:"Descriptive fields, shown by players and the dashboard."`
}

// LiveStreamUpdate changes what is given.
type LiveStreamUpdate struct {
	LatencyMode       Optional[string]                 `json:"latency_mode,omitzero" enum:"standard,reduced,low" doc:"Only while the live stream is idle. null means standard."`
	ReconnectWindow   Optional[float64]                `json:"reconnect_window,omitzero" minimum:"0" maximum:"1800" doc:"Seconds; fractions are allowed. null means the default of the latency mode."`
	SlateForStandard  *bool                            `json:"use_slate_for_standard_latency,omitempty"`
	ReconnectSlateURL Optional[string]                 `json:"reconnect_slate_url,omitzero" doc:"An empty string or null clears it."`
	Passthrough       Optional[string]                 `json:"passthrough,omitzero" maxLength:"255" doc:"An empty string or null clears it."`
	MaxContinuous     Optional[int]                    `json:"max_continuous_duration,omitzero" minimum:"60" maximum:"43200" doc:"Seconds; null means 43200."`
	Meta              Optional[MetaUpdate]             `json:"meta,omitzero" doc:"Replaces the whole object. null clears it; an object of only null members clears those; an empty object changes nothing."`
	NewAssetSettings  Optional[NewAssetSettingsUpdate] `json:"new_asset_settings,omitzero" doc:"Changes only the fields that are sent. null clears the whole object, including fields that can be set only once; recordings then have no playback ID."`
}

// epoch is a time of this wire format.
func epoch(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func wireLiveStream(s live.Stream) LiveStream {
	set := s.Settings
	out := LiveStream{
		ID:             string(s.ID),
		CreatedAt:      epoch(s.CreatedAt),
		StreamKey:      s.StreamKey,
		Status:         string(s.Status()),
		LatencyMode:    string(set.LatencyMode),
		MaxContinuous:  set.MaxContinuous,
		ActiveAssetID:  string(s.ActiveAsset),
		RecentAssetIDs: convert(s.RecentAssets, func(a id.Asset) string { return string(a) }),
		PlaybackIDs:    playbackIDsOf(s.PlaybackIDs),
		Passthrough:    set.Passthrough,
		Meta:           Meta(set.Meta),
		AudioOnly:      set.AudioOnly,
		EmbeddedSubtitles: convert(set.EmbeddedSubtitles, func(e assetopt.EmbeddedSubtitle) EmbeddedSubtitle {
			return EmbeddedSubtitle(e)
		}),
		GeneratedSubtitles: wireSubtitles(set.GeneratedSubtitles),
		ReconnectWindow:    set.ReconnectWindow,
		SlateForStandard:   set.SlateForStandard,
		ReconnectSlateURL:  set.ReconnectSlateURL,
		SimulcastTargets:   convert(set.SimulcastTargets, wireTarget),
		Test:               set.Test,
		SRTPassphrase:      s.SRTPassphrase,
		IngestProtocol:     wireProtocol(s.Protocol),
		LowLatency:         set.LatencyMode == live.Low,
		ReducedLatency:     set.LatencyMode == live.Reduced,
	}
	if set.NewAsset != nil {
		out.NewAssetSettings = wireOptions(*set.NewAsset)
	}
	return out
}

// wireProtocol shows a protocol without its encryption.
func wireProtocol(p string) string {
	if p == "rtmps" {
		return "rtmp"
	}
	return p
}

func wireTarget(t live.SimulcastTarget) SimulcastTarget {
	status, severity := t.State.Show()
	return SimulcastTarget{
		ID:            string(t.ID),
		Status:        string(status),
		ErrorSeverity: string(severity),
		URL:           t.URL,
		StreamKey:     t.StreamKey,
		Passthrough:   t.Passthrough,
	}
}

func (s SimulcastTargetCreate) domain() live.SimulcastTarget {
	return live.SimulcastTarget{URL: s.URL, StreamKey: s.StreamKey, Passthrough: s.Passthrough}
}

func (l LiveStreamCreate) input() (live.CreateInput, error) {
	var problems fault.List
	in := live.CreateInput{
		PlaybackPolicies: policiesOf(alias(&problems, "playback_policies", "playback_policy", l.PlaybackPolicies,
			l.PlaybackPolicy)),
		AdvancedPolicies:   requestsOf(l.Advanced),
		ReconnectWindow:    l.ReconnectWindow,
		SlateForStandard:   l.SlateForStandard,
		ReconnectSlateURL:  l.ReconnectSlateURL,
		Passthrough:        l.Passthrough,
		AudioOnly:          l.AudioOnly,
		GeneratedSubtitles: subtitlesOf(l.GeneratedSubtitles),
		LatencyMode:        live.LatencyMode(l.LatencyMode),
		LowLatency:         l.LowLatency,
		ReducedLatency:     l.ReducedLatency,
		Test:               l.Test,
		MaxContinuous:      l.MaxContinuous,
		Meta:               l.Meta.domain(),
	}
	if l.NewAssetSettings != nil {
		o := l.NewAssetSettings.domain(&problems, "new_asset_settings.")
		in.NewAsset = &o
	}
	for _, e := range l.EmbeddedSubtitles {
		in.EmbeddedSubtitles = append(in.EmbeddedSubtitles, assetopt.EmbeddedSubtitle(e))
	}
	for _, t := range l.SimulcastTargets {
		in.SimulcastTargets = append(in.SimulcastTargets, t.domain())
	}
	return in, problems.Err()
}

func (l LiveStreamUpdate) input() live.PatchInput {
	in := live.PatchInput{
		LatencyMode:       (*live.LatencyMode)(l.LatencyMode.Ptr()),
		SlateForStandard:  l.SlateForStandard,
		ReconnectWindow:   l.ReconnectWindow.Ptr(),
		DefaultWindow:     l.ReconnectWindow.Null,
		ReconnectSlateURL: l.ReconnectSlateURL.Ptr(),
		Passthrough:       l.Passthrough.Ptr(),
		MaxContinuous:     l.MaxContinuous.Ptr(),
		Meta:              metaPtr(l.Meta),
	}
	if l.LatencyMode.Null {
		*in.LatencyMode = live.Standard
	}
	if l.MaxContinuous.Null {
		*in.MaxContinuous = live.MaxContinuous
	}
	n := l.NewAssetSettings.Value
	change := live.NewAssetPatch{
		Clear:        l.NewAssetSettings.Null,
		MasterAccess: n.MasterAccess,
		MP4Support:   (*string)(n.MP4Support),
		VideoQuality: n.VideoQuality,
		Meta:         metaPtr(n.Meta),
	}
	if change != (live.NewAssetPatch{}) {
		in.NewAsset = &change
	}
	return in
}
