package live

import (
	"context"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// CreateInput is a request to create; nil and empty mean not given. Errors name fields by these wire paths:
// playback_policies[0], new_asset_settings.meta.title, simulcast_targets[2].url and so on.
type CreateInput struct {
	PlaybackPolicies   []playbackid.Policy
	AdvancedPolicies   []playbackid.Request
	NewAsset           *assetopt.Options
	DefaultQuality     string // video_quality of the environment; empty: the service's
	ReconnectWindow    *float64
	SlateForStandard   bool
	ReconnectSlateURL  string
	Passthrough        string
	AudioOnly          bool
	EmbeddedSubtitles  []assetopt.EmbeddedSubtitle
	GeneratedSubtitles []assetopt.GeneratedSubtitle
	LatencyMode        LatencyMode
	LowLatency         *bool // deprecated mirrors of latency_mode
	ReducedLatency     *bool
	Test               bool
	SimulcastTargets   []SimulcastTarget // ID and State are filled in
	MaxContinuous      *int
	Meta               assetopt.Meta
}

// PatchInput changes what is not nil; "" clears a string.
type PatchInput struct {
	LatencyMode       *LatencyMode // only while idle
	ReconnectWindow   *float64
	DefaultWindow     bool // reconnect_window is that of the latency mode again
	SlateForStandard  *bool
	ReconnectSlateURL *string
	Passthrough       *string
	MaxContinuous     *int
	Meta              *assetopt.MetaPatch
	NewAsset          *NewAssetPatch
	EmbeddedSubtitles *[]assetopt.EmbeddedSubtitle // replaces the whole list; only while idle
	// video_quality of the environment, as in CreateInput; only looked at when NewAsset clears
	DefaultQuality string
}

// NewAssetPatch is what of new_asset_settings may be changed later.
type NewAssetPatch struct {
	Clear        bool // first: as if the stream had been made without new_asset_settings
	MasterAccess *string
	MP4Support   *string
	VideoQuality *string
	Meta         *assetopt.MetaPatch
	// StaticRenditions replaces the whole list.
	StaticRenditions *[]assetopt.StaticRendition
}

// ListQuery selects streams, newest first.
type ListQuery struct {
	Status    Status // empty: any
	StreamKey string
	Page      int // from 1
	Limit     int // 1–100
}

// MaxSome is how many streams are read at once by their IDs.
const MaxSome = 100

// MaxCounted is how many streams are counted at most.
const MaxCounted = 1000

// Numbers is how many streams there are. One above MaxCounted says only that there are more than that.
type Numbers struct {
	All int
	// Of has those of each status; idle and disabled ones are counted only when All are.
	Of map[Status]int
}

// Change is one atomic step: the row, what it tells and what it asks for. The store compares-and-sets on (From,
// FromEpoch) and Stream.Revision as it was read; a row that has moved on is fault.Conflict and nothing is written. It
// counts the revision up, and replaces the row's playback IDs by the stream's. Stream.Reserved is written with a new
// epoch only.
type Change struct {
	From      State
	FromEpoch id.Epoch
	Stream    Stream
	// Dead is whose place is taken; zero: nobody's. While it lives, by the database's clock at the moment of the write,
	// the change is fault.Conflict too.
	Dead Owner
	// Gone has Dead be dead while nobody has the lock on its node's name, too: see Store.Unlocked.
	Gone bool
	// Seen is when Stream.Owner, which takes the broadcast, is there, as See writes it; zero: it takes nothing.
	Seen   time.Time
	Events []event.Event
	Jobs   []job.Insert
}

// Store is implemented by storage/db; one call is one transaction. Absent or other environments' rows are
// fault.NotFound. A row with DeletedAt is absent for Get, ByKey and List, and there for Find, Hold, Held, Orphans,
// Broadcasting, Save and Delete.
type Store interface {
	Insert(ctx context.Context, c Change) error // an existing ID or stream key is fault.Conflict
	Get(ctx context.Context, env id.Environment, s id.LiveStream) (Stream, error)
	// Find reads a stream of any environment: for the media side, which has been admitted already.
	Find(ctx context.Context, s id.LiveStream) (Stream, error)
	ByKey(ctx context.Context, streamKey string) (Stream, error)
	List(ctx context.Context, env id.Environment, q ListQuery) ([]Stream, error)
	// Some reads those of up to MaxSome streams that are there, in any order.
	Some(ctx context.Context, env id.Environment, of []id.LiveStream) ([]Stream, error)
	// Count looks at no more than about 2 * MaxCounted rows.
	Count(ctx context.Context, env id.Environment) (Numbers, error)
	// Broadcasting lists the streams of every environment that have a broadcast (ActiveAsset set), for recovery and
	// sweeping.
	Broadcasting(ctx context.Context) ([]Stream, error)
	Save(ctx context.Context, c Change) error
	Delete(ctx context.Context, c Change) error
	// Hold reads a stream, and says for how long at least o stays the owner of what it leads; see Standing.Sure.
	Hold(ctx context.Context, s id.LiveStream, o Owner) (Stream, time.Duration, error)
	// Held lists in one statement every broadcast that o leads, and says for how long at least it stays their owner.
	Held(ctx context.Context, o Owner) ([]Held, time.Duration, error)
	// Standing says how o stands; by asks. Where a database has one node only, every other process than by is gone.
	Standing(ctx context.Context, o, by Owner) (Standing, error)
	// Unlocked reports whether nobody has the lock on the name of a node, which each process takes when it starts and
	// keeps on a connection of its own: that of n has ended, or it has lost the connection. Where a database has one
	// node only nobody is asked, and it is false.
	Unlocked(ctx context.Context, n id.Node) (bool, error)
	// Orphans lists the streams whose broadcast nobody leads: the owner has by's name and is dead, or its name has had
	// no valid row for so long. When by is starting every other run of its name is dead.
	Orphans(ctx context.Context, by Owner, starting bool, long time.Duration) ([]Stream, error)
	// Reserve writes, in one statement, those reservations that are of broadcasts which o leads, and says which these
	// are. It changes no revision.
	Reserve(ctx context.Context, o Owner, all []Reservation) ([]id.LiveStream, error)
	// See notes that o was there at a time.
	See(ctx context.Context, o Owner, at time.Time) error
	// ForgetOwners removes what is noted of processes that have not been there for a day and that no broadcast names.
	ForgetOwners(ctx context.Context, now time.Time) error
}

// Orphan is a broadcast that nobody leads.
type Orphan struct {
	Stream

	// Unlocked: the owner's row has been out of date for less than OrphanedAfter, and nobody has the lock on its node's
	// name. Its process has ended if its machine refuses connections too; otherwise the broadcast is to be left alone.
	Unlocked bool
}

// OrphanedAfter is for how long the row of an owner's node has to be out of date until its broadcasts are orphans. An
// encoder that comes to another node needs not wait for it: then the owner is dead as soon as its row is not valid. A
// node that the database keeps waiting, and whose encoders are still there, shall not lose them.
const OrphanedAfter = 12 * time.Second

// Options configures a Service.
type Options struct {
	Store Store
	// DRM says which DRM configurations there are; nil: none.
	DRM playbackid.Configurations
	// Recognition says which generated subtitles could not be made; nil is not asked.
	Recognition assetopt.Recognition
	// Changed is told after each committed change that somebody asked for; it must not block. May be nil.
	Changed func(id.LiveStream)
	// Readdressed is told, like Changed, after changes of playback IDs: who has resolved them has to ask again, which
	// takes the database. May be nil.
	Readdressed func(id.LiveStream)
}

// API is what the REST side calls. Every method is bound to one environment: others' streams are fault.NotFound.
type API interface {
	Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Stream, error)
	Get(ctx context.Context, env id.Environment, s id.LiveStream) (Stream, error)
	List(ctx context.Context, env id.Environment, q ListQuery) ([]Stream, error)
	// Some reads those of up to MaxSome streams that are there, in any order.
	Some(ctx context.Context, env id.Environment, of []id.LiveStream) ([]Stream, error)
	// Count says how many streams List has, by status; it costs the same however many there are.
	Count(ctx context.Context, env id.Environment) (Numbers, error)
	SetGeneratedSubtitles(
		ctx context.Context, env id.Environment, s id.LiveStream, in []assetopt.GeneratedSubtitle, now time.Time,
	) (Stream, error)
	Patch(ctx context.Context, env id.Environment, s id.LiveStream, in PatchInput, now time.Time) (Stream, error)
	Delete(ctx context.Context, env id.Environment, s id.LiveStream, now time.Time) error
	Enable(ctx context.Context, env id.Environment, s id.LiveStream, now time.Time) error
	Disable(ctx context.Context, env id.Environment, s id.LiveStream, now time.Time) error
	Complete(ctx context.Context, env id.Environment, s id.LiveStream, now time.Time) error
	ResetStreamKey(ctx context.Context, env id.Environment, s id.LiveStream, now time.Time) (Stream, error)
	AddPlaybackID(
		ctx context.Context, env id.Environment, s id.LiveStream, r playbackid.Request, now time.Time,
	) (playbackid.ID, error)
	GetPlaybackID(ctx context.Context, env id.Environment, s id.LiveStream, p id.Playback) (playbackid.ID, error)
	DeletePlaybackID(ctx context.Context, env id.Environment, s id.LiveStream, p id.Playback, now time.Time) error
	// AddSimulcastTarget takes URL, stream key and passthrough of in, whose errors name the fields url, stream_key and
	// passthrough. It and DeleteSimulcastTarget are fault.Conflict while a broadcast goes on.
	AddSimulcastTarget(
		ctx context.Context, env id.Environment, s id.LiveStream, in SimulcastTarget, now time.Time,
	) (SimulcastTarget, error)
	GetSimulcastTarget(
		ctx context.Context, env id.Environment, s id.LiveStream, t id.SimulcastTarget,
	) (SimulcastTarget, error)
	DeleteSimulcastTarget(
		ctx context.Context, env id.Environment, s id.LiveStream, t id.SimulcastTarget, now time.Time,
	) error
}

// Broadcasts is what the media run time calls with facts from the media plane. Facts of anyone but
// the writer that the row names, or that mean nothing in the stream's state, are fault.Conflict and change nothing.
type Broadcasts interface {
	// Connect admits an encoder: fault.NotFound unknown key, fault.Denied disabled, fault.Conflict an encoder is live.
	// From idle it begins a broadcast: epoch+1, ActiveAsset = newAsset, events connected. From reconnecting (or
	// waiting), within the window, it continues the same one (resumed: the returned stream's ActiveAsset is not
	// newAsset); so it does within AfterDeath when the owner is dead that had the encoder, and, whatever the
	// window, when that encoder is silent (events disconnected, connected). A broadcast that is about to be ended is
	// fault.Conflict. Sets Owner, Generation (the same where the process leads the broadcast already), Protocol,
	// StartedAt; clears DisconnectedAt.
	// It is an ElsewhereError, and nothing has changed, when the broadcast is that of another living node which Asked
	// does not name. A node whose row is valid still is dead, too, when Refused names its writer and the lock on its
	// name is free.
	Connect(ctx context.Context, c Connection, now time.Time) (Stream, error)
	// Passphrase is the SRT passphrase that goes with a stream key, whatever the stream's state: fault.NotFound unknown
	// key.
	Passphrase(ctx context.Context, streamKey string) (string, error)
	// Adopt makes by the owner of a broadcast that from led and whose owner is gone: dead, an earlier run of by's node,
	// or by itself, which has no such broadcast any more. An encoder that was connected is away since the owner was
	// last heard of (event disconnected). fault.Conflict when the owner lives or the writer is another: of several that
	// try, one succeeds.
	Adopt(ctx context.Context, s id.LiveStream, from Writer, by Owner, now time.Time) (Stream, error)
	// Recording says that first frames of an encoder were accepted. Event recording. resumed: it was admitted to an
	// active stream, as after a reconnect; then the state stays.
	Recording(ctx context.Context, s id.LiveStream, w Writer, resumed bool, now time.Time) error
	Active(ctx context.Context, s id.LiveStream, w Writer, now time.Time) error                 // playable
	Disconnected(ctx context.Context, s id.LiveStream, w Writer, now time.Time) (Stream, error) // the window starts
	// Dismissed is Disconnected of an encoder that its node has let go of, as that leaves: the broadcast waits for it
	// as for one that was lost with its node.
	Dismissed(ctx context.Context, s id.LiveStream, w Writer, now time.Time) (Stream, error)
	// Target tells what became of the link to a simulcast target: LinkUp, LinkDown or LinkImpossible. What happens to
	// the stream itself (connect, disconnect, adopt, end) moves its targets in the same change.
	Target(ctx context.Context, s id.LiveStream, w Writer, t id.SimulcastTarget, f TargetFact, now time.Time) error
	// Silence reports whether the connected encoder is silent, so that another connection is let in; no event.
	// fault.Conflict when no encoder is connected.
	Silence(ctx context.Context, s id.LiveStream, w Writer, silent bool, now time.Time) (Stream, error)
	// End finishes the broadcast: idle (or disabled), ActiveAsset into RecentAssets, events disconnected, of an encoder
	// that it cuts off, and idle (disabled), owner cleared; a deleted stream's row goes away. It is the last step of an
	// ending: the asset's EndLive comes before it, so that after a crash in between Broadcasting still lists the stream
	// and both are done again.
	End(ctx context.Context, s id.LiveStream, w Writer, why EndReason, now time.Time) (Stream, error)
	// Left says that the encoder has gone whose connection outlived the broadcast, which has been ended. Event
	// disconnected; nothing is told once another broadcast has begun, or the stream is deleted.
	Left(ctx context.Context, s id.LiveStream, e id.Epoch, now time.Time) error
	// Hold reads the row of a broadcast that w leads, which says what the API wants of it, and for how long at least
	// w's owner stays the owner (see Standing.Sure). fault.Conflict, or NotFound, when another leads it or it is over.
	Hold(ctx context.Context, s id.LiveStream, w Writer) (Stream, time.Duration, error)
	// Held lists every broadcast that a process leads, and says for how long at least it stays the owner of all of
	// them.
	Held(ctx context.Context, o Owner) ([]Held, time.Duration, error)
	// Reserve says which media sequence numbers may be published, of many broadcasts at once, and gives those that o
	// leads.
	Reserve(ctx context.Context, o Owner, all []Reservation) ([]id.LiveStream, error)
	// See says that a process that leads broadcasts is there; should it die, their encoders are away since the last
	// time.
	See(ctx context.Context, o Owner, now time.Time) error
	// ForgetOwners removes what was said of processes that are gone for long.
	ForgetOwners(ctx context.Context, now time.Time) error
	// Orphans lists the broadcasts that by may adopt: nobody leads them. When by is starting, these are all of earlier
	// runs of its node, which it has seen to be gone, and no Unlocked ones.
	Orphans(ctx context.Context, by Owner, starting bool) ([]Orphan, error)
	// Warn tells the owner of the stream that something of the broadcast is not as wanted. Event warning.
	Warn(ctx context.Context, s id.LiveStream, by Writer, w Warning, now time.Time) error
	Find(ctx context.Context, s id.LiveStream) (Stream, error)
	Broadcasting(ctx context.Context) ([]Stream, error)
}
