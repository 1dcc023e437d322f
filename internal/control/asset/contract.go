package asset

import (
	"context"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// The kinds of jobs that assets ask for, and their arguments.
const (
	JobIngest      = "asset.ingest"   // IngestArgs: URL and clip inputs
	JobFinish      = "asset.finish"   // FinishArgs: a broadcast has ended: write the index and the facts
	JobTrackIngest = "track.ingest"   // TrackArgs
	JobSpeech      = "track.speech"   // TrackArgs: make a text track of sound
	JobCaptions    = "asset.captions" // CaptionsArgs: make text tracks of the captions in the pictures
	JobPurge       = "media.purge"    // PurgeArgs: delete what no asset refers to any more
	JobStatic      = "asset.static"   // StaticArgs: make a file to download
	JobMaster      = "asset.master"   // MasterArgs: make the master, or take it away when its time has come
	// ExpireArgs: delete a test asset, TestLife after it was made or its broadcast ended.
	JobExpire     = "asset.expire"
	JobUploadFail = "upload.fail" // UploadFailArgs: no asset could be made of an uploaded file
)

// TestLength is how much a test asset has of its file, its source, or the broadcast of an ordinary stream.
const TestLength = 10 * time.Second

// TestLife is how long a test asset is kept.
const TestLife = 24 * time.Hour

// ExpireArgs are the arguments of JobExpire.
type ExpireArgs struct {
	Asset id.Asset `json:"asset_id"`
}

// UploadFailArgs are the arguments of JobUploadFail.
type UploadFailArgs struct {
	Asset  id.Asset  `json:"asset_id"`
	Upload id.Upload `json:"upload_id"`
}

// IngestArgs are the arguments of JobIngest. Media, as in those of the others, tells a job that comes too late, when
// its asset is deleted, where it has to look for what it has left.
type IngestArgs struct {
	Asset id.Asset `json:"asset_id"`
	Media id.Media `json:"media_id"`
}

// FinishArgs are the arguments of JobFinish.
type FinishArgs struct {
	Asset id.Asset `json:"asset_id"`
	Media id.Media `json:"media_id"`
}

// CaptionsArgs are the arguments of JobCaptions.
type CaptionsArgs struct {
	Asset id.Asset `json:"asset_id"`
	Media id.Media `json:"media_id"`
}

// TrackArgs are the arguments of JobTrackIngest and JobSpeech.
type TrackArgs struct {
	Asset id.Asset `json:"asset_id"`
	Track id.Track `json:"track_id"`
	Media id.Media `json:"media_id"`
}

// StaticArgs are the arguments of JobStatic.
type StaticArgs struct {
	Asset id.Asset           `json:"asset_id"`
	File  id.StaticRendition `json:"static_rendition_id"`
	Media id.Media           `json:"media_id"`
}

// MasterArgs are the arguments of JobMaster.
type MasterArgs struct {
	Asset id.Asset           `json:"asset_id"`
	File  id.StaticRendition `json:"master_id"`
	Media id.Media           `json:"media_id"`
}

// PurgeArgs are the arguments of JobPurge.
type PurgeArgs struct {
	Media id.Media `json:"media_id"`
}

// CreateInput is a request to create from URLs or as a clip.
type CreateInput struct {
	Options        assetopt.Options
	DefaultQuality string // video_quality of the environment; empty: the service's
}

// PatchInput changes what is not nil; "" clears a string.
type PatchInput struct {
	Passthrough   *string
	Meta          *assetopt.MetaPatch
	ThumbnailTime **float64 // seconds; one that leads to nil clears it
}

// TrackInput is a request to add a track.
type TrackInput struct {
	URL            string
	Type           TrackType // text, audio
	TextType       string
	LanguageCode   string
	Name           string
	ClosedCaptions bool
	Passthrough    string
}

// TrackPatch changes what is not nil.
type TrackPatch struct {
	LanguageCode   *string
	Name           *string
	ClosedCaptions *bool
	Passthrough    *string
}

// ListQuery selects assets, newest first, by page or, when Cursor or UseCursor is given, by cursor.
type ListQuery struct {
	LiveStream id.LiveStream
	Upload     id.Upload
	Page       int // from 1
	Limit      int // 1–100
	Cursor     string
}

// Change is one atomic step. The store compares-and-sets on From (asset status) and Asset.Revision as it was read,
// counts the revision up, writes the row, its playback IDs and the given tracks (whole rows, insert or update), removes
// and appends entries, and stores events and jobs, all or nothing. A row that has moved on is fault.Conflict; a deleted
// one fault.NotFound.
type Change struct {
	From    Status
	Asset   Asset           // Asset.Tracks is not written
	Kept    bool            // its playback IDs and the media it uses are as they were, and need not be written
	Tracks  []Track         // tracks to insert or update; new ones come last in Asset.Tracks
	Dropped []id.Track      // tracks to remove
	Forget  bool            // remove every entry: the finished timeline has an index
	Entries []TimelineEntry // appended; one that is stored already with the same sequence is skipped
	Deleted time.Time       // of a deletion: when
	By      Writer          // who has to lead the broadcast that is recorded; otherwise it is fault.Conflict
	Events  []event.Event
	Jobs    []job.Insert
}

// MaxSome is how many assets are read at once by their IDs.
const MaxSome = 100

// Store is implemented by storage/db; one call is one transaction. Absent or other environments' rows are
// fault.NotFound.
type Store interface {
	Insert(ctx context.Context, c Change) error // an existing ID is fault.Conflict
	Get(ctx context.Context, env id.Environment, a id.Asset) (Asset, error)
	Find(ctx context.Context, a id.Asset) (Asset, error) // of any environment
	// List gives a cursor when there are more; an asset added later never moves what a cursor gives. A bad cursor is
	// fault.Invalid.
	List(ctx context.Context, env id.Environment, q ListQuery) (assets []Asset, nextCursor string, err error)
	// Some reads those of up to MaxSome assets that are there, in any order.
	Some(ctx context.Context, env id.Environment, of []id.Asset) ([]Asset, error)
	Save(ctx context.Context, c Change) error
	Delete(ctx context.Context, c Change) error // row, tracks, playback IDs, entries
	// Append adds entries and touches nothing else; one that is stored already with the same sequence is skipped.
	// fault.Conflict when the asset is not live any more, or its broadcast is led by somebody else than by.
	Append(ctx context.Context, a id.Asset, by Writer, entries []TimelineEntry) error
	// Timeline reads the entries from sequence from on, in order.
	Timeline(ctx context.Context, a id.Asset, from int64) ([]TimelineEntry, error)
	// Users lists the assets of every environment that own or use m.
	Users(ctx context.Context, m id.Media) ([]Asset, error)
	// Unfinished lists the assets of every environment that are Asset.Unfinished or have a track that is preparing.
	Unfinished(ctx context.Context) ([]Asset, error)
}

// Options configures a Service.
type Options struct {
	Store Store
	// DRM says which DRM configurations there are; nil: none.
	DRM playbackid.Configurations
	// Recognition says which generated subtitles could not be made; nil is not asked.
	Recognition assetopt.Recognition
	// Changed is told after each committed change of an asset or its tracks, and after its deletion; it must not block.
	// May be nil.
	Changed func(id.Asset)
}

// API is what the REST side calls; bound to one environment.
type API interface {
	Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Asset, error)
	Get(ctx context.Context, env id.Environment, a id.Asset) (Asset, error)
	List(ctx context.Context, env id.Environment, q ListQuery) (assets []Asset, nextCursor string, err error)
	// Some reads those of up to MaxSome assets that are there, in any order.
	Some(ctx context.Context, env id.Environment, of []id.Asset) ([]Asset, error)
	Patch(ctx context.Context, env id.Environment, a id.Asset, in PatchInput, now time.Time) (Asset, error)
	Delete(ctx context.Context, env id.Environment, a id.Asset, now time.Time) error
	// SetExempt exempts an asset from the retention of its environment, or ends that.
	SetExempt(ctx context.Context, env id.Environment, a id.Asset, exempt bool, now time.Time) error
	AddPlaybackID(
		ctx context.Context, env id.Environment, a id.Asset, r playbackid.Request, now time.Time,
	) (playbackid.ID, error)
	GetPlaybackID(ctx context.Context, env id.Environment, a id.Asset, p id.Playback) (playbackid.ID, error)
	DeletePlaybackID(ctx context.Context, env id.Environment, a id.Asset, p id.Playback, now time.Time) error
	AddTrack(ctx context.Context, env id.Environment, a id.Asset, in TrackInput, now time.Time) (Track, error)
	PatchTrack(
		ctx context.Context, env id.Environment, a id.Asset, t id.Track, in TrackPatch, now time.Time,
	) (Track, error)
	DeleteTrack(ctx context.Context, env id.Environment, a id.Asset, t id.Track, now time.Time) error
	// GenerateTracks adds preparing text tracks that are made of an audio track by speech recognition. Events
	// track.created; jobs JobSpeech.
	GenerateTracks(
		ctx context.Context, env id.Environment, a id.Asset, of id.Track, in []assetopt.GeneratedSubtitle,
		now time.Time,
	) ([]Track, error)
	AddStatic(
		ctx context.Context, env id.Environment, a id.Asset, in assetopt.StaticRendition, now time.Time,
	) (StaticRendition, error)
	DeleteStatic(ctx context.Context, env id.Environment, a id.Asset, f id.StaticRendition, now time.Time) error
	SetMP4Support(ctx context.Context, env id.Environment, a id.Asset, v string, now time.Time) (Asset, error)
	SetMasterAccess(ctx context.Context, env id.Environment, a id.Asset, v string, now time.Time) (Asset, error)
}

// NewRecording is what a broadcast's asset is made from.
type NewRecording struct {
	ID          id.Asset
	Environment id.Environment
	LiveStream  id.LiveStream
	Origin      Origin
	Options     assetopt.Options // the stream's new_asset_settings
	Test        bool             // the stream is a test
	Media       id.Media
	Texts       []LiveText // text tracks that are made while it is recorded
}

// LiveText asks for a text track that is made while a broadcast is recorded. It is ready with its asset, and gets its
// file when the broadcast has ended.
type LiveText struct {
	Name, LanguageCode, Passthrough string
	Source                          string // text_source
	Channel                         string // cc1–cc4, of Embedded
	// of GeneratedLive: a GeneratedFinal track is made as well, when the broadcast has ended
	Speech         *Speech
	Problem        string // why there will be no such track; empty: there will
	ClosedCaptions bool
}

// NewUpload is what an uploaded file's asset is made from.
type NewUpload struct {
	Upload      id.Upload
	Environment id.Environment
	Options     assetopt.Options // the upload's new_asset_settings
	Test        bool             // the upload is a test
	Media       id.Media         // the file is stored there as its source
}

// Writer is a process that leads a broadcast, as the live stream's row names it. What it writes counts only while the
// row names it and the asset. The zero value is who writes what is no broadcast's.
type Writer struct {
	LiveStream id.LiveStream
	Epoch      id.Epoch
	Generation int64
	Node       id.Node
	Run        string
}

// Growth is what a broadcast or a rewrite adds to its asset; nil and zero mean unchanged.
type Growth struct {
	By         Writer // of a broadcast
	Entries    []TimelineEntry
	Facts      *Facts
	Tracks     []Track     // by Rendition: created on first sight, updated after; IDs are kept
	Recordings []Recording // the whole list
	Inputs     []InputInfo // likewise
	Progress   *Progress
}

// Reader is what reads assets of any environment.
type Reader interface {
	Find(ctx context.Context, a id.Asset) (Asset, error)
	Users(ctx context.Context, m id.Media) ([]Asset, error)
	Timeline(ctx context.Context, a id.Asset, from int64) ([]TimelineEntry, error)
}

// Maker is what all call who make an asset: broadcasts, and the job JobIngest.
type Maker interface {
	Reader

	// Grow appends. It changes a preparing or live asset only, and one of a broadcast that g.By leads (fault.Conflict
	// otherwise).
	Grow(ctx context.Context, a id.Asset, g Growth, now time.Time) error
	// Ready makes a preparing asset ready (a live one: playable, it goes on growing), on the conditions of Grow. Event
	// ready. Idempotent.
	Ready(ctx context.Context, a id.Asset, g Growth, now time.Time) error
	// Fail makes a preparing asset errored. Event errored.
	Fail(ctx context.Context, a id.Asset, e Errors, now time.Time) error
	// Warn tells the asset's owner that something is not as wanted. Event warning.
	Warn(ctx context.Context, a id.Asset, w Warning, now time.Time) error
}

// Recorder is what broadcasts call.
type Recorder interface {
	Maker

	// Record makes the asset of a broadcast: preparing, is_live, progress live, event created, playback IDs from the
	// options. Idempotent by ID.
	Record(ctx context.Context, r NewRecording, now time.Time) (Asset, error)
	// Append adds entries to a live asset's timeline, on the conditions of Grow and at a fraction of its cost: what the
	// asset shows stays as the last Grow said.
	Append(ctx context.Context, a id.Asset, by Writer, entries []TimelineEntry) error
	// EndLive says that the broadcast is over: is_live false, job JobFinish, JobExpire of a test; with nothing recorded
	// the asset is errored. Idempotent. fault.Conflict when somebody else than by leads the broadcast.
	EndLive(ctx context.Context, a id.Asset, by Writer, recordings []Recording, now time.Time) error
}

// Ingester is what the jobs call that make assets of files and complete recordings.
type Ingester interface {
	Maker

	// Finish completes an asset whose timeline is whole: index key, facts, uses, progress completed; ready (event ready
	// if it was preparing) and, for a live one, event live_stream_completed; of text tracks that are new, events
	// track.created and track.ready. Its entries are dropped from the store.
	Finish(ctx context.Context, a id.Asset, f Finished, now time.Time) error
	// FailFiles gives up the files and the master that wait for the asset to be whole. Events errored.
	FailFiles(ctx context.Context, a id.Asset, e Errors, now time.Time) error
	// SetInputInfo stores what was found in the inputs.
	SetInputInfo(ctx context.Context, a id.Asset, info []InputInfo, now time.Time) error
	// SetNonStandard tells what is unusual about the first input. Event non_standard_input_detected.
	SetNonStandard(ctx context.Context, a id.Asset, n NonStandard, now time.Time) error
	SetProgress(ctx context.Context, a id.Asset, p Progress, now time.Time) error // no event
}

// TrackMaker is what the jobs of tracks call.
type TrackMaker interface {
	Reader

	// TrackReady and TrackFailed end a preparing track. Events video.asset.track.ready/errored.
	TrackReady(ctx context.Context, a id.Asset, t Track, now time.Time) error
	TrackFailed(ctx context.Context, a id.Asset, t id.Track, e Errors, now time.Time) error
	// TrackProgress says how much of a preparing track is made, in percent: less than before where work on it begins
	// again. No event.
	TrackProgress(ctx context.Context, a id.Asset, t id.Track, percent float64, now time.Time) error
}

// FileMaker is what the jobs of files to download and of masters call.
type FileMaker interface {
	Reader

	// StaticReady and StaticFailed end a preparing file. Events static_rendition.ready/errored; of mp4_support, with
	// the last file, static_renditions.ready/errored.
	StaticReady(ctx context.Context, a id.Asset, f StaticRendition, now time.Time) error
	StaticFailed(ctx context.Context, a id.Asset, f id.StaticRendition, e Errors, now time.Time) error
	// StaticProgress says how much of a preparing file is encoded, in percent. No event.
	StaticProgress(ctx context.Context, a id.Asset, f id.StaticRendition, percent float64, now time.Time) error
	// MasterReady and MasterFailed end a preparing master. Events master.ready/errored; MasterReady has it taken away
	// MasterLifetime later.
	MasterReady(ctx context.Context, a id.Asset, f id.StaticRendition, now time.Time) error
	MasterFailed(ctx context.Context, a id.Asset, f id.StaticRendition, now time.Time) error
	// MasterOver takes a master away. Event master.deleted.
	MasterOver(ctx context.Context, a id.Asset, f id.StaticRendition, now time.Time) error
}

// Finished is the outcome of a whole timeline.
type Finished struct {
	Index  string
	Uses   []id.Media
	Facts  Facts
	Tracks []Track // by Rendition, as in Growth
}
