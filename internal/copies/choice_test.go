package copies

import (
	"fmt"
	"testing"

	"millrace/internal/control/node"
	"millrace/internal/id"
)

// The node in another zone that is the least busy copies; many broadcasts are spread.
func TestChoice(t *testing.T) {
	t.Parallel()
	of := func(name id.Node, zone string, load float64) candidate {
		return candidate{node: &node.Node{Name: name, Load: node.Load{CPU: load}}, zone: zone}
	}
	for name, tt := range map[string]struct {
		zone string
		all  []candidate
		want id.Node
	}{
		"nobody":       {"", nil, ""},
		"one":          {"x", []candidate{of("a", "x", 9)}, "a"},
		"least load":   {"", []candidate{of("a", "", 0.9), of("b", "", 0.1), of("c", "", 0.5)}, "b"},
		"other zone":   {"x", []candidate{of("a", "x", 0), of("b", "y", 2), of("c", "", 0)}, "b"},
		"no zone said": {"", []candidate{of("a", "x", 0.3), of("b", "y", 0)}, "b"},
		"of two zones": {"x", []candidate{of("a", "x", 0), of("b", "y", 2), of("c", "z", 1)}, "c"},
	} {
		c := candidates{tt.zone, tt.all}
		got := id.Node("")
		if n := c.best("m", fullNowhere); n != nil {
			got = n.Name
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	c := candidates{"", []candidate{of("a", "", 0.31), of("b", "", 0.33), of("c", "", 0.35)}}
	count := map[id.Node]int{}
	for i := range 300 {
		count[c.best(fmt.Sprint(i), fullNowhere).Name]++
	}
	for n, got := range count {
		if got < 80 || len(count) != 3 {
			t.Errorf("%s copies %d of 300", n, got)
		}
	}
}

func fullNowhere(id.Node) bool { return false }
