// Package sizing computes what live streams and viewers need, and what is used up first, from what was measured. It
// must never know settings, a database or this machine.
package sizing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Load is what is to be carried.
type Load struct {
	Streams int     // live at the same time
	Viewers int     // of all of them together
	Mbit    float64 // bits per second of a stream, in millions
	Rungs   int     // lower renditions of each stream that are encoded
	Nodes   int     // 0: as few as can carry it
	Cores   int     // of a node
	Link    float64 // of a node, bits per second in each direction, in thousands of millions
}

// measured is a figure and where it is from: a section of BENCHMARKS.md, by the beginning of its heading, a page of
// docs, or somebody else's manual.
type measured struct {
	value float64
	from  string
}

const (
	live      = "BENCHMARKS.md: Live, 30 publishers"
	liveRungs = "BENCHMARKS.md: Live rungs"
	overTLS   = "BENCHMARKS.md: Serving the same bytes over TLS"
	simulated = "BENCHMARKS.md: A simulated fleet"
	machine   = "docs/sizing.md"
)

// costs are what a stream, a viewer and a node cost. Streams are 720p30 in H.264 with AAC over RTMP, recorded; viewers
// watch with low latency over HTTPS, a part of picture and one of sound with their playlists each half second.
var costs = struct { //nolint:gochecknoglobals // a table that is never changed
	streamCores, streamMemory, rungCores, rungMemory, rungRate, viewerCores, nodeMemory measured

	// Of PostgreSQL: cores, transactions a second, rows written a second, bytes of WAL a second. Of a stream; besides
	// at each node where it is watched, or followed, which is at another node than its own; of a node without streams.
	streamDatabase, watchedDatabase, nodeDatabase           measured
	streamTransactions, watchedTransactions                 measured
	followedTransactions, nodeTransactions, nodeConnections measured
	streamRows, watchedRows, streamWAL, watchedWAL          measured

	followedOfNode       measured // streams of one node that another one can follow, at low latency
	streamPuts, rungPuts measured // a second, segments of 4 s
}{
	streamCores:          measured{0.0052, live},
	streamMemory:         measured{4 << 20, live},
	rungCores:            measured{0.49, liveRungs},
	rungMemory:           measured{150e6, machine},
	rungRate:             measured{0.4, machine},     // of the source's bit rate
	viewerCores:          measured{0.00032, overTLS}, // four parts of 62 µs and four playlists of 19 µs a second
	nodeMemory:           measured{1 << 30, machine},
	streamDatabase:       measured{0.0003, simulated},
	watchedDatabase:      measured{0.0002, simulated},
	nodeDatabase:         measured{0.0031, simulated},
	streamTransactions:   measured{0.8, simulated},
	watchedTransactions:  measured{1.0, simulated},
	followedTransactions: measured{2.2, simulated},
	nodeTransactions:     measured{11.7, simulated},
	streamRows:           measured{0.64, simulated},
	watchedRows:          measured{0.72, simulated},
	streamWAL:            measured{300, simulated},
	watchedWAL:           measured{260, simulated},
	nodeConnections:      measured{19, simulated}, // a pool of 16, its row, its name and the listener
	followedOfNode:       measured{140, "docs/fleet.md"},
	streamPuts:           measured{0.5, simulated},
	rungPuts:             measured{0.25, simulated},
}

// there is as much as this of what can't be had by more nodes.
var there = struct{ databaseCores, puts measured }{ //nolint:gochecknoglobals // likewise
	databaseCores: measured{32, "one large server: all writes go to it"},
	puts:          measured{3500, "Amazon S3 User Guide: PUT requests a second and prefix"},
}

const (
	spare = 0.7    // how much of a node is used at most
	most  = 10_000 // nodes
)

// Need is what carries a load.
type Need struct {
	Nodes    int
	Cores    float64 // in use, of all nodes
	Memory   float64 // bytes, of a node
	In, Out  float64 // bits per second, of all nodes
	Database Database
	Storage  Storage
	Limits   []Limit // the one that is used up first is the first
}

// Database is what PostgreSQL does.
type Database struct {
	Cores        float64
	Transactions float64 // a second
	Rows         float64 // written, a day
	WAL          float64 // bytes a day
	Connections  int
}

// Storage is what a bucket gets in a day.
type Storage struct {
	Puts  float64
	Bytes float64
}

// Limit is something of which there is only so much.
type Limit struct {
	Name string
	Used float64 // share of it; more than 1: it is not enough
	Do   string  // what to do at it
}

// Of computes what a load needs.
func Of(l Load) Need {
	streams, viewers, rungs := float64(l.Streams), float64(l.Viewers), float64(l.Rungs)
	rate := l.Mbit * 1e6
	made := 1 + rungs*costs.rungRate.value // of the source's bit rate
	n := Need{
		Cores: streams*(costs.streamCores.value+rungs*costs.rungCores.value) + viewers*costs.viewerCores.value,
		In:    streams * rate, Out: viewers*rate + streams*rate*made, // to viewers and to the bucket
	}
	link := l.Link * 1e9
	n.Nodes = cmp.Or(l.Nodes, max(1, up(n.Cores/(spare*float64(l.Cores)))))
	for l.Nodes == 0 && n.Nodes < most && (l.followed(n.Nodes)*rate+max(n.In, n.Out) > spare*link*float64(n.Nodes) ||
		l.pairs(n.Nodes) > costs.followedOfNode.value) {
		n.Nodes++
	}
	nodes, followed := float64(n.Nodes), l.followed(n.Nodes)
	n.In += followed * rate
	n.Out += followed * rate
	n.Memory = costs.nodeMemory.value + streams*(costs.streamMemory.value+rungs*costs.rungMemory.value)/nodes
	watched := followed + min(streams, viewers)
	day := (24 * time.Hour).Seconds()
	n.Database = Database{
		Cores: streams*costs.streamDatabase.value + watched*costs.watchedDatabase.value +
			nodes*costs.nodeDatabase.value,
		Transactions: streams*costs.streamTransactions.value + min(streams, viewers)*costs.watchedTransactions.value +
			followed*costs.followedTransactions.value + nodes*costs.nodeTransactions.value,
		Rows:        (streams*costs.streamRows.value + watched*costs.watchedRows.value) * day,
		WAL:         (streams*costs.streamWAL.value + watched*costs.watchedWAL.value) * day,
		Connections: n.Nodes * int(costs.nodeConnections.value),
	}
	n.Storage = Storage{
		Puts:  streams * (costs.streamPuts.value + rungs*costs.rungPuts.value) * day,
		Bytes: streams * rate / 8 * made * day,
	}
	n.Limits = []Limit{
		{
			"processor cores of PostgreSQL", n.Database.Cores / there.databaseCores.value,
			"give each group of streams an installation of its own",
		},
		{
			"PUT requests of the bucket", n.Storage.Puts / day / there.puts.value,
			"ask the provider for more: keys begin with random IDs, so a bucket can be partitioned",
		},
		{
			"streams that a node follows of another", l.pairs(n.Nodes) / costs.followedOfNode.value,
			"add nodes, or send all viewers of a stream to a few nodes",
		},
	}
	if l.Nodes > 0 { // else there are as many as it takes
		n.Limits = append(n.Limits,
			Limit{"processor cores of the nodes", n.Cores / nodes / float64(l.Cores), "add nodes"},
			Limit{"network of the nodes", max(n.In, n.Out) / nodes / link, "add nodes, or put a CDN in front of them"})
	}
	slices.SortStableFunc(n.Limits, func(a, b Limit) int { return cmp.Compare(b.Used, a.Used) })
	return n
}

// followed is how many streams are at nodes that are not their own, a stream at two of them counting twice, where any
// viewer comes to any node.
func (l Load) followed(nodes int) float64 {
	if l.Streams == 0 {
		return 0
	}
	return float64(l.Streams) * max(0, min(float64(nodes), float64(l.Viewers)/float64(l.Streams))-1)
}

// pairs is how many streams a node follows of each other node.
func (l Load) pairs(nodes int) float64 {
	return l.followed(nodes) / max(1, float64(nodes)*float64(nodes-1))
}

func up(v float64) int { return int(math.Ceil(v)) }
