package api

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// Meta is structured metadata; lengths are in Unicode code points.
type Meta struct {
	Title      string `json:"title,omitempty" maxLength:"512"`
	CreatorID  string `json:"creator_id,omitempty" maxLength:"128"`
	ExternalID string `json:"external_id,omitempty" maxLength:"128"`
}

// MetaUpdate is Meta in PATCH: nulls alone clear their members and leave the others.
type MetaUpdate struct {
	Title      Optional[string] `json:"title,omitzero" maxLength:"512"`
	CreatorID  Optional[string] `json:"creator_id,omitzero" maxLength:"128"`
	ExternalID Optional[string] `json:"external_id,omitzero" maxLength:"128"`
}

// StaticRenditionCreate asks for one file to download.
type StaticRenditionCreate struct {
	Resolution  string `json:"resolution,omitempty" enum:"highest,audio-only,2160p,1440p,1080p,720p,540p,480p,360p,270p"`
	Passthrough string `json:"passthrough,omitempty" maxLength:"255"`
}

// GeneratedSubtitle asks for speech recognition.
type GeneratedSubtitle struct {
	Name          string   `json:"name,omitempty"`
	LanguageCode  string   `json:"language_code,omitempty" doc:"BCP 47."`
	Passthrough   string   `json:"passthrough,omitempty" maxLength:"255"`
	VocabularyIDs []string `json:"transcription_vocabulary_ids,omitempty" doc:"Live streams only."`
}

// OverlaySettings places an image over the video. Lengths are percents or pixels, such as 10% or 100px.
type OverlaySettings struct {
	VerticalAlign    string `json:"vertical_align,omitempty" enum:"top,middle,bottom"`
	VerticalMargin   string `json:"vertical_margin,omitempty"`
	HorizontalAlign  string `json:"horizontal_align,omitempty" enum:"left,center,right"`
	HorizontalMargin string `json:"horizontal_margin,omitempty"`
	Width            string `json:"width,omitempty"`
	Height           string `json:"height,omitempty"`
	Opacity          string `json:"opacity,omitempty"`
}

// InputSettings is one input file, or a clip of an asset.
type InputSettings struct {
	URL                string                       `json:"url,omitempty" doc:"An http or https URL; for a clip, svc://assets/{asset_id} or mux://assets/{asset_id}."`
	Type               string                       `json:"type,omitempty" enum:"video,audio,text"`
	TextType           string                       `json:"text_type,omitempty" enum:"subtitles"`
	LanguageCode       string                       `json:"language_code,omitempty" doc:"BCP 47."`
	Name               string                       `json:"name,omitempty"`
	ClosedCaptions     bool                         `json:"closed_captions,omitempty"`
	Passthrough        string                       `json:"passthrough,omitempty" maxLength:"255"`
	StartTime          *float64                     `json:"start_time,omitempty" doc:"Seconds; clips only."`
	EndTime            *float64                     `json:"end_time,omitempty" doc:"Seconds; clips only. At most one second after the end of the source."`
	OverlaySettings    *OverlaySettings             `json:"overlay_settings,omitempty"`
	GeneratedSubtitles OneOrMany[GeneratedSubtitle] `json:"generated_subtitles,omitempty" doc:"First input only."`
	EmbeddedSubtitles  OneOrMany[EmbeddedSubtitle]  `json:"embedded_subtitles,omitempty" doc:"First input only: make text tracks from the CEA-608 captions in its video; at most one per channel."`
}

// InputOrURL is an input, for which its URL may stand.
type InputOrURL InputSettings

// UnmarshalJSON reads a string or an object.
func (i *InputOrURL) UnmarshalJSON(b []byte) error {
	*i = InputOrURL{}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &i.URL)
	}
	return json.Unmarshal(b, (*InputSettings)(i))
}

// Schema documents the alternatives.
func (InputOrURL) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Description: "The input's URL."},
		r.Schema(reflect.TypeFor[InputSettings](), true, ""),
	}}
}

// MP4Support is the old way to ask for files to download.
type MP4Support string

// Schema documents the values, one of which has a comma.
func (MP4Support) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString,
		Enum: []any{"none", "standard", "capped-1080p", "audio-only", "audio-only,capped-1080p"},
	}
}

// AssetSettings are the settings of an asset besides its inputs and policies, the same in requests and responses.
type AssetSettings struct {
	Advanced         []PlaybackIDCreate      `json:"advanced_playback_policies,omitempty" doc:"Use instead of playback_policies for the policy drm."`
	Passthrough      string                  `json:"passthrough,omitempty" maxLength:"255" doc:"Your own free text, included in responses and events."`
	Meta             Meta                    `json:"meta,omitzero" doc:"Descriptive fields, shown by players and the dashboard."`
	MP4Support       MP4Support              `json:"mp4_support,omitempty" deprecated:"true" doc:"Use static_renditions."`
	StaticRenditions []StaticRenditionCreate `json:"static_renditions,omitempty" doc:"Files to download. Can't be combined with mp4_support."`
	VideoQuality     string                  `json:"video_quality,omitempty" enum:"basic,plus,premium" doc:"Default: plus for live streams and for the policy drm, otherwise basic. Live streams can't use basic."`
	EncodingTier     string                  `json:"encoding_tier,omitempty" deprecated:"true" enum:"smart,baseline,premium" doc:"Use video_quality."`
	MaxResolution    string                  `json:"max_resolution_tier,omitempty" enum:"1080p,1440p,2160p" doc:"The highest resolution that is encoded, stored and played. Default: 1080p."`
	MasterAccess     string                  `json:"master_access,omitempty" enum:"none,temporary" doc:"temporary makes the original available for 24 hours. Default: none."`
	NormalizeAudio   bool                    `json:"normalize_audio,omitempty" doc:"Normalize loudness to -24 LUFS; on-demand assets only."`
	CopyOverlays     *bool                   `json:"copy_overlays,omitempty" doc:"Clips only. Default: true."`
	GenerateShots    bool                    `json:"generate_shots,omitempty" doc:"Must be false or left out: this version does not detect shots."`
	Test             bool                    `json:"test,omitempty" doc:"Watermarked, at most 10 seconds, deleted after 24 hours."`
}

// AssetOptions are the settings of an asset as responses have them.
type AssetOptions struct {
	PlaybackPolicies []PlaybackPolicy `json:"playback_policies"`
	PlaybackPolicy   []PlaybackPolicy `json:"playback_policy" deprecated:"true" doc:"An alias of playback_policies."`
	Inputs           []InputSettings  `json:"inputs,omitempty"`
	AssetSettings
}

// Directive is a job of a language model; there are none here.
type Directive struct{}

// NewAssetSettings are the settings of an asset as they are asked for.
type NewAssetSettings struct {
	PlaybackPolicies OneOrMany[PlaybackPolicy] `json:"playback_policies,omitempty" doc:"One playback ID is created for each. Without any the asset can't be played."`
	PlaybackPolicy   OneOrMany[PlaybackPolicy] `json:"playback_policy,omitempty" deprecated:"true" doc:"An alias of playback_policies."`
	Inputs           OneOrMany[InputOrURL]     `json:"inputs,omitempty"`
	Input            OneOrMany[InputOrURL]     `json:"input,omitempty" deprecated:"true" doc:"An alias of inputs."`
	Directives       []Directive               `json:"directives,omitempty" doc:"Must be empty or left out: language model jobs are not part of this service."`
	AssetSettings
}

// NewAssetSettingsUpdate is what of a live stream's new_asset_settings can be changed later.
type NewAssetSettingsUpdate struct {
	MasterAccess *string              `json:"master_access,omitempty" enum:"none,temporary"`
	MP4Support   *MP4Support          `json:"mp4_support,omitempty" deprecated:"true"`
	VideoQuality *string              `json:"video_quality,omitempty" enum:"plus,premium"`
	Meta         Optional[MetaUpdate] `json:"meta,omitzero" doc:"Replaces the whole object. null clears it; an object of only null members clears those; an empty object changes nothing."`
}

func (m Meta) domain() assetopt.Meta { return assetopt.Meta(m) }

// metaPtr is the patch of a meta object: replaced as a whole, cleared by null; one of nulls alone clears these members.
// An empty object changes nothing: clients that can't leave an object out send it with every request.
func metaPtr(m Optional[MetaUpdate]) *assetopt.MetaPatch {
	v := m.Value
	values := Meta{Title: v.Title.Value, CreatorID: v.CreatorID.Value, ExternalID: v.ExternalID.Value}.domain()
	given := v.Title.Set && !v.Title.Null || v.CreatorID.Set && !v.CreatorID.Null ||
		v.ExternalID.Set && !v.ExternalID.Null
	switch {
	case m.Null, given:
		return &assetopt.MetaPatch{Meta: values}
	case v == (MetaUpdate{}):
		return nil
	}
	return &assetopt.MetaPatch{
		ClearTitle:      v.Title.Null,
		ClearCreatorID:  v.CreatorID.Null,
		ClearExternalID: v.ExternalID.Null,
	}
}

// alias returns the values of a field that has two names. Given both, they must agree.
func alias[T any](problems *fault.List, name, old string, values, oldValues []T) []T {
	switch {
	case len(values) == 0:
		return oldValues
	case len(oldValues) > 0 && !reflect.DeepEqual(values, oldValues):
		problems.At(old, "must not differ from %s; give %s only", name, name)
	}
	return values
}

func policiesOf(list []PlaybackPolicy) []playbackid.Policy {
	if len(list) == 0 {
		return nil
	}
	return convert(list, func(p PlaybackPolicy) playbackid.Policy { return playbackid.Policy(p) })
}

func requestsOf(list []PlaybackIDCreate) []playbackid.Request {
	if len(list) == 0 {
		return nil
	}
	return convert(list, PlaybackIDCreate.request)
}

func subtitlesOf(list []GeneratedSubtitle) []assetopt.GeneratedSubtitle {
	if len(list) == 0 {
		return nil
	}
	return convert(list, func(g GeneratedSubtitle) assetopt.GeneratedSubtitle { return assetopt.GeneratedSubtitle(g) })
}

func wireSubtitles(list []assetopt.GeneratedSubtitle) []GeneratedSubtitle {
	if len(list) == 0 {
		return nil
	}
	return convert(list, func(g assetopt.GeneratedSubtitle) GeneratedSubtitle { return GeneratedSubtitle(g) })
}

func embeddedOf(list []EmbeddedSubtitle) []assetopt.EmbeddedSubtitle {
	if len(list) == 0 {
		return nil
	}
	return convert(list, func(e EmbeddedSubtitle) assetopt.EmbeddedSubtitle { return assetopt.EmbeddedSubtitle(e) })
}

func wireEmbedded(list []assetopt.EmbeddedSubtitle) []EmbeddedSubtitle {
	if len(list) == 0 {
		return nil
	}
	return convert(list, func(e assetopt.EmbeddedSubtitle) EmbeddedSubtitle { return EmbeddedSubtitle(e) })
}

func (i InputOrURL) domain() assetopt.Input {
	in := assetopt.Input{
		URL:                i.URL,
		Type:               i.Type,
		TextType:           i.TextType,
		LanguageCode:       i.LanguageCode,
		Name:               i.Name,
		ClosedCaptions:     i.ClosedCaptions,
		Passthrough:        i.Passthrough,
		StartTime:          i.StartTime,
		EndTime:            i.EndTime,
		GeneratedSubtitles: subtitlesOf(i.GeneratedSubtitles),
		EmbeddedSubtitles:  embeddedOf(i.EmbeddedSubtitles),
	}
	// clients that can't leave an object out send an empty one
	if o := i.OverlaySettings; o != nil && *o != (OverlaySettings{}) {
		in.Overlay = new(assetopt.Overlay(*o))
	}
	return in
}

// inputsOf are the inputs of a request. A further one that is nothing else is an overlay with empty settings, too: with
// all the defaults.
func inputsOf(list []InputOrURL) []assetopt.Input {
	if len(list) == 0 {
		return nil
	}
	inputs := convert(list, InputOrURL.domain)
	for i := 1; i < len(inputs); i++ {
		in := &inputs[i]
		if list[i].OverlaySettings != nil && (in.Type == "" || in.Type == "video") && in.Overlay == nil {
			in.Overlay = &assetopt.Overlay{}
		}
	}
	return inputs
}

func wireInput(i assetopt.Input) InputSettings {
	out := InputSettings{
		URL:                i.URL,
		Type:               i.Type,
		TextType:           i.TextType,
		LanguageCode:       i.LanguageCode,
		Name:               i.Name,
		ClosedCaptions:     i.ClosedCaptions,
		Passthrough:        i.Passthrough,
		StartTime:          i.StartTime,
		EndTime:            i.EndTime,
		GeneratedSubtitles: wireSubtitles(i.GeneratedSubtitles),
		EmbeddedSubtitles:  wireEmbedded(i.EmbeddedSubtitles),
	}
	if i.Overlay != nil {
		o := OverlaySettings(*i.Overlay)
		out.OverlaySettings = &o
	}
	return out
}

func (n NewAssetSettings) domain(problems *fault.List, path string) assetopt.Options {
	policies := alias(problems, path+"playback_policies", path+"playback_policy", n.PlaybackPolicies, n.PlaybackPolicy)
	inputs := alias(problems, path+"inputs", path+"input", n.Inputs, n.Input)
	if len(n.Directives) > 0 {
		problems.AbsentAt(path+"directives",
			"must be empty or left out: jobs of language models are not part of this service")
	}
	o := assetopt.Options{
		PlaybackPolicies: policiesOf(policies),
		AdvancedPolicies: requestsOf(n.Advanced),
		Passthrough:      n.Passthrough,
		Meta:             n.Meta.domain(),
		MP4Support:       string(n.MP4Support),
		VideoQuality:     n.VideoQuality,
		EncodingTier:     n.EncodingTier,
		MaxResolution:    n.MaxResolution,
		MasterAccess:     n.MasterAccess,
		NormalizeAudio:   n.NormalizeAudio,
		CopyOverlays:     n.CopyOverlays,
		GenerateShots:    n.GenerateShots,
		Test:             n.Test,
	}
	o.Inputs = inputsOf(inputs)
	for _, r := range n.StaticRenditions {
		o.StaticRenditions = append(o.StaticRenditions, assetopt.StaticRendition(r))
	}
	return o
}

func wireOptions(o assetopt.Options) *AssetOptions {
	policies := convert(o.PlaybackPolicies, func(p playbackid.Policy) PlaybackPolicy { return PlaybackPolicy(p) })
	out := &AssetOptions{
		PlaybackPolicies: policies, PlaybackPolicy: policies,
		AssetSettings: AssetSettings{
			Advanced:       advancedOf(o.AdvancedPolicies),
			Passthrough:    o.Passthrough,
			Meta:           Meta(o.Meta),
			MP4Support:     MP4Support(o.MP4Support),
			VideoQuality:   o.VideoQuality,
			EncodingTier:   o.EncodingTier,
			MaxResolution:  o.MaxResolution,
			MasterAccess:   o.MasterAccess,
			NormalizeAudio: o.NormalizeAudio,
			CopyOverlays:   o.CopyOverlays,
			GenerateShots:  o.GenerateShots,
			Test:           o.Test,
		},
	}
	for _, i := range o.Inputs {
		out.Inputs = append(out.Inputs, wireInput(i))
	}
	for _, r := range o.StaticRenditions {
		out.StaticRenditions = append(out.StaticRenditions, StaticRenditionCreate(r))
	}
	return out
}
