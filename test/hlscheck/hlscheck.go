// Package hlscheck watches an HLS or Low-Latency HLS presentation over HTTP as a suspicious player would, and reports
// where it departs from RFC 8216bis, from ISO 14496-12, or from what players are known to need. It must never know how
// the server under test works: it shares no code with it. The goroutines it starts, one for each rendition and request,
// end before Check returns.
package hlscheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options say what is checked and how long.
type Options struct {
	// URL is the multivariant playlist's.
	URL string
	// Client makes the requests; nil is a client of its own.
	Client *http.Client
	// Follow is how long a playlist without EXT-X-ENDLIST is watched; 0 looks once.
	Follow time.Duration
	// Until are rules for which something has to happen first: the watch goes on after Follow until each of them has
	// been applied.
	Until []string
	// Decoder is the path of ffmpeg, which decodes the segments; "" leaves that out.
	Decoder string
	// MaxSegments bounds how many segments of each rendition are fetched when it is first seen, the newest ones; 0 is
	// all.
	MaxSegments int
	// MayStall says that the encoder is interrupted on purpose: a live playlist may stop growing for a while.
	MayStall bool
	// StallsFrom is when MayStall begins to be true of an encoder that stops later; zero: never.
	StallsFrom time.Time
	// OtherMedia says that other media begins now and then, as slate does: the playlist has to grow all the same, but a
	// part that was hinted may not come where it does, or be the first one of that media, and there may be no hint.
	OtherMedia bool
	// LowLatency demands what Appendix B asks of a Low-Latency server, in each live media playlist with audio or video.
	LowLatency bool
}

func (o *Options) stalls() bool {
	return o.MayStall || !o.StallsFrom.IsZero() && time.Now().After(o.StallsFrom)
}

// Finding is one departure.
type Finding struct {
	Rule    string // of Rules
	Section string // of RFC 8216bis unless it names another document
	URL     string
	Text    string // what was seen
	More    int    // how often the same rule was broken at the same place besides
}

func (f Finding) String() string {
	more := ""
	if f.More > 0 {
		more = fmt.Sprintf(" (and %d more)", f.More)
	}
	return fmt.Sprintf("%s (%s): %s: %s%s", f.Rule, f.Section, f.URL, f.Text, more)
}

// Report is the outcome.
type Report struct {
	Findings []Finding
	// Checked counts for each rule how often it was applied: a rule that was never applied has proved nothing.
	Checked    map[string]int
	Renditions []Rendition
}

// Rendition sums up one media playlist.
type Rendition struct {
	URL             string
	Kind            string // video, audio, text
	Segments        int    // fetched
	Parts           int    // fetched
	Reloads         int
	First, Last     int     // media sequence numbers seen listed
	Seconds         float64 // of the segments fetched
	Discontinuities int
	Ended           bool // EXT-X-ENDLIST
	TargetDuration  int
	PartTarget      float64
}

// String is the report for a person: findings, or that there are none.
func (r *Report) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	for _, v := range r.Renditions {
		fmt.Fprintf(&b,
			"%s %s: %d segments (%.1f s), %d parts, %d reloads, msn %d to %d, %d discontinuities, ended %t\n",
			v.Kind, v.URL, v.Segments, v.Seconds, v.Parts, v.Reloads, v.First, v.Last, v.Discontinuities, v.Ended)
	}
	total := 0
	for _, n := range r.Checked {
		total += n
	}
	fmt.Fprintf(&b, "%d findings; %d rules applied %d times\n", len(r.Findings), len(r.Checked), total)
	return b.String()
}

// Unchecked lists those of the given rules that were never applied.
func (r *Report) Unchecked(rules ...string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(id string) bool { return r.Checked[id] > 0 })
}

// Check watches the presentation. An error means that it could not be watched at all, or that ctx ended.
func Check(ctx context.Context, o Options) (*Report, error) {
	if o.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		defer transport.CloseIdleConnections()
		o.Client = &http.Client{Transport: transport}
	}
	c := &checker{o: o, checked: map[string]int{}, seen: map[string]int{}, last: map[string]int{}}
	err := c.run(ctx)
	r := &Report{Findings: c.findings, Checked: c.checked}
	for _, v := range c.renditions {
		r.Renditions = append(r.Renditions, v.summary())
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return strings.Compare(a.Rule, b.Rule) })
	if err == nil {
		err = ctx.Err()
	}
	return r, err
}

// goesOn reports whether playlists are watched further.
func (c *checker) goesOn(deadline time.Time) bool {
	if time.Now().Before(deadline) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.o.Until, func(rule string) bool { return c.checked[rule] == 0 })
}

type checker struct {
	o          Options
	master     *multivariant
	renditions []*rendition

	mu       sync.Mutex
	findings []Finding
	checked  map[string]int
	seen     map[string]int // findings by rule and folder
	last     map[string]int // the place in findings of the last one, by the same
}

// manyFindings is how many findings of one rule at one playlist are worth reading.
const manyFindings = 3

// check applies a rule: it counts it, and reports when ok is false.
func (c *checker) check(rule string, ok bool, url, format string, args ...any) bool {
	section, known := Rules[rule]
	if !known {
		panic("hlscheck: rule " + rule + " is not in the table")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checked[rule]++
	if ok {
		return true
	}
	f := Finding{Rule: rule, Section: section.Section, URL: url, Text: fmt.Sprintf(format, args...)}
	base, _, _ := strings.Cut(url, "?")
	key := rule + " " + base[:strings.LastIndex(base, "/")+1]
	if c.seen[key]++; c.seen[key] > manyFindings {
		c.findings[c.last[key]].More++
		return false
	}
	c.last[key] = len(c.findings)
	c.findings = append(c.findings, f)
	return false
}

func (c *checker) run(ctx context.Context) error {
	if err := c.openMaster(ctx); err != nil {
		return err
	}
	c.checkUnknown(ctx)
	if err := c.checkSessionData(ctx); err != nil {
		return err
	}
	deadline := time.Now().Add(c.o.Follow)
	g, inner := errgroup.WithContext(ctx)
	for _, v := range c.renditions {
		g.Go(func() error { return v.follow(inner, deadline) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	c.checkAcross()
	c.checkRates()
	if err := c.checkTiles(ctx); err != nil {
		return err
	}
	if c.o.Decoder != "" {
		for _, v := range c.renditions {
			if err := v.decode(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

var errNoPlaylist = errors.New("not a playlist")

// openMaster reads the multivariant playlist and makes a rendition for each media playlist.
func (c *checker) openMaster(ctx context.Context) error {
	a, err := c.fetchPlaylist(ctx, c.o.URL)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("read %s: status %d: %w", c.o.URL, a.status, errNoPlaylist)
	}
	m := parseMultivariant(string(a.body), func(rule string, ok bool, format string, args ...any) {
		c.check(rule, ok, c.o.URL, format, args...)
	})
	if len(m.variants) == 0 {
		return fmt.Errorf("read %s: no EXT-X-STREAM-INF: %w", c.o.URL, errNoPlaylist)
	}
	c.master = m
	c.checkMaster(m)
	add := func(kind, uri string) *rendition {
		u := c.resolve(c.o.URL, uri)
		for _, v := range c.renditions {
			if v.url == u {
				return v
			}
		}
		v := &rendition{
			c: c, url: u, kind: kind, segments: map[int]*segmentSeen{}, parts: map[partKey]*partSeen{},
			inits: map[string]*initSeen{},
		}
		c.renditions = append(c.renditions, v)
		return v
	}
	for i := range m.variants {
		kind := "video"
		if m.variants[i].resolution == "" && !strings.Contains(m.variants[i].codecs, "avc") {
			kind = "audio"
		}
		v := add(kind, m.variants[i].uri)
		v.variants = append(v.variants, &m.variants[i])
	}
	for _, media := range m.media {
		if media.uri != "" {
			add(map[string]string{"SUBTITLES": "text", "AUDIO": "audio", "VIDEO": "video"}[media.kind], media.uri)
		}
	}
	return nil
}

// RuleIDs lists the table's rules in order.
func RuleIDs() []string { return slices.Sorted(maps.Keys(Rules)) }
