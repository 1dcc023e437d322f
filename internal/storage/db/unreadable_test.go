package db_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/drm"
	"millrace/internal/control/live"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/control/vocabulary"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// unreadableList is a list with a good row, and one for each column that is spoilt.
type unreadableList struct {
	noun   string
	insert func(ctx context.Context, key string) error
	spoilt []spoilt
	list   func(ctx context.Context) ([]string, error)
}

type spoilt struct{ table, column string }

// keysOf are the IDs of values.
func keysOf[T any](all []T, err error, key func(T) string) ([]string, error) {
	var keys []string
	for _, v := range all {
		keys = append(keys, key(v))
	}
	return keys, err
}

func unreadableLists(d *db.DB, public *rsa.PublicKey) []unreadableList {
	stored := usage.Query{From: hour, To: hour.Add(time.Hour), Page: 1, Limit: 10}
	return []unreadableList{
		{
			"webhook", func(ctx context.Context, key string) error {
				return d.InsertWebhook(ctx, webhook.Webhook{
					ID: id.Webhook(key), Environment: "env",
					Address: "https://" + key, Secret: "s", OldSecret: "t",
				}, 10)
			},
			[]spoilt{{"webhooks", "secret"}, {"webhooks", "old_secret"}, {"webhooks", "event_types"}},
			func(ctx context.Context) ([]string, error) {
				all, err := d.Webhooks(ctx, "env", 1, 10)
				return keysOf(all, err, func(w webhook.Webhook) string { return string(w.ID) })
			},
		},
		{"upload", func(ctx context.Context, key string) error {
			u := upload.Upload{ID: id.Upload(key), Environment: "env", Status: upload.Waiting, Secret: key}
			return d.Uploads().Insert(ctx, upload.Change{Upload: u})
		}, []spoilt{{"uploads", "secret"}, {"uploads", "document"}}, func(ctx context.Context) ([]string, error) {
			all, err := d.Uploads().List(ctx, "env", upload.ListQuery{Page: 1, Limit: 10})
			return keysOf(all, err, func(u upload.Upload) string { return string(u.ID) })
		}},
		{
			"live stream", func(ctx context.Context, key string) error {
				s := live.Stream{ID: id.LiveStream(key), Environment: "env", State: live.Idle, StreamKey: key}
				return d.LiveStreams().Insert(ctx, live.Change{Stream: s})
			},
			[]spoilt{{"live_streams", "secrets"}, {"live_streams", "settings"}, {"live_streams", "recent_assets"}},
			func(ctx context.Context) ([]string, error) {
				all, err := d.LiveStreams().List(ctx, "env", live.ListQuery{Page: 1, Limit: 10})
				return keysOf(all, err, func(s live.Stream) string { return string(s.ID) })
			},
		},
		{
			"asset", func(ctx context.Context, key string) error {
				a := asset.Asset{
					ID: id.Asset(key), Environment: "env", Status: asset.Ready,
					Tracks: []asset.Track{{ID: id.Track(key), Asset: id.Asset(key)}},
				}
				return d.Assets().Insert(ctx, asset.Change{Asset: a, Tracks: a.Tracks})
			},
			[]spoilt{{"assets", "document"}, {"tracks", "document"}, {"tracks", "speech"}},
			func(ctx context.Context) ([]string, error) {
				all, _, err := d.Assets().List(ctx, "env", asset.ListQuery{Page: 1, Limit: 10})
				return keysOf(all, err, func(a asset.Asset) string { return string(a.ID) })
			},
		},
		{"delivery usage", func(ctx context.Context, key string) error {
			return d.Usage().Add(ctx, hour, []usage.Delivered{delivered(id.Asset(key), "", usage.Seconds{Tier720: 1})})
		}, []spoilt{{"assets", "document"}}, func(ctx context.Context) ([]string, error) {
			all, _, err := d.Usage().Reports(ctx, "env", stored)
			return keysOf(all, err, func(r usage.Report) string { return string(r.Asset.ID) })
		}},
		{"signing key", func(ctx context.Context, key string) error {
			return d.Signing().InsertKey(ctx, signing.Key{ID: id.SigningKey(key), Environment: "env", Public: public},
				10)
		}, []spoilt{{"signing_keys", "public_key"}}, func(ctx context.Context) ([]string, error) {
			all, err := d.Signing().Keys(ctx, "env", 1, 10)
			return keysOf(all, err, func(k signing.Key) string { return string(k.ID) })
		}},
		{
			"playback restriction", func(ctx context.Context, key string) error {
				return d.Restrictions().Insert(ctx, restriction.Restriction{
					ID:          id.PlaybackRestriction(key),
					Environment: "env",
				}, 10)
			},
			[]spoilt{{"playback_restrictions", "referrer"}, {"playback_restrictions", "user_agent"}},
			func(ctx context.Context) ([]string, error) {
				all, err := d.Restrictions().List(ctx, "env", 1, 10)
				return keysOf(all, err, func(r restriction.Restriction) string { return string(r.ID) })
			},
		},
		{"DRM configuration", func(ctx context.Context, key string) error {
			return d.DRM().InsertConfiguration(ctx, drm.Configuration{ID: id.DRMConfiguration(key), Environment: "env"},
				10)
		}, []spoilt{{"drm_configurations", "settings"}}, func(ctx context.Context) ([]string, error) {
			all, err := d.DRM().Configurations(ctx, "env", 1, 10)
			return keysOf(all, err, func(c drm.Configuration) string { return string(c.ID) })
		}},
		{"transcription vocabulary", func(ctx context.Context, key string) error {
			v := vocabulary.Vocabulary{ID: id.TranscriptionVocabulary(key), Environment: "env", Name: key}
			return d.Vocabularies().Insert(ctx, v, 10)
		}, []spoilt{{"transcription_vocabularies", "phrases"}}, func(ctx context.Context) ([]string, error) {
			all, err := d.Vocabularies().List(ctx, "env", 1, 10)
			return keysOf(all, err, func(v vocabulary.Vocabulary) string { return string(v.ID) })
		}},
		{"token", func(ctx context.Context, key string) error {
			return d.Access().InsertToken(ctx, access.Token{
				ID: id.Token(key), Environment: "env", Name: key,
				Hash: []byte(key),
			}, 10)
		}, []spoilt{{"tokens", "permissions"}}, func(ctx context.Context) ([]string, error) {
			all, err := d.Access().TokensOf(ctx, "env", 1, 10)
			return keysOf(all, err, func(v access.Token) string { return string(v.ID) })
		}},
	}
}

// TestUnreadableRows: a list has all rows, also where one of them can't be read, and the log names that one.
func TestUnreadableRows(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	dbtest.Each(t, func(t *testing.T, url string) {
		var log bytes.Buffer
		d, err := db.Open(t.Context(), db.Options{
			URL: url, MasterKey: masterkey.Of(masterkey.Key{}),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		must(t, err)
		t.Cleanup(func() { must(t, d.Close()) })
		must(t, d.Access().InsertEnvironment(t.Context(), access.Environment{ID: "env", Name: "env"}, 10))
		for _, l := range unreadableLists(d, &key.PublicKey) {
			want := []string{"good"}
			must(t, l.insert(t.Context(), "good"))
			for i, spoilt := range l.spoilt {
				bad := fmt.Sprint("bad", i)
				want = append(want, bad)
				must(t, l.insert(t.Context(), bad))
				must(t, d.Exec(t.Context(), fmt.Sprintf("UPDATE %s SET %s = '{' WHERE id = '%s'", spoilt.table,
					spoilt.column, bad)))
			}
			log.Reset()
			got, err := l.list(t.Context())
			slices.Sort(got)
			slices.Sort(want)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%ss: %q, %v; want %q", l.noun, got, err, want)
			}
			for i := range l.spoilt {
				if n := strings.Count(log.String(), fmt.Sprint(" bad", i, ": ")); n != 1 {
					t.Errorf("%ss: the log names bad%d %d times: %s", l.noun, i, n, &log)
				}
			}
			if strings.Count(log.String(), "level=WARN") != len(l.spoilt) {
				t.Errorf("%ss: the log has %s", l.noun, &log)
			}
		}
	})
}
