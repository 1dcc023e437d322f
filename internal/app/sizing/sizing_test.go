package sizing

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestOf computes some loads by hand: on nodes of 8 cores and 10 Gbit/s.
func TestOf(t *testing.T) {
	t.Parallel()
	const most = 1.01 // of rounding
	for name, tt := range map[string]struct {
		load        Load
		nodes       int
		cores       float64
		out         float64 // Gbit/s
		connections int
		puts        float64 // millions a day
		stored      float64 // GB a day
		first       string
	}{
		"nothing": {Load{}, 1, 0, 0, 19, 0, 0, "processor cores of PostgreSQL"},
		"one stream and its recording": {
			Load{Streams: 1, Mbit: 2.5}, 1, 0.0052, 0.0025, 19, 0.0432, 27, "PUT requests of the bucket",
		},
		"many viewers of one stream": { // at each of five nodes, which get it from one
			Load{Streams: 1, Viewers: 10_000, Mbit: 2.5},
			4, 3.2, 25.01, 76, 0.0432, 27,
			"streams that a node follows of another",
		},
		"ten thousand streams": { // a processor limit: 52 cores of 56 at 0.7
			Load{Streams: 10_000, Mbit: 2.5}, 10, 52, 25, 190, 432, 270_000, "PUT requests of the bucket",
		},
		"lower renditions": { // 1.8 times the bytes
			Load{Streams: 10, Viewers: 100, Mbit: 5, Rungs: 2, Nodes: 2},
			2, 9.884, 0.64, 38, 0.864, 972,
			"processor cores of the nodes",
		},
		"too few nodes": {
			Load{Streams: 10, Viewers: 8000, Mbit: 5, Nodes: 1},
			1, 2.612, 40.05, 19, 0.432, 540,
			"network of the nodes",
		},
	} {
		l := tt.load
		l.Cores, l.Link = 8, 10
		n := Of(l)
		for what, v := range map[string][2]float64{
			"nodes": {float64(n.Nodes), float64(tt.nodes)}, "cores": {n.Cores, tt.cores},
			"Gbit/s out":   {n.Out / 1e9, tt.out},
			"connections":  {float64(n.Database.Connections), float64(tt.connections)},
			"PUT requests": {n.Storage.Puts / 1e6, tt.puts}, "GB": {n.Storage.Bytes / 1e9, tt.stored},
		} {
			if got, want := v[0], v[1]; math.IsNaN(got) || got > most*want || got*most < want {
				t.Errorf("%s: %s %g, want %g", name, what, got, want)
			}
		}
		if n.Limits[0].Name != tt.first {
			t.Errorf("%s: %+v", name, n.Limits)
		}
	}
}

// TestMore: more of anything never needs less of anything.
func TestMore(t *testing.T) {
	t.Parallel()
	base := Load{Streams: 50, Viewers: 2000, Mbit: 4, Rungs: 1, Nodes: 6, Cores: 8, Link: 10}
	for name, more := range map[string]func(*Load){
		"streams": func(l *Load) { l.Streams *= 2 }, "viewers": func(l *Load) { l.Viewers *= 2 },
		"bit rate": func(l *Load) { l.Mbit *= 2 }, "renditions": func(l *Load) { l.Rungs++ },
	} {
		l := base
		more(&l)
		a, b := Of(base), Of(l)
		if b.Cores < a.Cores || b.Out < a.Out || b.Memory < a.Memory || b.Database.Cores < a.Database.Cores ||
			b.Storage.Bytes < a.Storage.Bytes || b.Database.Transactions < a.Database.Transactions {
			t.Errorf("more %s: %+v, before %+v", name, b, a)
		}
	}
}

// TestSources: the section or page that a figure names as its source exists.
func TestSources(t *testing.T) {
	t.Parallel()
	benchmarks, err := os.ReadFile("../../../BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range reflect.VisibleFields(reflect.TypeOf(costs)) {
		v := reflect.ValueOf(costs).FieldByIndex(of.Index)
		value, from := v.Field(0).Float(), v.Field(1).String()
		heading, section := strings.CutPrefix(from, "BENCHMARKS.md: ")
		page := from
		if section {
			page = "BENCHMARKS.md"
		}
		_, err = os.Stat("../../../" + page)
		if value <= 0 || err != nil || section && !strings.Contains(string(benchmarks), "\n## "+heading) {
			t.Errorf("%s is %g, from %q: %v", of.Name, value, from, err)
		}
	}
}
