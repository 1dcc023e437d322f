package assetopt

import (
	"math"
	"regexp"
	"strings"

	"millrace/internal/control/field"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Use says what the options are for; the rules of inputs and qualities differ.
type Use int

// The uses.
const (
	ForAsset Use = iota // body of asset creation
	ForLive             // new_asset_settings of a live stream
	// new_asset_settings of a direct upload: as for an asset, but the first input is the file that is uploaded.
	ForUpload
)

// Limits.
const (
	MaxTitle      = 512 // code points
	MaxMetaID     = 128 // code points
	maxInputs     = 100
	maxRenditions = 10 // one per resolution there is
)

// Check adds what is wrong with o, whose field paths start with path.
func (o Options) Check(l *fault.List, path string, use Use) {
	playbackid.CheckAll(l, path, o.PlaybackPolicies, o.AdvancedPolicies)
	field.Passthrough(l, field.Join(path, "passthrough"), o.Passthrough)
	o.Meta.Check(l, field.Join(path, "meta"))
	o.checkQuality(l, path, use)
	o.checkFiles(l, path)
	o.checkInputs(l, path, use)
	if o.GenerateShots {
		l.AbsentAt(field.Join(path, "generate_shots"), "must be false or left out: this version does not detect shots")
	}
	if o.MasterAccess != "" {
		CheckMaster(l, field.Join(path, "master_access"), o.MasterAccess)
	}
}

// Check adds what is wrong with m.
func (m Meta) Check(l *fault.List, path string) {
	field.Name(l, field.Join(path, "title"), m.Title, MaxTitle)
	field.Name(l, field.Join(path, "creator_id"), m.CreatorID, MaxMetaID)
	field.Name(l, field.Join(path, "external_id"), m.ExternalID, MaxMetaID)
}

// qualityOf maps the deprecated encoding_tier to the video_quality that replaces it.
func qualityOf(tier string) string {
	switch tier {
	case "baseline":
		return "basic"
	case "smart":
		return "plus"
	}
	return tier // premium, or none
}

func tierOf(quality string) string {
	switch quality {
	case "basic":
		return "baseline"
	case "plus":
		return "smart"
	}
	return quality
}

// Quality is the video quality that was asked for by either name; empty when by none.
func (o Options) Quality() string {
	if o.VideoQuality != "" {
		return o.VideoQuality
	}
	return qualityOf(o.EncodingTier)
}

func (o Options) checkQuality(l *fault.List, path string, use Use) {
	if o.MaxResolution != "" {
		field.OneOf(l, field.Join(path, "max_resolution_tier"), o.MaxResolution, "1080p", "1440p", "2160p")
	}
	at := field.Join(path, "video_quality")
	allowed := []string{"basic", "plus", "premium"}
	if use == ForLive {
		allowed = allowed[1:]
	}
	tierAt := field.Join(path, "encoding_tier")
	if o.EncodingTier != "" && field.OneOf(l, tierAt, o.EncodingTier, "smart", "baseline", "premium") {
		if o.VideoQuality != "" && o.VideoQuality != qualityOf(o.EncodingTier) {
			l.At(tierAt, "and %s contradict each other; use %s alone", at, at)
		} else if use == ForLive && o.EncodingTier == "baseline" {
			l.At(tierAt, "must be one of: smart, premium")
		}
	}
	if o.VideoQuality != "" && !field.OneOf(l, at, o.VideoQuality, allowed...) {
		return
	}
	if o.wantsDRM() && o.Quality() == "basic" {
		l.At(at, "must be plus or premium for a drm playback ID")
	}
}

func (o Options) wantsDRM() bool {
	for _, r := range o.AdvancedPolicies {
		if r.Policy == playbackid.DRM {
			return true
		}
	}
	return false
}

// checkFiles is about the downloadable files: the deprecated mp4_support and what replaced it exclude each other.
func (o Options) checkFiles(l *fault.List, path string) {
	mp4, at := field.Join(path, "mp4_support"), field.Join(path, "static_renditions")
	if o.MP4Support != "" {
		CheckMP4(l, mp4, o.MP4Support)
		if o.MP4Support != NoMP4 && len(o.StaticRenditions) > 0 {
			l.At(mp4, "and %s must not be used together; set %s to none", at, mp4)
		}
	}
	CheckStatic(l, at, o.StaticRenditions)
}

// resolutions are what a static rendition may ask for.
func resolutions() []string {
	return []string{Highest, AudioOnly, "2160p", "1440p", "1080p", "720p", "540p", "480p", "360p", "270p"}
}

// CheckStatic adds what is wrong with the files to download that are asked for.
func CheckStatic(l *fault.List, at string, all []StaticRendition) {
	if !field.Count(l, at, len(all), maxRenditions) {
		return
	}
	seen := map[string]bool{}
	sized := false
	for i, r := range all {
		entry := field.At(at, i)
		if !r.Check(l, entry) {
			continue
		}
		if seen[r.Resolution] {
			l.At(entry+".resolution", "is asked for twice; each may be there once")
		}
		seen[r.Resolution] = true
		sized = sized || r.Sized()
	}
	if seen[Highest] && sized {
		l.At(at, "may not mix highest with explicit resolutions")
	}
}

// Check adds what is wrong with r by itself; false when it asks for nothing that there is.
func (s StaticRendition) Check(l *fault.List, path string) bool {
	field.Passthrough(l, field.Join(path, "passthrough"), s.Passthrough)
	return field.OneOf(l, field.Join(path, "resolution"), s.Resolution, resolutions()...)
}

// Sized reports whether r asks for an explicit resolution.
func (s StaticRendition) Sized() bool { return s.Resolution != Highest && s.Resolution != AudioOnly }

// CheckMaster adds what is wrong with a value of master_access.
func CheckMaster(l *fault.List, at, v string) { field.OneOf(l, at, v, NoMaster, Temporary) }

// CheckMP4 adds what is wrong with a value of mp4_support.
func CheckMP4(l *fault.List, at, v string) {
	field.OneOf(l, at, v, NoMP4, "standard", "capped-1080p", "audio-only", "audio-only,capped-1080p")
}

func (o Options) checkInputs(l *fault.List, path string, use Use) {
	at := field.Join(path, "inputs")
	if !field.Count(l, at, len(o.Inputs), maxInputs) {
		return
	}
	if use == ForAsset && len(o.Inputs) == 0 {
		l.At(at, "is required: at least one input with a url")
	}
	names := map[string]bool{} // "text/English"
	for i, in := range o.Inputs {
		entry := field.At(at, i)
		if i > 0 && in.Type == "" && in.Overlay == nil { // what else is wrong depends on it
			l.At(entry+".type",
				"is required: text for subtitles, audio for further sound; or overlay_settings, for an image "+
					"over the video")
			continue
		}
		in.checkTexts(l, entry)
		switch {
		case i == 0:
			in.checkFirst(l, entry, use)
			names[audioName(in)] = in.Name != ""
		case in.Overlay != nil:
			in.checkOverlay(l, entry)
		default:
			in.checkTrack(l, entry, names)
		}
		if i > 0 && len(in.GeneratedSubtitles) > 0 {
			l.At(entry+".generated_subtitles", "may be set only on the first input")
		}
		if i > 0 && len(in.EmbeddedSubtitles) > 0 {
			l.At(entry+".embedded_subtitles", "may be set only on the first input")
		}
		if _, clip := ClipSource(in.URL); !clip && (in.StartTime != nil || in.EndTime != nil) {
			l.At(entry+".start_time",
				"and end_time may be set only when url has the form svc://assets/{asset_id} or mux://assets/{asset_id}")
		}
	}
}

func (in Input) checkTexts(l *fault.List, path string) {
	field.Name(l, path+".name", in.Name, field.MaxName)
	field.Passthrough(l, path+".passthrough", in.Passthrough)
	if in.LanguageCode != "" {
		field.Language(l, path+".language_code", in.LanguageCode)
	}
	if in.Type != "" {
		field.OneOf(l, path+".type", in.Type, "video", "audio", "text")
	}
	if in.TextType != "" {
		field.OneOf(l, path+".text_type", in.TextType, "subtitles")
	}
	if in.ClosedCaptions && in.Type != "text" {
		l.At(path+".closed_captions", "may be set only when type is text")
	}
	if in.TextType != "" && in.Type != "text" {
		l.At(path+".text_type", "may be set only when type is text")
	}
}

// checkFirst is about the main file: audio and video, or a clip of another asset; a live stream's is the encoder.
func (in Input) checkFirst(l *fault.List, path string, use Use) {
	if in.Overlay != nil {
		l.At(path+".overlay_settings", "may be set only from the second input on; the first is the main file")
	}
	if in.Type == "text" {
		l.At(path+".type", "must be video or audio; the first input is the main file")
	}
	source, clip := ClipSource(in.URL)
	switch {
	case use == ForLive && in.URL != "":
		l.At(path+".url", "must not be set: the first input of a live stream is the encoder")
	case use == ForUpload && in.URL != "":
		l.At(path+".url", "must not be set: the first input of an upload is the uploaded file")
	case use == ForAsset && in.URL == "":
		l.At(path+".url", "is required")
	case use == ForAsset && clip:
		in.checkClip(l, path, source)
	case use == ForAsset:
		webOrClip(l, path+".url", in.URL)
	}
	if use != ForLive {
		checkGenerated(l, path+".generated_subtitles", in.GeneratedSubtitles, recordedLanguages(), maxInputs)
	} else {
		CheckLiveGenerated(l, path+".generated_subtitles", in.GeneratedSubtitles)
	}
	if use == ForLive && len(in.EmbeddedSubtitles) > 0 {
		l.At(path+".embedded_subtitles",
			"must not be set: embedded_subtitles of the live stream itself says which captions become text tracks")
	}
	CheckEmbedded(l, path+".embedded_subtitles", in.EmbeddedSubtitles)
}

// webOrClip says both forms in its message, since both are allowed.
func webOrClip(l *fault.List, path, v string) {
	var own fault.List
	if strings.HasPrefix(v, "svc:") || strings.HasPrefix(v, "mux:") || !field.WebURL(&own, path, v) {
		l.At(path,
			"must be an absolute http or https URL of at most %d characters, or svc://assets/{asset_id} or "+
				"mux://assets/{asset_id} for a clip", field.MaxURL)
	}
}

const shortestClip = 0.5 // seconds

func (in Input) checkClip(l *fault.List, path string, source id.Asset) {
	if source == "" {
		l.At(path+".url", "must name an asset: svc://assets/{asset_id} or mux://assets/{asset_id}")
	}
	const day = 24 * 60 * 60
	start, starts := 0.0, true
	if in.StartTime != nil {
		start, starts = *in.StartTime, field.Between(l, path+".start_time", *in.StartTime, 0, day)
	}
	ends := in.EndTime != nil && field.Between(l, path+".end_time", *in.EndTime, 0, day)
	if starts && ends && *in.EndTime-start < shortestClip-1e-9 {
		l.At(path+".end_time", "must be at least %v seconds after start_time", shortestClip)
	}
}

// ClipSource reads svc://assets/{id} and mux://assets/{id}; false for any other URL. An ID that can't be one is "".
func ClipSource(raw string) (id.Asset, bool) {
	rest, ok := strings.CutPrefix(raw, "svc://assets/")
	if !ok {
		rest, ok = strings.CutPrefix(raw, "mux://assets/")
	}
	if !ok {
		return "", false
	}
	if len(rest) > field.MaxID || strings.ContainsFunc(rest, notIDRune) {
		return "", true
	}
	return id.Asset(rest), true
}

func notIDRune(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// audioName is where the main file's name is remembered: it is that of its sound.
func audioName(in Input) string { return "audio/" + in.Name }

// checkTrack is about a further input that becomes a track of its own.
func (in Input) checkTrack(l *fault.List, path string, names map[string]bool) {
	if in.Type != "text" && in.Type != "audio" {
		l.At(path+".type", "must be text or audio, or overlay_settings must be set")
		return
	}
	if in.URL == "" {
		l.At(path+".url", "is required")
	} else {
		field.WebURL(l, path+".url", in.URL)
	}
	if in.LanguageCode == "" {
		l.At(path+".language_code", "is required for text and audio tracks")
	}
	if in.Type == "text" && in.TextType == "" {
		l.At(path+".text_type", "is required for text tracks; subtitles is the only value")
	}
	if in.Name != "" {
		key := in.Type + "/" + in.Name
		if names[key] {
			l.At(path+".name", "must be unique among the %s tracks", in.Type)
		}
		names[key] = true
	}
}

func (in Input) checkOverlay(l *fault.List, path string) {
	if in.URL == "" {
		l.At(path+".url", "is required: the image to lay over the video")
	} else {
		field.WebURL(l, path+".url", in.URL)
	}
	if in.Type != "" && in.Type != "video" {
		l.At(path+".type", "must not be %s together with overlay_settings", in.Type)
	}
	in.Overlay.check(l, path+".overlay_settings")
}

var (
	lengthForm  = regexp.MustCompile(`^-?(\d{1,5})(\.\d{1,6})?(%|px)$`)
	opacityForm = regexp.MustCompile(`^(\d{1,3})(\.\d{1,6})?%$`)
)

func (o Overlay) check(l *fault.List, path string) {
	if o.VerticalAlign != "" {
		field.OneOf(l, path+".vertical_align", o.VerticalAlign, "top", "middle", "bottom")
	}
	if o.HorizontalAlign != "" {
		field.OneOf(l, path+".horizontal_align", o.HorizontalAlign, "left", "center", "right")
	}
	for _, m := range [...]struct{ name, v string }{
		{".vertical_margin", o.VerticalMargin}, {".horizontal_margin", o.HorizontalMargin},
	} {
		if m.v != "" && !lengthForm.MatchString(m.v) {
			l.At(path+m.name, "must be a percentage such as 10%% or pixels such as 100px")
		}
	}
	for _, m := range [...]struct{ name, v string }{{".width", o.Width}, {".height", o.Height}} {
		if m.v != "" && !size(m.v) {
			l.At(path+m.name, "must be a percentage such as 10%% or pixels such as 100px, more than 0")
		}
	}
	if o.Opacity != "" && !percent(o.Opacity) {
		l.At(path+".opacity", "must be a percentage from 0%% to 100%%")
	}
}

// size is a length that something can have.
func size(v string) bool {
	return lengthForm.MatchString(v) && strings.IndexFunc(v, func(r rune) bool { return r >= '1' && r <= '9' }) >= 0 &&
		v[0] != '-'
}

func percent(v string) bool {
	m := opacityForm.FindStringSubmatch(v)
	return m != nil && (len(m[1]) < 3 || m[1] == "100" && strings.Trim(m[2], ".0") == "" || m[1][0] == '0')
}

// WithQuality fills in the quality that its environment makes things in when none was asked for: plus in the place of
// basic where that is not to be had, live and for DRM. "" leaves it to WithDefaults.
func (o Options) WithQuality(use Use, quality string) Options {
	if o.Quality() != "" || quality == "" {
		return o
	}
	if o.VideoQuality = quality; quality == "basic" && (use == ForLive || o.wantsDRM()) {
		o.VideoQuality = "plus"
	}
	return o
}

// WithDefaults fills in what an asset is made with when it was not said. The default quality is basic on demand, and
// plus where basic is not to be had: live and DRM.
func (o Options) WithDefaults(use Use) Options {
	o.VideoQuality = o.Quality()
	if o.VideoQuality == "" {
		o.VideoQuality = "basic"
		if use == ForLive || o.wantsDRM() {
			o.VideoQuality = "plus"
		}
	}
	o.EncodingTier = tierOf(o.VideoQuality)
	if o.MaxResolution == "" {
		o.MaxResolution = "1080p"
	}
	if o.MasterAccess == "" {
		o.MasterAccess = "none"
	}
	if o.MP4Support == "" {
		o.MP4Support = "none"
	}
	return o
}

// ClipRange is the stretch of the source that in asks for, in seconds; end is +Inf when it goes to the source's end.
func (in Input) ClipRange() (start, end float64) {
	end = math.Inf(1)
	if in.StartTime != nil {
		start = *in.StartTime
	}
	if in.EndTime != nil {
		end = *in.EndTime
	}
	return start, end
}
