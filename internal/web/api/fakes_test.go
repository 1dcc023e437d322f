package api

import (
	"context"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const envID id.Environment = "env1"

const (
	tokenID    = "8d1f0c1e-0000-4000-8000-000000000001"
	readerID   = "8d1f0c1e-0000-4000-8000-000000000002"
	tokenValue = "s3cret:with:colons"

	permitsOnly = "permits " // and then the permissions, with commas between: IDs of tokens of fakeAccess
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func now() time.Time { return noon }

// fakeAccess knows two tokens, and those of permitsOnly.
type fakeAccess struct {
	access.API
	*notebook
	lookup func(env id.Environment, p id.Playback) (playbackid.Object, error)
	auth   func() error
}

func (f fakeAccess) Authenticate(_ context.Context, c access.Credentials, _ time.Time) (access.Identity, error) {
	if f.auth != nil {
		if err := f.auth(); err != nil {
			return access.Identity{}, err
		}
	}
	t, secret := id.Token(strings.ReplaceAll(string(c.Token), ";", ":")), c.Secret // no user name has a colon
	who := access.Identity{
		Token: access.Token{
			ID: t, Environment: envID, Name: "ci",
			Permissions: []string{videoRead, videoWrite, systemRead, systemWrite},
		},
		Environment: access.Environment{ID: envID, Name: "Production", Kind: "production"},
	}
	switch {
	case secret != tokenValue:
	case t == tokenID:
		return who, nil
	case t == readerID:
		who.Token.Permissions = []string{videoRead}
		return who, nil
	case strings.HasPrefix(string(t), permitsOnly):
		who.Token.Permissions = strings.Split(strings.TrimPrefix(string(t), permitsOnly), ",")
		return who, nil
	}
	return access.Identity{}, fault.New(fault.Unauthorized, "unknown token %s", t)
}

func (f fakeAccess) Lookup(_ context.Context, env id.Environment, p id.Playback) (playbackid.Object, error) {
	return f.lookup(env, p)
}

// fakeLive responds with func fields; a method without one is a test's mistake.
type fakeLive struct {
	live.API
	create     func(in live.CreateInput) (live.Stream, error)
	get        func(s id.LiveStream) (live.Stream, error)
	list       func(q live.ListQuery) ([]live.Stream, error)
	patch      func(s id.LiveStream, in live.PatchInput) (live.Stream, error)
	generated  func(s id.LiveStream, in []assetopt.GeneratedSubtitle) (live.Stream, error)
	remove     func(s id.LiveStream) error
	act        func(verb string, s id.LiveStream) error
	reset      func(s id.LiveStream) (live.Stream, error)
	addID      func(s id.LiveStream, r playbackid.Request) (playbackid.ID, error)
	getID      func(s id.LiveStream, p id.Playback) (playbackid.ID, error)
	deleteID   func(s id.LiveStream, p id.Playback) error
	addTarget  func(s id.LiveStream, in live.SimulcastTarget) (live.SimulcastTarget, error)
	getTarget  func(s id.LiveStream, t id.SimulcastTarget) (live.SimulcastTarget, error)
	dropTarget func(s id.LiveStream, t id.SimulcastTarget) error
	wrongScope func(env id.Environment)
}

func (f *fakeLive) in(env id.Environment) {
	if env != envID && f.wrongScope != nil {
		f.wrongScope(env)
	}
}

func (f *fakeLive) Create(
	_ context.Context, env id.Environment, in live.CreateInput, _ time.Time,
) (live.Stream, error) {
	f.in(env)
	return f.create(in)
}

func (f *fakeLive) Get(_ context.Context, env id.Environment, s id.LiveStream) (live.Stream, error) {
	f.in(env)
	return f.get(s)
}

func (f *fakeLive) List(_ context.Context, env id.Environment, q live.ListQuery) ([]live.Stream, error) {
	f.in(env)
	return f.list(q)
}

func (f *fakeLive) Patch(
	_ context.Context, env id.Environment, s id.LiveStream, in live.PatchInput, _ time.Time,
) (live.Stream, error) {
	f.in(env)
	return f.patch(s, in)
}

func (f *fakeLive) SetGeneratedSubtitles(
	_ context.Context, env id.Environment, s id.LiveStream, in []assetopt.GeneratedSubtitle, _ time.Time,
) (live.Stream, error) {
	f.in(env)
	return f.generated(s, in)
}

func (f *fakeLive) Delete(_ context.Context, env id.Environment, s id.LiveStream, _ time.Time) error {
	f.in(env)
	return f.remove(s)
}

func (f *fakeLive) Enable(_ context.Context, env id.Environment, s id.LiveStream, _ time.Time) error {
	f.in(env)
	return f.act("enable", s)
}

func (f *fakeLive) Disable(_ context.Context, env id.Environment, s id.LiveStream, _ time.Time) error {
	f.in(env)
	return f.act("disable", s)
}

func (f *fakeLive) Complete(_ context.Context, env id.Environment, s id.LiveStream, _ time.Time) error {
	f.in(env)
	return f.act("complete", s)
}

func (f *fakeLive) ResetStreamKey(
	_ context.Context, env id.Environment, s id.LiveStream, _ time.Time,
) (live.Stream, error) {
	f.in(env)
	return f.reset(s)
}

func (f *fakeLive) AddPlaybackID(
	_ context.Context, env id.Environment, s id.LiveStream, r playbackid.Request, _ time.Time,
) (playbackid.ID, error) {
	f.in(env)
	return f.addID(s, r)
}

func (f *fakeLive) GetPlaybackID(
	_ context.Context, env id.Environment, s id.LiveStream, p id.Playback,
) (playbackid.ID, error) {
	f.in(env)
	return f.getID(s, p)
}

func (f *fakeLive) DeletePlaybackID(
	_ context.Context, env id.Environment, s id.LiveStream, p id.Playback, _ time.Time,
) error {
	f.in(env)
	return f.deleteID(s, p)
}

func (f *fakeLive) AddSimulcastTarget(
	_ context.Context, env id.Environment, s id.LiveStream, in live.SimulcastTarget, _ time.Time,
) (live.SimulcastTarget, error) {
	f.in(env)
	return f.addTarget(s, in)
}

func (f *fakeLive) GetSimulcastTarget(
	_ context.Context, env id.Environment, s id.LiveStream, t id.SimulcastTarget,
) (live.SimulcastTarget, error) {
	f.in(env)
	return f.getTarget(s, t)
}

func (f *fakeLive) DeleteSimulcastTarget(
	_ context.Context, env id.Environment, s id.LiveStream, t id.SimulcastTarget, _ time.Time,
) error {
	f.in(env)
	return f.dropTarget(s, t)
}

type fakeAssets struct {
	asset.API
	create      func(in asset.CreateInput) (asset.Asset, error)
	get         func(a id.Asset) (asset.Asset, error)
	list        func(q asset.ListQuery) ([]asset.Asset, string, error)
	patch       func(a id.Asset, in asset.PatchInput) (asset.Asset, error)
	remove      func(a id.Asset) error
	setExempt   func(a id.Asset, exempt bool) error
	addID       func(a id.Asset, r playbackid.Request) (playbackid.ID, error)
	getID       func(a id.Asset, p id.Playback) (playbackid.ID, error)
	deleteID    func(a id.Asset, p id.Playback) error
	addTrack    func(a id.Asset, in asset.TrackInput) (asset.Track, error)
	patchTrack  func(a id.Asset, t id.Track, in asset.TrackPatch) (asset.Track, error)
	deleteTrack func(a id.Asset, t id.Track) error
	addStatic   func(a id.Asset, r assetopt.StaticRendition) (asset.StaticRendition, error)
	dropStatic  func(a id.Asset, f id.StaticRendition) error
	setMP4      func(a id.Asset, v string) (asset.Asset, error)
	setMaster   func(a id.Asset, v string) (asset.Asset, error)
}

func (f *fakeAssets) Create(
	_ context.Context, _ id.Environment, in asset.CreateInput, _ time.Time,
) (asset.Asset, error) {
	return f.create(in)
}

func (f *fakeAssets) Get(_ context.Context, _ id.Environment, a id.Asset) (asset.Asset, error) {
	return f.get(a)
}

func (f *fakeAssets) List(_ context.Context, _ id.Environment, q asset.ListQuery) ([]asset.Asset, string, error) {
	return f.list(q)
}

func (f *fakeAssets) Patch(
	_ context.Context, _ id.Environment, a id.Asset, in asset.PatchInput, _ time.Time,
) (asset.Asset, error) {
	return f.patch(a, in)
}

func (f *fakeAssets) Delete(_ context.Context, _ id.Environment, a id.Asset, _ time.Time) error {
	return f.remove(a)
}

func (f *fakeAssets) AddPlaybackID(
	_ context.Context, _ id.Environment, a id.Asset, r playbackid.Request, _ time.Time,
) (playbackid.ID, error) {
	return f.addID(a, r)
}

func (f *fakeAssets) GetPlaybackID(
	_ context.Context, _ id.Environment, a id.Asset, p id.Playback,
) (playbackid.ID, error) {
	return f.getID(a, p)
}

func (f *fakeAssets) DeletePlaybackID(
	_ context.Context, _ id.Environment, a id.Asset, p id.Playback, _ time.Time,
) error {
	return f.deleteID(a, p)
}

func (f *fakeAssets) AddTrack(
	_ context.Context, _ id.Environment, a id.Asset, in asset.TrackInput, _ time.Time,
) (asset.Track, error) {
	return f.addTrack(a, in)
}

func (f *fakeAssets) PatchTrack(
	_ context.Context, _ id.Environment, a id.Asset, t id.Track, in asset.TrackPatch, _ time.Time,
) (asset.Track, error) {
	return f.patchTrack(a, t, in)
}

func (f *fakeAssets) DeleteTrack(_ context.Context, _ id.Environment, a id.Asset, t id.Track, _ time.Time) error {
	return f.deleteTrack(a, t)
}

func (f *fakeAssets) AddStatic(
	_ context.Context, _ id.Environment, a id.Asset, r assetopt.StaticRendition, _ time.Time,
) (asset.StaticRendition, error) {
	return f.addStatic(a, r)
}

func (f *fakeAssets) DeleteStatic(
	_ context.Context, _ id.Environment, a id.Asset, file id.StaticRendition, _ time.Time,
) error {
	return f.dropStatic(a, file)
}

func (f *fakeAssets) SetMP4Support(
	_ context.Context, _ id.Environment, a id.Asset, v string, _ time.Time,
) (asset.Asset, error) {
	return f.setMP4(a, v)
}

func (f *fakeAssets) SetMasterAccess(
	_ context.Context, _ id.Environment, a id.Asset, v string, _ time.Time,
) (asset.Asset, error) {
	return f.setMaster(a, v)
}

// metered has figures of every stream but the plain one.
type metered struct{}

func (metered) Health(_ context.Context, s live.Stream) live.Health {
	if s.ID == plainStream().ID {
		return live.Health{Stream: s.ID, Status: live.HealthIdle}
	}
	counts := live.Counts{
		FramesDropped: 1, TimestampsRepaired: 2, ClockJumps: 3, Discontinuities: 4, AudioHoles: 5, FramesMissing: 6,
		Packets: 7, PacketsLost: 8, PacketsRetransmitted: 9, PacketsDropped: 10,
	}
	return live.Health{
		Stream: s.ID, Status: live.HealthLive,
		Encoder: &live.Encoder{
			Protocol: "srt", Remote: "192.0.2.1:4711", Name: "test", Since: noon, Until: noon.Add(time.Minute),
			Cause: "gone", VideoFrames: 11, AudioFrames: 12, Bytes: 13, Counts: counts,
		},
		Samples: []live.Sample{{
			At: noon, Span: 5 * time.Second,
			Video: live.Flow{Bitrate: 2999999.6, Rate: 29.97003, Jitter: 1234567, Drift: -20 * time.Millisecond},
			Audio: live.Flow{Bitrate: 128000, Rate: 46.875}, GOP: 2 * time.Second, Pace: 0.99951,
			VariableFrameRate: true, RTT: 20 * time.Millisecond, Counts: counts,
		}},
		Trouble: []live.Trouble{
			{Warning: live.Warning{Type: "audio_missing", Message: "The encoder sends no sound."}, Since: noon},
		},
	}
}
