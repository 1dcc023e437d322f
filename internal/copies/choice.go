package copies

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"

	"millrace/internal/control/node"
	"millrace/internal/id"
)

// candidates are the nodes that may copy what a node in a zone publishes.
type candidates struct {
	zone string
	all  []candidate
}

type candidate struct {
	node   *node.Node
	zone   string
	copies int // that it keeps of this node's broadcasts
}

func (c *candidates) has(n id.Node, run string) bool {
	return slices.ContainsFunc(c.all, func(x candidate) bool { return x.node.Name == n && x.node.Run == run })
}

// best is the node that copies a broadcast: one in another zone if there is any, the one with the least load of those.
// The load of a minute does not know what was chosen a moment ago, so what a node copies already counts beside it; of
// nodes that are alike each broadcast has its own. Those that have no place for it are left out. nil: there is none.
func (c *candidates) best(media string, full func(id.Node) bool) *node.Node {
	all := make([]candidate, 0, len(c.all))
	for _, x := range c.all {
		if !full(x.node.Name) {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return nil
	}
	best := slices.MinFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(c.near(a), c.near(b)),
			cmp.Compare(a.load(), b.load()),
			cmp.Compare(rank(media, a.node.Name), rank(media, b.node.Name)),
			cmp.Compare(a.node.Name, b.node.Name),
		)
	})
	for i := range c.all {
		if c.all[i].node == best.node {
			c.all[i].copies++
		}
	}
	return best.node
}

// near is 1 for a node that may be lost together with this one.
func (c *candidates) near(x candidate) int {
	if c.zone != "" && x.zone != "" && x.zone != c.zone {
		return 0
	}
	return 1
}

const (
	loadSteps   = 10   // a tenth of the machine's processors makes a difference
	loadOfACopy = 0.02 // of them
)

func (c candidate) load() float64 {
	return math.Floor((c.node.Load.CPU + float64(c.copies)*loadOfACopy) * loadSteps)
}

// rank orders nodes differently for each broadcast.
func rank(media string, n id.Node) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, media+"\x00"+string(n)) // never fails
	return h.Sum64()
}
