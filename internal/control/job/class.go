package job

import "slices"

// Queue is where a job stands in line: those of one wait for none of another. It is the name in the database, too.
type Queue string

// The queues; Classes says what stands in each. All others came later than Prompt and Fetching: jobs that older nodes
// insert stand in one of those two.
const (
	Prompt     Queue = "default"
	Clips      Queue = "clips"
	Fetching   Queue = "fetching"
	Background Queue = "background"
	Speech     Queue = "speech"
	Cleanup    Queue = "cleanup"
)

// Class is the jobs of one queue, and how many of them a node works on at a time.
type Class struct {
	Queue Queue
	Kinds []string
	// Awaited says that a viewer or a client of the API waits for them. They have queues of their own, apart from
	// those that nobody waits for.
	Awaited bool
	// There are Each places for each worker, at least Least, and at most Most; 0: no most. Where Most is fewer than
	// there are workers, each of them has one place.
	Each, Least, Most int
	// ByOwner says that owners share the places: one alone has half of them.
	ByOwner bool
}

// Classes are the queues of a node. A kind may stand in several; the first is where it stands unless it is said.
type Classes []Class

// AllClasses is every kind of job there is. docs/monitoring.md has the same table.
func AllClasses() Classes {
	return Classes{
		// They wait for database and storage, and never for a processor or for another host.
		{Queue: Prompt, Awaited: true, Each: 2, Least: 4, Kinds: []string{"asset.finish", "upload.fail"}},
		// Cuts at both ends are encoded, and wait for the processor as viewers do.
		{Queue: Clips, Awaited: true, Each: 1, Least: 2, Kinds: []string{"asset.ingest"}},
		// Others decide the pace, as a host that sends a byte a second; and a file may have to be encoded.
		{
			Queue:   Fetching,
			Awaited: true,
			Each:    16,
			Most:    256,
			ByOwner: true,
			Kinds:   []string{"asset.ingest", "track.ingest"},
		},
		// They take hours of processor time where nothing else wants it, or read a whole asset.
		{Queue: Background, Each: 1, Kinds: []string{"asset.static", "asset.master", "asset.captions"}},
		// Likewise, or they go at the pace of a server that recognises speech.
		{Queue: Speech, Each: 4, Most: 64, ByOwner: true, Kinds: []string{"track.speech"}},
		// They may come by the thousand, and delete object by object.
		{
			Queue: Cleanup, Each: 1, Least: 2,
			Kinds: []string{
				"media.purge", "asset.expire", "upload.expire", "upload.clear", "retention.run", "retention.measure",
			},
		},
	}
}

// Places is how many jobs of the class run at a time on a node of so many workers.
func (c Class) Places(workers int) int {
	n := max(c.Each*workers, c.Least)
	if c.Most > 0 {
		n = max(min(n, c.Most), workers)
	}
	return n
}

// Of returns the queue of a kind; false: it has none.
func (cs Classes) Of(kind string) (Queue, bool) {
	for _, c := range cs {
		if slices.Contains(c.Kinds, kind) {
			return c.Queue, true
		}
	}
	return "", false
}

// Proper returns where a job of a kind that stands in a queue belongs. That is another one when an older version has
// inserted it, whose classes were others.
func (cs Classes) Proper(kind string, in Queue) Queue {
	for _, c := range cs {
		if c.Queue == in && slices.Contains(c.Kinds, kind) {
			return in
		}
	}
	if q, ok := cs.Of(kind); ok {
		return q
	}
	return in
}
