package rtmp

import "time"

// clock unwraps RTMP's timestamps, milliseconds modulo 2^32 and shared by audio and video. A step of more than 24.8
// days forwards counts as one backwards.
type clock struct {
	last    uint32
	at      int64 // milliseconds
	started bool
}

func (c *clock) unwrap(timestamp uint32) time.Duration {
	if !c.started {
		c.started, c.last, c.at = true, timestamp, int64(timestamp)
	}
	c.at += int64(int32(timestamp - c.last))
	c.last = timestamp
	return time.Duration(c.at) * time.Millisecond
}
