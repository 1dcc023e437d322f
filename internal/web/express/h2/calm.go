package h2

import (
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// Bounds on what a client can make a connection do in vain, RFC 9113 section 10.5. Who goes beyond them is told
// ENHANCE_YOUR_CALM and loses the connection.
const (
	// mostVain is how many frames that ask for nothing (SETTINGS, PING, PRIORITY, WINDOW_UPDATE, empty DATA and
	// CONTINUATION) may come at once, and vainRate how many more in a second. What is of use gives some back: a client
	// may send a few WINDOW_UPDATEs for each DATA frame, and PRIORITY for each request.
	mostVain = 1000
	vainRate = 100
	vainData = 3 // for each frame of DATA that was sent or has come, of a fair size
	fair     = 512
	vainDone = 20 // for each response

	// resetCost is what a stream counts that is reset before its response has ended, by the client or because of what
	// it did (CVE-2023-44487, CVE-2025-8671): 100 at once, 10 in a second. Responses that have ended give some back.
	resetCost = 10

	// mostControl is how many bytes of control frames may wait to be sent.
	mostControl = 16 << 10

	// mostFragments is how many frames a block of header fields may have (CVE-2024-27316).
	mostFragments = 32
)

// calm counts what is done in vain. Only the goroutine that reads uses it, but for given.
type calm struct {
	left  int
	at    time.Time    // when left was last raised by time
	given atomic.Int64 // by others, and not yet part of left
}

func (c *calm) init(now time.Time) { c.left, c.at = mostVain, now }

// vain counts n frames.
func (c *calm) vain(n int) error {
	if c.left -= n; c.left >= 0 {
		return nil
	}
	now := time.Now()
	back := c.given.Swap(0) + int64(min(now.Sub(c.at), mostVain/vainRate*time.Second)*vainRate/time.Second)
	c.left, c.at = int(min(int64(c.left)+back, mostVain)), now
	if c.left < 0 {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return nil
}

// reset counts a stream that was reset.
func (c *calm) reset() error { return c.vain(resetCost) }

// useful gives n frames back.
func (c *calm) useful(n int64) {
	if c.given.Load() < mostVain {
		c.given.Add(n)
	}
}
