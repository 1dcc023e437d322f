package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"millrace/test/bench/populate"
)

const (
	listTimes  = 50                    // that each list is asked for
	pruneBatch = 100                   // events, as the service's own pruner removes them
	prunePause = 50 * time.Millisecond // between two batches, likewise
)

// lists measures every list of the API on a large SQLite database, and what removing its events costs a live stream.
func (b *bench) lists(ctx context.Context) error {
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	data, err := b.folder()
	if err != nil {
		return err
	}
	secret := rand.Text() + rand.Text()
	m, err := b.serve(data, secret) // which makes the database
	if err != nil {
		return err
	}
	m.stop()
	d, err := populate.Open(ctx, data)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	began := time.Now()
	if err = d.Fill(ctx); err != nil {
		return fmt.Errorf("fill database: %w", err)
	}
	took := time.Since(began)
	if m, err = b.serve(data, secret, "--api-rate-token", "0", "--api-rate-address", "0"); err != nil {
		return err
	}
	defer m.stop()
	b.out.begin(fmt.Sprintf("Lists: %d events and %d assets, SQLite, %d requests each",
		populate.Assets*populate.EventsEach,
		populate.Assets, listTimes), "-")
	b.out.note("filled in %v", took.Round(time.Second))
	if err = m.askLists(b.out, d); err != nil {
		return err
	}
	watch := func() (waits, error) {
		return b.wait(ctx, func() (server, error) { return running{m}, nil }, clip, false)
	}
	alone, err := watch()
	if err != nil {
		return err
	}
	pruning, stop := context.WithCancel(ctx)
	removed, ended := 0, make(chan error, 1)
	go func() {
		var failed error
		removed, failed = prune(pruning, d)
		ended <- failed
	}()
	beside, err := watch()
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return err
	}
	b.out.begin(fmt.Sprintf("Parts of a live stream while %d events are removed", removed), "nothing removed")
	b.out.pair("p50", "ms", median(beside.arrived), median(alone.arrived), "")
	b.out.pair("p95", "ms", percentile(beside.arrived, 0.95), percentile(alone.arrived, 0.95), "not noticed")
	b.out.pair("max", "ms", percentile(beside.arrived, 1), percentile(alone.arrived, 1), "")
	return nil
}

// prune removes the oldest events until ctx ends, and gives how many there were.
func prune(ctx context.Context, d *populate.Database) (removed int, err error) {
	for ctx.Err() == nil {
		n, err := d.PruneEvents(context.WithoutCancel(ctx), time.Now(), pruneBatch)
		if err != nil {
			return removed, err
		}
		removed += n
		_ = sleep(ctx, prunePause)
	}
	return removed, nil
}

// askLists asks for the first page of every list, as long as it may be, and tells how long that takes.
func (m *millrace) askLists(out *report, d *populate.Database) error {
	own, installation := m.client(), m.client()
	defer own.Close()
	defer installation.Close()
	installation.Auth = d.Installation
	r, err := own.Do("GET", "/openapi.json", "", nil)
	if err != nil {
		return err
	}
	all, err := listsOf(r.Body)
	if err != nil {
		return err
	}
	more := map[string]string{ // the default is an hour
		"/video/v1/delivery-usage": fmt.Sprintf("&timeframe[]=%d&timeframe[]=%d", d.Day.Unix(),
			d.Day.Add(24*time.Hour).Unix()),
	}
	for _, list := range slices.Sorted(maps.Keys(all)) {
		path, err := filled(list, d.IDs)
		if err != nil {
			return err
		}
		c := own
		if strings.HasPrefix(all[list], "installation:") {
			c = installation
		}
		var took []float64
		rows := 0
		for range listTimes {
			var page []json.RawMessage
			begin := time.Now()
			err = call(c, "GET", path+"?limit=100"+more[list], "", &page)
			if took = append(took, milliseconds(time.Since(begin))); err != nil {
				return err
			}
			rows = len(page)
		}
		out.alone(fmt.Sprintf("%s, %d rows, p50", list, rows), "ms", median(took), "")
		out.alone(fmt.Sprintf("%s, %d rows, p95", list, rows), "ms", percentile(took, 0.95), "below 50")
	}
	return nil
}

// filled is a path with IDs in place of its parameters.
func filled(path string, ids map[string]string) (string, error) {
	for name, key := range ids {
		path = strings.ReplaceAll(path, "{"+name+"}", key)
	}
	if strings.Contains(path, "{") {
		return "", fmt.Errorf("there is no ID for the list %s", path)
	}
	return path, nil
}

// schema is what is read of one in an OpenAPI document.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
}

// listsOf are the paths of an OpenAPI document whose GET has an array as its data, with the permission that it takes.
func listsOf(document []byte) (map[string]string, error) {
	var doc struct {
		Paths map[string]struct {
			Get *struct {
				Security []struct {
					AccessToken []string `json:"accessToken"`
				} `json:"security"`
				Responses map[string]struct {
					Content map[string]struct {
						Schema schema `json:"schema"`
					} `json:"content"`
				} `json:"responses"`
			} `json:"get"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	resolved := func(s schema) schema {
		if s.Ref != "" {
			s = doc.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
		}
		return s
	}
	lists := map[string]string{}
	for path, operations := range doc.Paths {
		if get := operations.Get; get != nil {
			data := resolved(resolved(get.Responses["200"].Content["application/json"].Schema).Properties["data"])
			if strings.Contains(fmt.Sprint(data.Type), "array") { // or [array null]
				lists[path] = ""
				for _, way := range get.Security {
					lists[path] = strings.Join(way.AccessToken, " ")
				}
			}
		}
	}
	if len(lists) == 0 {
		return nil, errors.New("the OpenAPI document has no lists")
	}
	return lists, nil
}
