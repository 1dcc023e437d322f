// Package populate fills the database of a stopped server through the store's own functions, with what an environment
// has after years.
package populate

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/audit"
	"millrace/internal/control/drm"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/control/vocabulary"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

const (
	// Assets is how many there are.
	Assets = 10_000
	// EventsEach is how many events each asset has.
	EventsEach = 100

	some = 1000 // uploads and live streams
	few  = 100  // of what an environment has few of
	sent = 10_000
	node = "bench"
)

// Database is an open one.
type Database struct {
	*db.DB

	env id.Environment
	// IDs of resources whose parts are listed, by their names in paths.
	IDs map[string]string
	// Day is one in which every asset was watched in every hour.
	Day time.Time
	// Installation is the header Authorization of a token for what belongs to no environment.
	Installation string
}

// Open opens the database in the data folder of a server that has made it.
func Open(ctx context.Context, dir string) (*Database, error) {
	text, err := os.ReadFile(filepath.Join(dir, "master-key"))
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	key, err := masterkey.Parse(text)
	if err != nil {
		return nil, err
	}
	d, err := db.Open(ctx, db.Options{URL: filepath.Join(dir, "millrace.db"), MasterKey: masterkey.Of(key)})
	if err != nil {
		return nil, err
	}
	env, err := access.New(access.Options{Store: d.Access()}).Default(ctx, time.Now())
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &Database{DB: d, env: env.ID, IDs: map[string]string{}, Day: time.Now().UTC().AddDate(0, 0,
		-2).Truncate(24 * time.Hour)}, nil
}

// Fill stores everything. Events have the times of four weeks.
func (d *Database) Fill(ctx context.Context) error {
	hook, err := d.hooks(ctx)
	if err != nil {
		return err
	}
	for _, fill := range []func(context.Context) error{d.assets, d.others, d.rules, d.watched} {
		if err := fill(ctx); err != nil {
			return err
		}
	}
	return d.deliveries(ctx, hook)
}

// step is the time of the event of a number.
func step(n int) time.Time {
	const all = 28 * 24 * time.Hour
	return time.Now().Add(-all).Add(time.Duration(n) * (all / (Assets * EventsEach)))
}

// hooks makes webhooks in front of all events; but for the first one they are disabled.
func (d *Database) hooks(ctx context.Context) (first webhook.Webhook, err error) {
	s, off := webhook.New(d, nil), false
	for i := range few {
		w, err := s.Create(ctx, d.env, webhook.CreateInput{Address: fmt.Sprintf("https://hook%d.example.com/", i)},
			time.Now())
		if err == nil && i > 0 {
			_, err = s.Patch(ctx, d.env, w.ID, webhook.PatchInput{Enabled: &off}, time.Now())
		}
		if err != nil {
			return first, err
		}
		if i == 0 {
			first = w
		}
	}
	d.IDs["webhook_id"] = string(first.ID)
	return first, nil
}

// assets have their events in the change that makes them, each with the whole asset. Each change is in the audit log.
func (d *Database) assets(ctx context.Context) error {
	for i := range Assets {
		a := d.asset(step(i * EventsEach))
		c := asset.Change{Asset: a, Tracks: a.Tracks}
		for n := range EventsEach {
			typ := asset.EventUpdated
			switch n {
			case 0:
				typ = asset.EventCreated
			case 1:
				typ = asset.EventReady
			}
			c.Events = append(c.Events, event.New(d.env, typ, asset.EventObject, string(a.ID), step(i*EventsEach+n),
				a.WithoutSecrets()))
		}
		change := audit.With(ctx, audit.Entry{
			At: a.CreatedAt, Environment: d.env, Actor: audit.Actor{
				Type: audit.AccessToken, ID: "token",
				Name: "bench",
			}, Operation: "create-asset",
			Address: "203.0.113.7",
		})
		if err := d.Assets().Insert(change, c); err != nil {
			return err
		}
		d.IDs["asset_id"] = string(a.ID)
	}
	return nil
}

func (d *Database) asset(at time.Time) asset.Asset {
	a := asset.Asset{
		ID: id.Asset(id.New()), Environment: d.env, Status: asset.Ready, Origin: asset.FromURL, CreatedAt: at,
		UpdatedAt: at,
		Options: assetopt.Options{
			Passthrough: "order 4711", VideoQuality: "basic",
			Meta: assetopt.Meta{Title: "A talk about lists"},
		},
		PlaybackIDs: []playbackid.ID{{ID: id.Playback(id.New()), Policy: playbackid.Public}, {
			ID:     id.Playback(id.New()),
			Policy: playbackid.Signed,
		}},
		Facts: asset.Facts{
			Duration: 3600, Width: 1920, Height: 1080, FrameRate: 25, Channels: 2, HasVideo: true,
			HasAudio: true,
		},
		Media: id.Media(id.New()), Index: "index",
	}
	track := func(typ asset.TrackType) asset.Track {
		return asset.Track{
			ID: id.Track(id.New()), Asset: a.ID, Type: typ, Status: asset.TrackReady, Duration: 3600,
			CreatedAt: at,
		}
	}
	video, sound, text := track(asset.VideoTrack), track(asset.AudioTrack), track(asset.TextTrack)
	video.MaxWidth, video.MaxHeight, video.MaxFrameRate = 1920, 1080, 25
	sound.Primary, sound.MaxChannels = true, 2
	text.TextType, text.TextSource, text.LanguageCode, text.Name = "subtitles", "uploaded", "en", "English"
	a.Tracks = []asset.Track{video, sound, text}
	return a
}

// others are uploads, live streams and environments.
func (d *Database) others(ctx context.Context) error {
	uploads, streams := upload.New(upload.Options{Store: d.Uploads()}), live.New(live.Options{Store: d.LiveStreams()})
	week := 7 * 24 * 3600
	for range some {
		if _, err := uploads.Create(ctx, d.env, upload.CreateInput{CORSOrigin: "*", Timeout: &week},
			time.Now()); err != nil {
			return err
		}
		if _, err := streams.Create(ctx, d.env,
			live.CreateInput{PlaybackPolicies: []playbackid.Policy{playbackid.Public}}, time.Now()); err != nil {
			return err
		}
	}
	token, secret, err := access.New(access.Options{Store: d.Access()}).
		CreateToken(ctx, access.TokenInput{Permissions: []string{access.InstallationRead}}, time.Now())
	if err != nil {
		return err
	}
	d.Installation = "Basic " + base64.StdEncoding.EncodeToString([]byte(string(token.ID)+":"+secret))
	for i := range few / 2 {
		e := access.Environment{
			ID: id.Environment(id.New()), Name: fmt.Sprint("environment ", i), Kind: "development",
			CreatedAt: time.Now(),
		}
		if err := d.Access().InsertEnvironment(ctx, e, few); err != nil {
			return err
		}
	}
	return nil
}

// rules are keys, tokens and what an environment has few of otherwise.
func (d *Database) rules(ctx context.Context) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make signing key: %w", err)
	}
	for i := range few - 1 {
		now := time.Now()
		err := errors.Join(
			d.Signing().InsertKey(ctx, signing.Key{
				ID: id.SigningKey(id.New()), Environment: d.env,
				Public: &key.PublicKey, CreatedAt: now,
			}, few),
			d.Restrictions().Insert(ctx, restriction.Restriction{
				ID:          id.PlaybackRestriction(id.New()),
				Environment: d.env, CreatedAt: now,
			}, few),
			d.DRM().InsertConfiguration(ctx, drm.Configuration{
				ID: id.DRMConfiguration(id.New()), Environment: d.env,
				CreatedAt: now,
			}, few),
			d.Vocabularies().Insert(ctx, vocabulary.Vocabulary{
				ID: id.TranscriptionVocabulary(id.New()), Environment: d.env, Name: fmt.Sprint("words ", i),
				Phrases: []string{"millrace", "weir"}, CreatedAt: now,
			}, few),
			d.Access().InsertToken(ctx, access.Token{
				ID: id.Token(id.New()), Environment: d.env, Name: fmt.Sprint("token ", i),
				Permissions: []string{"video:read"}, Hash: []byte("hash"), CreatedAt: now,
			}, few+1),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// watched has each asset watched in each hour of Day.
func (d *Database) watched(ctx context.Context) error {
	var all []usage.Delivered
	cursor := ""
	for {
		page, next, err := d.Assets().List(ctx, d.env, asset.ListQuery{Cursor: cursor, Page: 1, Limit: some})
		if err != nil {
			return err
		}
		for _, a := range page {
			all = append(all, usage.Delivered{
				Asset: a.ID, Environment: d.env,
				Seconds: usage.Seconds{Tier720: float64(len(all)%100) + 1, Tier1080: 60},
			})
		}
		if cursor = next; next == "" {
			break
		}
	}
	for hour := range 24 {
		if err := d.Usage().Add(ctx, d.Day.Add(time.Duration(hour)*time.Hour), all); err != nil {
			return err
		}
	}
	return nil
}

// deliveries have a webhook delivered the first events, and nothing of the rest.
func (d *Database) deliveries(ctx context.Context, hook webhook.Webhook) error {
	if _, err := d.Claim(ctx, node, time.Hour); err != nil {
		return err
	}
	at := int64(0)
	for at < sent {
		page, err := d.ListEvents(ctx, event.Query{After: at, Limit: some})
		if err != nil || len(page) == 0 {
			return err
		}
		last := page[len(page)-1].Sequence
		queued, err := d.Queue(ctx, node, []webhook.Step{{Webhook: hook.ID, From: at, To: last, Events: page}})
		if err != nil {
			return err
		}
		var results []webhook.Result
		for _, p := range queued[hook.ID] {
			results = append(results, webhook.Result{
				Webhook: hook.ID, Sequence: p.Sequence, State: webhook.Delivered,
				Attempt: webhook.Attempt{
					At: time.Now(), Address: hook.Address, Status: 204,
					Headers: map[string]string{"Date": time.Now().Format(time.RFC1123)},
				},
			})
		}
		if err = d.Record(ctx, node, results, nil); err != nil {
			return err
		}
		at = last
	}
	off := false
	_, err := webhook.New(d, nil).Patch(ctx, d.env, hook.ID, webhook.PatchInput{Enabled: &off}, time.Now())
	return errors.Join(err, d.Release(ctx, node))
}
