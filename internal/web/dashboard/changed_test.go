package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/static"
)

// streams has live streams, and counts how often they are read.
type streams struct {
	live.API

	all   []live.Stream
	reads int
}

func (s *streams) Some(_ context.Context, _ id.Environment, of []id.LiveStream) (found []live.Stream, err error) {
	s.reads++
	for _, v := range s.all {
		if slices.Contains(of, v.ID) {
			found = append(found, v)
		}
	}
	if len(of) > live.MaxSome {
		err = errors.New("too many")
	}
	return found, err
}

// TestChanged: rows that have changed are read and rendered once for all pages, and again when they have changed since.
func TestChanged(t *testing.T) {
	t.Parallel()
	api := &streams{}
	since := map[id.LiveStream]int64{"gone": 7}
	for n := range 150 {
		v := live.Stream{ID: id.LiveStream(fmt.Sprint("s", n))}
		api.all = append(api.all, v)
		since[v.ID] = int64(n)
	}
	views := newViews(files, static.Assets{}, template.FuncMap{"advice": advice})
	s := &server{Options: Options{Services: Services{Live: api}, Now: time.Now}, shell: &shell{views: views}}
	c := newRowCache(s.shell, "live", streamSource{s})
	reads := func(env id.Environment, now int64, want int) map[id.LiveStream]cachedRow[stream] {
		t.Helper()
		api.reads = 0
		rows, err := c.changed(t.Context(), env, since, now)
		if err != nil || len(rows) != len(since) || api.reads != want {
			t.Errorf("%d rows, read %d times, want %d; %v", len(rows), api.reads, want, err)
		}
		return rows
	}
	rows := reads("env", 200, 2)
	if r := rows["s149"]; r.of.ID != "s149" || !strings.Contains(r.html, "row-s149") {
		t.Errorf("row %+v", r)
	}
	if rows["gone"].html != "" {
		t.Errorf("what is deleted has %q", rows["gone"].html)
	}
	for range 100 {
		reads("env", 201, 0)
	}
	since["s1"] = 201
	reads("env", 201, 1)
	reads("env", 201, 0)
	reads("other", 201, 2)
	for n := range 5 {
		reads(id.Environment(fmt.Sprint(n)), 201, 2)
		if len(c.rows) > maxRows {
			t.Fatalf("%d rows are kept", len(c.rows))
		}
	}
}
