package db_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// The secrets of these tests; none may be found in what is stored.
var secrets = []string{
	"STREAM-KEY-1234567890", "PASSPHRASE-1234567890", "TARGET-KEY-1234567890", "TARGET-PASSPHRASE-1234567890",
	"WEBHOOK-SECRET-1234567890",
	"WEBHOOK-OLD-1234567890", "PATH-SECRET-1234567890", "INPUT-PASSWORD-1234567890",
	"UPLOAD-SECRET-1234567890",
}

// nowhere fails where a secret can be read in the database.
func nowhere(t *testing.T, d *db.DB, url string, more ...[2]string) {
	t.Helper()
	for _, where := range append(more, [][2]string{
		{"stream_key_hash", "live_streams"},
		{"secrets", "live_streams"},
		{"settings", "live_streams"},
		{"secret", "webhooks"},
		{"old_secret", "webhooks"},
		{"secret", "path_secrets"},
		{"data", "events"},
	}...) {
		all, err := d.Texts(t.Context(), where[0], where[1])
		if err != nil || len(all) == 0 {
			t.Fatalf("%v: %d values, %v", where, len(all), err)
		}
		for _, s := range secrets {
			if strings.Contains(strings.Join(all, " "), s) {
				t.Errorf("%s can be read in %v", s, where)
			}
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if path, file := strings.CutPrefix(url, "sqlite://"); file {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if strings.Contains(string(data), s) {
				t.Errorf("%s can be read in the file", s)
			}
		}
	}
}

func open(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// secretive is a live stream with every secret that one can have.
func secretive() live.Stream {
	return live.Stream{
		ID: "live1", Environment: "env", StreamKey: secrets[0], SRTPassphrase: secrets[1], State: live.Idle,
		Settings: live.Settings{
			LatencyMode: live.Low, SimulcastTargets: []live.SimulcastTarget{
				{ID: "t1", URL: "rtmp://one.example/app", StreamKey: secrets[2]},
				{ID: "t2", URL: "srt://two.example:9000?passphrase=" + secrets[3]},
			},
		},
	}
}

// TestMigrateSecrets: what lies in clear in a database of before is encrypted at the start, and is still known.
func TestMigrateSecrets(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := open(t, url)
		if err := d.MigrateTo(t.Context(), 18); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`INSERT INTO live_streams (id, environment_id, stream_key, srt_passphrase, state, settings, epoch, active_asset, recent_assets, protocol,
				started_at, disconnected_at, node, lease_until, end_wanted, created_at, updated_at, deleted_at, revision, active_at) VALUES
				('live1', 'env', '` + secrets[0] + `', '` + secrets[1] +
				`', 'idle', '{"latency_mode":"low","reconnect_window":0,"max_continuous_duration":60,
				"simulcast_targets":[{"id":"t1","url":"rtmp://one.example/app","stream_key":"` + secrets[2] + `"},
				{"id":"t2","url":"srt://two.example:9000?passphrase=` + secrets[3] +
				`"}]}', 0, '', 'null', '', 0, 0, '', 0, '', 1, 1, 0, 1, 0)`,
			`INSERT INTO webhooks (id, environment_id, address, enabled, event_types, secret, old_secret, old_until, failing_since, created_at, updated_at,
				position, owner, lease_until, revision) VALUES
				('hook1', 'env', 'https://h.example', TRUE, '[]', '` + secrets[4] + `', '` + secrets[5] +
				`', 4102444800000, 0, 1, 1, 0, '', 0, 1)`,
			`INSERT INTO path_secrets (number, secret) VALUES (7, CAST('` + secrets[6] + `' AS bytea))`,
			`INSERT INTO events (id, environment_id, type, object_kind, object_id, resource_id, at, position, number, sequence, data) VALUES
				('e1', 'env', 'video.live_stream.created', 'live_stream', 'live1', 'live1', 1, 0, 1, 1, '{"id":"live1","stream_key":"` + secrets[0] + `","srt_passphrase":"` + secrets[1] + `",
					"settings":{"latency_mode":"low","simulcast_targets":[{"id":"t1","url":"rtmp://one.example/app","stream_key":"` + secrets[2] + `"}]},"epoch":3}'),
				('e2', 'env', 'video.live_stream.simulcast_target.created', 'simulcast_target', 't2', 'live1', 1, 0, 2, 2, '{"id":"t2","url":"srt://two.example:9000?passphrase=` + secrets[3] + `"}'),
				('e3', 'env', 'video.asset.created', 'asset', 'a1', 'a1', 1, 0, 1, 3, '{"id":"a1","options":{"inputs":[{"url":"https://u:` + secrets[7] + `@h.example/"}]}}'),
				('e4', 'env', 'video.asset.track.created', 'track', 't1', 'a1', 1, 0, 1, 4, '{ "as": "it was" }')`,
			`UPDATE event_cursor SET last = 4`,
		} {
			if strings.HasPrefix(url, "sqlite:") {
				statement = strings.ReplaceAll(statement, "AS bytea", "AS blob")
			}
			if err := d.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, url)
		s, err := d.LiveStreams().ByKey(t.Context(), secrets[0])
		if want := secretive(); err != nil || s.SRTPassphrase != want.SRTPassphrase || s.StreamKey != want.StreamKey ||
			!slices.Equal(s.Settings.SimulcastTargets, want.Settings.SimulcastTargets) ||
			s.Settings.LatencyMode != live.Low {
			t.Errorf("by its key: %+v, %v", s, err)
		}
		w, err := d.Webhook(t.Context(), "env", "hook1")
		if err != nil || w.Secret != secrets[4] || w.OldSecret != secrets[5] {
			t.Errorf("%+v, %v", w, err)
		}
		p, err := d.Signing().PathSecret(t.Context(), 7)
		if err != nil || string(p.Secret) != secrets[6] {
			t.Errorf("%q, %v", p.Secret, err)
		}
		events, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
		if err != nil || len(events) != 4 || !strings.Contains(string(events[0].Data), `"epoch":3`) ||
			string(events[3].Data) != `{ "as": "it was" }` {
			t.Errorf("%d events, %v", len(events), err)
		}
		if err = d.MigrateTo(t.Context(), 18); err == nil {
			t.Error("encrypted secrets are taken for clear ones")
		}
		nowhere(t, d, url)
	})
}

func insertUpload(t *testing.T, d *db.DB) {
	t.Helper()
	u := upload.Upload{
		ID: "up1", Environment: "env", Status: upload.Waiting, Secret: secrets[8], Media: "m1",
		CreatedAt: time.UnixMilli(1).UTC(),
	}
	if err := d.Uploads().Insert(t.Context(), upload.Change{Upload: u}); err != nil {
		t.Fatal(err)
	}
}

// TestMigrateUploadSecrets: the URLs of uploads of before go on to work, and events of live streams have no credentials
// in URLs any more.
func TestMigrateUploadSecrets(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := open(t, url)
		if err := d.MigrateTo(t.Context(), 31); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`INSERT INTO uploads (id, environment_id, secret, status, media_id, asset_id, size, document, created_at, updated_at, revision) VALUES
				('up1', 'env', '` + secrets[8] +
				`', 'waiting', 'm1', '', 0, '{"timeout":60,"cors_origin":"*"}', 1, 1, 1),
				('up2', 'env', 'another', 'cancelled', 'm2', '', 0, '{"timeout":60,"cors_origin":"*"}', 1, 1, 1)`,
			`INSERT INTO events (id, environment_id, type, object_kind, object_id, resource_id, at, position, number, sequence, data) VALUES
				('e1', 'env', 'video.live_stream.created', 'live_stream', 'live1', 'live1', 1, 0, 1, 1, '{"id":"live1",
					"settings":{"latency_mode":"low","reconnect_slate_url":"https://h.example/x.png?signature=` +
				secrets[7] + `"},"epoch":3}')`,
		} {
			if err := d.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, url)
		for id, secret := range map[string]string{"up1": secrets[8], "up2": "another"} {
			if u, err := d.Uploads().FindSecret(t.Context(), secret); err != nil || string(u.ID) != id ||
				u.Secret != secret || u.CORSOrigin != "*" {
				t.Errorf("by its secret: %+v, %v", u, err)
			}
		}
		if err := d.MigrateTo(t.Context(), 31); err == nil {
			t.Error("encrypted secrets are taken for clear ones")
		}
		for _, where := range [][2]string{{"secret_hash", "uploads"}, {"secret", "uploads"}, {"data", "events"}} {
			all, err := d.Texts(t.Context(), where[0], where[1])
			if text := strings.Join(all, " "); err != nil || strings.Contains(text, secrets[7]) ||
				strings.Contains(text, secrets[8]) {
				t.Errorf("%v: %s, %v", where, text, err)
			}
		}
	})
}

// TestSecretsAtRest: nothing that is secret can be read in the database, whatever was stored in which way.
func TestSecretsAtRest(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := open(t, url)
		ctx, lives := t.Context(), d.LiveStreams()
		want := secretive()
		created := event.New("env", live.EventCreated, live.EventObject, "live1", time.Now(), want.WithoutSecrets())
		if err := lives.Insert(ctx, live.Change{Stream: want, Events: []event.Event{created}}); err != nil {
			t.Fatal(err)
		}
		if err := d.InsertWebhook(ctx, webhook.Webhook{
			ID: "hook1", Environment: "env", Address: "https://h.example", Enabled: true, Secret: secrets[5],
		}, 9); err != nil {
			t.Fatal(err)
		}
		w, err := d.Webhook(ctx, "env", "hook1")
		if err != nil {
			t.Fatal(err)
		}
		w.Secret, w.OldSecret = secrets[4], w.Secret
		if err = d.SaveWebhook(ctx, w); err != nil {
			t.Fatal(err)
		}
		if w, err = d.Webhook(ctx, "env", "hook1"); err != nil || w.Secret != secrets[4] || w.OldSecret != secrets[5] {
			t.Errorf("%+v, %v", w, err)
		}
		if _, err = d.Signing().EnsurePathSecret(ctx, signing.PathSecret{
			Number: 7, Secret: []byte(secrets[6]),
		}); err != nil {
			t.Fatal(err)
		}
		if found, failed := lives.List(ctx, "env", live.ListQuery{
			StreamKey: secrets[0], Page: 1, Limit: 9,
		}); failed != nil || len(found) != 1 || found[0].StreamKey != secrets[0] {
			t.Errorf("listed by its key: %+v, %v", found, failed)
		}
		s, err := lives.Find(ctx, "live1")
		if err != nil {
			t.Fatal(err)
		}
		s.StreamKey = "ANOTHER"
		if err = lives.Save(ctx, live.Change{From: s.State, Stream: s}); err != nil {
			t.Fatal(err)
		}
		if _, err = lives.ByKey(ctx, secrets[0]); !fault.Is(err, fault.NotFound) {
			t.Errorf("by the key of before: %v", err)
		}
		if s, err = lives.ByKey(ctx, "ANOTHER"); err != nil || s.SRTPassphrase != secrets[1] ||
			!slices.Equal(s.Settings.SimulcastTargets, want.Settings.SimulcastTargets) {
			t.Errorf("by the new key: %+v, %v", s, err)
		}
		insertUpload(t, d)
		if u, failed := d.Uploads().FindSecret(ctx, secrets[8]); failed != nil || u.ID != "up1" ||
			u.Secret != secrets[8] {
			t.Errorf("by its secret: %+v, %v", u, failed)
		}
		second := want
		second.ID, second.StreamKey = "live2", "ANOTHER"
		if err = lives.Insert(ctx, live.Change{Stream: second}); !fault.Is(err, fault.Conflict) {
			t.Errorf("the same key twice: %v", err)
		}
		nowhere(t, d, url, [2]string{"secret_hash", "uploads"}, [2]string{"secret", "uploads"})
	})
}

// TestIdentity of a database: it outlasts the master key, and no other database has it.
func TestIdentity(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			first := dbtest.Open(t, url)
			identity := first.Identity()
			key := masterkey.Generate()
			must(t, first.SetMasterKey(t.Context(), key))
			second, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(key)})
			must(t, err)
			if got := second.Identity(); got != identity || len(got) != 32 {
				t.Errorf("%q with another master key, %q before", got, identity)
			}
			must(t, second.Close())
			other, err := db.Open(t.Context(), db.Options{URL: fresh(t), MasterKey: masterkey.Of(masterkey.Key{})})
			must(t, err) // made from nothing: those that dbtest opens are copies of one
			if other.Identity() == identity {
				t.Error("another database has the same")
			}
			must(t, other.Close())
		})
	}
}
