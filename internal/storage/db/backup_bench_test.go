package db_test

import (
	"bytes"
	"io"
	"log/slog"
	"testing"

	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/storage/rows"
)

// BenchmarkBackup writes the rows of 10,000 assets, each with two tracks, a playback ID and ten events, and loads them
// into an empty database.
func BenchmarkBackup(b *testing.B) {
	if testing.Short() {
		b.Skip("long")
	}
	const assets, each = 10_000, 10
	source := "sqlite://" + b.TempDir() + "/source.db"
	d := dbtest.Open(b, source)
	fill(b, d, assets, each)
	var stream bytes.Buffer
	var counts map[string]int64
	write := func(out io.Writer) error {
		dump, err := db.OpenDump(b.Context(), source)
		if err != nil {
			return err
		}
		w, err := rows.NewWriter(out, dump.Schema)
		if err == nil {
			err = dump.Rows(b.Context(), w)
		}
		if err == nil {
			counts, err = w.Close()
		}
		if err != nil {
			return err
		}
		return dump.Close()
	}
	if err := write(&stream); err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			stream.Reset()
			if err := write(&stream); err != nil {
				b.Fatal(err)
			}
		}
		n := int64(0)
		for _, c := range counts {
			n += c
		}
		b.ReportMetric(float64(n), "rows")
		b.ReportMetric(float64(stream.Len()), "bytes")
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			load(b, dbtest.SQLite(b), stream.Bytes())
		}
	})
}

func load(b *testing.B, url string, stream []byte) {
	b.Helper()
	r, err := rows.NewReader(bytes.NewReader(stream))
	if err != nil {
		b.Fatal(err)
	}
	l, err := db.OpenLoad(b.Context(), url, r.Schema(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	if err = l.Rows(b.Context(), r, nil); err == nil {
		err = l.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
}

func fill(b *testing.B, d *db.DB, assets, each int) {
	b.Helper()
	err := d.FillEvents(b.Context(), assets*each)
	for _, statement := range []string{
		`INSERT INTO assets (id, environment_id, status, origin, live_stream_id, source_asset_id, is_live, media_id, index_key,
			entries, document, created_at, updated_at, revision, unfinished) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT
			i + 1 FROM n WHERE i < 10000) SELECT 'asset' || i, 'env', 'ready', 'upload', '', '', false, 'media' || i, 'media/' ||
			i || '/timeline.jsonl', 0, '{"facts":{"text":"' || hex(randomblob(500)) || '"}}', i, i, 1, false FROM n`,
		`INSERT INTO tracks (id, asset_id, type, status, url, rendition, object, document, created_at, position) SELECT
			id || t.k, id, t.k, 'ready', '', t.k, '', '{"text":"' || hex(randomblob(150)) || '"}', 1, 0 FROM assets,
			(SELECT 'video' AS k UNION ALL SELECT 'audio') AS t`,
		`INSERT INTO playback_ids (id, environment_id, object_kind, object_id, policy, drm_configuration_id, position) SELECT
			'p' || id, 'env', 'asset', id, 'public', '', 0 FROM assets`,
	} {
		if err == nil {
			err = d.Exec(b.Context(), statement)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
}
