package api

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Progress is how far the work on an asset is.
type Progress struct {
	State    string  `json:"state" enum:"ingesting,transcoding,completed,live,errored"`
	Progress float64 `json:"progress" doc:"Percent; -1 for live and errored assets."`
}

// Problem is why an asset or a track is errored.
type Problem struct {
	Type     string   `json:"type"`
	Messages []string `json:"messages"`
}

// RecordingTime is one stretch of a broadcast.
type RecordingTime struct {
	StartedAt string  `json:"started_at" format:"date-time"`
	Duration  float64 `json:"duration" doc:"Seconds."`
	Type      string  `json:"type" enum:"content,slate"`
}

// StaticRendition is one file to download.
type StaticRendition struct {
	ID             string `json:"id,omitempty" doc:"Absent for files made by mp4_support, as are status, type and resolution."`
	Name           string `json:"name" example:"highest.mp4" doc:"The file's URL is /{playback_id}/{name}."`
	Ext            string `json:"ext" enum:"mp4,m4a"`
	Resolution     string `json:"resolution,omitempty" enum:"highest,audio-only,2160p,1440p,1080p,720p,540p,480p,360p,270p"`
	ResolutionTier string `json:"resolution_tier,omitempty" enum:"audio-only,720p,1080p,1440p,2160p"`
	Type           string `json:"type,omitempty" enum:"standard,advanced" doc:"advanced: an explicit resolution."`
	Status         string `json:"status,omitempty" enum:"preparing,ready,skipped,errored" doc:"skipped: the source is smaller, or has no such media."`
	Width          int    `json:"width,omitempty" doc:"Pixels."`
	Height         int    `json:"height,omitempty" doc:"Pixels."`
	Bitrate        int64  `json:"bitrate,omitempty" doc:"Bits per second."`
	FileSize       string `json:"filesize,omitempty" doc:"Bytes, as a string." example:"1048576"`
	Passthrough    string `json:"passthrough,omitempty"`

	Progress float64 `json:"progress,omitempty" doc:"Progress of a preparing file, in percent."`
	TimeLeft float64 `json:"time_left,omitempty" doc:"Estimated seconds until it is ready; absent if unknown."`
}

// StaticRenditions are an asset's files to download.
type StaticRenditions struct {
	Status string            `json:"status,omitempty" enum:"preparing,ready,disabled,errored" deprecated:"true" doc:"The status of all files that mp4_support asks for."`
	Files  []StaticRendition `json:"files"`
}

// Master is the original of an asset, for its owner and for a day.
type Master struct {
	Status string `json:"status" enum:"preparing,ready,errored"`
	URL    string `json:"url,omitempty" doc:"Valid for 24 hours. Append &download=name.mp4 to name the file."`
}

// NonStandard is why an input file could not be taken as it is.
type NonStandard struct {
	VideoCodec     string `json:"video_codec,omitempty" example:"hevc" doc:"The codec, if it is not H.264."`
	AudioCodec     string `json:"audio_codec,omitempty" example:"opus" doc:"The codec, if it is not AAC."`
	GOP            string `json:"video_gop_size,omitempty" enum:"high" doc:"Key frames are too far apart, or none can be decoded independently."`
	Bitrate        string `json:"video_bitrate,omitempty" enum:"high" doc:"Average above 8 Mbit/s, or above 20 Mbit/s for more than 1080p."`
	FrameRate      string `json:"video_frame_rate,omitempty" example:"144.000" doc:"The frame rate, if it is outside 5 to 120 frames per second (5 to 60 above 1080p); it becomes 30."`
	Resolution     string `json:"video_resolution,omitempty" example:"7680x4320" doc:"A side is longer than 2048 pixels, or 4096 for more than 1080p."`
	PixelAspect    string `json:"pixel_aspect_ratio,omitempty" example:"16:15" doc:"The pixel aspect ratio, if pixels are not square; they are made square."`
	PixelFormat    string `json:"unsupported_pixel_format,omitempty" example:"yuv422p10le"`
	VideoEditList  string `json:"video_edit_list,omitempty" enum:"non-standard"`
	AudioEditList  string `json:"audio_edit_list,omitempty" enum:"non-standard"`
	FileParameters string `json:"unexpected_media_file_parameters,omitempty" enum:"non-standard" doc:"A property of the file such as interlaced video, high dynamic range, or a container that players can't read."`
}

// Asset is an asset as responses have it.
type Asset struct {
	ID                string            `json:"id"`
	CreatedAt         string            `json:"created_at" doc:"Seconds since the Unix epoch, as a string." example:"1767225600"`
	Status            string            `json:"status" enum:"preparing,ready,errored"`
	Progress          Progress          `json:"progress"`
	MaxResolutionTier string            `json:"max_resolution_tier" enum:"1080p,1440p,2160p"`
	EncodingTier      string            `json:"encoding_tier" enum:"smart,baseline,premium" deprecated:"true"`
	VideoQuality      string            `json:"video_quality" enum:"basic,plus,premium"`
	MasterAccess      string            `json:"master_access" enum:"none,temporary"`
	Master            *Master           `json:"master,omitempty"`
	MP4Support        MP4Support        `json:"mp4_support" deprecated:"true"`
	Duration          float64           `json:"duration,omitempty" doc:"Seconds."`
	AspectRatio       string            `json:"aspect_ratio,omitempty" example:"16:9"`
	ResolutionTier    string            `json:"resolution_tier,omitempty" enum:"audio-only,720p,1080p,1440p,2160p" doc:"The highest resolution that viewers get."`
	StoredResolution  string            `json:"max_stored_resolution,omitempty" enum:"Audio only,SD,HD,FHD,UHD" deprecated:"true"`
	StoredFrameRate   float64           `json:"max_stored_frame_rate,omitempty" doc:"Frames per second; -1 when unknown."`
	PlaybackIDs       []PlaybackID      `json:"playback_ids,omitempty"`
	Tracks            []Track           `json:"tracks,omitempty"`
	Errors            *Problem          `json:"errors,omitempty"`
	LiveStreamID      string            `json:"live_stream_id,omitempty"`
	SourceAssetID     string            `json:"source_asset_id,omitempty" doc:"The asset that a clip was cut from."`
	UploadID          string            `json:"upload_id,omitempty" doc:"The direct upload that its file came from."`
	IsLive            *bool             `json:"is_live,omitempty" doc:"Recordings only: true while the broadcast is still running."`
	IngestType        string            `json:"ingest_type,omitempty" enum:"on_demand_url,on_demand_direct_upload,on_demand_clip,live_rtmp,live_srt,live_whip"`
	RecordingTimes    []RecordingTime   `json:"recording_times,omitempty"`
	StaticRenditions  *StaticRenditions `json:"static_renditions,omitempty"`
	NormalizeAudio    bool              `json:"normalize_audio,omitempty"`
	Passthrough       string            `json:"passthrough,omitempty"`
	Meta              Meta              `json:"meta,omitzero"`
	NonStandard       *NonStandard      `json:"non_standard_input_reasons,omitempty"`
	ThumbnailTime     *float64          `json:"thumbnail_time,omitempty" doc:"Seconds."`
	GenerateShots     bool              `json:"generate_shots,omitempty"`
	Test              bool              `json:"test,omitempty"`
}

// AssetListResponse is the envelope of a list of assets.
type AssetListResponse struct {
	Data       []Asset `json:"data"`
	NextCursor *string `json:"next_cursor" nullable:"true" doc:"The cursor of the next page; null on the last page."`
}

// AssetCreate asks for an asset to be made from URLs or from another asset.
type AssetCreate struct{ NewAssetSettings }

// AssetUpdate changes what is given.
type AssetUpdate struct {
	Passthrough   Optional[string]     `json:"passthrough,omitzero" maxLength:"255" doc:"An empty string or null clears it."`
	Meta          Optional[MetaUpdate] `json:"meta,omitzero" doc:"Replaces the whole object. null clears it; an object of only null members clears those; an empty object changes nothing."`
	ThumbnailTime Optional[*float64]   `json:"thumbnail_time,omitzero" minimum:"0" doc:"Seconds, at most the asset's duration; null clears it."`
}

func (a AssetCreate) input() (asset.CreateInput, error) {
	var problems fault.List
	in := asset.CreateInput{Options: a.domain(&problems, "")}
	return in, problems.Err()
}

func (a AssetUpdate) input() asset.PatchInput {
	return asset.PatchInput{
		Passthrough:   a.Passthrough.Ptr(),
		Meta:          metaPtr(a.Meta),
		ThumbnailTime: a.ThumbnailTime.Ptr(),
	}
}

func wireAsset(a asset.Asset) Asset {
	o, f := a.Options, a.Facts
	out := Asset{
		ID:                string(a.ID),
		CreatedAt:         epoch(a.CreatedAt),
		Status:            string(a.Status),
		Progress:          Progress{State: a.Progress.State, Progress: finite(a.Progress.Percent)},
		MaxResolutionTier: or(o.MaxResolution, "1080p"),
		MasterAccess:      or(o.MasterAccess, "none"),
		MP4Support:        MP4Support(or(o.MP4Support, "none")),
		Duration:          finite(f.Duration),
		AspectRatio:       aspectRatio(f),
		ResolutionTier:    resolutionTier(o, f),
		StoredResolution:  storedResolution(f),
		PlaybackIDs:       playbackIDsOf(a.PlaybackIDs),
		Tracks:            convert(a.Tracks, wireTrack),
		Errors:            wireProblem(a.Errors),
		LiveStreamID:      string(a.LiveStream),
		SourceAssetID:     string(a.SourceAsset),
		UploadID:          string(a.Upload),
		IngestType:        string(a.Origin),
		RecordingTimes:    convert(a.Recordings, wireRecording),
		StaticRenditions:  wireStatic(a.Static),
		NormalizeAudio:    o.NormalizeAudio,
		Passthrough:       o.Passthrough,
		Meta:              Meta(o.Meta),
		Test:              o.Test,
		ThumbnailTime:     a.ThumbnailTime,
		GenerateShots:     o.GenerateShots,
		NonStandard:       (*NonStandard)(a.NonStandard),
	}
	out.VideoQuality, out.EncodingTier = quality(o, a.LiveStream != "")
	if f.HasVideo {
		out.StoredFrameRate = finite(f.FrameRate)
	}
	if a.LiveStream != "" {
		out.IsLive = &a.IsLive
	}
	return out
}

// or is text, or preset when there is none.
func or(text, preset string) string {
	if text == "" {
		return preset
	}
	return text
}

// finite keeps what JSON can not say off the wire.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// quality gives both names of the quality, whichever was asked for.
func quality(o assetopt.Options, fromLive bool) (name, tier string) {
	tiers := map[string]string{"basic": "baseline", "plus": "smart", "premium": "premium"}
	if tier = tiers[o.VideoQuality]; tier != "" {
		return o.VideoQuality, tier
	}
	for q, t := range tiers {
		if t == o.EncodingTier {
			return q, t
		}
	}
	if fromLive {
		return "plus", tiers["plus"] // live streams have no basic
	}
	return "basic", tiers["basic"]
}

// aspectRatio is width to height in lowest terms.
func aspectRatio(f asset.Facts) string {
	if f.Width <= 0 || f.Height <= 0 {
		return ""
	}
	a, b := f.Width, f.Height
	for b != 0 {
		a, b = b, a%b
	}
	return fmt.Sprintf("%d:%d", f.Width/a, f.Height/a)
}

// resolutionTier is that of what viewers get. It goes by pixels, so that portrait and wide-screen pictures count like
// others, and is none above the tier that the asset was made in.
func resolutionTier(o assetopt.Options, f asset.Facts) string {
	top, tiers := pixelTier(f), []string{"1080p", "1440p", "2160p"}
	if most := slices.Index(tiers, or(o.MaxResolution, "1080p")); most >= 0 && slices.Index(tiers, top) > most {
		return tiers[most]
	}
	return top
}

func pixelTier(f asset.Facts) string {
	top := f.Top()
	switch pixels := top.Width * top.Height; {
	case pixels <= 0 && f.HasAudio && !f.HasVideo:
		return "audio-only"
	case pixels <= 0:
		return ""
	case pixels <= 1280*720:
		return "720p"
	case pixels <= 1920*1080:
		return "1080p"
	case pixels <= 2048*2048:
		return "1440p"
	}
	return "2160p"
}

// storedResolution is the older name of the tier; it tells pictures below 720p from those of it.
func storedResolution(f asset.Facts) string {
	top := f.Top()
	long, short := max(top.Width, top.Height), min(top.Width, top.Height)
	switch {
	case long <= 0 && f.HasAudio && !f.HasVideo:
		return "Audio only"
	case long <= 0:
		return ""
	case long < 1280 && short < 720:
		return "SD"
	case long < 1920 && short < 1080:
		return "HD"
	case long <= 1920 || short <= 1080:
		return "FHD"
	}
	return "UHD"
}

func wireProblem(e *asset.Errors) *Problem {
	if e == nil {
		return nil
	}
	return &Problem{Type: e.Type, Messages: append([]string{}, e.Messages...)}
}

// microseconds is how exactly clocks are told: more digits than six are refused by many a client's parser.
const microseconds = "2006-01-02T15:04:05.000000Z07:00"

func wireRecording(r asset.Recording) RecordingTime {
	return RecordingTime{StartedAt: r.StartedAt.UTC().Format(microseconds), Duration: finite(r.Duration), Type: r.Type}
}

// wireStatic shows the files to download; of those that mp4_support asks for only all together have a status.
func wireStatic(st asset.Static) *StaticRenditions {
	if st.Status == "" && len(st.Files) == 0 {
		return nil
	}
	return &StaticRenditions{
		Status: string(st.Status),
		Files: append([]StaticRendition{}, convert(st.Files, func(f asset.StaticRendition) StaticRendition {
			out := wireFile(f)
			if st.Status != "" {
				out.ID, out.Status = "", ""
			}
			return out
		})...),
	}
}

func wireFile(f asset.StaticRendition) StaticRendition {
	out := StaticRendition{
		ID:             string(f.ID),
		Name:           f.Name,
		Ext:            f.Ext,
		Resolution:     f.Resolution,
		ResolutionTier: f.ResolutionTier,
		Type:           f.Type,
		Status:         string(f.Status),
		Width:          f.Width,
		Height:         f.Height,
		Bitrate:        f.Bitrate,
		Passthrough:    f.Passthrough,
		Progress:       finite(f.Progress),
	}
	if f.Size > 0 {
		out.FileSize = strconv.FormatInt(f.Size, 10)
	}
	return out
}

// assetForm is how this server shows assets: with what only it knows.
type assetForm struct {
	public string // URL of the service
	now    func() time.Time
}

// asset is wireAsset with what only this server knows: the address of the master, and how long work still takes.
func (af assetForm) asset(a asset.Asset) Asset {
	out := assetAt(af.public, a)
	for i, t := range a.Tracks {
		out.Tracks[i] = af.track(t)
	}
	for i, file := range a.Static.Files {
		if file.Status == asset.FilePreparing {
			out.StaticRenditions.Files[i].TimeLeft = af.timeLeft(file.Pace)
		}
	}
	return out
}

// track is wireTrack with how long work on it still takes.
func (af assetForm) track(t asset.Track) Track {
	out := wireTrack(t)
	if t.Status == asset.TrackPreparing {
		out.TimeLeft = af.timeLeft(t.Pace)
	}
	return out
}

// timeLeft is how long work still takes, in whole seconds; 0: nobody knows.
func (af assetForm) timeLeft(p asset.Pace) float64 { return math.Ceil(p.Left(af.now()).Seconds()) }

// assetAt is an asset of the service at a URL. The master has an address only together with the signature that opens
// it.
func assetAt(public string, a asset.Asset) Asset {
	out := wireAsset(a)
	if m := a.Master; m != nil {
		out.Master = &Master{Status: string(m.Status)}
		if m.Status == asset.FileReady && m.Signature != "" {
			out.Master.URL = public + masterPath(a.ID, m)
		}
	}
	return out
}

// masterPath is where playback gives the master out.
func masterPath(a id.Asset, m *asset.Master) string {
	q := url.Values{"expires": {strconv.FormatInt(m.Expires.Unix(), 10)}, "signature": {m.Signature}}
	return "/master/" + string(a) + ".mp4?" + q.Encode()
}
