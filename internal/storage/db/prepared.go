package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"

	"millrace/internal/control/asset"
)

// Statements of the hot paths: each segment, each new live stream. bun writes the values into the text of a statement,
// which SQLite then has to parse each time; that was half of what a statement cost. There these are prepared once.
const (
	appendLed = "INSERT INTO timeline_entries (asset_id, sequence, data) SELECT a.id, ?, ? FROM assets AS a, " +
		"live_streams AS s WHERE a.id = ? AND a.is_live AND a.status <> 'errored' AND " + ledBy
	appendEntry = "INSERT INTO timeline_entries (asset_id, sequence, data) SELECT id, ?, ? FROM assets " +
		"WHERE id = ? AND is_live AND status <> 'errored'" + onceOnly
	onceOnly = " ON CONFLICT DO NOTHING"
	// Around each of several changes in one transaction.
	beginOne, undoOne, endOne = "SAVEPOINT one", "ROLLBACK TO one", "RELEASE one"

	// It lists its columns: a later version may have added some.
	playbackIDsOf = "SELECT id, environment_id, object_kind, object_id, policy, drm_configuration_id, position " +
		"FROM playback_ids WHERE object_id = ? AND object_kind = ? ORDER BY position, id"
)

// ledBy is the condition that a live stream's row names a writer and an asset, in the order of leading.
const ledBy = "s.id = ? AND s.epoch = ? AND s.generation = ? AND s.node = ? AND s.run = ? AND s.active_asset = ?"

// leading are the values of ledBy.
func leading(by asset.Writer, of string) []any {
	return []any{string(by.LiveStream), int64(by.Epoch), by.Generation, string(by.Node), by.Run, of}
}

// shared keeps the live stream that a statement reads as it is until the transaction ends: whoever is about to take its
// broadcast is waited for, or waits. The server ends a transaction whose process says nothing for five seconds, so that
// a machine that has lost its power keeps no broadcast. On SQLite one writes at a time.
func shared(t tx) string {
	if t.prepared != nil {
		return ""
	}
	return " AND set_config('idle_in_transaction_session_timeout', '5s', true) <> '' FOR SHARE OF s"
}

// prepared are statements by their text.
type prepared map[string]*sql.Stmt

func prepare(ctx context.Context, db *bun.DB) (prepared, error) {
	texts := []string{
		appendLed + onceOnly, appendEntry, playbackIDsOf, countEvents, advanceCursor, recordAttempt, beginOne, undoOne,
		endOne,
	}
	for _, row := range []any{&liveRow{}, &playbackRow{}, &eventRow{}, &auditRow{}} {
		text, _ := insertion(db.Dialect(), row)
		texts = append(texts, text)
	}
	p := prepared{}
	for _, text := range texts {
		s, err := db.DB.PrepareContext(ctx, text) //nolint:sqlclosecheck // by close
		if err != nil {
			return nil, errors.Join(fmt.Errorf("prepare statement: %w", err), p.close())
		}
		p[text] = s
	}
	return p, nil
}

func (p prepared) close() (err error) {
	for _, s := range p {
		err = errors.Join(err, s.Close())
	}
	return err
}

// insertion is the statement that inserts a row, which is a pointer to a model, and its values.
func insertion(d schema.Dialect, row any) (text string, values []any) {
	model := reflect.ValueOf(row).Elem()
	table := d.Tables().Get(model.Type())
	values = make([]any, len(table.Fields))
	for i, f := range table.Fields {
		values[i] = f.Value(model).Interface()
	}
	key := insertionKey{d.Name(), table.Type}
	if known, is := insertions.Load(key); is {
		return known.(string), values //nolint:forcetypeassert // stored below
	}
	var columns, marks strings.Builder
	for i, f := range table.Fields {
		if i > 0 {
			columns.WriteString(", ")
			marks.WriteString(", ")
		}
		columns.WriteString(string(f.SQLName))
		marks.WriteByte('?')
	}
	text = "INSERT INTO " + string(table.SQLName) + " (" + columns.String() + ") VALUES (" + marks.String() + ")"
	insertions.Store(key, text)
	return text, values
}

type insertionKey struct {
	dialect dialect.Name
	row     reflect.Type
}

// insertions are the texts of insertion, by insertionKey.
var insertions sync.Map //nolint:gochecknoglobals // a cache of what never changes

// insert inserts one row, which is a pointer to a model.
func (t tx) insert(ctx context.Context, row any) error {
	text, values := insertion(t.Dialect(), row)
	_, err := t.exec(ctx, text, values...)
	return err
}

// exec runs a statement with ? for its values.
func (t tx) exec(ctx context.Context, text string, values ...any) (sql.Result, error) {
	if s, ok := t.prepared[text]; ok {
		return t.bind(ctx, s).ExecContext(ctx, values...) //nolint:sqlclosecheck // with the transaction
	}
	return t.ExecContext(ctx, text, values...)
}

// query asks with ? for its values.
func (t tx) query(ctx context.Context, text string, values ...any) (*sql.Rows, error) {
	if s, ok := t.prepared[text]; ok {
		return t.bind(ctx, s).QueryContext(ctx, values...) //nolint:sqlclosecheck // with the transaction
	}
	return t.QueryContext(ctx, text, values...)
}
