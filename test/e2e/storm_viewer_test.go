package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/rig"
)

// memory is all that a viewer was told and given over the lives of a server, by path: the server's ports change.
type memory struct {
	mu     sync.Mutex
	random *rand.Rand
	faults []string
	sums   map[string][sha256.Size]byte // of what was given
	lines  map[string]string            // EXTINF of segments, "gap" of those that are gaps
	names  map[string]string            // what has a media sequence number: its path, by playlist and number
	next   map[string]int               // by playlist: the number behind the last one that was listed
	first  map[string]int               // by playlist: EXT-X-MEDIA-SEQUENCE
	listed map[string][]string          // by playlist: what its last text named
	whole  []string                     // every segment
	// what nobody was given yet may have to be made, and what for that is not stored
	made  bool
	stood time.Duration // the longest stand
}

func newMemory(seed uint64) *memory {
	return &memory{
		random: rand.New(rand.NewPCG(seed, 1)), sums: map[string][sha256.Size]byte{}, lines: map[string]string{},
		names: map[string]string{},
		next:  map[string]int{}, first: map[string]int{}, listed: map[string][]string{},
	}
}

func (m *memory) fault(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) < 20 {
		m.faults = append(m.faults, fmt.Sprintf(format, args...))
	}
}

// follow watches a playlist as a low-latency player does, until ctx ends: it waits for the next part, and fetches what
// is new. sent is when the encoder sent each of its pictures.
func (m *memory) follow(ctx context.Context, at *address, playlist string, sent func() []time.Time) {
	query, grew := "", len(sent())
	for ctx.Err() == nil {
		base := at.http.Load().(string)
		code, text, err := try(ctx, base+playlist+query)
		if err != nil || code != http.StatusOK {
			query = ""
			rig.Pause(20 * time.Millisecond) // it is being killed, or has just begun
			continue
		}
		fresh, ask := m.read(playlist, string(text))
		if n := len(sent()); len(fresh) > 0 {
			m.stand(time.Duration(n-grew) * time.Second / 30)
			grew = n
		}
		for _, p := range fresh {
			m.fetch(ctx, base, p, "while it is live")
		}
		if query = ask; query == "" {
			rig.Pause(200 * time.Millisecond)
		}
	}
}

// stand notes for how long an encoder sent, over all its connections, without anything new in a playlist.
func (m *memory) stand(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stood = max(m.stood, d)
}

// fetch gets what was listed; that it can't be had while the server is killed is no fault.
func (m *memory) fetch(ctx context.Context, base, path, when string) {
	code, body, err := try(ctx, base+path)
	if err != nil {
		return
	}
	sum := sha256.Sum256(body)
	m.mu.Lock()
	before, known := m.sums[path]
	if code == http.StatusOK && !known {
		m.sums[path] = sum
	}
	m.mu.Unlock()
	switch {
	case code == http.StatusServiceUnavailable && m.made && !known: // it is asked for again later
	case code != http.StatusOK:
		m.fault("%s: %s was listed and is %d", when, path, code)
	case known && before != sum:
		m.fault("%s: %s has other bytes", when, path)
	}
}

// read notes what a playlist says and gives what it names for the first time, and how to ask for its next state.
func (m *memory) read(playlist, text string) (fresh []string, ask string) {
	folder := playlist[:strings.LastIndexByte(playlist, '/')+1]
	var all []string
	msn, parts, length, gap, low := 0, 0, "", false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		tag, value, _ := strings.Cut(line, ":")
		switch {
		case tag == "#EXT-X-MEDIA-SEQUENCE":
			msn, _ = strconv.Atoi(value)
			m.forward(m.first, playlist, "EXT-X-MEDIA-SEQUENCE", msn)
		case tag == "#EXT-X-PART-INF":
			low = true
		case tag == "#EXT-X-MAP", tag == "#EXT-X-PART":
			all = append(all, folder+uriAttribute.FindStringSubmatch(line)[1])
			if tag == "#EXT-X-PART" {
				parts++
			}
		case tag == "#EXTINF":
			length = value
		case tag == "#EXT-X-GAP":
			gap = true
		case line != "" && line[0] != '#':
			m.segment(playlist, folder+line, msn, length, gap)
			if !gap {
				all = append(all, folder+line)
			}
			msn, parts, gap = msn+1, 0, false
		}
	}
	m.forward(m.next, playlist, "the last segment", msn)
	if low {
		ask = fmt.Sprintf("?_HLS_msn=%d&_HLS_part=%d", msn, parts)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed[playlist] = all
	for _, p := range all {
		if _, known := m.sums[p]; !known {
			fresh = append(fresh, p)
		}
	}
	return fresh, ask
}

// forward wants a number of a playlist to grow only.
func (m *memory) forward(of map[string]int, playlist, what string, n int) {
	m.mu.Lock()
	before := of[playlist]
	of[playlist] = max(before, n)
	m.mu.Unlock()
	if n < before {
		m.fault("%s: %s goes back from %d to %d", playlist, what, before, n)
	}
}

// segment notes a segment, which has to be what it was. The gaps in front of a recording are of no length that matters.
func (m *memory) segment(playlist, path string, msn int, length string, gap bool) {
	if gap {
		length = "gap"
	}
	m.mu.Lock()
	number := playlist + " " + strconv.Itoa(msn)
	line, known := m.lines[path]
	name, numbered := m.names[number]
	m.lines[path], m.names[number] = length, path
	if !known && !gap {
		m.whole = append(m.whole, path)
	}
	m.mu.Unlock()
	if known && line != length {
		m.fault("%s was listed with %s and is with %s", path, line, length)
	}
	if numbered && name != path {
		m.fault("segment %d of %s was %s and is %s", msn, playlist, name, path)
	}
}

// last is all that is listed now, and some of what was listed before.
func (m *memory) last() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.listed {
		all = append(all, l...)
	}
	for range min(len(m.whole), 10) {
		all = append(all, m.whole[m.random.IntN(len(m.whole))])
	}
	return all
}

// recall wants what was listed to be there, with the bytes that were given.
func (m *memory) recall(t *testing.T, base, when string, all []string) {
	t.Helper()
	for _, p := range all {
		m.fetch(t.Context(), base, p, when)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.faults {
		t.Errorf("%s: %s", when, f)
	}
}
