package fetch

import (
	"context"
	"net"
)

// DialBy lets a test in a bubble of time use connections without sockets.
func (c *Client) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.transport.DialContext = dial
}

// RoomBy lets a test say what room its disk has.
func (c *Client) RoomBy(room func(path string) (free, total int64, err error)) { c.room = room }

// ContentRange is what resuming reads.
func ContentRange(s string) (start, total int64, ok bool) { return contentRange(s) }
