// Package metering counts in memory how much of which asset viewers are sent, with atomic additions only: it never
// delays a response and allocates nothing. It must never know who the viewers are, HTTP or databases. It starts no
// goroutine: the counts are collected from time to time.
package metering

import (
	"sync"
	"sync/atomic"
	"time"
)

// Tier is a size of picture, by its pixels.
type Tier int

// The tiers.
const (
	AudioOnly Tier = iota
	Tier720
	Tier1080
	Tier1440
	Tier2160
	Tiers // how many there are
)

// TierOf is the tier of a picture with so many pixels, width times height; 0: there is no picture.
func TierOf(pixels int) Tier {
	switch {
	case pixels <= 0:
		return AudioOnly
	case pixels <= 1280*720:
		return Tier720
	case pixels <= 1920*1080:
		return Tier1080
	case pixels <= 2048*2048:
		return Tier1440
	}
	return Tier2160
}

// Asset is whose media is counted.
type Asset struct {
	ID          string
	Environment string
	LiveStream  string // that it was recorded from; empty: none
}

// Lengths are how much media of each tier was sent.
type Lengths [Tiers]time.Duration

// Meter has the counters that were used since it was last read. The zero value is ready.
type Meter struct {
	mu     sync.Mutex
	active []*Counter
}

// Counter counts what is sent of one asset. There may be several for one asset. It lives as long as somebody holds it
// or something that it has counted was not taken.
type Counter struct {
	meter *Meter
	asset Asset
	sent  [Tiers]atomic.Int64 // nanoseconds
	known atomic.Bool         // the meter has it among its active ones
}

// Counter returns a new counter of an asset. A nil Meter returns nil, which counts nothing.
func (m *Meter) Counter(a Asset) *Counter {
	if m == nil {
		return nil
	}
	return &Counter{meter: m, asset: a}
}

// Add counts media that was sent. A nil Counter ignores it.
func (c *Counter) Add(t Tier, d time.Duration) {
	if c == nil || d <= 0 {
		return
	}
	c.sent[t].Add(int64(d))
	// Once after each time that nothing was sent for a while.
	if !c.known.Load() && c.known.CompareAndSwap(false, true) {
		c.meter.mu.Lock()
		c.meter.active = append(c.meter.active, c)
		c.meter.mu.Unlock()
	}
}

// Take returns what was sent since it was last called, by asset, without the assets of which nothing was.
func (m *Meter) Take() map[Asset]Lengths {
	m.mu.Lock()
	active := m.active
	m.active = nil
	m.mu.Unlock()
	out := map[Asset]Lengths{}
	for _, c := range active {
		c.known.Store(false) // before it is read: what is added afterwards makes it known again
		sum := out[c.asset]
		for t := range c.sent {
			sum[t] += time.Duration(c.sent[t].Swap(0))
		}
		if sum != (Lengths{}) {
			out[c.asset] = sum
		}
	}
	return out
}

// Delivery is what a body has of its asset. The zero value counts as nothing: text, images, sound beside a picture.
type Delivery struct {
	Of     *Counter
	Length time.Duration
	Pixels int // width times height of the picture; 0: there is none
}

// Sent counts that sent of size bytes went out.
func (d Delivery) Sent(sent, size int64) {
	if d.Of == nil || sent <= 0 || size <= 0 {
		return
	}
	d.Of.Add(TierOf(d.Pixels), time.Duration(float64(d.Length)*min(1, float64(sent)/float64(size))))
}
