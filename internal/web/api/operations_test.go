package api

import (
	"context"
	"database/sql" //nolint:depguard // the rows of all tables are compared
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/drm"
	nodes "millrace/internal/control/node"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// permissionOf says what each operation of the document needs. One that is not here fails TestPermissions.
var permissionOf = map[string]string{
	"whoami": anyToken,

	"list-assets": videoRead, "create-asset": videoWrite, "get-asset": videoRead, "update-asset": videoWrite,
	"delete-asset":         videoWrite,
	"get-asset-input-info": videoRead, "update-asset-master-access": videoWrite, "update-asset-mp4-support": videoWrite,
	"create-asset-playback-id": videoWrite, "get-asset-playback-id": videoRead, "delete-asset-playback-id": videoWrite,
	"create-asset-static-rendition": videoWrite, "delete-asset-static-rendition": videoWrite,
	"delete-asset-thumbnail-time": videoWrite,
	"create-asset-track":          videoWrite, "update-asset-track": videoWrite, "delete-asset-track": videoWrite,
	"list-delivery-usage": videoRead, "get-playback-id": videoRead,
	"list-live-streams": videoRead, "create-live-stream": videoWrite, "get-live-stream": videoRead,
	"update-live-stream": videoWrite,
	"delete-live-stream": videoWrite, "complete-live-stream": videoWrite, "disable-live-stream": videoWrite,
	"enable-live-stream":     videoWrite,
	"get-live-stream-health": videoRead, "delete-live-stream-static-renditions": videoWrite,
	"update-live-stream-static-renditions": videoWrite,
	"create-live-stream-playback-id":       videoWrite, "get-live-stream-playback-id": videoRead,
	"delete-live-stream-playback-id":        videoWrite,
	"update-live-stream-embedded-subtitles": videoWrite, "update-live-stream-generated-subtitles": videoWrite,
	"generate-asset-track-subtitles":  videoWrite,
	"create-transcription-vocabulary": videoWrite, "list-transcription-vocabularies": videoRead,
	"get-transcription-vocabulary":    videoRead,
	"update-transcription-vocabulary": videoWrite, "delete-transcription-vocabulary": videoWrite,
	"reset-stream-key": videoWrite, "create-live-stream-simulcast-target": videoWrite,
	"get-live-stream-simulcast-target":    videoRead,
	"delete-live-stream-simulcast-target": videoWrite,
	"list-playback-restrictions":          videoRead, "create-playback-restriction": videoWrite,
	"get-playback-restriction":    videoRead,
	"delete-playback-restriction": videoWrite, "update-referrer-domain-restriction": videoWrite,
	"update-user-agent-restriction": videoWrite,
	"list-drm-configurations":       videoRead, "get-drm-configuration": videoRead,
	"list-direct-uploads": videoRead, "create-direct-upload": videoWrite, "get-direct-upload": videoRead,
	"cancel-direct-upload": videoWrite,

	"list-signing-keys": systemRead, "create-signing-key": systemWrite, "get-signing-key": systemRead,
	"delete-signing-key":    systemWrite,
	"list-url-signing-keys": systemRead, "create-url-signing-key": systemWrite, "get-url-signing-key": systemRead,
	"delete-url-signing-key": systemWrite,
	"list-events":            systemRead, "stream-events": systemRead, "list-audit-log": systemRead,
	"list-webhooks": systemRead, "create-webhook": systemWrite, "get-webhook": systemRead,
	"update-webhook": systemWrite, "delete-webhook": systemWrite,
	"list-webhook-deliveries": systemRead, "replay-webhook-delivery": systemWrite, "replay-webhook": systemWrite,
	"rotate-webhook-secret":            systemWrite,
	"replay-failed-webhook-deliveries": systemWrite, "retry-webhook-deliveries": systemWrite,
	"skip-webhook-delivery": systemWrite,
	"test-webhook":          systemWrite,
	"list-access-tokens":    systemRead, "create-access-token": systemWrite, "get-access-token": systemRead,
	"delete-access-token": systemWrite,

	"get-retention": systemRead, "preview-retention": systemRead, "set-retention": systemWrite,
	"delete-retention": systemWrite, "exempt-asset": systemWrite, "include-asset": systemWrite,

	"list-environments": access.InstallationRead, "get-environment": access.InstallationRead,
	"create-environment": access.InstallationWrite,
	"update-environment": access.InstallationWrite, "create-environment-access-token": access.InstallationWrite,
	"list-nodes": access.InstallationRead, "drain-node": access.InstallationWrite,
	"resume-node": access.InstallationWrite,
}

// operations are those of the document that are supported, by their IDs, with their methods and paths.
func operations(s *server) map[string]*huma.Operation {
	all := map[string]*huma.Operation{}
	for _, item := range s.huma.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && op.Summary != "Not supported" {
				all[op.OperationID] = op
			}
		}
	}
	return all
}

// TestPermissions has tokens call every operation: one that has all permissions but one, and one that has that alone.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s := newServer((&notebook{}).options())
	every := append(access.Permissions(), access.InstallationPermissions()...)
	for name, op := range operations(s) {
		need, known := permissionOf[name]
		if !known {
			t.Errorf("%s is an operation of the document of which the table does not say what permission it needs",
				name)
			continue
		}
		if roles := op.Security[0]["accessToken"]; need != anyToken && !slices.Equal(roles, []string{need}) {
			t.Errorf("%s: the document says that it needs %q", name, roles)
		}
		call := func(permissions ...string) *httptest.ResponseRecorder {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // nobody follows events
			path := strings.NewReplacer("{", "", "}", "").Replace(op.Path)
			r := httptest.NewRequestWithContext(ctx, op.Method, path, strings.NewReader("{}"))
			r.SetBasicAuth(permitsOnly+strings.ReplaceAll(strings.Join(permissions, ","), ":", ";"), tokenValue)
			w := httptest.NewRecorder()
			s.mux.ServeHTTP(w, r)
			return w
		}
		if need == anyToken {
			if w := call("none"); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
			continue
		}
		others := slices.DeleteFunc(slices.Clone(every), func(p string) bool { return p == need })
		if w := call(others...); w.Code != http.StatusForbidden ||
			!strings.Contains(w.Body.String(), textForbidden+": "+need) {
			t.Errorf("%s with all but %s: %d %s", name, need, w.Code, w.Body)
		}
		if w := call(need); w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized {
			t.Errorf("%s with %s: %d %s", name, need, w.Code, w.Body)
		}
	}
	for name := range permissionOf {
		if operations(s)[name] == nil {
			t.Errorf("%s is no operation of the document", name)
		}
	}
}

// step is a request that changes something. The IDs in its path are those that steps before it have saved.
type step struct {
	op     string
	body   string
	save   map[string]string // parameters of paths by where the response has them
	before func(t *testing.T, r deployment, vars map[string]string)
}

// steps call every operation that changes something, each so that it does.
func steps() []step {
	live := map[string]string{
		"live_stream_id": "id", "live-streams/playback_id": "playback_ids.0.id",
		"simulcast_target_id": "simulcast_targets.0.id",
	}
	film := map[string]string{"asset_id": "id", "playback_id": "playback_ids.0.id"}
	ready := func(t *testing.T, r deployment, vars map[string]string) {
		t.Helper()
		if err := r.assets.Ready(t.Context(), id.Asset(vars["asset_id"]), measured(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	sound := func(t *testing.T, r deployment, vars map[string]string) {
		t.Helper()
		ready(t, r, vars)
		a, err := r.assets.Find(t.Context(), id.Asset(vars["asset_id"]))
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range a.Tracks {
			if tr.Type == asset.AudioTrack {
				vars["track_id"] = string(tr.ID)
			}
		}
	}
	event := func(t *testing.T, r deployment, vars map[string]string) {
		t.Helper()
		list := decode(t, r.as(t, vars["token"], http.MethodGet, eventPath, ""))
		vars["event_id"] = valueAt(list, "data.0.id")
	}
	// What makes something comes first, what deletes it last: the isolation of environments is tried between the two.
	return []step{
		{
			op:   "create-live-stream",
			body: `{"playback_policies":["public"],"simulcast_targets":[{"url":"rtmp://example.com/app"}],"new_asset_settings":{}}`, save: live,
		},
		{
			op:   "create-asset",
			body: `{"inputs":[{"url":"https://example.com/a.mp4"}],"playback_policies":["public"],"thumbnail_time":1}`,
			save: film,
		},
		{op: "generate-asset-track-subtitles", before: sound, body: `{"generated_subtitles":[{"language_code":"en"}]}`},
		{
			op: "create-asset-track", before: ready,
			body: `{"url":"https://example.com/a.srt","type":"text","text_type":"subtitles","language_code":"en"}`,
			save: map[string]string{"track_id": "id"},
		},
		{
			op: "create-asset-static-rendition", body: `{"resolution":"highest"}`,
			save: map[string]string{"static_rendition_id": "id"},
		},
		{op: "create-asset-playback-id", body: `{"policy":"signed"}`},
		{op: "create-live-stream-playback-id", body: `{"policy":"signed"}`},
		{op: "create-live-stream-simulcast-target", body: `{"url":"rtmp://example.com/other"}`},
		{
			op: "create-playback-restriction", body: `{"referrer":{},"user_agent":{}}`,
			save: map[string]string{"playback_restriction_id": "id"},
		},
		{
			op: "create-transcription-vocabulary", body: `{"phrases":["Zorvex"]}`,
			save: map[string]string{"transcription_vocabulary_id": "id"},
		},
		{
			op: "create-direct-upload", body: `{"cors_origin":"https://example.com","new_asset_settings":{}}`,
			save: map[string]string{"upload_id": "id"},
		},
		{op: "create-signing-key", save: map[string]string{"system/signing_key_id": "id"}},
		{op: "create-url-signing-key", save: map[string]string{"video/signing_key_id": "id"}},
		{
			op: "create-webhook", body: `{"address":"https://example.com/hook"}`,
			save: map[string]string{"webhook_id": "id"},
		},
		{op: "create-access-token", body: `{"name":"made"}`, save: map[string]string{"access_token_id": "id"}},

		{op: "update-live-stream", body: `{"passthrough":"x"}`},
		{op: "disable-live-stream"},
		{op: "enable-live-stream"},
		{op: "complete-live-stream", before: func(t *testing.T, r deployment, vars map[string]string) {
			t.Helper()
			st, err := r.streams.Find(t.Context(), id.LiveStream(vars["live_stream_id"]))
			if err == nil {
				err = r.encode(t.Context(), "connect", st.StreamKey)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{op: "reset-stream-key", before: func(t *testing.T, r deployment, vars map[string]string) {
			t.Helper()
			st, err := r.streams.Find(t.Context(), id.LiveStream(vars["live_stream_id"]))
			if err == nil && st.EndWanted != "" {
				err = r.encode(t.Context(), "disconnect", st.StreamKey)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{op: "update-live-stream-static-renditions", body: `{"static_renditions":[{"resolution":"highest"}]}`},
		{op: "delete-live-stream-static-renditions"},
		{
			op:   "update-live-stream-embedded-subtitles",
			body: `{"embedded_subtitles":[{"language_channel":"cc1","language_code":"en","name":"x"}]}`,
		},
		{op: "update-live-stream-generated-subtitles", body: `{"generated_subtitles":[{"language_code":"en"}]}`},
		{op: "update-transcription-vocabulary", body: `{"phrases":["Quellimar"]}`},
		{op: "update-asset", body: `{"passthrough":"x"}`},
		{op: "update-asset-track", body: `{"name":"x"}`},
		{op: "update-asset-master-access", body: `{"master_access":"temporary"}`},
		{op: "delete-asset-thumbnail-time"},
		{op: "update-referrer-domain-restriction", body: `{"allowed_domains":["example.com"]}`},
		{op: "update-user-agent-restriction", body: `{}`},
		{op: "set-retention", body: `{"max_age_days":90}`},
		{op: "exempt-asset"},
		{op: "include-asset"},
		{op: "rotate-webhook-secret"},
		{op: "test-webhook", before: event},
		{op: "replay-webhook-delivery"},
		{op: "retry-webhook-deliveries"},
		{op: "skip-webhook-delivery"},
		{op: "replay-failed-webhook-deliveries"},
		{op: "replay-webhook", body: `{"since":"2020-01-01T00:00:00Z"}`},
		{op: "update-webhook", body: `{"enabled":false}`},

		{op: "delete-live-stream-simulcast-target"},
		{op: "delete-live-stream-playback-id"},
		{op: "delete-live-stream"},
		{op: "delete-asset-static-rendition"},
		{op: "update-asset-mp4-support", body: `{"mp4_support":"standard"}`},
		{op: "delete-asset-track"},
		{op: "delete-asset-playback-id"},
		{op: "delete-asset"},
		{op: "delete-retention"},
		{op: "delete-playback-restriction"},
		{op: "delete-transcription-vocabulary"},
		{op: "cancel-direct-upload"},
		{op: "delete-signing-key"},
		{op: "delete-url-signing-key"},
		{op: "delete-webhook"},
		{op: "delete-access-token"},

		{op: "create-environment", body: `{"name":"Shop"}`, save: map[string]string{"environment_id": "id"}},
		{op: "update-environment", body: `{"name":"Other shop"}`},
		{op: "create-environment-access-token", body: `{}`},
		{op: "drain-node"},
		{op: "resume-node"},
	}
}

// of is the path of an operation with IDs that were saved.
func of(op *huma.Operation, vars map[string]string) string {
	path := op.Path
	for name, v := range vars {
		if scope, param, scoped := strings.Cut(name, "/"); scoped && strings.Contains(op.Path, "/"+scope+"/") {
			path = strings.ReplaceAll(path, "{"+param+"}", v)
		}
	}
	for name, v := range vars {
		path = strings.ReplaceAll(path, "{"+name+"}", v)
	}
	return path
}

// as sends a request with a token, "id:secret".
func (d deployment) as(t *testing.T, token, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	user, secret, _ := strings.Cut(token, ":")
	req.SetBasicAuth(user, secret)
	req.RemoteAddr = "203.0.113.7:4711"
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w
}

func decode(t *testing.T, w *httptest.ResponseRecorder) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// valueAt is the text at a place in a document: data.playback_ids.0.id.
func valueAt(v any, place string) string {
	for name := range strings.SplitSeq(place, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i < len(in) {
				v = in[i]
			}
		}
	}
	return fmt.Sprint(v)
}

// do takes a step, with the installation's token where it needs that, and saves what it made.
func (d deployment) do(t *testing.T, op *huma.Operation, s step, vars map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	token := vars["token"]
	if strings.HasPrefix(permissionOf[s.op], "installation") {
		token = vars["installation"]
	}
	w := d.as(t, token, op.Method, of(op, vars), s.body)
	if w.Code < 300 && len(s.save) > 0 {
		made := decode(t, w)
		for name, place := range s.save {
			vars[name] = valueAt(made, "data."+place)
		}
	}
	return w
}

// newTokens gives tokens of an environment and of the installation.
func newTokens(t *testing.T, d *db.DB, env id.Environment) map[string]string {
	t.Helper()
	tokens, vars := access.New(access.Options{Store: d.Access()}), map[string]string{}
	for name, in := range map[string]access.TokenInput{
		"token":        {Environment: env, Name: "all"},
		"installation": {Name: "boss", Permissions: access.InstallationPermissions()},
	} {
		made, secret, err := tokens.CreateToken(t.Context(), in, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		vars[name] = string(made.ID) + ":" + secret
	}
	return vars
}

// TestEveryChangeIsAudited calls every operation that changes something twice. The first time the audit log can't be
// written: then nothing must be changed, in no table. The second time there is one entry, of what the request was.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	address := dbtest.SQLite(t)
	services := openServices(t, address)
	d := dbtest.Open(t, address)
	path, _ := strings.CutPrefix(address, "sqlite://")
	raw, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	vars := newTokens(t, d, "")
	vars["node_name"] = "ingest-1"
	if _, _, err = d.Nodes().Register(t.Context(), nodes.Node{Name: "ingest-1", Run: "run"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	ops, called := operations(newServer((&notebook{}).options())), map[string]bool{}
	for _, s := range steps() {
		op := ops[s.op]
		called[s.op] = true
		if s.before != nil {
			s.before(t, services, vars)
		}
		execute(t, raw,
			"CREATE TRIGGER no_audit BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'the disk is on fire'); END")
		was := contents(t, raw)
		if w := services.do(t, op, s, maps.Clone(vars)); w.Code != http.StatusInternalServerError {
			t.Errorf("%s without an audit log: %d %s", s.op, w.Code, w.Body)
		}
		if is := contents(t, raw); is != was {
			t.Errorf("%s without an audit log changes something:\n%s", s.op, difference(was, is))
		}
		execute(t, raw, "DROP TRIGGER no_audit")
		known, err := d.AuditLog(t.Context(), audit.Query{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		w := services.do(t, op, s, vars)
		if w.Code >= 300 {
			t.Fatalf("%s: %d %s", s.op, w.Code, w.Body)
		}
		now, err := d.AuditLog(t.Context(), audit.Query{Limit: 1000})
		if err != nil || len(now) != len(known)+1 {
			t.Fatalf("%s: %d entries more (%v)", s.op, len(now)-len(known), err)
		}
		checkEntry(t, s, op, vars, w, fresh(now, known))
	}
	for name, op := range ops {
		if op.Method != http.MethodGet && !called[name] {
			t.Errorf("%s changes something, and no step calls it", name)
		}
	}
	for name, v := range vars { // secrets
		if _, secret, is := strings.Cut(v, ":"); is && strings.Contains(contents(t, raw), secret) {
			t.Errorf("the secret of %s is stored", name)
		}
	}
}

func fresh(now, known []audit.Entry) audit.Entry {
	for _, e := range now {
		if !slices.Contains(known, e) {
			return e
		}
	}
	return audit.Entry{}
}

func checkEntry(
	t *testing.T, s step, op *huma.Operation, vars map[string]string, w *httptest.ResponseRecorder, e audit.Entry,
) {
	t.Helper()
	who := "token"
	if strings.HasPrefix(permissionOf[s.op], "installation") {
		who = "installation"
	}
	token, _, _ := strings.Cut(vars[who], ":")
	if e.Operation != s.op || e.Actor.Type != audit.AccessToken || e.Actor.ID != token || e.Address != "203.0.113.7" ||
		e.RequestID != w.Header().Get(requestIDHeader) || e.Resource.Type == "" || time.Since(e.At) > time.Hour {
		t.Errorf("%s: entry %+v", s.op, e)
	}
	if named := strings.HasSuffix(of(op, vars), "/"+e.Resource.ID) ||
		strings.Contains(of(op, vars), "/"+e.Resource.ID+"/"); named {
		return
	}
	if s.op == "set-retention" || s.op == "delete-retention" { // there is one for each environment, with its ID
		if e.Resource != (audit.Resource{Type: "retention_policy", ID: string(e.Environment)}) || e.Environment == "" {
			t.Errorf("%s: the entry names %+v of %q", s.op, e.Resource, e.Environment)
		}
		return
	}
	made := decode(t, w)
	if e.Resource.ID == "" || e.Resource.ID != valueAt(made, "data.id") {
		t.Errorf("%s: the entry names %+v, the response is %s", s.op, e.Resource, w.Body)
	}
}

func execute(t *testing.T, raw *sql.DB, text string) {
	t.Helper()
	if _, err := raw.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// contents is all that is in a database, a line for each row.
func contents(t *testing.T, raw *sql.DB) string {
	t.Helper()
	var out strings.Builder
	for _, table := range column(t, raw, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
		names := column(t, raw, "SELECT name FROM pragma_table_info('"+table+"')")
		row := "'" + table + "'"
		for _, n := range names {
			row += ` || '|' || COALESCE(quote("` + n + `"), '')`
		}
		for _, line := range column(t, raw, `SELECT `+row+` FROM "`+table+`" ORDER BY rowid`) {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

func column(t *testing.T, raw *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return out
}

func difference(was, is string) string {
	var out []string
	for line := range strings.Lines(is) {
		if !strings.Contains(was, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// TestIsolation has a token of one environment call every operation about the resources of another: they are not there,
// and they stay as they are. Where a path names two resources, one of them may be its own.
func TestIsolation(t *testing.T) {
	t.Parallel()
	address := dbtest.SQLite(t)
	services := openServices(t, address)
	d := dbtest.Open(t, address)
	tokens := access.New(access.Options{Store: d.Access()})
	other, err := tokens.CreateEnvironment(t.Context(), "Other", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own, foreign := newTokens(t, d, ""), newTokens(t, d, other.ID)
	theirs, err := drm.New(drm.Options{Store: d.DRM()}).Create(t.Context(), other.ID, "test",
		drm.Settings{Scheme: drm.CBCS, ClearKey: true}, time.Now())
	if err != nil { // a command makes them
		t.Fatal(err)
	}
	foreign["drm_configuration_id"] = string(theirs.ID)
	ops, bodies := operations(newServer((&notebook{}).options())), map[string]string{}
	for _, s := range steps() {
		bodies[s.op] = s.body
		if !strings.HasPrefix(s.op, "create") || strings.HasPrefix(permissionOf[s.op], "installation") {
			continue
		}
		for _, vars := range []map[string]string{own, foreign} {
			if s.before != nil {
				s.before(t, services, vars)
			}
			if w := services.do(t, ops[s.op], s, vars); w.Code >= 300 {
				t.Fatalf("%s: %d %s", s.op, w.Code, w.Body)
			}
		}
	}
	foreign["event_id"] = valueAt(decode(t, services.as(t, foreign["token"], http.MethodGet, eventPath, "")),
		"data.0.id")
	own["event_id"] = valueAt(decode(t, services.as(t, own["token"], http.MethodGet, eventPath, "")), "data.0.id")
	tried := 0
	for name, op := range ops {
		if !strings.Contains(op.Path, "{") || strings.HasPrefix(permissionOf[name], "installation") {
			continue
		}
		for _, path := range mixtures(op.Path, own, foreign) {
			tried++
			w := services.as(t, own["token"], op.Method, path, bodies[name])
			if w.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", op.Method, path, w.Code, w.Body)
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d paths were tried", tried)
	}
	checkLists(t, services, ops, own, foreign)
}

// mixtures are the paths in which at least one ID is foreign.
func mixtures(path string, own, foreign map[string]string) []string {
	both := of(&huma.Operation{Path: path}, foreign)
	out := []string{both}
	parts, others := strings.Split(path, "/"), strings.Split(both, "/")
	mine := strings.Split(of(&huma.Operation{Path: path}, own), "/")
	if strings.Count(path, "{") < 2 {
		return out
	}
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			mixed := slices.Clone(mine)
			mixed[i] = others[i]
			out = append(out, strings.Join(mixed, "/"))
		}
	}
	return out
}

// checkLists checks that the lists of one environment have nothing of the other, and have their own.
func checkLists(t *testing.T, services deployment, ops map[string]*huma.Operation, own, foreign map[string]string) {
	t.Helper()
	for name, op := range ops {
		if op.Method != http.MethodGet || strings.Contains(op.Path, "{") || name == "stream-events" ||
			strings.HasPrefix(permissionOf[name], "installation") {
			continue
		}
		w := services.as(t, own["token"], op.Method, op.Path, "")
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		for param, v := range foreign {
			if v, _, _ = strings.Cut(v, ":"); param != "installation" && strings.Contains(w.Body.String(), v) {
				t.Errorf("%s has the other environment's %s: %s", name, param, w.Body)
			}
		}
	}
	for _, query := range []string{
		"/video/v1/live-streams?stream_key=", "/video/v1/assets?live_stream_id=" + foreign["live_stream_id"],
		"/video/v1/assets?upload_id=" + foreign["upload_id"],
		"/video/v1/delivery-usage?asset_id=" + foreign["asset_id"], eventPath + "?object_id=" + foreign["asset_id"],
		"/system/v1/audit-log?resource_id=" + foreign["asset_id"],
	} {
		if strings.HasSuffix(query, "stream_key=") {
			query += valueAt(decode(t,
				services.as(t, foreign["token"], http.MethodGet, "/video/v1/live-streams/"+foreign["live_stream_id"],
					"")), "data.stream_key")
		}
		if w := services.as(t, own["token"], http.MethodGet, query, ""); w.Code != http.StatusOK ||
			!strings.Contains(w.Body.String(), `"data":[]`) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
